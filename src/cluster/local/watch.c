/* watch.c -- the watch: a thread that ends calls when their deadline passes, and runs the reply
 * functions for which no other thread can be started. It runs from the first listener or link to
 * the last one. */
#include <string.h>

#include "cluster/local/local.h"
#include "core/cond.h"
#include "core/thread.h"
#include "core/threadpool.h"

/* Guarded by leat_local.lock, but for thread. */
static struct {
    pthread_t thread;
    bool stop;
    int64_t until_ns; /* The time until which the watch waits (CLOCK_MONOTONIC); 0: it does not. */
    leat_later_job *first, *last; /* Jobs to run. last is valid if first is not NULL. */
} watch;

static leat_local_call *soonest_call(void)
{
    leat_local_call *soonest = NULL;
    for (leat_local_call *k = leat_local.calls; k; k = k->next)
        if (k->deadline_ns && (!soonest || k->deadline_ns < soonest->deadline_ns))
            soonest = k;
    return soonest;
}

/* The lock is held, and released meanwhile. */
static void run_job(leat_local_job *j)
{
    watch.first = j->later.next;
    pthread_mutex_unlock(&leat_local.lock);
    j->fn(j->arg);
    pthread_mutex_lock(&leat_local.lock);
}

static void *run(void *unused)
{
    pthread_mutex_lock(&leat_local.lock);
    while (!watch.stop) {
        leat_local_call *soonest = soonest_call();
        if (watch.first) {
            run_job((leat_local_job *)watch.first);
        } else if (soonest && soonest->deadline_ns <= leat_now_ns()) {
            leat_local_call_give_up(
                soonest, LEAT_DEADLINE_EXCEEDED,
                "did not answer in time. It is busy, or what was called for takes longer");
            pthread_mutex_lock(&leat_local.lock);
        } else {
            watch.until_ns = soonest ? soonest->deadline_ns : INT64_MAX;
            leat_cond_wait_until(&leat_local.watch, &leat_local.lock, watch.until_ns);
            watch.until_ns = 0;
        }
    }
    pthread_mutex_unlock(&leat_local.lock);
    return NULL;
}

leat_status leat_local_watch_start(void)
{
    watch.stop = false; /* There is no other thread that reads it. */
    int e = leat_thread_start(&watch.thread, run, NULL);
    LEAT_REQUIRE(!e, RESOURCE_EXHAUSTED,
                 "No thread can be started for calls within this process: %s. " LEAT_NO_THREAD_HINT,
                 strerror(e));
    return NULL;
}

void leat_local_watch_stop(void)
{
    pthread_mutex_lock(&leat_local.lock);
    watch.stop = true;
    pthread_cond_signal(&leat_local.watch);
    pthread_mutex_unlock(&leat_local.lock);
    pthread_join(watch.thread, NULL);
}

void leat_local_watch_deadline(int64_t deadline_ns)
{
    if (deadline_ns && deadline_ns < watch.until_ns)
        pthread_cond_signal(&leat_local.watch);
}

void leat_local_watch_job(leat_local_job *j)
{
    j->later.next = NULL;
    pthread_mutex_lock(&leat_local.lock);
    if (watch.first)
        watch.last->next = &j->later;
    else
        watch.first = &j->later;
    watch.last = &j->later;
    pthread_cond_signal(&leat_local.watch);
    pthread_mutex_unlock(&leat_local.lock);
}
