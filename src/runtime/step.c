/* step.c -- see step.h. */
#include "runtime/step.h"

#include <sched.h>
#include <string.h>

void leat_step_init(leat_step *s)
{
    memset(s, 0, sizeof(*s));
    pthread_mutex_init(&s->lock, NULL);
    leat_event_init(&s->done);
}

void leat_step_release(leat_step *s)
{
    pthread_mutex_destroy(&s->lock);
    leat_status_free(s->status);
}

void leat_step_part_ended(leat_step *s)
{
    if (atomic_fetch_sub_explicit(&s->running, 1, memory_order_acq_rel) != 1)
        return;
    if (s->ended)
        s->ended(s);
    else
        leat_event_set(&s->done);
}

void leat_step_fail(leat_step *s, leat_status error)
{
    if (!error)
        return;
    pthread_mutex_lock(&s->lock);
    if (!s->status) {
        s->status = error;
        error = NULL;
    }
    atomic_store(&s->cancelled, true);
    while (s->cancels) {
        leat_cancel *c = s->cancels;
        s->cancels = c->next;
        if (c->next)
            c->next->prev = NULL;
        c->prev = c; /* being called */
        void (*fn)(void *) = c->fn;
        void *arg = c->arg;
        pthread_mutex_unlock(&s->lock);
        fn(arg); /* c may be gone after this */
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    leat_status_free(error);
}

bool leat_step_on_cancel(leat_step *s, leat_cancel *c)
{
    pthread_mutex_lock(&s->lock);
    bool ok = !atomic_load(&s->cancelled);
    if (ok) {
        c->prev = NULL;
        c->next = s->cancels;
        if (c->next)
            c->next->prev = c;
        s->cancels = c;
    }
    pthread_mutex_unlock(&s->lock);
    return ok;
}

bool leat_step_off_cancel(leat_step *s, leat_cancel *c)
{
    pthread_mutex_lock(&s->lock);
    bool waiting = c->prev != c;
    if (waiting) {
        if (c->prev)
            c->prev->next = c->next;
        else
            s->cancels = c->next;
        if (c->next)
            c->next->prev = c->prev;
    }
    pthread_mutex_unlock(&s->lock);
    return waiting;
}
