/* cancellation.c -- ends runs, and other waits, from another thread. */
#include <stdlib.h>

#include "core/alloc.h"
#include "runtime/session_int.h"

struct leat_cancellation {
    leat_object object;
    pthread_mutex_t
        lock; /* guards what follows; a step's lock, and those of calls, come after it */
    leat_cancel_watch *watches;
    bool cancelled;
};

leat_cancellation *leat_cancellation_new(void)
{
    leat_cancellation *c = leat_new_object(leat_cancellation, CANCELLATION);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void leat_cancellation_free(leat_cancellation *c)
{
    if (!c)
        return;
    if (!LEAT_USABLE(CANCELLATION, c))
        return;
    pthread_mutex_destroy(&c->lock);
    leat_object_free(&c->object);
}

void leat_cancel_runs(leat_cancellation *c)
{
    if (!LEAT_USABLE(CANCELLATION, c))
        return;
    pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    for (leat_cancel_watch *w = c->watches; w; w = w->next)
        w->fn(w->arg);
    pthread_mutex_unlock(&c->lock);
}

bool leat_is_cancelled(leat_cancellation *c)
{
    if (!c || !LEAT_USABLE(CANCELLATION, c))
        return false;
    pthread_mutex_lock(&c->lock);
    bool yes = c->cancelled;
    pthread_mutex_unlock(&c->lock);
    return yes;
}

void leat_cancellation_watch(leat_cancellation *c, leat_cancel_watch *w)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    w->prev = NULL;
    w->next = c->watches;
    if (c->watches)
        c->watches->prev = w;
    c->watches = w;
    if (c->cancelled)
        w->fn(w->arg);
    pthread_mutex_unlock(&c->lock);
}

void leat_cancellation_unwatch(leat_cancellation *c, leat_cancel_watch *w)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    if (w->prev)
        w->prev->next = w->next;
    else
        c->watches = w->next;
    if (w->next)
        w->next->prev = w->prev;
    pthread_mutex_unlock(&c->lock);
}

/* ---- Steps of a session ---- */

static void cancel_step(void *step)
{
    leat_step_fail(step, leat_error(CANCELLED, "The run was cancelled"));
}

static void close_step(void *step)
{
    leat_step_fail(step, leat_session_closed_error());
}

void leat_session_guard(leat_session *s, leat_cancellation *c, leat_step *step, leat_step_guard *g)
{
    *g = (leat_step_guard){.run = {.fn = cancel_step, .arg = step},
                           .session = {.fn = close_step, .arg = step}};
    leat_cancellation_watch(c, &g->run);
    leat_cancellation_watch(s->closing, &g->session);
}

void leat_session_unguard(leat_session *s, leat_cancellation *c, leat_step_guard *g)
{
    leat_cancellation_unwatch(s->closing, &g->session);
    leat_cancellation_unwatch(c, &g->run);
}
