/* preparer.c -- see preparer.h. */
#define _GNU_SOURCE
#include "data/preparer.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/thread.h"
#include "core/threadpool.h"

struct leat_preparer {
    void (*fn)(void *arg);
    void *arg;
    pthread_t thread;
    leat_event begin, done;
    bool end;
};

static void *work(void *arg)
{
    leat_preparer *a = arg;
    /* A thread of this class does not take a CPU from the step that has just begun. */
    pthread_setschedparam(pthread_self(), SCHED_BATCH, &(struct sched_param){0});
    for (;;) {
        leat_event_park(&a->begin, 0);
        leat_event_init(&a->begin);
        if (a->end)
            return NULL;
        a->fn(a->arg);
        leat_event_set(&a->done);
    }
}

leat_preparer *leat_preparer_new(void (*fn)(void *arg), void *arg)
{
    leat_preparer *a = leat_new(leat_preparer);
    *a = (leat_preparer){.fn = fn, .arg = arg};
    leat_event_init(&a->begin);
    leat_event_init(&a->done);
    if (leat_thread_start(&a->thread, work, a) == 0)
        return a;
    free(a);
    return NULL;
}

void leat_preparer_begin(leat_preparer *a)
{
    leat_event_set(&a->begin);
}

void leat_preparer_wait(leat_preparer *a)
{
    leat_event_wait(&a->done, 0);
    leat_event_init(&a->done);
}

void leat_preparer_free(leat_preparer *a)
{
    if (!a)
        return;
    a->end = true;
    leat_event_set(&a->begin);
    pthread_join(a->thread, NULL);
    free(a);
}
