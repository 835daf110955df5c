/* jobs.h -- jobs: handlers and reply functions of calls within this process, and the threads that
 * run them. */
#ifndef LEAT_CLUSTER_LOCAL_JOBS_H
#define LEAT_CLUSTER_LOCAL_JOBS_H

#include "core/later.h"

/* A member of the object that its function works on. */
typedef struct leat_local_job {
    leat_later_job later; /* later.next also links the queue of jobs that wait for a thread. */
    void (*fn)(void *arg);
    void *arg;
} leat_local_job;

/* Each listener and each link calls leat_local_jobs_join when it is opened and
 * leat_local_jobs_leave when it is closed; between the first join and the last leave there are
 * threads. The last leave waits until all jobs are done. */
void leat_local_jobs_join(void);
void leat_local_jobs_leave(void);
/* Runs fn(arg), which may block, in another thread, or in this one if the system gives no thread.
 * So the caller must not hold a lock that fn takes. */
void leat_local_job_submit(leat_local_job *j, void (*fn)(void *arg), void *arg);
/* If this thread puts jobs off (core/later.h), puts the job off: it runs in this thread, unless the
 * thread blocks first. Else does as leat_local_job_submit. */
void leat_local_job_soon(leat_local_job *j, void (*fn)(void *arg), void *arg);

#endif
