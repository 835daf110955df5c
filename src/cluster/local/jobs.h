/* jobs.h -- the threads that handlers and reply functions of calls within this process run on. */
#ifndef LEAT_CLUSTER_LOCAL_JOBS_H
#define LEAT_CLUSTER_LOCAL_JOBS_H

#include "core/later.h"

/* Part of what it works on. */
typedef struct leat_local_job {
    leat_later_job later; /* also links the queue of jobs that wait for a thread */
    void (*fn)(void *arg);
    void *arg;
} leat_local_job;

/* Listeners and links: there are threads while there is one of them. */
void leat_local_jobs_join(void);
void leat_local_jobs_leave(void); /* the last one waits until all jobs are done */
/* Runs fn(arg), which may block, in another thread. The caller holds no lock that fn takes: it runs
 * here if no thread can be had. */
void leat_local_job_submit(leat_local_job *j, void (*fn)(void *arg), void *arg);
/* The same, or in this thread, if it puts jobs off (core/later.h), when it has done so. */
void leat_local_job_soon(leat_local_job *j, void (*fn)(void *arg), void *arg);

#endif
