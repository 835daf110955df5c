/* later.h -- what a thread does later: work that it puts off while it has more to do at once.
 *
 * There are two kinds. A wake-up of another thread or process is put off because that one might
 * take the CPU, only to find half of what it waits for. A job, which goes on where a kernel waited,
 * is put off so that the thread that brings what the kernel waited for runs it, and no second
 * thread is woken for that.
 *
 * 1. Wake-ups are put off between leat_later_begin and leat_later_end, jobs between
 *    leat_later_jobs_begin and leat_later_jobs_end. Both pairs may be nested; the outermost end
 *    does what was put off. Outside of them nothing is: the caller wakes at once, or hands the job
 *    to a pool.
 * 2. Before it does what may take long, the thread calls leat_later_now: wake-ups are done, and
 *    jobs go to their pools. leat_event_wait, leat_pool_wait and leat_futex_wait do so; whoever
 *    blocks otherwise, or runs an expensive kernel, has to.
 * 3. A thread that waits for one step (leat_later_only) runs no jobs of other steps, which might
 *    keep it from going on when its own has ended.
 * 4. Whoever ends a pair holds no lock, and does not mind that a job takes long.
 */
#ifndef LEAT_CORE_LATER_H
#define LEAT_CORE_LATER_H

#include <stdbool.h>

void leat_later_begin(void);
void leat_later_end(void);
void leat_later_now(void); /* does what was put off, and goes on putting off */
/* A wake-up: fn(arg). False if the thread puts nothing off, or has put off too much, or this too
 * often: do it now. True: it will be done; *again_out says whether the same was put off before,
 * and is done once. */
bool leat_later_put(void (*fn)(void *arg), void *arg, bool *again_out);

/* A job, part of what it goes on with. */
typedef struct leat_later_job {
    struct leat_later_job *next;
    void (*run)(struct leat_later_job *list); /* in this thread: all that have this function */
    void (*submit)(struct leat_later_job *j); /* to a thread of its pool */
} leat_later_job;
void leat_later_jobs_begin(void);
void leat_later_jobs_end(void);
/* Puts j off, or submits it where jobs are not put off. */
void leat_later_job_add(leat_later_job *j);

/* From now on this thread waits for this step, and runs no others' jobs; NULL: it runs all. */
void leat_later_only(const void *step);
bool leat_later_may_run(const void *step); /* in this thread */

#endif
