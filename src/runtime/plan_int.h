/* plan_int.h -- a plan from the inside: plan.c makes it, plan_step.c runs its steps. */
#ifndef LEAT_PLAN_INT_H
#define LEAT_PLAN_INT_H

#include "runtime/plan.h"

typedef struct leat_plan_part {
    leat_graph *graph;
    leat_device *device;
    leat_executor *executor;
} leat_plan_part;

struct leat_plan {
    leat_plan_part *parts; /* Of this task, one for each device with nodes. */
    int n_parts;
    leat_far *far;             /* Borrowed; NULL: no step of this plan runs on other tasks. */
    leat_far_part **far_parts; /* n_far of them: the parts on other tasks. */
    int n_far;
    leat_rendezvous_group **groups; /* Each: tensors that this task fetches by a single call. */
    int n_groups;
    /* A reference; NULL if nodes name no functions or use the set of the options. */
    struct leat_callables *callables;
    pthread_mutex_t lock;        /* Guards idle. */
    struct leat_plan_step *idle; /* Memory of steps that is not in use, linked by next. */
    leat_plan *next_kept;        /* In the list of reclaim.c. */
};

/* Frees the memory of steps that is not in use. False if there was none. */
bool leat_plan_steps_free(leat_plan *p);

/* reclaim.c: between these calls, an allocation that finds no memory of a device may free the
 * plan's idle steps. */
void leat_reclaim_from(leat_plan *p);
void leat_reclaim_no_more(leat_plan *p);

#endif
