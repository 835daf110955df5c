/* jobs.h -- jobs: handlers and reply functions of calls within this process, and the threads that
 * run them. */
#ifndef LEAT_CLUSTER_LOCAL_JOBS_H
#define LEAT_CLUSTER_LOCAL_JOBS_H

#include <leat/status.h>

#include "core/later.h"

/* A member of the object that its function works on. */
typedef struct leat_local_job {
    leat_later_job later; /* Set by the functions below. */
    void (*fn)(void *arg);
    /* Called instead of fn, with the errno of leat_thread_start, if no thread can be started; it
     * does not block. NULL: the watch (watch.c) runs fn then. */
    void (*refused)(void *arg, int error);
    void *arg;
} leat_local_job;

/* Each listener and each link calls leat_local_jobs_join when it is opened and
 * leat_local_jobs_leave when it is closed; between the first join and the last leave there are
 * threads. The last leave waits until all jobs are done. RESOURCE_EXHAUSTED: no thread can be
 * started, and leave is not called. */
leat_status leat_local_jobs_join(void) LEAT_MUST_CHECK;
void leat_local_jobs_leave(void);
/* Runs the job, which may block, in another thread. */
void leat_local_job_submit(leat_local_job *j);
/* If this thread puts jobs off (core/later.h), puts the job off: it runs in this thread, unless the
 * thread blocks first. Else does as leat_local_job_submit. */
void leat_local_job_soon(leat_local_job *j);

#endif
