/* queue_attempt.c -- attempts that wait at a queue, and how they are served; see queue.h for the
 * rules. */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/queue.h"

enum { FEW = LEAT_ATTEMPT_FEW };

static bool puts_something(const leat_attempt *a)
{
    return a->kind <= LEAT_CLOSE;
}

static leat_queue *queue_of(const leat_attempt *a)
{
    return (leat_queue *)a->base.resource;
}

static leat_waiters *line_of(leat_attempt *a)
{
    return puts_something(a) ? &queue_of(a)->puts : &queue_of(a)->takes;
}

/* ---- Serving; the lock is held ---- */

static const char *kind_name(const leat_queue *q, bool batch)
{
    static const char *const names[] = {"FIFOQueue", "PaddingFIFOQueue", "PriorityQueue",
                                        "RandomShuffleQueue"};
    /* For single elements, a padding queue is a FIFO queue, also in messages. */
    return names[q->kind == LEAT_QUEUE_PADDING && !batch ? LEAT_QUEUE_FIFO : q->kind];
}

typedef enum result { STUCK, PROGRESS, COMPLETE } result;

static leat_status put_element(leat_attempt *a)
{
    leat_queue *q = queue_of(a);
    leat_tensor *few[FEW], **tuple = few;
    if (q->n > FEW)
        tuple = leat_new_array(leat_tensor *, q->n);
    leat_status s = NULL;
    if (a->kind == LEAT_PUT) {
        for (int i = 0; i < q->n; i++)
            tuple[i] = leat_tensor_ref(leat_kernel_in(a->base.kernel, i + 1));
    } else {
        int64_t rows = leat_kernel_in(a->base.kernel, 1)->shape.dim[0];
        s = leat_queue_slice(q, a->base.kernel, rows - a->wanted, tuple);
    }
    if (!s)
        leat_queue_push(q, tuple);
    if (tuple != few)
        free(tuple);
    return s;
}

static result serve_put(leat_attempt *a)
{
    leat_queue *q = queue_of(a);
    if (q->closed) {
        a->base.status =
            a->kind == LEAT_CLOSE
                ? leat_error(CANCELLED, "Queue '%s' is already closed.", q->name)
                : leat_error(CANCELLED, "%s '%s' is closed.", kind_name(q, false), q->name);
        return COMPLETE;
    }
    if (a->kind == LEAT_CLOSE) {
        q->closed = true;
        return COMPLETE;
    }
    result r = STUCK;
    while (q->unlimited || q->count < q->capacity) {
        a->base.status = put_element(a);
        if (a->base.status || --a->wanted == 0)
            return COMPLETE;
        r = PROGRESS;
    }
    return r;
}

static void take_element(leat_attempt *a)
{
    leat_queue *q = queue_of(a);
    if (a->n_taken == a->cap) {
        a->cap = a->cap ? a->cap * 2 : 4;
        bool few = a->taken == a->few;
        a->taken =
            leat_xrealloc(few ? NULL : a->taken, sizeof(*a->taken) * (size_t)(a->cap * q->n));
        if (few)
            memcpy(a->taken, a->few, sizeof(*a->taken) * (size_t)(a->n_taken * q->n));
    }
    leat_queue_pop(q, a->taken + a->n_taken * q->n);
    a->n_taken++;
    a->wanted--;
}

/* The queue is closed and has too few elements: those that were dequeued are put back. */
static result serve_rest(leat_attempt *a)
{
    leat_queue *q = queue_of(a);
    int64_t had = q->count;
    leat_queue_unpop(q, a->taken, a->n_taken);
    a->n_taken = 0;
    if (a->kind != LEAT_TAKE_UP_TO || q->count == 0) {
        a->base.status = leat_error(
            OUT_OF_RANGE,
            "%s '%s' is closed and has insufficient elements (requested %lld, "
            "current size %lld)",
            kind_name(q, a->kind != LEAT_TAKE), q->name, (long long)a->wanted, (long long)had);
        return COMPLETE;
    }
    a->wanted = q->count;
    while (a->wanted)
        take_element(a);
    return COMPLETE;
}

static result serve_take(leat_attempt *a)
{
    leat_queue *q = queue_of(a);
    if (q->closed && q->count < a->wanted)
        return serve_rest(a);
    /* A batch of a priority queue is sorted only if all of it is dequeued at once. */
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

static bool serve(leat_waiters *line, leat_waiters *finished)
{
    bool progress = false;
    while (line->first) {
        leat_attempt *a = (leat_attempt *)line->first;
        result r = puts_something(a) ? serve_put(a) : serve_take(a);
        progress |= r != STUCK;
        if (r != COMPLETE)
            break;
        leat_waiters_remove(line, &a->base);
        leat_waiters_done(finished, &a->base);
    }
    return progress;
}

static void serve_all(leat_queue *q, leat_waiters *finished)
{
    bool progress;
    do {
        progress = serve(&q->puts, finished);
        progress |= serve(&q->takes, finished);
    } while (progress);
}

/* Elements that the attempt has dequeued are put back; those that it has enqueued stay. */
static void cancel_locked(leat_attempt *a, leat_waiters *finished)
{
    leat_queue_unpop(queue_of(a), a->taken, a->n_taken);
    a->n_taken = 0;
    leat_waiters_remove(line_of(a), &a->base);
    a->base.status = leat_error(CANCELLED, "%s operation was cancelled",
                                puts_something(a) ? "Enqueue" : "Dequeue");
    leat_waiters_done(finished, &a->base);
}

/* ---- The functions of a waiter; the lock is released ---- */

static void cancelled(leat_waiter *w)
{
    leat_attempt *a = (leat_attempt *)w;
    leat_queue *q = queue_of(a);
    leat_waiters finished = {0};
    pthread_mutex_lock(&q->lock);
    if (w->waiting) {
        cancel_locked(a, &finished);
        serve_all(q, &finished);
    }
    pthread_mutex_unlock(&q->lock);
    leat_waiters_finish(&finished);
}

/* Sets the kernel's outputs to the dequeued elements. */
static void give(leat_waiter *w)
{
    leat_attempt *a = (leat_attempt *)w;
    leat_queue *q = queue_of(a);
    if (!w->status && a->kind == LEAT_TAKE) {
        for (int i = 0; i < q->n; i++)
            leat_kernel_set(w->kernel, i, a->taken[i]);
        a->n_taken = 0;
    } else if (!w->status && !puts_something(a)) {
        w->status = leat_queue_batch(q, w->kernel, a->taken, a->n_taken);
    }
    for (int64_t i = 0; i < a->n_taken * q->n; i++)
        leat_tensor_unref(a->taken[i]);
    if (a->taken != a->few)
        free(a->taken);
}

/* Hands the dequeued element to the kernel, which goes on. */
static void hand_on(leat_waiter *w)
{
    leat_attempt *a = (leat_attempt *)w;
    a->taken_fn(a->taken_arg, w->status, a->taken);
    if (a->taken != a->few)
        free(a->taken);
}

static const leat_waiter_ops ops = {
    .size = sizeof(leat_attempt), .give = give, .cancelled = cancelled};
static const leat_waiter_ops take_ops = {
    .size = sizeof(leat_attempt), .give = hand_on, .cancelled = cancelled, .goes_on = true};

static leat_attempt *attempt_new(const leat_waiter_ops *o, leat_queue *q, leat_kernel *k,
                                 leat_attempt_kind kind, int64_t wanted)
{
    leat_attempt *a = leat_waiter_new(o, k, &q->base);
    a->kind = kind;
    a->wanted = wanted;
    a->taken = a->few;
    a->cap = FEW / q->n;
    return a;
}

static void begin(leat_queue *q, leat_attempt *a)
{
    leat_waiters finished = {0};
    pthread_mutex_lock(&q->lock);
    leat_waiters_add(line_of(a), &a->base);
    serve_all(q, &finished);
    if (a->base.waiting && !leat_waiter_watch(&a->base)) {
        cancel_locked(a, &finished);
        serve_all(q, &finished);
    }
    pthread_mutex_unlock(&q->lock);
    leat_waiters_finish(&finished);
}

void leat_queue_attempt(leat_queue *q, leat_kernel *k, leat_attempt_kind kind, int64_t wanted)
{
    begin(q, attempt_new(&ops, q, k, kind, wanted));
}

void leat_queue_take(leat_queue *q, leat_kernel *k, leat_queue_taken_fn fn, void *arg)
{
    leat_resource_ref(&q->base);
    leat_attempt *a = attempt_new(&take_ops, q, k, LEAT_TAKE, 1);
    a->taken_fn = fn;
    a->taken_arg = arg;
    begin(q, a);
}

void leat_queue_serve(leat_queue *q)
{
    leat_waiters finished = {0};
    pthread_mutex_lock(&q->lock);
    serve_all(q, &finished);
    pthread_mutex_unlock(&q->lock);
    leat_waiters_finish(&finished);
}

void leat_queue_close_now(leat_queue *q)
{
    leat_waiters finished = {0};
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    while (q->puts.first)
        cancel_locked((leat_attempt *)q->puts.first, &finished);
    serve_all(q, &finished);
    pthread_mutex_unlock(&q->lock);
    leat_waiters_finish(&finished);
}
