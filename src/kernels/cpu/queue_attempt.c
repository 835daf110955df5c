/* queue_attempt.c -- who waits at a queue, and how they are served; see queue.h for the rules. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/block.h"
#include "kernels/cpu/queue.h"

enum { FEW = 8 }; /* components of an element whose tuple is on the stack */

/* ---- Lists ---- */

static void append(leat_attempts *l, leat_attempt *a)
{
    a->next = NULL;
    a->prev = l->last;
    if (l->last)
        l->last->next = a;
    else
        l->first = a;
    l->last = a;
}

static void unlink_attempt(leat_attempts *l, leat_attempt *a)
{
    if (a->prev)
        a->prev->next = a->next;
    else
        l->first = a->next;
    if (a->next)
        a->next->prev = a->prev;
    else
        l->last = a->prev;
}

static bool puts_something(const leat_attempt *a)
{
    return a->kind <= LEAT_CLOSE;
}

static leat_attempts *line_of(leat_attempt *a)
{
    return puts_something(a) ? &a->queue->puts : &a->queue->takes;
}

/* ---- Serving; with the lock held ---- */

static const char *kind_name(const leat_queue *q, bool batch)
{
    static const char *const names[] = {"FIFOQueue", "PaddingFIFOQueue", "PriorityQueue",
                                        "RandomShuffleQueue"};
    /* One at a time, a padding queue is a FIFO, and says so. */
    return names[q->kind == LEAT_QUEUE_PADDING && !batch ? LEAT_QUEUE_FIFO : q->kind];
}

typedef enum result { STUCK, PROGRESS, COMPLETE } result;

static leat_status put_element(leat_attempt *a)
{
    leat_queue *q = a->queue;
    leat_tensor *few[FEW], **tuple = few;
    if (q->n > FEW)
        tuple = leat_new_array(leat_tensor *, q->n);
    leat_status s = NULL;
    if (a->kind == LEAT_PUT) {
        for (int i = 0; i < q->n; i++)
            tuple[i] = leat_tensor_ref(leat_kernel_in(a->kernel, i + 1));
    } else {
        int64_t rows = leat_kernel_in(a->kernel, 1)->shape.dim[0];
        s = leat_queue_slice(q, a->kernel, rows - a->wanted, tuple);
    }
    if (!s)
        leat_queue_push(q, tuple);
    if (tuple != few)
        free(tuple);
    return s;
}

static result serve_put(leat_attempt *a)
{
    leat_queue *q = a->queue;
    if (q->closed) {
        a->status = a->kind == LEAT_CLOSE
                        ? leat_error(CANCELLED, "Queue '%s' is already closed.", q->name)
                        : leat_error(CANCELLED, "%s '%s' is closed.", kind_name(q, false), q->name);
        return COMPLETE;
    }
    if (a->kind == LEAT_CLOSE) {
        q->closed = true;
        return COMPLETE;
    }
    result r = STUCK;
    while (q->count < q->capacity) {
        a->status = put_element(a);
        if (a->status || --a->wanted == 0)
            return COMPLETE;
        r = PROGRESS;
    }
    return r;
}

static void take_element(leat_attempt *a)
{
    leat_queue *q = a->queue;
    if (a->n_taken == a->cap) {
        a->cap = a->cap ? a->cap * 2 : a->wanted < 64 ? a->wanted : 64;
        a->taken = leat_xrealloc(a->taken, sizeof(*a->taken) * (size_t)(a->cap * q->n));
    }
    leat_queue_pop(q, a->taken + a->n_taken * q->n);
    a->n_taken++;
    a->wanted--;
}

/* The queue is closed and has too few elements: those that were taken go back. */
static result serve_rest(leat_attempt *a)
{
    leat_queue *q = a->queue;
    int64_t had = q->count;
    leat_queue_unpop(q, a->taken, a->n_taken);
    a->n_taken = 0;
    if (a->kind != LEAT_TAKE_UP_TO || q->count == 0) {
        a->status = leat_error(OUT_OF_RANGE,
                               "%s '%s' is closed and has insufficient elements (requested %lld, "
                               "current size %lld)",
                               kind_name(q, a->kind != LEAT_TAKE), q->name, (long long)a->wanted,
                               (long long)had);
        return COMPLETE;
    }
    a->wanted = q->count;
    while (a->wanted)
        take_element(a);
    return COMPLETE;
}

static result serve_take(leat_attempt *a)
{
    leat_queue *q = a->queue;
    if (q->closed && q->count < a->wanted)
        return serve_rest(a);
    /* A batch by priority is sorted only if all of it is taken at once. */
    if (q->kind == LEAT_QUEUE_PRIORITY && q->count < a->wanted)
        return STUCK;
    int64_t keep = q->closed ? 0 : q->min_after_take;
    result r = STUCK;
    while (q->count > keep) {
        take_element(a);
        if (!a->wanted)
            return COMPLETE;
        r = PROGRESS;
    }
    return r;
}

static bool serve(leat_attempts *line, leat_attempts *finished)
{
    bool progress = false;
    while (line->first) {
        leat_attempt *a = line->first;
        result r = puts_something(a) ? serve_put(a) : serve_take(a);
        progress |= r != STUCK;
        if (r != COMPLETE)
            break;
        unlink_attempt(line, a);
        a->waiting = false;
        append(finished, a);
    }
    return progress;
}

static void serve_all(leat_queue *q, leat_attempts *finished)
{
    bool progress;
    do {
        progress = serve(&q->puts, finished);
        progress |= serve(&q->takes, finished);
    } while (progress);
}

/* Elements that it took already go back; those that it put stay. */
static void cancel_locked(leat_attempt *a, leat_attempts *finished)
{
    leat_queue_unpop(a->queue, a->taken, a->n_taken);
    a->n_taken = 0;
    unlink_attempt(line_of(a), a);
    a->waiting = false;
    a->status = leat_error(CANCELLED, "%s operation was cancelled",
                           puts_something(a) ? "Enqueue" : "Dequeue");
    append(finished, a);
}

/* ---- Finishing; with the lock released ---- */

static void unref(leat_attempt *a)
{
    if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1)
        return;
    leat_resource_unref(&a->queue->base);
    leat_block_free(a, sizeof(*a));
}

/* What was taken becomes the kernel's outputs. */
static void give(leat_attempt *a)
{
    leat_queue *q = a->queue;
    leat_tensor **t = a->taken;
    if (!a->status && a->kind == LEAT_TAKE) {
        for (int i = 0; i < q->n; i++)
            leat_kernel_set(a->kernel, i, t[i]);
        a->n_taken = 0;
    } else if (!a->status && !puts_something(a)) {
        a->status = leat_queue_batch(q, a->kernel, t, a->n_taken);
    }
    for (int64_t i = 0; i < a->n_taken * q->n; i++)
        leat_tensor_unref(t[i]);
    free(t);
}

static void finish(leat_attempts *finished)
{
    for (leat_attempt *a = finished->first, *next; a; a = next) {
        next = a->next;
        if (a->cancellable && leat_step_off_cancel(a->kernel->step, &a->cancel))
            unref(a); /* it will not be called */
        give(a);
        leat_kernel_done(a->kernel, a->status);
        unref(a);
    }
}

static void cancelled(void *arg)
{
    leat_attempt *a = arg;
    leat_queue *q = a->queue;
    leat_attempts finished = {0};
    pthread_mutex_lock(&q->lock);
    if (a->waiting) {
        cancel_locked(a, &finished);
        serve_all(q, &finished); /* those behind it */
    }
    pthread_mutex_unlock(&q->lock);
    finish(&finished);
    unref(a);
}

/* ---- */

void leat_queue_attempt(leat_queue *q, leat_kernel *k, leat_attempt_kind kind, int64_t wanted)
{
    leat_attempt *a = leat_block_alloc(sizeof(*a));
    *a = (leat_attempt){.kind = kind,
                        .kernel = k,
                        .queue = q,
                        .waiting = true,
                        .wanted = wanted,
                        .cancel = {.fn = cancelled, .arg = a}};
    atomic_init(&a->refs, 1);
    leat_attempts finished = {0};
    pthread_mutex_lock(&q->lock);
    append(line_of(a), a);
    serve_all(q, &finished);
    if (a->waiting) {
        atomic_store(&a->refs, 2);
        a->cancellable = leat_step_on_cancel(k->step, &a->cancel);
        if (!a->cancellable) {
            atomic_store(&a->refs, 1);
            cancel_locked(a, &finished);
            serve_all(q, &finished);
        }
    }
    pthread_mutex_unlock(&q->lock);
    finish(&finished);
}

void leat_queue_close_now(leat_queue *q)
{
    leat_attempts finished = {0};
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    while (q->puts.first)
        cancel_locked(q->puts.first, &finished);
    serve_all(q, &finished);
    pthread_mutex_unlock(&q->lock);
    finish(&finished);
}
