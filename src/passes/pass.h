/* pass.h -- from a graph and what is asked of it to graphs that executors run.
 *
 * A pass is one function in one file; compile.c in runtime lists them in order. They work on a
 * copy of the part of the graph that a run needs, with _Arg nodes for what is fed and _Retval
 * nodes for what is fetched. A node that a pass removes is marked dead; nodes are only added at
 * the end, so ids may come out of order: use leat_pass_order where inputs must come first.
 */
#ifndef LEAT_PASS_H
#define LEAT_PASS_H

#include "graph/device_name.h"
#include "graph/graph_int.h"

/* A device that nodes can be placed on. */
typedef struct leat_target {
    const char *name; /* full */
    leat_device_name parsed;
    uint64_t incarnation;
    bool together; /* its task can send several tensors in one message */
} leat_target;

typedef struct leat_compile {
    leat_graph *graph; /* the copy; owned */
    const leat_graph *source;
    const leat_target *devices;
    int n_devices;
    bool soft_placement, log_placement, no_optimization;
    bool by_task;              /* partition cuts between tasks, not between their devices */
    const char *client_device; /* where feeds come from and fetches go; NULL: where the nodes are */
    /* What passes ask of the runtime. */
    bool (*has_kernel)(const leat_node *n, const char *device_type);
    /* Computes a node without state from the values of its inputs; gives a tensor for each of its
     * outputs. NULL: nothing is folded. */
    leat_status (*evaluate)(const struct leat_compile *c, const leat_node *n,
                            leat_tensor *const *in, leat_tensor **out);
    /* Whether a node may wait for another step; NULL: none does. */
    bool (*may_wait)(const leat_node *n);
    void *arg; /* evaluate's */
} leat_compile;

/* What a run is asked for; ids and indices are those of the source graph. */
typedef struct leat_request {
    const leat_out *feeds, *fetches, *targets;
    int n_feeds, n_fetches, n_targets;
    bool feed_later;     /* partial runs: _Arg nodes wait for their values */
    int64_t deadline_ns; /* other tasks must have their parts by then; 0: none */
} leat_request;

/* prune.c: makes c->graph, with what the request needs. */
leat_status leat_pass_prune(leat_compile *c, const leat_request *q) LEAT_MUST_CHECK;
/* prune.c: c->graph is this graph as a whole, taken. */
void leat_pass_take(leat_compile *c, leat_graph *g);
/* inline.c: calls of functions become their bodies. */
leat_status leat_pass_inline(leat_compile *c) LEAT_MUST_CHECK;
/* reread.c: reads of references that are used after an update are made after it. */
leat_status leat_pass_reread(leat_compile *c) LEAT_MUST_CHECK;
/* ... after placement: and those that are used in conditions and loops which update them. */
leat_status leat_pass_reread_inside(leat_compile *c) LEAT_MUST_CHECK;
/* place.c: every node gets the full name of a device. */
leat_status leat_pass_place(leat_compile *c) LEAT_MUST_CHECK;
/* control_loops.c: what a loop on several devices needs before it is cut. */
leat_status leat_pass_control_loops(leat_compile *c) LEAT_MUST_CHECK;
bool leat_is_control_loop(const leat_node *n); /* is one of the nodes that were added for that */
/* partition.c: one graph for each device (or task: the first of its devices) that has nodes, with
 * _Send and _Recv nodes where an edge crosses. Gives an array with one (or NULL) for each of
 * c->devices; each to be freed by leat_graph_free, the array by free(). */
leat_status leat_pass_partition(leat_compile *c, leat_graph ***parts_out) LEAT_MUST_CHECK;

/* The optimising passes, in order; all after placement, so that a node's device is known and what
 * was colocated with what has been settled. */
leat_status leat_pass_fold(leat_compile *c) LEAT_MUST_CHECK;       /* constants computed now */
leat_status leat_pass_simplify(leat_compile *c) LEAT_MUST_CHECK;   /* nodes that change nothing */
leat_status leat_pass_cse(leat_compile *c) LEAT_MUST_CHECK;        /* the same thing once */
leat_status leat_pass_fuse(leat_compile *c) LEAT_MUST_CHECK;       /* several nodes in one */
leat_status leat_pass_fuse_xent(leat_compile *c) LEAT_MUST_CHECK;  /* cross entropy and gradient */
leat_status leat_pass_fuse_cwise(leat_compile *c) LEAT_MUST_CHECK; /* element-wise trees in one */
leat_status leat_pass_fuse_apply(leat_compile *c) LEAT_MUST_CHECK; /* a tree and its update in one */
leat_status leat_pass_sweep(leat_compile *c) LEAT_MUST_CHECK;      /* what nobody needs any more */

/* Copies a node into another graph without its edges, under the same name; its shapes are kept. */
leat_node *leat_node_clone(leat_graph *to, const leat_node *n);
/* Live nodes, inputs first (back edges of loops do not count). Free with free(). */
leat_node **leat_pass_order(const leat_graph *g, int *count_out);

/* Who uses what: for each node id the edges that leave it. */
typedef struct leat_use {
    leat_node *node;
    int input;  /* -1: control */
    int output; /* of the node that is used; -1: control */
} leat_use;
typedef struct leat_uses {
    leat_use *v;
    int *at; /* uses of node id i are v[at[i]] .. v[at[i + 1] - 1] */
} leat_uses;
leat_uses leat_uses_of(const leat_graph *g);
void leat_uses_free(leat_uses *u);
/* Every use of output x becomes one of y. Controls that waited for x's node are not changed. */
void leat_replace_uses(const leat_uses *u, leat_out x, leat_out y);
/* n waits for what `of` waits for, too: it does what that did. */
void leat_take_controls(leat_node *n, const leat_node *of);
/* Whoever waited for x waits for y instead. */
void leat_replace_controls(const leat_uses *u, const leat_node *x, leat_node *y);

/* n is used only as the gradient of a dense training op, or as what is added to or taken from a
 * variable, on its own device (fuse_apply.c). */
bool leat_pass_is_gradient(const leat_uses *u, const leat_node *n);

/* The device that n was placed on; NULL before that. */
const leat_target *leat_pass_device(const leat_compile *c, const leat_node *n);
/* Some user of n is on another device. */
bool leat_used_elsewhere(const leat_uses *u, const leat_node *n);

/* Switch, Merge, Enter, Exit, NextIteration, LoopCond and their Ref kin: the executor's own. */
bool leat_node_is_flow(const leat_node *n);
/* Running it can be noticed elsewhere: it keeps state, or takes a reference that it may write to.
 */
bool leat_node_has_effects(const leat_node *n);
/* It gives the same outputs for the same inputs, and does nothing else. */
bool leat_node_is_pure(const leat_node *n);
/* Which nodes (by id) are below a flow op: in a loop's frame, or dead in some steps. Free with
 * free(). */
bool *leat_pass_below_flow(const leat_graph *g);
/* The value of x if it is a Const, else NULL. Borrowed. */
const leat_tensor *leat_pass_value(leat_out x);
/* Makes n a Const of value t (shared), with the controls that it has. */
void leat_pass_make_const(leat_node *n, leat_tensor *t);

#endif
