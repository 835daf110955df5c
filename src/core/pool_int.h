/* pool_int.h -- the inside of a thread pool, for threadpool.c (workers and jobs), pool_loop.c
 * (leat_pool_for) and pool_blocking.c (threads for jobs that may block).
 *
 * 1. Whoever publishes work (queued, a loop's open bit) does so before it reads sleepers; a worker
 *    counts itself as a sleeper before it looks for work a last time. Both are sequentially
 *    consistent, so no work is left behind by a worker falling asleep.
 * 2. A loop's description changes only while its slot is claimed, left is 0 and no piece is being
 *    worked on; whoever has taken a piece may read it until it counts that piece as done.
 */
#ifndef LEAT_CORE_POOL_INT_H
#define LEAT_CORE_POOL_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/threadpool.h"

enum { LOOPS = 16, LINE = 64 };

typedef struct job {
    void (*fn)(void *arg);
    void *arg;
} job;

/* A ring that grows. */
typedef struct job_queue {
    job *ring;
    size_t head, n, cap; /* cap is a power of two */
} job_queue;
void leat_job_push(job_queue *q, job j);
bool leat_job_pop_oldest(job_queue *q, job *out);
bool leat_job_pop_newest(job_queue *q, job *out);

typedef struct worker {
    _Alignas(LINE) pthread_mutex_t lock; /* guards jobs; a leaf */
    job_queue jobs;                      /* the owner takes the newest, others the oldest */
    _Alignas(LINE) atomic_int asleep;    /* futex word: 1 until somebody wakes it */
    leat_pool *pool;
    pthread_t thread;
    int index;
} worker;

typedef struct loop {
    _Alignas(LINE) atomic_bool claimed; /* by a caller of leat_pool_for */
    void (*fn)(void *arg, int64_t begin, int64_t end);
    void *arg;
    int64_t n, chunk;           /* piece i is [i*chunk, min(n, (i+1)*chunk)) */
    int64_t slice;              /* units of a piece between two looks at stop */
    const leat_loop_stop *stop; /* or NULL */
    int32_t pieces;
    _Alignas(LINE) atomic_int left;        /* pieces not taken yet */
    _Alignas(LINE) atomic_uint unfinished; /* pieces not done yet; futex word */
} loop;

typedef struct blocking_thread {
    pthread_t thread;
    leat_pool *pool;
    bool ended; /* to be joined */
    struct blocking_thread *next;
} blocking_thread;

struct leat_pool {
    int size;    /* workers that leat_pool_for counts on */
    int workers; /* entries in worker: size, or 1 that is started late */
    char name[16];
    atomic_int started;
    pthread_mutex_t start_lock; /* guards the late start */
    worker *worker;

    /* What spinning workers watch. */
    _Alignas(LINE) atomic_uint open; /* a bit for each loop that may have pieces left */
    atomic_int queued;               /* jobs in the workers' queues */
    atomic_bool stop;

    _Alignas(LINE) atomic_int sleepers;
    atomic_int spinners;
    atomic_uint next;             /* worker that gets the next job from outside */
    atomic_int_least64_t lost_ns; /* work in loops that sleeping workers did not help with */
    _Alignas(LINE) atomic_uint unfinished; /* jobs submitted and not done; futex word */
    atomic_bool closing;

    loop loops[LOOPS];

    pthread_mutex_t blocking_lock; /* guards the rest; a leaf */
    pthread_cond_t blocking_cond;
    job_queue blocking_jobs;
    int blocking_idle;
    bool blocking_stop;
    blocking_thread *blocking_threads;
};

int leat_pool_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);
void leat_pool_thread_name(const leat_pool *p, const char *kind, int index);
void leat_pool_job_run(leat_pool *p, job j); /* and counts it as done */
void leat_pool_wake(leat_pool *p, int n);    /* n sleeping workers, if there are as many */
/* Loops: true if there is a piece to take; helps with what there is, true if it did. */
bool leat_pool_loop_waiting(leat_pool *p);
bool leat_pool_loop_help(leat_pool *p);
void leat_pool_blocking_stop(leat_pool *p); /* joins the threads */

#endif
