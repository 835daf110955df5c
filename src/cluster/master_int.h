/* master_int.h -- a session over several tasks from the inside: master.c opens it, master_run.c
 * runs its steps. */
#ifndef LEAT_CLUSTER_MASTER_INT_H
#define LEAT_CLUSTER_MASTER_INT_H

#include "cluster/master.h"

typedef struct leat_tasks {
    leat_far base;
    leat_worker *worker;
    char handle[80];
    /* The session on this process's worker; NULL if another process opened the session. */
    leat_worker_session *session;
    leat_peer **peers; /* The other processes of the session. */
    int n_peers;
    bool held; /* The peers' holds count this session; guarded by base.lock. */
    bool open; /* CreateWorkerSession was sent to the peers. */
    Leat__DeviceAttributes **devices; /* base.n of them: the devices of all processes. */
    int n_own;                        /* The first n_own of devices are this process's. */
    leat_target *targets;             /* base.n of them, in the order of devices. */
    uint64_t first_id;                /* The id of the first step. */
    atomic_ullong steps;              /* Number of steps that were begun. */
} leat_tasks;

extern const leat_far_ops leat_tasks_ops;
/* master_run.c */
leat_status leat_tasks_part_new(leat_far *f, const leat_target *device, const leat_graph *g,
                                int64_t deadline_ns, leat_cancellation *cancellation,
                                leat_far_part **out);
void leat_tasks_part_free(leat_far_part *p);
leat_far_step *leat_tasks_step_new(leat_far *f, uint64_t *id_out, leat_rendezvous **rendezvous_out);
void leat_tasks_step_start(leat_far_step *x, leat_far_part *const *parts, int n, leat_step *step);
int leat_tasks_step_await(leat_far_step *x, leat_pool *p, leat_step *step);
void leat_tasks_step_waits(leat_far_step *x, char *out, size_t size);
void leat_tasks_step_free(leat_far_step *x, bool failed);

#endif
