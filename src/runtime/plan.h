/* plan.h -- a signature of runs, compiled: one executor a device. */
#ifndef LEAT_PLAN_H
#define LEAT_PLAN_H

#include "passes/pass.h"
#include "runtime/executor.h"

typedef struct leat_plan leat_plan;

typedef struct leat_plan_options {
    leat_device *const *devices;
    int n_devices;
    bool soft_placement, log_placement, no_optimization;
} leat_plan_options;

leat_status leat_plan_new(const leat_graph *g, const leat_request *q, const leat_plan_options *o,
                          leat_plan **out) LEAT_MUST_CHECK;
void leat_plan_free(leat_plan *p); /* when no run of it is under way */

/* One step: step is initialised, with feeds, fetches and deadline set. Blocks until it ended;
 * gives its status. */
leat_status leat_plan_run(leat_plan *p, leat_step *step) LEAT_MUST_CHECK;

/* evaluate.c: the passes' way to run a node; c->arg is the device. */
leat_status leat_evaluate_node(const leat_compile *c, const leat_node *n, leat_tensor *const *in,
                               leat_tensor **values) LEAT_MUST_CHECK;
/* compile.c: the passes in order. */
leat_status leat_compile_graph(const leat_graph *g, const leat_request *q,
                               const leat_plan_options *o, leat_graph ***parts_out) LEAT_MUST_CHECK;

#endif
