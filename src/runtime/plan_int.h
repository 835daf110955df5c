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
    leat_plan_part *parts; /* of this task */
    int n_parts;
    leat_far *far;
    leat_far_part **far_parts;
    int n_far;
    leat_rendezvous_group **groups; /* tensors that other tasks send together */
    int n_groups;
    struct leat_callables *callables; /* owned; NULL: none are called, or the options have a set */
    pthread_mutex_t lock;             /* guards idle */
    struct leat_plan_step *idle;      /* steps that are not in use, linked */
};

/* Frees the idle steps: all of them, as no run may be under way. */
void leat_plan_steps_free(leat_plan *p);

#endif
