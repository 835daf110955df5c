/* pass.h -- passes make, from a graph and a request, the graphs that executors run.
 *
 * A pass is one function in one file; compile.c in runtime lists them in order. They work on a copy
 * of the part of the graph that a run needs, with _Arg nodes for feeds and _Retval nodes for
 * fetches. A node that a pass removes is marked dead. New nodes are added at the end, so an input
 * may have a larger id than its consumer: use leat_pass_order where inputs must come first.
 */
#ifndef LEAT_PASS_H
#define LEAT_PASS_H

#include "core/stop.h"
#include "graph/device_name.h"
#include "graph/graph_int.h"

/* A device that nodes can be placed on. */
typedef struct leat_target {
    const char *name; /* full */
    leat_device_name parsed;
    uint64_t incarnation;
    bool together; /* its task is Leat's: it can send several tensors in one message */
    /* Of its kind: a node that can be placed on several kinds is placed on the one with the
     * highest. */
    int priority;
    /* The process that serves it; 0: this one. A process may serve devices of several tasks. */
    int process;
} leat_target;

typedef struct leat_compile {
    leat_graph *graph; /* the copy; owned */
    const leat_graph *source;
    const leat_target *devices;
    int n_devices;
    bool soft_placement, no_optimization;
    struct leat_placements *placements; /* the session's log_device_placement; NULL: no log */
    bool by_process;                    /* partition divides the graph by process, not by device */
    /* The graph is a part that was cut for this process: the calls in it are made when it runs,
     * since their bodies may use devices of other processes. */
    bool calls_stay;
    /* Where feeds come from and fetches go; NULL: the devices of the nodes. */
    const char *client_device;
    /* Functions of the runtime that passes call. */
    bool (*has_kernel)(const leat_node *n, const char *device_type);
    /* Computes a node without state from the values of its inputs; gives a tensor for each of its
     * outputs. NULL: nothing is folded. */
    leat_status (*evaluate)(const struct leat_compile *c, const leat_node *n,
                            leat_tensor *const *in, leat_tensor **out);
    /* Whether a node may wait for another step; NULL: no node does. */
    bool (*may_wait)(const leat_node *n, const char *device_type);
    void *arg;      /* argument of evaluate */
    leat_stop stop; /* of the run that wants the plan */
} leat_compile;

/* For loops over nodes: looks at c->stop when i, the number of nodes visited, is a multiple of some
 * thousand. NULL while the pass may go on. */
leat_status leat_pass_stopped(const leat_compile *c, int i) LEAT_MUST_CHECK;

/* The feeds, fetches and targets of a run; ids and indices are those of the source graph. */
typedef struct leat_request {
    const leat_out *feeds, *fetches, *targets;
    int n_feeds, n_fetches, n_targets;
    bool feed_later; /* partial runs: feeds become _LateArg nodes, which wait for their values */
} leat_request;

/* prune.c: makes c->graph, with the nodes that the request needs. */
leat_status leat_pass_prune(leat_compile *c, const leat_request *q) LEAT_MUST_CHECK;
/* prune.c: c->graph is all of this graph; takes it. */
void leat_pass_take(leat_compile *c, leat_graph *g);
/* inline.c: replaces calls of functions by their bodies. */
leat_status leat_pass_inline(leat_compile *c) LEAT_MUST_CHECK;
/* reread.c: makes consumers of a reference's value that run after an update read it again. */
leat_status leat_pass_reread(leat_compile *c) LEAT_MUST_CHECK;
/* The second part of reread.c, after placement: the same inside conditions and loops that update
 * the variable. */
leat_status leat_pass_reread_inside(leat_compile *c) LEAT_MUST_CHECK;
/* place.c: every node gets the full name of a device. */
leat_status leat_pass_place(leat_compile *c) LEAT_MUST_CHECK;
/* ---- place_list.c: log_device_placement of a session ---- */
typedef struct leat_placements leat_placements;
leat_placements *leat_placements_new(void);
void leat_placements_free(leat_placements *p); /* NULL does nothing */
/* Writes the devices of the session; what[i] is NULL for those that are not listed. */
void leat_placements_devices(const char *const *names, const char *const *what, int n);
/* Writes the nodes of a graph that was placed, but for those that p has written before. */
void leat_placements_nodes(leat_placements *p, const leat_graph *g);

/* control_loops.c: adds the control loops that a loop on several devices needs before it is
 * partitioned. */
leat_status leat_pass_control_loops(leat_compile *c) LEAT_MUST_CHECK;
bool leat_is_control_loop(const leat_node *n); /* n is a node of a control loop */
/* partition.c: makes one graph for each device that has nodes (or for each process, under its first
 * device), with _Send and _Recv nodes where an edge crosses. Gives an array with a graph or NULL
 * for each of c->devices; free each with leat_graph_free, the array with free(). */
leat_status leat_pass_partition(leat_compile *c, leat_graph ***parts_out) LEAT_MUST_CHECK;

/* The optimising passes, in order; all run after placement, when devices and colocation are
 * settled. */
leat_status leat_pass_fold(leat_compile *c) LEAT_MUST_CHECK; /* computes constants */
/* Removes nodes that change nothing. */
leat_status leat_pass_simplify(leat_compile *c) LEAT_MUST_CHECK;
leat_status leat_pass_cse(leat_compile *c) LEAT_MUST_CHECK; /* merges nodes that compute the same */
/* Fuses steps of LSTM cells. */
leat_status leat_pass_fuse_lstm(leat_compile *c) LEAT_MUST_CHECK;
/* Makes one product of a sum of products. */
leat_status leat_pass_fuse_products(leat_compile *c) LEAT_MUST_CHECK;
/* Transposes once what several products transpose. */
leat_status leat_pass_transpose_once(leat_compile *c) LEAT_MUST_CHECK;
/* Fuses product, bias and activation. */
leat_status leat_pass_fuse(leat_compile *c) LEAT_MUST_CHECK;
/* Fuses cross entropy and gradient. */
leat_status leat_pass_fuse_xent(leat_compile *c) LEAT_MUST_CHECK;
/* Fuses trees of element-wise ops. */
leat_status leat_pass_fuse_cwise(leat_compile *c) LEAT_MUST_CHECK;
leat_status
leat_pass_fuse_apply(leat_compile *c) LEAT_MUST_CHECK; /* fuses such a tree and its update */
/* Removes nodes that are not needed. */
leat_status leat_pass_sweep(leat_compile *c) LEAT_MUST_CHECK;

/* Copies a node into another graph without its edges, under the same name; its shapes are kept. */
leat_node *leat_node_clone(leat_graph *to, const leat_node *n);
/* Live nodes, inputs first (back edges of loops are ignored). Free with free(). */
leat_node **leat_pass_order(const leat_graph *g, int *count_out);

/* For each node id, the edges that leave the node. */
typedef struct leat_use {
    leat_node *node;
    int input;  /* -1: control */
    int output; /* the output that is used; -1: control */
} leat_use;
typedef struct leat_uses {
    leat_use *v;
    int *at; /* uses of node id i are v[at[i]] .. v[at[i + 1] - 1] */
} leat_uses;
leat_uses leat_uses_of(const leat_graph *g);
void leat_uses_free(leat_uses *u);
/* Adds the control inputs of `of` to n, which replaces it. */
void leat_take_controls(leat_node *n, const leat_node *of);

/* What consumers use instead of nodes that a pass removes. Consumers are changed by
 * leat_replacements_end, or before that, if the pass visits nodes in the order of leat_pass_order,
 * when each is visited (leat_replace_inputs): so all replacements together take linear time. */
typedef struct leat_replacement {
    leat_out
        by;     /* output i becomes output by.index + i of by.node; control edges come from there */
    bool waits; /* consumers get the node's control inputs, too */
    bool is_gone; /* the node is removed; if by.node is NULL, it had control edges only */
} leat_replacement;
/* An array for all nodes of g, by id. */
leat_replacement *leat_replacements_new(const leat_graph *g);
void leat_replace_inputs(const leat_replacement *r, leat_node *n);
/* Changes all consumers that still use removed nodes, marks the removed nodes dead, and frees r. No
 * node was added since leat_replacements_new. */
void leat_replacements_end(leat_replacement *r, leat_graph *g);

/* Whether n is used only as the gradient of a dense training op, or as the value of an AssignAdd or
 * AssignSub, on its own device (fuse_apply.c). */
bool leat_pass_is_gradient(const leat_uses *u, const leat_node *n);

/* The device that n was placed on; NULL before that. */
const leat_target *leat_pass_device(const leat_compile *c, const leat_node *n);
/* Whether a consumer of n is on another device. */
bool leat_used_elsewhere(const leat_uses *u, const leat_node *n);

/* Whether n is a Switch, Merge, Enter, Exit, NextIteration, LoopCond or their form for references,
 * which the executor runs itself. */
bool leat_node_is_flow(const leat_node *n);
/* Whether n has side effects: it has state, or takes a reference that it may write to. */
bool leat_node_has_effects(const leat_node *n);
/* Whether n has outputs, which depend on its inputs only, and has no side effects. */
bool leat_node_is_pure(const leat_node *n);
/* Which nodes (by id) depend on a flow op: they are in a loop's frame, or dead in some steps. Free
 * with free(). */
bool *leat_pass_below_flow(const leat_graph *g);
/* The value of x if it is a Const, else NULL. Borrowed. */
const leat_tensor *leat_pass_value(leat_out x);
/* Makes n a Const of value t (shared); it keeps its control inputs. */
void leat_pass_make_const(leat_node *n, leat_tensor *t);

#endif
