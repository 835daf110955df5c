/* waiters.h -- how many runs of a session have begun, and how many wait at a queue or an
 * accumulator. Before a test ends such a wait from outside, it asks with CHECK_SOON whether the
 * wait has begun. */
#ifndef LEAT_TEST_WAITERS_H
#define LEAT_TEST_WAITERS_H

#include "kernels/cpu/accumulator.h"
#include "kernels/cpu/queue.h"
#include "runtime/device.h"
#include "runtime/session_int.h"

/* Runs under way in a session that this process drives. */
static inline int runs_of(leat_session *s)
{
    pthread_mutex_lock(&s->lock);
    int n = s->runs;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static inline int waiters_count(const leat_waiters *l)
{
    int n = 0;
    for (const leat_waiter *w = l->first; w; w = w->next)
        n++;
    return n;
}

/* The resource of this name on the first device of s, shared; NULL if it was not made yet. */
static inline leat_resource *resource_of(leat_session *s, const char *name, const char *type_name)
{
    const leat_device *d = s->devices[0];
    const leat_resource_type type = {.name = type_name};
    leat_resource *r = NULL;
    leat_status_free(leat_resources_find(d->resources, "", name, &type, &r));
    if (!r && d->own)
        leat_status_free(leat_resources_find(d->own, "", name, &type, &r));
    return r;
}

/* Enqueues, closes and dequeues that wait at a queue. */
static inline int waiters_at_queue(leat_session *s, const char *name)
{
    leat_queue *q = (leat_queue *)resource_of(s, name, "N10tensorflow14QueueInterfaceE");
    if (!q)
        return 0;
    pthread_mutex_lock(&q->lock);
    int n = waiters_count(&q->puts) + waiters_count(&q->takes);
    pthread_mutex_unlock(&q->lock);
    leat_resource_unref(&q->base);
    return n;
}

/* Takes that wait at an accumulator. */
static inline int waiters_at_accumulator(leat_session *s, const char *name)
{
    leat_accumulator *a =
        (leat_accumulator *)resource_of(s, name, "N10tensorflow26ConditionalAccumulatorBaseE");
    if (!a)
        return 0;
    pthread_mutex_lock(&a->lock);
    int n = waiters_count(&a->takers);
    pthread_mutex_unlock(&a->lock);
    leat_resource_unref(&a->base);
    return n;
}

#endif
