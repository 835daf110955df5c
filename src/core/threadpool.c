/* threadpool.c -- the workers of a pool. Each has a queue of jobs. A worker whose queue is empty
 * takes jobs from other queues; if there are none, it spins for a while, then sleeps. */
#define _GNU_SOURCE
#include "core/threadpool.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/cond.h"
#include "core/denormals.h"
#include "core/later.h"
#include "core/pool_int.h"
#include "core/spin.h"
#include "core/thread.h"

/* The worker that this thread is; NULL for threads that are none. */
static __thread worker *self __attribute__((tls_model("initial-exec")));

/* ---- How many CPUs and threads ---- */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int cpus = 1, threads = 1;

static void count_cpus(void)
{
    cpu_set_t set;
    long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                         : sysconf(_SC_NPROCESSORS_ONLN);
    cpus = n > 1 ? (int)n : 1;
    const char *told = getenv("LEAT_NUM_THREADS");
    int k = told ? atoi(told) : 0;
    threads = k > 0 && k <= 1024 ? k : cpus;
}

int leat_cpu_count(void)
{
    pthread_once(&once, count_cpus);
    return cpus;
}

int leat_default_threads(void)
{
    pthread_once(&once, count_cpus);
    return threads;
}

/* ---- Jobs ---- */
void leat_job_push(job_queue *q, job j)
{
    if (q->n == q->cap) {
        size_t cap = q->cap ? q->cap * 2 : 64;
        job *ring = leat_new_array(job, cap);
        for (size_t i = 0; i < q->n; i++)
            ring[i] = q->ring[(q->head + i) & (q->cap - 1)];
        free(q->ring);
        *q = (job_queue){.ring = ring, .n = q->n, .cap = cap};
    }
    q->ring[(q->head + q->n++) & (q->cap - 1)] = j;
}

bool leat_job_pop_oldest(job_queue *q, job *out)
{
    if (q->n == 0)
        return false;
    *out = q->ring[q->head];
    q->head = (q->head + 1) & (q->cap - 1);
    q->n--;
    return true;
}

bool leat_job_pop_newest(job_queue *q, job *out)
{
    if (q->n == 0)
        return false;
    *out = q->ring[(q->head + --q->n) & (q->cap - 1)];
    return true;
}

void leat_pool_thread_name(const leat_pool *p, const char *kind, int index)
{
    char name[16]; /* The longest name that Linux allows, with its 0. */
    snprintf(name, sizeof name, "%.9s/%s%d", p->name, kind, index);
    pthread_setname_np(pthread_self(), name);
}

void leat_pool_job_run(leat_pool *p, job j)
{
    j.fn(j.arg);
    if (atomic_fetch_sub(&p->unfinished, 1) == 1 && atomic_load(&p->closing))
        leat_futex_wake(&p->unfinished, 1);
}

void leat_pool_wake(leat_pool *p, int n)
{
    for (int i = 0; i < p->workers && n > 0; i++) {
        worker *w = &p->worker[i];
        int asleep = 1;
        if (!atomic_load_explicit(&w->asleep, memory_order_relaxed) ||
            !atomic_compare_exchange_strong(&w->asleep, &asleep, 0))
            continue;
        atomic_fetch_sub(&p->sleepers, 1);
        leat_futex_wake(&w->asleep, 1);
        n--;
    }
}

/* Wakes a worker if there are more jobs than spinning workers to take them. Called after a job was
 * added, and after a worker stopped spinning. */
static void wake_for_jobs(leat_pool *p)
{
    if (atomic_load(&p->sleepers) > 0 && atomic_load(&p->queued) > atomic_load(&p->spinners))
        leat_pool_wake(p, 1);
}

/* Takes a job from any worker's queue, beginning with worker `first`. */
static bool job_steal(leat_pool *p, int first, job *out)
{
    bool found = false;
    if (atomic_load(&p->queued) <= 0)
        return false;
    for (int i = 0; i < p->workers && !found; i++) {
        worker *victim = &p->worker[(first + i) % p->workers];
        if (pthread_mutex_trylock(&victim->lock) != 0)
            continue;
        found = leat_job_pop_oldest(&victim->jobs, out);
        pthread_mutex_unlock(&victim->lock);
    }
    if (found)
        atomic_fetch_sub(&p->queued, 1);
    return found;
}

static bool job_take(worker *w, job *out)
{
    leat_pool *p = w->pool;
    if (atomic_load(&p->queued) <= 0)
        return false;
    pthread_mutex_lock(&w->lock);
    bool found = leat_job_pop_newest(&w->jobs, out);
    pthread_mutex_unlock(&w->lock);
    if (found)
        atomic_fetch_sub(&p->queued, 1);
    return found || job_steal(p, w->index + 1, out);
}

static bool work_waiting(void *pool)
{
    leat_pool *p = pool;
    return atomic_load(&p->queued) > 0 || leat_pool_loop_waiting(p) || atomic_load(&p->stop);
}

static bool work_spin(leat_pool *p)
{
    atomic_fetch_add(&p->spinners, 1);
    bool found = leat_spin(LEAT_SPIN_WORK_NS, work_waiting, p);
    atomic_fetch_sub(&p->spinners, 1);
    return found;
}

/* Returns when there may be work, or the pool stops. Follows rule 1 of pool_int.h. */
static void idle(worker *w)
{
    leat_pool *p = w->pool;
    if (work_spin(p))
        return;
    atomic_store(&w->asleep, 1);
    atomic_fetch_add(&p->sleepers, 1);
    if (work_waiting(p)) {
        int asleep = 1;
        if (atomic_compare_exchange_strong(&w->asleep, &asleep, 0))
            atomic_fetch_sub(&p->sleepers, 1);
        return;
    }
    while (atomic_load(&w->asleep))
        leat_futex_wait(&w->asleep, 1, 0);
}

/* Jobs come before pieces of loops, because whole kernels run side by side with less
 * synchronisation than the pieces of one kernel. */
static void *worker_main(void *arg)
{
    worker *w = arg;
    leat_pool *p = w->pool;
    self = w;
    leat_denormals_off();
    leat_pool_thread_name(p, "", w->index);
    bool rested = false; /* The last thing the worker did was to idle. */
    for (;;) {
        job j;
        if (job_take(w, &j)) {
            if (rested)
                wake_for_jobs(p);
            rested = false;
            leat_pool_job_run(p, j);
        } else if (leat_pool_loop_help(p)) {
            rested = false;
        } else if (atomic_load(&p->stop)) {
            return NULL;
        } else {
            idle(w);
            rested = true;
        }
    }
}

/* Starts workers until n have a thread, or no thread can be started; returns how many have one. */
static int workers_start(leat_pool *p, int n)
{
    pthread_mutex_lock(&p->start_lock);
    int started = atomic_load(&p->started);
    while (started < n &&
           leat_thread_start(&p->worker[started].thread, worker_main, &p->worker[started]) == 0)
        started++;
    atomic_store(&p->started, started);
    pthread_mutex_unlock(&p->start_lock);
    return started;
}

leat_pool *leat_pool_new(int n, const char *name)
{
    leat_pool *p = leat_xaligned(LINE, sizeof(*p));
    p->workers = n > 0 ? n : 1;
    p->worker = leat_xaligned(LINE, sizeof(worker) * (size_t)p->workers);
    snprintf(p->name, sizeof p->name, "%s", name ? name : "leat");
    pthread_mutex_init(&p->start_lock, NULL);
    pthread_mutex_init(&p->blocking_lock, NULL);
    leat_cond_init(&p->blocking_cond);
    for (int i = 0; i < p->workers; i++) {
        p->worker[i].pool = p;
        p->worker[i].index = i;
        pthread_mutex_init(&p->worker[i].lock, NULL);
    }
    p->size = n > 0 ? workers_start(p, n) : 0;
    return p;
}

static void jobs_wait(leat_pool *p)
{
    atomic_store(&p->closing, true);
    for (unsigned n; (n = atomic_load(&p->unfinished)) != 0;)
        leat_futex_wait(&p->unfinished, n, 0);
}

void leat_pool_free(leat_pool *p)
{
    if (!p)
        return;
    jobs_wait(p);
    atomic_store(&p->stop, true);
    leat_pool_wake(p, p->workers);
    for (int i = 0; i < atomic_load(&p->started); i++)
        pthread_join(p->worker[i].thread, NULL);
    leat_pool_blocking_stop(p);
    for (int i = 0; i < p->workers; i++) {
        pthread_mutex_destroy(&p->worker[i].lock);
        free(p->worker[i].jobs.ring);
    }
    pthread_mutex_destroy(&p->start_lock);
    pthread_mutex_destroy(&p->blocking_lock);
    pthread_cond_destroy(&p->blocking_cond);
    free(p->blocking_jobs.ring);
    free(p->worker);
    free(p);
}

int leat_pool_size(const leat_pool *p)
{
    return p ? p->size : 0;
}

void leat_pool_submit(leat_pool *p, void (*fn)(void *arg), void *arg)
{
    job j = {fn, arg};
    atomic_fetch_add_explicit(&p->unfinished, 1, memory_order_relaxed);
    int started = atomic_load_explicit(&p->started, memory_order_acquire);
    if (started == 0 && (started = workers_start(p, 1)) == 0) {
        leat_pool_job_run(p, j); /* No thread could be started. */
        return;
    }
    worker *w = self;
    if (!w || w->pool != p) {
        unsigned next = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        w = &p->worker[next % (unsigned)started];
    }
    pthread_mutex_lock(&w->lock);
    leat_job_push(&w->jobs, j);
    pthread_mutex_unlock(&w->lock);
    atomic_fetch_add(&p->queued, 1);
    wake_for_jobs(p);
}

/* The argument of wait_over. */
typedef struct working_wait {
    leat_pool *pool;
    const leat_event *event;
} working_wait;

static bool wait_over(void *arg)
{
    const working_wait *w = arg;
    return leat_event_is_set(w->event) || work_waiting(w->pool);
}

int leat_pool_wait(leat_pool *p, leat_event *e, int64_t deadline_ns)
{
    if (leat_event_is_set(e))
        return 1;
    leat_later_now();
    working_wait w = {p, e};
    while (p && !leat_event_is_set(e) && !(deadline_ns && leat_now_ns() > deadline_ns)) {
        job j;
        if (job_steal(p, 0, &j))
            leat_pool_job_run(p, j);
        else if (!leat_pool_loop_help(p) && !leat_spin(LEAT_SPIN_WORK_NS, wait_over, &w))
            break;
    }
    return leat_event_wait(e, deadline_ns);
}

int leat_pool_park(leat_pool *p, leat_event *e, int64_t deadline_ns)
{
    bool works = p != NULL;
    leat_later_now();
    while (works && !leat_event_is_set(e) && !(deadline_ns && leat_now_ns() > deadline_ns)) {
        job j;
        bool found = job_steal(p, 0, &j);
        if (found)
            leat_pool_job_run(p, j);
        works = found || leat_pool_loop_help(p);
    }
    return leat_event_park(e, deadline_ns);
}
