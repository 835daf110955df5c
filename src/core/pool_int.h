/* pool_int.h -- the inside of a thread pool, for threadpool.c (workers and jobs), pool_loop.c
 * (leat_pool_for) and pool_blocking.c (threads for jobs that may block).
 *
 * 1. A thread that adds work changes `queued` or `open`, and then reads `sleepers`. A worker adds
 *    itself to `sleepers`, and then looks for work a last time. Both are sequentially consistent,
 *    so no worker goes to sleep without seeing the work or being woken for it.
 * 2. The description of a loop (fn to pieces) changes only while `claimed` is set, `left` is 0 and
 *    no thread works on a piece. A thread that has taken a piece may read the description until it
 *    has subtracted that piece from `unfinished`.
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

/* A ring buffer that grows. */
typedef struct job_queue {
    job *ring;
    size_t head, n, cap; /* cap is a power of two. */
} job_queue;
void leat_job_push(job_queue *q, job j);
bool leat_job_pop_oldest(job_queue *q, job *out);
bool leat_job_pop_newest(job_queue *q, job *out);

typedef struct worker {
    _Alignas(LINE) pthread_mutex_t lock; /* Guards jobs; no other lock is taken under it. */
    job_queue jobs; /* This worker takes the newest job, other threads take the oldest. */
    _Alignas(LINE) atomic_int asleep; /* Futex word: 1 while the worker is parked. */
    leat_pool *pool;
    pthread_t thread;
    int index;
} worker;

typedef struct loop {
    _Alignas(LINE) atomic_bool claimed; /* A caller of leat_pool_for uses the slot. */
    void (*fn)(void *arg, int64_t begin, int64_t end);
    void *arg;
    int64_t n, chunk;           /* Piece i is [i*chunk, min(n, (i+1)*chunk)). */
    int64_t slice;              /* Units of a piece between two calls of stop. */
    const leat_loop_stop *stop; /* May be NULL. */
    int32_t pieces;
    _Alignas(LINE) atomic_int left;        /* Pieces that no thread has taken yet. */
    _Alignas(LINE) atomic_uint unfinished; /* Pieces not done yet; futex word. */
} loop;

typedef struct blocking_thread {
    pthread_t thread;
    leat_pool *pool;
    bool ended; /* The thread is about to return and can be joined. */
    struct blocking_thread *next;
} blocking_thread;

struct leat_pool {
    int size;    /* Workers that leat_pool_for counts on. */
    int workers; /* Entries in worker: as requested, or 1 if none were. */
    char name[16];
    atomic_int started;         /* Workers that have a thread; changed under start_lock. */
    pthread_mutex_t start_lock; /* leat_pool_submit starts the worker of a pool of size 0. */
    worker *worker;

    /* Idle workers read these while they spin. */
    _Alignas(LINE) atomic_uint open; /* A bit for each entry of loops that may have pieces left. */
    atomic_int queued;               /* Jobs in the workers' queues. */
    atomic_bool stop;

    _Alignas(LINE) atomic_int sleepers; /* Workers that are parked or about to park. */
    atomic_int spinners;                /* Workers that spin. */
    atomic_uint next; /* The worker that gets the next job from a thread that is no worker. */
    /* Nanoseconds of work in loops since sleeping workers were last woken to help with one. */
    atomic_int_least64_t lost_ns;
    _Alignas(LINE) atomic_uint unfinished; /* Jobs submitted and not done; futex word. */
    atomic_bool closing;                   /* leat_pool_free waits for unfinished to become 0. */

    loop loops[LOOPS];

    pthread_mutex_t blocking_lock; /* Guards what follows; no other lock is taken under it. */
    pthread_cond_t blocking_cond;
    job_queue blocking_jobs;
    int blocking_idle; /* Threads that wait for a job. */
    bool blocking_stop;
    blocking_thread *blocking_threads;
};

void leat_pool_thread_name(const leat_pool *p, const char *kind, int index);
void leat_pool_job_run(leat_pool *p, job j); /* Runs j and counts it as done. */
void leat_pool_wake(leat_pool *p, int n);    /* Wakes at most n sleeping workers. */
/* loop_waiting: whether a loop has a piece that no thread has taken. loop_help: works on such
 * pieces until there are none; returns whether it did any. */
bool leat_pool_loop_waiting(leat_pool *p);
bool leat_pool_loop_help(leat_pool *p);
void leat_pool_blocking_stop(leat_pool *p); /* Joins the threads of pool_blocking.c. */

#endif
