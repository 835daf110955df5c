/* plan.h -- a signature of runs, compiled: one executor a device, and parts for other tasks. */
#ifndef LEAT_PLAN_H
#define LEAT_PLAN_H

#include "passes/pass.h"
#include "runtime/executor.h"
#include "runtime/far.h"

typedef struct leat_plan leat_plan;

/* How long the stages of compiling took: the passes, in order, then making executors. */
enum { LEAT_MOST_STAGES = 32 };
typedef struct leat_stage_time {
    const char *name;
    int64_t ns;
} leat_stage_time;
typedef struct leat_stage_times {
    leat_stage_time v[LEAT_MOST_STAGES];
    int n;
} leat_stage_times;

typedef struct leat_plan_options {
    leat_device *const *devices; /* of this task */
    int n_devices;
    leat_far *far; /* NULL: there are no other tasks. A set of callables shares it. */
    bool soft_placement, log_placement, no_optimization;
    /* Compiling fails once this time has passed (CLOCK_MONOTONIC; 0: other tasks get their parts
     * within two minutes) or this is cancelled (NULL: never). */
    int64_t deadline_ns;
    leat_cancellation *cancellation;
    leat_stage_times *times; /* NULL: not recorded */
    /* For the plan of a function's body: the set whose callables its nodes call, which outlives the
     * plan. NULL: the plan makes a set of its own if its nodes name functions. */
    struct leat_callables *callables;
} leat_plan_options;

leat_status leat_plan_new(const leat_graph *g, const leat_request *q, const leat_plan_options *o,
                          leat_plan **out) LEAT_MUST_CHECK;
/* The plan of a part that another task's master has partitioned off for this task. Takes part.
 * o->far is for the functions that its nodes call. */
leat_status leat_plan_of_part(leat_graph *part, const leat_plan_options *o,
                              leat_plan **out) LEAT_MUST_CHECK;
void leat_plan_free(leat_plan *p); /* when no run of it is under way */

/* ---- plan_step.c: steps of a plan ----
 * leat_step_new, then leat_step_run, which waits; or leat_step_start and, when options->ended was
 * called, leat_step_finish. Then leat_step_free. Between new and free a step may be failed
 * (leat_step_fail) at any time: before it starts no node of it runs, after it has finished that
 * does nothing. */
leat_step *leat_step_new(leat_plan *p, const leat_step_options *o);
leat_status leat_step_run(leat_step *s) LEAT_MUST_CHECK; /* gives the status */
/* Calls options->ended when all parts have ended, maybe before this returns. */
void leat_step_start(leat_step *s);
leat_status leat_step_finish(leat_step *s) LEAT_MUST_CHECK; /* gives the status */
void leat_step_free(leat_step *s);
/* The plan has parts on other tasks, and the session that they belong to is over. */
bool leat_plan_closed(const leat_plan *p);
/* The graphs that this process runs, for metadata: their number, and graph i. */
int leat_plan_graphs(const leat_plan *p);
const leat_graph *leat_plan_graph(const leat_plan *p, int i);

/* compile.c: the deadline and cancellation of o. */
leat_stop leat_plan_stop(const leat_plan_options *o);
/* compile.c: a stage that began at begin_ns has ended with s, which this takes. Records its time;
 * if the run does not wait for the plan any more, gives an error that names the stage. */
leat_status leat_plan_stage(const leat_plan_options *o, const char *name, int64_t begin_ns,
                            leat_status s) LEAT_MUST_CHECK;
/* evaluate.c: runs one node for the passes, which fold constants; c->arg is the device. */
leat_status leat_evaluate_node(const leat_compile *c, const leat_node *n, leat_tensor *const *in,
                               leat_tensor **values) LEAT_MUST_CHECK;
/* copies.c: adds copies to the graph of a device whose memory is not the host's, on edges between
 * kernels that want different memories. `all`: the devices of this process. */
leat_status leat_insert_copies(leat_graph *g, const leat_device *d, leat_device *const *all,
                               int n_all) LEAT_MUST_CHECK;
/* compile.c: the passes in order. Gives graphs by device, or, where there are other tasks, by
 * process (the first of its devices). */
leat_status leat_compile_graph(const leat_graph *g, const leat_request *q,
                               const leat_plan_options *o, leat_graph ***parts_out) LEAT_MUST_CHECK;
/* The remaining passes, for this task's part of a graph that is partitioned by task. Takes part. */
leat_status leat_compile_part(leat_graph *part, const leat_plan_options *o,
                              leat_graph ***parts_out) LEAT_MUST_CHECK;

#endif
