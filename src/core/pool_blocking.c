/* pool_blocking.c -- threads for jobs that may block: one for each such job that is not done, so
 * that blocked jobs never occupy a worker. A thread that is idle for IDLE_S seconds ends. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/cond.h"
#include "core/denormals.h"
#include "core/pool_int.h"
#include "core/thread.h"

enum { IDLE_S = 5 };

static void *blocking_main(void *arg)
{
    blocking_thread *me = arg;
    leat_pool *p = me->pool;
    leat_denormals_off();
    leat_pool_thread_name(p, "b", 0);
    pthread_mutex_lock(&p->blocking_lock);
    for (;;) {
        job j;
        if (leat_job_pop_oldest(&p->blocking_jobs, &j)) {
            pthread_mutex_unlock(&p->blocking_lock);
            leat_pool_job_run(p, j);
            pthread_mutex_lock(&p->blocking_lock);
            continue;
        }
        if (p->blocking_stop)
            break;
        int64_t until = leat_now_ns() + INT64_C(1000000000) * IDLE_S;
        p->blocking_idle++;
        bool in_time = leat_cond_wait_until(&p->blocking_cond, &p->blocking_lock, until);
        p->blocking_idle--;
        if (!in_time && p->blocking_jobs.n == 0)
            break;
    }
    me->ended = true;
    pthread_mutex_unlock(&p->blocking_lock);
    return NULL;
}

/* Joins the threads that have ended, or all of them. blocking_lock is held on entry and on return,
 * and released during each pthread_join. */
static void join(leat_pool *p, bool all)
{
    for (blocking_thread **at = &p->blocking_threads; *at;) {
        blocking_thread *t = *at;
        if (!t->ended && !all) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        pthread_mutex_unlock(&p->blocking_lock);
        pthread_join(t->thread, NULL);
        free(t);
        pthread_mutex_lock(&p->blocking_lock);
        at = &p->blocking_threads; /* The list may have changed without the lock. */
    }
}

/* Starts a thread, which waits for blocking_lock, held here. */
static int start(leat_pool *p)
{
    blocking_thread *t = leat_new(blocking_thread);
    t->pool = p;
    int e = leat_thread_start(&t->thread, blocking_main, t);
    if (e) {
        free(t);
        return e;
    }
    t->next = p->blocking_threads;
    p->blocking_threads = t;
    return 0;
}

/* Whether there is an idle thread for one job more. blocking_lock is held. */
static bool any_idle(const leat_pool *p)
{
    return (size_t)p->blocking_idle > p->blocking_jobs.n;
}

int leat_pool_submit_blocking(leat_pool *p, void (*fn)(void *arg), void *arg)
{
    int e = 0;
    pthread_mutex_lock(&p->blocking_lock);
    if (!any_idle(p))
        join(p, false);
    if (any_idle(p))
        pthread_cond_signal(&p->blocking_cond);
    else
        e = start(p);
    if (!e) {
        atomic_fetch_add_explicit(&p->unfinished, 1, memory_order_relaxed);
        leat_job_push(&p->blocking_jobs, (job){fn, arg});
    }
    pthread_mutex_unlock(&p->blocking_lock);
    return e;
}

void leat_pool_blocking_stop(leat_pool *p)
{
    pthread_mutex_lock(&p->blocking_lock);
    p->blocking_stop = true;
    pthread_cond_broadcast(&p->blocking_cond);
    join(p, true);
    pthread_mutex_unlock(&p->blocking_lock);
}
