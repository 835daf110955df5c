/* step.c -- see step.h. */
#include "runtime/step.h"

#include <string.h>

void leat_step_init(leat_step *s)
{
    memset(s, 0, sizeof(*s));
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->called, NULL);
    leat_event_init(&s->done);
}

void leat_step_release(leat_step *s)
{
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->called);
    leat_status_free(s->status);
}

void leat_step_part_ended(leat_step *s)
{
    if (atomic_fetch_sub_explicit(&s->running, 1, memory_order_acq_rel) != 1)
        return;
    if (s->ended)
        s->ended(s->arg);
    else
        leat_event_set(&s->done);
}

/* With the lock held, which is released around each callback. */
static void call_all(leat_step *s)
{
    s->failing = true;
    s->failer = pthread_self();
    while (s->cancels) {
        leat_cancel *c = s->cancels;
        s->cancels = c->next;
        if (c->next)
            c->next->prev = NULL;
        c->listed = false;
        s->calling = c;
        void (*fn)(void *, leat_status) = c->fn;
        void *arg = c->arg;
        pthread_mutex_unlock(&s->lock);
        fn(arg, s->status); /* may free c */
        pthread_mutex_lock(&s->lock);
        s->calling = NULL;
        pthread_cond_broadcast(&s->called);
    }
    s->failing = false;
    pthread_cond_broadcast(&s->called);
}

void leat_step_fail(leat_step *s, leat_status error)
{
    if (!error)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->cancelled, true);
    if (!s->status && !s->finished) {
        s->status = error;
        error = NULL;
        call_all(s);
    }
    pthread_mutex_unlock(&s->lock);
    leat_status_free(error);
}

bool leat_step_on_cancel(leat_step *s, leat_cancel *c)
{
    pthread_mutex_lock(&s->lock);
    c->listed = !s->status;
    if (c->listed) {
        c->prev = NULL;
        c->next = s->cancels;
        if (c->next)
            c->next->prev = c;
        s->cancels = c;
    }
    bool listed = c->listed;
    pthread_mutex_unlock(&s->lock);
    return listed;
}

void leat_step_off_cancel(leat_step *s, leat_cancel *c)
{
    pthread_mutex_lock(&s->lock);
    if (c->listed && !s->finished) {
        if (c->prev)
            c->prev->next = c->next;
        else
            s->cancels = c->next;
        if (c->next)
            c->next->prev = c->prev;
        c->listed = false;
    }
    while (s->calling == c && !pthread_equal(s->failer, pthread_self()))
        pthread_cond_wait(&s->called, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

leat_status leat_step_settle(leat_step *s)
{
    pthread_mutex_lock(&s->lock);
    s->finished = true;
    while (s->failing)
        pthread_cond_wait(&s->called, &s->lock);
    leat_status status = s->status;
    s->status = NULL;
    s->cancels = NULL;
    pthread_mutex_unlock(&s->lock);
    return status;
}
