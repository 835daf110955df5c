/* sync_run.h -- running synchronous replicas: the chief's rounds, every replica's lease. */
#ifndef LEAT_SYNC_RUN_H
#define LEAT_SYNC_RUN_H

#include <leat/monitored.h>
#include <pthread.h>
#include "train/sync.h"

/* A replica on one session. It has threads of its own, which end only in leat_sync_stop. lock
 * guards the fields below it; it is not held while the session runs. */
typedef struct leat_sync_run {
    leat_sync *y;
    leat_session *session;
    leat_coordinator *coord;
    bool chief;
    double max_wait_secs;
    leat_cancellation *main;  /* cancels the run that waits for a token; borrowed, or NULL */
    leat_cancellation *quiet; /* cancels runs that update or read the lease */
    pthread_t rounds, leases;
    bool has_rounds, has_leases;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    leat_cancellation *round;  /* cancels the current round */
    bool again;                /* the round was cancelled because a replica was lost */
    int present, issued;       /* number of present replicas; number of tokens of the last round */
    int64_t step;              /* the global step after the last round */
    double run_began;          /* when the worker's current run started; 0: none is running */
    leat_sync_member *members; /* one for each replica */
} leat_sync_run;

/* Initialises the chief or a worker on a new session, then starts its threads. `tokens` is the op
 * that puts the first tokens into the queue; used by the chief only. */
typedef struct leat_sync_start_options {
    bool chief;
    leat_out tokens;
    double max_wait_secs;
    leat_cancellation *main; /* cancels the run that waits for a token; borrowed, or NULL */
} leat_sync_start_options;
leat_status leat_sync_start(leat_sync *y, leat_session *s, leat_coordinator *coord,
                            const leat_sync_start_options *o, leat_sync_run **out) LEAT_MUST_CHECK;
/* Ends training for this replica: marks its lease as left, and lets the other workers end. The
 * chief runs no more rounds. */
void leat_sync_finish(leat_sync_run *r);
void leat_sync_stop(leat_sync_run *r); /* ends the threads and frees r; of NULL does nothing */
/* a step of the worker starts, or has ended. */
void leat_sync_running(leat_sync_run *r, bool running);

/* sync_hook.c. *main is read for each session. */
leat_hook *leat_sync_hook_new(bool chief, double max_wait_secs, leat_cancellation *const *main);

/* sync_round.c, sync_watch.c: the functions of the threads. */
void *leat_sync_rounds(void *run);
void *leat_sync_leases(void *run);
/* Runs a small op with a limit of secs. */
leat_status leat_sync_do(leat_sync_run *r, leat_feeds feeds, leat_fetches fetches, leat_out op,
                         double secs) LEAT_MUST_CHECK;

#endif
