/* sync_run.h -- synchronous replicas under way: the chief's rounds, everybody's leases. */
#ifndef LEAT_SYNC_RUN_H
#define LEAT_SYNC_RUN_H

#include <leat/monitored.h>
#include <pthread.h>
#include "train/sync.h"

/* On one session. Threads of its own, which only leat_sync_stop ends.
 * lock guards what stands below it; no session runs while it is held. */
typedef struct leat_sync_run {
    leat_sync *y;
    leat_session *session;
    leat_coordinator *coord;
    bool chief;
    double max_wait_secs;
    leat_cancellation *main;  /* ends the run that waits for a token; borrowed, or NULL */
    leat_cancellation *quiet; /* ends the lease's runs */
    pthread_t rounds, leases;
    bool has_rounds, has_leases;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    leat_cancellation *round; /* ends the round under way */
    bool again;               /* which was ended because a replica went */
    int present, issued;      /* replicas; tokens of the last round */
    int64_t step;             /* the global step after the last round */
    double run_began;         /* of the worker's own run; 0: none is under way */
    struct leat_sync_member {
        int64_t count; /* of its lease */
        double moved;  /* when that was last seen to change */
        bool seen, absent;
    } * members;
} leat_sync_run;

/* What the chief or a worker does first on a new session; then its threads start. `tokens` is the
 * op that puts the first ones into the queue; the chief's alone. */
typedef struct leat_sync_start_options {
    bool chief;
    leat_out tokens;
    double max_wait_secs;
    leat_cancellation *main; /* ends the run that waits for a token; borrowed, or NULL */
} leat_sync_start_options;
leat_status leat_sync_start(leat_sync *y, leat_session *s, leat_coordinator *coord,
                            const leat_sync_start_options *o, leat_sync_run **out) LEAT_MUST_CHECK;
/* Training is over for this replica: says so, and lets others go on. Rounds end here. */
void leat_sync_finish(leat_sync_run *r);
void leat_sync_stop(leat_sync_run *r); /* ends its threads and frees it; of NULL does nothing */
void leat_sync_running(leat_sync_run *r, bool running); /* a step of the worker begins, has ended */

/* sync_hook.c. *main is looked up for each session. */
leat_hook *leat_sync_hook_new(bool chief, double max_wait_secs, leat_cancellation *const *main);

/* sync_round.c, sync_watch.c: the threads. */
void *leat_sync_rounds(void *run);
void *leat_sync_leases(void *run);
/* Runs something small within secs. */
leat_status leat_sync_do(leat_sync_run *r, leat_feeds feeds, leat_fetches fetches, leat_out op,
                         double secs) LEAT_MUST_CHECK;

#endif
