/* plan.h -- a plan is a compiled signature (feeds, fetches and targets): an executor for each
 * device of this task, and parts that were sent to other tasks. */
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
    leat_device *const *devices; /* Of this task. */
    int n_devices;
    leat_far *far; /* The other tasks; NULL: there are none. A set of callables shares it. */
    bool soft_placement, no_optimization;
    leat_placements *placements; /* NULL: placements are not logged */
    /* Compiling fails at this time (CLOCK_MONOTONIC). 0: there is no deadline, except that sending
     * a part to another task may take two minutes. */
    int64_t deadline_ns;
    leat_cancellation *cancellation; /* Makes compiling fail; may be NULL. */
    leat_stage_times *times;         /* NULL: the times are not recorded. */
    /* For the plan of a function's body: the set whose callables its nodes call, which outlives the
     * plan. NULL: the plan makes a set of its own if its nodes name functions. */
    struct leat_callables *callables;
} leat_plan_options;

leat_status leat_plan_new(const leat_graph *g, const leat_request *q, const leat_plan_options *o,
                          leat_plan **out) LEAT_MUST_CHECK;
/* Makes the plan of a part that another task's master has sent to this task. Takes part. o->far has
 * the other tasks on which functions that the part calls may have nodes. */
leat_status leat_plan_of_part(leat_graph *part, const leat_plan_options *o,
                              leat_plan **out) LEAT_MUST_CHECK;
void leat_plan_free(leat_plan *p); /* No step of the plan may be under way. */

/* ---- plan_step.c: steps of a plan ----
 * A caller that waits calls leat_step_new, leat_step_run and leat_step_free. A caller that does not
 * wait calls leat_step_new and leat_step_start; once options->ended was called, it calls
 * leat_step_finish and leat_step_free. leat_step_fail may be called at any time between new and
 * free: before the start it keeps all nodes from running, after the end it does nothing. */
leat_step *leat_step_new(leat_plan *p, const leat_step_options *o);
leat_status leat_step_run(leat_step *s) LEAT_MUST_CHECK; /* Gives the step's status. */
/* options->ended is called when all parts have ended, maybe before leat_step_start returns. */
void leat_step_start(leat_step *s);
leat_status leat_step_finish(leat_step *s) LEAT_MUST_CHECK; /* Gives the step's status. */
/* Describes, for a message, the nodes and tasks that the step waits for now. */
void leat_step_waits(leat_step *s, char *out, size_t size);
void leat_step_free(leat_step *s);
/* True if the plan has parts on other tasks and their session is closed. */
bool leat_plan_closed(const leat_plan *p);
/* For RunMetadata: the number of graphs that this process runs, and graph i. */
int leat_plan_graphs(const leat_plan *p);
const leat_graph *leat_plan_graph(const leat_plan *p, int i);

/* compile.c: returns the deadline and cancellation of o as a leat_stop. */
leat_stop leat_plan_stop(const leat_plan_options *o);
/* compile.c: to be called when a stage of compiling that began at begin_ns has ended with status s.
 * Records the stage's time. Takes s, and gives it, or an error that names the stage if the deadline
 * has passed or the cancellation is cancelled. */
leat_status leat_plan_stage(const leat_plan_options *o, const char *name, int64_t begin_ns,
                            leat_status s) LEAT_MUST_CHECK;
/* evaluate.c: runs one node on the device c->arg, for passes that fold constants. */
leat_status leat_evaluate_node(const leat_compile *c, const leat_node *n, leat_tensor *const *in,
                               leat_tensor **values) LEAT_MUST_CHECK;
/* copies.c: adds copies to the graph of a device whose memory is not the host's, on edges between
 * kernels that want different memories. `all` has the devices of this process. */
leat_status leat_insert_copies(leat_graph *g, const leat_device *d, leat_device *const *all,
                               int n_all) LEAT_MUST_CHECK;
/* compile.c: runs all passes. Gives an array of graphs, one for each device, NULL where there are
 * no nodes. If o->far is not NULL, the array has an entry for each target of o->far, and the graph
 * of a process is at the first device of that process. */
leat_status leat_compile_graph(const leat_graph *g, const leat_request *q,
                               const leat_plan_options *o, leat_graph ***parts_out) LEAT_MUST_CHECK;
/* compile.c: runs all passes but prune over this task's part of a graph that was partitioned by
 * process, and gives graphs by device. Takes part. */
leat_status leat_compile_part(leat_graph *part, const leat_plan_options *o,
                              leat_graph ***parts_out) LEAT_MUST_CHECK;

#endif
