/* sync.h -- synchronous replicas: what leat_sync_replicas has built, for those who run it.
 *
 * The protocol is TensorFlow's SyncReplicasOptimizer's, so that its workers and these can train
 * together. One round:
 * 1. A worker computes gradients and applies them, with its local step, to one accumulator for
 *    each variable; those that are older than the accumulator's step are dropped.
 * 2. The chief takes the mean of `required` gradients from each accumulator, which counts the
 *    accumulator's step up, updates the variables, counts the global step up, and puts tokens
 *    with the new step into the token queue, one for each replica.
 * 3. A worker takes a token: its local step from then on.
 * What is Leat's own is beside that: leases, by which the chief knows who is still there, and
 * another form of 2 with as many tokens as are asked for.
 */
#ifndef LEAT_SYNC_H
#define LEAT_SYNC_H

#include <leat/train.h>
#include <stdatomic.h>
#include "graph/graph_int.h"

typedef struct leat_sync {
    struct leat_sync *next; /* of the same graph, made earlier */
    leat_graph *g;
    int aggregate; /* gradients in a mean */
    int total;     /* replicas */
    leat_out global_step, local_step;
    leat_out local_init;               /* the local step becomes the global one */
    leat_out chief_init;               /* that, and the steps of the accumulators */
    leat_out ready_for_local_init;     /* names of variables that must have values first */
    leat_out queue;                    /* of tokens */
    leat_out round;                    /* step 2 */
    int n;                             /* variables that have gradients */
    leat_out *accumulators, *required; /* handles; how many each take waits for, as constants */
    const char *device;                /* of the global step */

    /* Leat's own; NULL nodes without leases. */
    double lease_secs; /* who is silent for so long is not waited for */
    int replica;       /* this worker's, from 0; -1: not known, it has no lease */
    leat_out lease;    /* int64 [total]: each worker counts its own up; 0: never, -1: left */
    leat_out lease_exists, lease_init, join, beat, leave;
    leat_out few_round, few; /* as round, but with tokens as `few`, an int32 [1], says */
    leat_out more, n_more;   /* puts as many tokens into the queue as n_more says */
    leat_out set_steps;      /* of the accumulators, to the global step */
    leat_out *waiting;       /* gradients in each accumulator */
    leat_out *dropped;       /* gradients of this replica that each accumulator refused */

    _Atomic int64_t n_dropped; /* the last known; -1: the parameter server does not count */
    _Atomic int quorum;        /* gradients that the chief waits for in the round under way */
    _Atomic int present;       /* replicas that the chief believes to be there */
} leat_sync;

leat_sync *leat_sync_of(const leat_graph *g); /* the last one made; NULL if there is none */
/* The op that puts n tokens into the queue; built when it is asked for. */
leat_out leat_sync_tokens(leat_sync *y, int n);

/* sync_lease.c: adds the nodes that are Leat's own. `updated` is what must come before tokens. */
typedef struct leat_sync_after {
    leat_out updated;
    leat_moving_average *averages;
    const leat_out *averaged;
    int n_averaged;
} leat_sync_after;
void leat_sync_add_leases(leat_sync *y, const leat_sync_after *after);

#endif
