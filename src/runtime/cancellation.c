/* cancellation.c -- ends runs from another thread. */
#include <stdlib.h>

#include "core/alloc.h"
#include "runtime/session_int.h"

struct leat_cancellation {
    pthread_mutex_t lock; /* guards what follows; a step's lock comes after it */
    leat_live_step *steps;
    bool cancelled;
};

leat_cancellation *leat_cancellation_new(void)
{
    leat_cancellation *c = leat_new(leat_cancellation);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void leat_cancellation_free(leat_cancellation *c)
{
    if (!c)
        return;
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void cancel(leat_live_step *l)
{
    leat_step_fail(&l->step, leat_error(CANCELLED, "The run was cancelled"));
}

void leat_cancel_runs(leat_cancellation *c)
{
    pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    for (leat_live_step *l = c->steps; l; l = l->cancel_next)
        cancel(l);
    pthread_mutex_unlock(&c->lock);
}

void leat_cancellation_join(leat_cancellation *c, leat_live_step *l)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    l->cancel_prev = NULL;
    l->cancel_next = c->steps;
    if (c->steps)
        c->steps->cancel_prev = l;
    c->steps = l;
    if (c->cancelled)
        cancel(l);
    pthread_mutex_unlock(&c->lock);
}

void leat_cancellation_part(leat_cancellation *c, leat_live_step *l)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    if (l->cancel_prev)
        l->cancel_prev->cancel_next = l->cancel_next;
    else
        c->steps = l->cancel_next;
    if (l->cancel_next)
        l->cancel_next->cancel_prev = l->cancel_prev;
    pthread_mutex_unlock(&c->lock);
}
