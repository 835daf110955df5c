/* plan.h -- a signature of runs, compiled: one executor a device, and parts for other tasks. */
#ifndef LEAT_PLAN_H
#define LEAT_PLAN_H

#include "passes/pass.h"
#include "runtime/executor.h"
#include "runtime/far.h"

typedef struct leat_plan leat_plan;

typedef struct leat_plan_options {
    leat_device *const *devices; /* of this task */
    int n_devices;
    leat_far *far; /* NULL: there are no other tasks */
    bool soft_placement, log_placement, no_optimization;
} leat_plan_options;

leat_status leat_plan_new(const leat_graph *g, const leat_request *q, const leat_plan_options *o,
                          leat_plan **out) LEAT_MUST_CHECK;
/* This task's part of another's plan: all of a graph that was cut already. Takes part. */
leat_status leat_plan_of_part(leat_graph *part, const leat_plan_options *o,
                              leat_plan **out) LEAT_MUST_CHECK;
void leat_plan_free(leat_plan *p); /* when no run of it is under way */

/* One step: step is initialised, with feeds, fetches and deadline set. Blocks until it ended;
 * gives its status. */
leat_status leat_plan_run(leat_plan *p, leat_step *step) LEAT_MUST_CHECK;
/* The same without waiting: step->ended is set, as are its id and rendezvous, and is called when
 * all is over, maybe before this returns; it, or whoever it tells, calls leat_plan_ended. */
void leat_plan_start(leat_plan *p, leat_step *step);
leat_status leat_plan_ended(leat_plan *p, leat_step *step) LEAT_MUST_CHECK; /* gives the status */
/* The graphs that run here, for metadata: count and each of them. */
int leat_plan_graphs(const leat_plan *p);
const leat_graph *leat_plan_graph(const leat_plan *p, int i);

/* evaluate.c: the passes' way to run a node; c->arg is the device. */
leat_status leat_evaluate_node(const leat_compile *c, const leat_node *n, leat_tensor *const *in,
                               leat_tensor **values) LEAT_MUST_CHECK;
/* compile.c: the passes in order. Gives graphs by device, or, where there are other tasks, by task
 * (the first of its devices). */
leat_status leat_compile_graph(const leat_graph *g, const leat_request *q,
                               const leat_plan_options *o, leat_graph ***parts_out) LEAT_MUST_CHECK;
/* The rest of the way for this task's part, which it takes. */
leat_status leat_compile_part(leat_graph *part, const leat_plan_options *o,
                              leat_graph ***parts_out) LEAT_MUST_CHECK;

#endif
