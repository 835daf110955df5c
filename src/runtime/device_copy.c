/* device_copy.c -- tensors from one memory to another.
 *
 * A copy runs on a device's copy queue, so that the device computes meanwhile. It waits for what
 * the compute queue holds when the copy begins: for the work that makes a tensor which is copied
 * out, and for the last work on memory that was freed and is now copied to. Both tensors are held
 * until the copy was done. What uses the copy is enqueued after that, so that no queue waits for
 * it.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "runtime/device.h"

typedef struct move {
    leat_tensor *from, *to;
    leat_device *device; /* where `to` shall be in the end; NULL: in the host's memory */
    leat_device *worker; /* whose copy queue does it */
    leat_copied_fn fn;
    void *arg;
} move;

static void finish(move *m, leat_status s)
{
    leat_tensor *t = m->to;
    leat_copied_fn fn = m->fn;
    void *arg = m->arg;
    leat_tensor_unref(m->from);
    free(m);
    if (s) {
        leat_tensor_unref(t);
        t = NULL;
    }
    fn(arg, s, t);
}

static void copied(void *arg, leat_status s)
{
    move *m = arg;
    finish(m, leat_device_error(m->worker, s));
}

/* Work that is enqueued on the copy queue of d from now on runs after the work that is now in the
 * compute queue of `of`. */
static leat_status after_compute(leat_device *d, leat_device *of)
{
    leat_device_event e;
    LEAT_TRY(of->kind->mark(of, LEAT_QUEUE_COMPUTE, &e));
    leat_status s = d->kind->wait(d, LEAT_QUEUE_COPY, e);
    of->kind->event_free(of, e);
    return s;
}

/* Calls `copied` when the work that is now in the copy queue of d was done. */
static void finish_after(move *m, leat_device *d, leat_status s)
{
    leat_device_event e;
    m->worker = d;
    if (!s)
        s = d->kind->mark(d, LEAT_QUEUE_COPY, &e);
    if (s)
        finish(m, leat_device_error(d, s));
    else
        d->kind->on_event(d, e, copied, m);
}

static void copy_one_way(move *m, leat_device *d, leat_copy_way way)
{
    leat_status s = after_compute(d, d);
    if (!s)
        s = d->kind->copy(d, LEAT_QUEUE_COPY, way, m->to->data, m->from->data,
                          leat_tensor_bytes(m->from));
    finish_after(m, d, s);
}

static void copy_between(move *m, leat_device *from, leat_device *to)
{
    leat_status s = after_compute(to, from);
    if (!s)
        s = after_compute(to, to);
    if (!s)
        s = to->kind->copy_peer(to, LEAT_QUEUE_COPY, m->to->data, from, m->from->data,
                                leat_tensor_bytes(m->from));
    finish_after(m, to, s);
}

/* The first half of a copy over the host's memory. */
static void on_host(void *arg, leat_status s, leat_tensor *t)
{
    move *m = arg;
    if (!s)
        leat_tensor_move(t, m->device, m->fn, m->arg);
    else
        m->fn(m->arg, s, NULL);
    leat_tensor_unref(t);
    free(m);
}

void leat_tensor_move(leat_tensor *t, leat_device *to, leat_copied_fn fn, void *arg)
{
    leat_allocator *memory = leat_tensor_memory(t), *wanted = to ? leat_device_memory(to) : NULL;
    if (memory == wanted || !t->count) {
        fn(arg, NULL, leat_tensor_ref(t));
        return;
    }
    if (leat_dtype_managed(t->dtype)) {
        fn(arg,
           leat_error(INTERNAL, "A tensor of type %s cannot leave the host's memory",
                      leat_dtype_name(t->dtype)),
           NULL);
        return;
    }
    leat_device *from = memory ? memory->device : NULL;
    move *m = leat_new(move);
    *m = (move){.device = to, .fn = fn, .arg = arg};
    if (from && wanted && !(from->kind == to->kind && to->kind->copy_peer)) {
        leat_tensor_move(t, NULL, on_host, m);
        return;
    }
    leat_status s = leat_tensor_alloc(wanted, t->dtype, &t->shape, &m->to);
    m->from = leat_tensor_ref(t);
    if (s)
        finish(m, s);
    else if (from && wanted)
        copy_between(m, from, to);
    else
        copy_one_way(m, from ? from : to, from ? LEAT_COPY_OUT : LEAT_COPY_IN);
}

void leat_device_drain(leat_device *d, leat_event_fn fn, void *arg)
{
    leat_device_event e;
    leat_status s = d->kind->mark(d, LEAT_QUEUE_COMPUTE, &e);
    if (s)
        fn(arg, leat_device_error(d, s));
    else
        d->kind->on_event(d, e, fn, arg);
}
