/* master_int.h -- a session over several tasks from the inside: master.c opens it, master_run.c
 * runs its steps. */
#ifndef LEAT_CLUSTER_MASTER_INT_H
#define LEAT_CLUSTER_MASTER_INT_H

#include "cluster/master.h"

typedef struct leat_tasks {
    leat_far base;
    leat_worker *worker;
    char handle[80];
    /* In this process, the worker's; NULL: this process did not open the session. */
    leat_worker_session *session;
    leat_peer **peers; /* the other processes of the session */
    int n_peers;
    bool open; /* sessions were opened on the other processes */
    Leat__DeviceAttributes **devices;
    int n_own; /* of devices: this process's */
    leat_target *targets;
    uint64_t first_id;
    atomic_ullong steps;
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
