/* sync.h -- synchronous replicas: the nodes that leat_sync_replicas has built, for the code that
 * runs them.
 *
 * The protocol is that of TensorFlow's SyncReplicasOptimizer, so that TensorFlow's workers and
 * Leat's can train together. One round: 1. A worker computes gradients and applies them, with its
 * local step, to one accumulator for
 *    each variable; those that are older than the accumulator's step are dropped.
 * 2. The chief takes the mean of `required` gradients from each accumulator, which increments the
 * accumulator's step, updates the variables, increments the global step, and puts tokens with the
 * new step into the token queue, one for each replica. 3. A worker takes a token, whose step
 * becomes its local step. Leat adds leases, by which the chief knows which replicas are alive, and
 * a form of 2 in which the number of tokens is fed.
 */
#ifndef LEAT_SYNC_H
#define LEAT_SYNC_H

#include <leat/train.h>
#include <stdatomic.h>
#include "graph/graph_int.h"

/* What a replica knows of another one. */
typedef struct leat_sync_member {
    int64_t count; /* last value of its lease */
    double moved;  /* when the lease was last seen to change */
    bool seen, absent;
    /* It was absent in the session before. Its lease has perhaps another value now, since a
     * checkpoint was restored: the first value that is read is no change. */
    bool recalled;
} leat_sync_member;

typedef struct leat_sync {
    struct leat_sync *next; /* the next older one of the same graph */
    leat_graph *g;
    int aggregate; /* how many gradients are averaged */
    int total;     /* number of replicas */
    leat_out global_step, local_step;
    leat_out local_init; /* sets the local step to the global step */
    leat_out chief_init; /* local_init, and sets the steps of the accumulators */
    /* Gives names of variables that must have values before local_init. */
    leat_out ready_for_local_init;
    leat_out queue; /* the token queue */
    leat_out round; /* runs step 2 of the protocol */
    int n;          /* number of variables that have gradients */
    /* Handles of the accumulators; for each the number of gradients that a take waits for, a
     * constant. */
    leat_out *accumulators, *required;
    const char *device; /* device of the global step */

    /* Leat only; NULL nodes if there are no leases: */
    double lease_secs; /* a replica that has sent nothing for so long is not waited for */
    int replica;       /* number of this worker, from 0; -1: not known, it has no lease */
    /* int64 [total]: each worker increments its own; 0: never present, -1: has left. */
    leat_out lease;
    leat_out lease_exists, lease_init, join, beat, leave;
    /* Like round, but with the number of tokens given by `few`, an int32 [1] */
    leat_out few_round, few;
    leat_out more, n_more; /* puts n_more tokens into the queue */
    leat_out set_steps;    /* sets the accumulators' steps to the global step */
    leat_out *waiting;     /* number of gradients in each accumulator */
    leat_out *dropped;     /* number of this replica's gradients that each accumulator dropped */

    _Atomic int64_t n_dropped; /* last known; -1: the parameter servers do not count */
    _Atomic int quorum;        /* gradients that the chief waits for in the current round */
    _Atomic int present;       /* replicas that the chief considers present */
    leat_sync_member *members; /* all replicas when the last session ended; for sync_run.c */
} leat_sync;

leat_sync *leat_sync_of(const leat_graph *g); /* the last one made; NULL if there is none */
/* The op that puts n tokens into the queue; built on first use. */
leat_out leat_sync_tokens(leat_sync *y, int n);

/* sync_lease.c: adds the nodes that only Leat has. `updated` is the op that must precede the
 * tokens. */
typedef struct leat_sync_after {
    leat_out updated;
    leat_moving_average *averages;
    const leat_out *averaged;
    int n_averaged;
} leat_sync_after;
void leat_sync_add_leases(leat_sync *y, const leat_sync_after *after);

#endif
