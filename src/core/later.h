/* later.h -- work that a thread delays while it has more urgent work to do.
 *
 * There are two kinds of delayed work. A wake-up of another thread or process is delayed because
 * the woken thread might take this thread's CPU and find only half of what it waits for. A job
 * continues a kernel that waited. It is delayed so that the thread that brings the kernel's input
 * runs the job itself, and no second thread is woken for it.
 *
 * 1. Wake-ups are delayed between leat_later_begin and leat_later_end, jobs between
 *    leat_later_jobs_begin and leat_later_jobs_end. Both pairs may be nested; the outermost end
 *    does the delayed work. Outside of these pairs a thread delays nothing: wake-ups are done at
 *    once, and jobs are handed to a pool.
 * 2. Before a thread blocks or does anything else that may take long, it calls leat_later_now,
 *    which does the wake-ups and hands the jobs to their pools. leat_event_wait, leat_pool_wait and
 *    leat_futex_wait call it. Code that blocks in another way, or runs an expensive kernel, has to
 *    call it.
 * 3. A thread that waits for one step (leat_later_only) runs no jobs of other steps, which might
 *    still keep it busy when its own step has ended.
 * 4. The caller of leat_later_end or leat_later_jobs_end holds no lock, and may be delayed by jobs
 *    that take long.
 */
#ifndef LEAT_CORE_LATER_H
#define LEAT_CORE_LATER_H

#include <stdbool.h>

void leat_later_begin(void);
void leat_later_end(void);
/* Does the delayed wake-ups and hands delayed jobs to their pools. Does not end the begin/end
 * pairs: later work is delayed as before. */
void leat_later_now(void);
/* Delays a wake-up, fn(arg). Returns false if the caller has to do the wake-up now, because the
 * thread delays nothing, has delayed too many wake-ups, or has delayed this one too often. True:
 * the wake-up will be done. *again_out says whether the same wake-up was delayed already; it is
 * done only once. */
bool leat_later_put(void (*fn)(void *arg), void *arg, bool *again_out);

/* A delayed job; a member of the struct that describes the waiting kernel. */
typedef struct leat_later_job {
    struct leat_later_job *next;
    /* Runs, in the calling thread, a list of jobs that all have this function. */
    void (*run)(struct leat_later_job *list);
    void (*submit)(struct leat_later_job *j); /* Hands the job to its pool. */
} leat_later_job;
void leat_later_jobs_begin(void);
void leat_later_jobs_end(void);
/* Delays j, or submits it at once if the thread does not delay jobs. */
void leat_later_job_add(leat_later_job *j);

/* From now on the calling thread runs only jobs of this step; NULL: jobs of all steps. */
void leat_later_only(const void *step);
/* Whether the calling thread may run jobs of this step. */
bool leat_later_may_run(const void *step);

#endif
