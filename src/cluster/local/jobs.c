/* jobs.c -- see jobs.h. Jobs wait in a queue. For each job in it there is a thread that will take
 * it: a thread that has just run another job and spins, or a thread of the pool, which has threads
 * for jobs that may block (leat_pool_submit_blocking). Where no thread can be started for a job,
 * some job of the queue is refused. */
#include "cluster/local/jobs.h"

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/local/local.h"
#include "core/spin.h"
#include "core/threadpool.h"

/* Guards users and the start and end of the threads. Taken before all other locks of this room. */
static pthread_mutex_t lifetime = PTHREAD_MUTEX_INITIALIZER;
static int users;       /* Listeners and links. */
static leat_pool *pool; /* Set while there are users, which alone read it. */

static struct {
    pthread_mutex_t lock;         /* Guards all fields. Taken after all locks but the pool's own. */
    leat_later_job *first, *last; /* The queue. last is valid if first is not NULL. */
    atomic_int queued;            /* The length of the queue. Read without the lock, too. */
    int coming;                   /* Threads of the pool that have not looked into the queue yet. */
    int spinning;                 /* Threads that spin until the queue has a job for them. */
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER};

leat_status leat_local_jobs_join(void)
{
    pthread_mutex_lock(&lifetime);
    leat_status s = users ? NULL : leat_local_watch_start();
    if (!s && !users++)
        pool = leat_pool_new(0, "local");
    pthread_mutex_unlock(&lifetime);
    return s;
}

void leat_local_jobs_leave(void)
{
    pthread_mutex_lock(&lifetime);
    if (!--users) {
        leat_pool_free(pool);
        leat_local_watch_stop();
    }
    pthread_mutex_unlock(&lifetime);
}

/* Takes the oldest job of the queue; NULL: the queue is empty. The lock is held. */
static leat_local_job *take(void)
{
    leat_later_job *j = jobs.first;
    if (j) {
        jobs.first = j->next;
        atomic_fetch_sub(&jobs.queued, 1);
    }
    return (leat_local_job *)j;
}

static bool any_queued(void *unused)
{
    return atomic_load_explicit(&jobs.queued, memory_order_relaxed) > 0;
}

static leat_local_job *take_or_spin(void)
{
    pthread_mutex_lock(&jobs.lock);
    leat_local_job *j = take();
    if (!j) {
        jobs.spinning++;
        pthread_mutex_unlock(&jobs.lock);
        leat_spin(LEAT_SPIN_NS, any_queued, NULL);
        pthread_mutex_lock(&jobs.lock);
        jobs.spinning--;
        j = take();
    }
    pthread_mutex_unlock(&jobs.lock);
    return j;
}

static void run_queued(void *unused)
{
    pthread_mutex_lock(&jobs.lock);
    jobs.coming--;
    leat_local_job *j = take();
    pthread_mutex_unlock(&jobs.lock);
    for (; j; j = take_or_spin())
        j->fn(j->arg);
}

/* Takes the newest job of the queue. NULL: threads come or spin for all jobs. The lock is held. */
static leat_local_job *take_superfluous(void)
{
    if (atomic_load(&jobs.queued) <= jobs.coming + jobs.spinning)
        return NULL;
    leat_later_job **at = &jobs.first, *before = NULL;
    for (; (*at)->next; at = &before->next)
        before = *at;
    leat_later_job *j = *at;
    *at = NULL;
    jobs.last = before;
    atomic_fetch_sub(&jobs.queued, 1);
    return (leat_local_job *)j;
}

/* The pool could not start a thread. */
static void refuse(int error)
{
    pthread_mutex_lock(&jobs.lock);
    jobs.coming--;
    leat_local_job *j = take_superfluous();
    pthread_mutex_unlock(&jobs.lock);
    if (j && j->refused)
        j->refused(j->arg, error);
    else if (j)
        leat_local_watch_job(j);
}

static void submit(leat_later_job *j)
{
    j->next = NULL;
    pthread_mutex_lock(&jobs.lock);
    if (jobs.first)
        jobs.last->next = j;
    else
        jobs.first = j;
    jobs.last = j;
    bool start = atomic_fetch_add(&jobs.queued, 1) + 1 > jobs.spinning;
    jobs.coming += start;
    pthread_mutex_unlock(&jobs.lock);
    int e = start ? leat_pool_submit_blocking(pool, run_queued, NULL) : 0;
    if (e)
        refuse(e);
}

void leat_local_job_submit(leat_local_job *j)
{
    submit(&j->later);
}

/* Runs the first job of the list. It may block, so the other jobs are put off again:
 * leat_later_now, which is called before a thread blocks, then gives them to other threads. */
static void run_later(leat_later_job *list)
{
    leat_local_job *j = (leat_local_job *)list;
    for (leat_later_job *next = list->next; next;) {
        leat_later_job *other = next;
        next = other->next;
        leat_later_job_add(other);
    }
    j->fn(j->arg);
}

void leat_local_job_soon(leat_local_job *j)
{
    j->later = (leat_later_job){.run = run_later, .submit = submit};
    /* A thread that waits for one step (leat_later_only) may not run this job. */
    if (leat_later_may_run(j))
        leat_later_job_add(&j->later);
    else
        submit(&j->later);
}
