/* reader_turn.c -- how kernels take turns at a reader, and wait for names; see reader.h. */
#include <stdlib.h>

#include "kernels/cpu/reader.h"

static leat_reader *reader_of(const leat_reader_turn *t)
{
    return (leat_reader *)t->base.resource;
}

static void go(void *turn);

static void go_in_thread(leat_reader_turn *t)
{
    leat_pool_submit_blocking(leat_kernel_device(t->base.kernel)->inter, go, t);
}

/* Ends a turn: the next kernel in line goes on in a thread of its own. */
static void end_turn(leat_reader_turn *t)
{
    leat_reader *r = reader_of(t);
    leat_waiters finished = {0};
    pthread_mutex_lock(&r->lock);
    leat_waiter *next = r->line.first;
    if (next)
        leat_waiters_remove(&r->line, next);
    else
        r->busy = false;
    pthread_mutex_unlock(&r->lock);
    if (next)
        go_in_thread((leat_reader_turn *)next);
    leat_waiters_done(&finished, &t->base);
    leat_waiters_finish(&finished);
}

static void go(void *turn)
{
    leat_reader_turn *t = turn;
    if (t->run(t))
        end_turn(t);
}

static void strings_free(leat_string *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        free(s[i].data);
    free(s);
}

static void set_strings(leat_reader_turn *t, int output, leat_string *from)
{
    leat_shape shape = t->one ? leat_shape() : leat_shape(t->n);
    leat_tensor *y = NULL;
    leat_status s = leat_kernel_out(t->base.kernel, output, &shape, &y);
    for (int64_t i = 0; !s && i < t->n; i++) { /* the bytes are handed over */
        leat_string *to = AT(leat_string, y) + i;
        free(to->data);
        *to = from[i];
        from[i] = (leat_string){0};
    }
    t->base.status = s;
}

static void give(leat_waiter *w)
{
    leat_reader_turn *t = (leat_reader_turn *)w;
    if (!w->status && t->queue)
        set_strings(t, 0, t->keys);
    if (!w->status && t->queue)
        set_strings(t, 1, t->values);
    strings_free(t->keys, t->n);
    strings_free(t->values, t->n);
    leat_resource_unref(t->queue ? &t->queue->base : NULL);
}

static leat_status left(void)
{
    return leat_error(CANCELLED, "Reader operation was cancelled");
}

/* The step is cancelled. A kernel that has the turn waits for a name at most, and the queue ends
 * that wait. */
static void cancelled(leat_waiter *w)
{
    leat_reader *r = (leat_reader *)w->resource;
    leat_waiters finished = {0};
    pthread_mutex_lock(&r->lock);
    if (w->waiting) {
        leat_waiters_remove(&r->line, w);
        w->status = left();
        leat_waiters_done(&finished, w);
    }
    pthread_mutex_unlock(&r->lock);
    leat_waiters_finish(&finished);
}

static const leat_waiter_ops ops = {
    .size = sizeof(leat_reader_turn), .give = give, .cancelled = cancelled};

void leat_reader_take_turn(leat_reader *r, leat_kernel *k, leat_queue *q, int64_t wanted,
                           bool (*run)(leat_reader_turn *t))
{
    leat_reader_turn *t = leat_waiter_new(&ops, k, &r->base);
    t->run = run;
    t->queue = q;
    t->wanted = wanted;
    t->one = q && leat_kernel_inputs(k) == 2;
    leat_waiters finished = {0};
    pthread_mutex_lock(&r->lock);
    const bool now = !r->busy;
    r->busy = true;
    if (!now) {
        leat_waiters_add(&r->line, &t->base);
        if (!leat_waiter_watch(&t->base)) {
            leat_waiters_remove(&r->line, &t->base);
            t->base.status = left();
            leat_waiters_done(&finished, &t->base);
        }
    }
    pthread_mutex_unlock(&r->lock);
    leat_waiters_finish(&finished);
    if (now)
        go(t);
}

/* ---- Names ---- */

static leat_status check_name(const leat_queue *q, leat_tensor *const *tuple)
{
    LEAT_REQUIRE(q->n == 1, INVALID_ARGUMENT, "Expected single component queue");
    LEAT_REQUIRE(tuple[0]->dtype == LEAT_STRING, INVALID_ARGUMENT,
                 "Expected queue with single string component");
    LEAT_REQUIRE(tuple[0]->count == 1, INVALID_ARGUMENT,
                 "Expected to dequeue a one-element string tensor");
    return NULL;
}

static void name_came(void *arg, leat_status s, leat_tensor **tuple)
{
    leat_reader_turn *t = arg;
    if (!s) {
        s = check_name(t->queue, tuple);
        for (int i = s ? 0 : 1; i < t->queue->n; i++)
            leat_tensor_unref(tuple[i]);
        t->name = s ? NULL : tuple[0];
    }
    t->answer = s;
    t->answered = true;
    if (atomic_exchange(&t->met, true))
        go_in_thread(t); /* the thread that asked has left */
}

bool leat_reader_ask(leat_reader_turn *t)
{
    t->answered = false;
    atomic_store(&t->met, false);
    leat_queue_take(t->queue, t->base.kernel, name_came, t);
    return atomic_exchange(&t->met, true); /* false: t may be in use by another thread now */
}
