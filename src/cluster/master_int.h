/* master_int.h -- a session over several tasks from the inside: master.c opens it, master_run.c
 * runs its steps. */
#ifndef LEAT_CLUSTER_MASTER_INT_H
#define LEAT_CLUSTER_MASTER_INT_H

#include "cluster/master.h"
#include "runtime/far.h"

typedef struct leat_tasks {
    leat_far base;
    leat_worker *worker;
    char handle[80];
    leat_worker_session *session; /* on this task; the worker's */
    leat_peer **peers;            /* the other tasks of the session */
    int n_peers;
    bool open; /* the other tasks know it */
    Leat__DeviceAttributes **devices;
    int n_own; /* of devices: this task's */
    leat_target *targets;
    uint64_t first_id;
    atomic_ullong steps;
} leat_tasks;

extern const leat_far_ops leat_tasks_ops;
/* master_run.c */
leat_status leat_tasks_part_new(leat_far *f, const leat_target *device, const leat_graph *g,
                                int64_t deadline_ns, leat_far_part **out);
void leat_tasks_part_free(leat_far_part *p);
void leat_tasks_part_start(leat_far_part *p, leat_step *step);
leat_status leat_tasks_step_begin(leat_far *f, leat_step *step);
void leat_tasks_step_end(leat_far *f, leat_step *step);
void leat_tasks_step_waits(leat_far *f, leat_step *step, char *out, size_t size);
int leat_tasks_step_await(leat_far *f, leat_pool *p, leat_step *step);

#endif
