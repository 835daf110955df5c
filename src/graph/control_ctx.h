/* control_ctx.h -- control contexts: the branches of conds and the bodies of loops, as a tree.
 *
 * 1. Every node belongs to one context (node->ctx; NULL is outside of all). The Enter and Exit
 *    nodes of a loop belong to the loop; an Exit's output lives outside. A cond's Switch belongs to
 *    one of the two branches; each of its outputs lives in its own branch.
 * 2. Inputs of a node live in its context, or in a cond branch inside it. What comes from further
 *    out is captured: through a Switch into a branch, through a constant Enter into a loop, once
 *    for each context.
 * 3. A node in a context runs only when the context does: it has an input or a control input in it;
 *    if need be, the context's pivot.
 */
#ifndef LEAT_CONTROL_CTX_H
#define LEAT_CONTROL_CTX_H

#include "graph/graph_int.h"

struct leat_control_ctx {
    leat_graph *g;
    leat_control_ctx *outer;
    leat_control_ctx *next; /* all of a graph, for freeing */
    int depth;              /* 1 if there is no outer one */
    bool is_loop;
    leat_map captured; /* the bytes of a leat_out -> leat_out that stands for it in here */

    /* A branch of a cond. */
    leat_out pred;             /* as the Switches have it */
    int branch;                /* 1: taken if pred */
    leat_node *pivot;          /* runs whenever the branch is taken; NULL: not known yet */
    leat_control_ctx *sibling; /* the other branch */

    /* A loop. */
    const char *frame;
    int parallel_iterations;
    bool back_prop, swap_memory;
    leat_node *pivot_for_pred, *pivot_for_body; /* run in every iteration */
    leat_out loop_cond;                         /* the LoopCond's output */
    leat_out *exits;                            /* of the loop variables */
    int n_exits;
    struct leat_loop_grad *grad; /* what this is the gradient loop of, or NULL */
    bool is_grad;                /* this is a gradient loop */
};

leat_control_ctx *leat_ctx_new(leat_graph *g, leat_control_ctx *outer, bool is_loop);
/* The two branches of a cond on pred in the context `outer`; outer's children are not looked at. */
void leat_ctx_new_branches(leat_graph *g, leat_control_ctx *outer, leat_out pred,
                           leat_control_ctx *branches_out[2]);
/* The context that x lives in. */
leat_control_ctx *leat_out_ctx(leat_out x);
/* The tensor that p is, behind Identities: a cond's pivots are made from its predicate, other
 * Switches from an Identity of it. */
leat_out leat_ctx_predicate(leat_out p);
/* The innermost loop around ctx, itself included, or NULL. */
leat_control_ctx *leat_ctx_loop(leat_control_ctx *ctx);
bool leat_ctx_inside(const leat_control_ctx *ctx, const leat_control_ctx *outer); /* or equal */

/* What stands for x in ctx (NULL: outside of all); adds what is needed for that. */
leat_out leat_ctx_capture(leat_control_ctx *ctx, leat_out x);
/* An Enter of the loop for x, which lives in the context around it. */
leat_out leat_ctx_enter(leat_control_ctx *loop, leat_out x, bool is_constant, const char *name);
leat_out leat_ctx_switch(leat_out x, leat_out pred, const char *name); /* RefSwitch of references */

/* Nodes that are added from here on belong to ctx. Gives what was current before. */
static inline leat_control_ctx *leat_ctx_open(leat_graph *g, leat_control_ctx *ctx)
{
    leat_control_ctx *before = g->control_ctx;
    g->control_ctx = ctx;
    return before;
}

static inline bool leat_is_switch(const leat_node *n)
{
    return leat_node_is(n, "Switch") || leat_node_is(n, "RefSwitch");
}
static inline bool leat_is_merge(const leat_node *n)
{
    return leat_node_is(n, "Merge") || leat_node_is(n, "RefMerge");
}
static inline bool leat_is_enter(const leat_node *n)
{
    return leat_node_is(n, "Enter") || leat_node_is(n, "RefEnter");
}
static inline bool leat_is_exit(const leat_node *n)
{
    return leat_node_is(n, "Exit") || leat_node_is(n, "RefExit");
}
/* A Switch that a LoopCond steers; a Merge that an Enter leads to. */
bool leat_is_loop_switch(const leat_node *n);
bool leat_is_loop_merge(const leat_node *n);
bool leat_is_constant_enter(const leat_node *n);

/* control_rebuild.c: finds the contexts of nodes that have none, from the structure of the graph:
 * those of imported graphs. */
leat_status leat_ctx_rebuild(leat_graph *g) LEAT_MUST_CHECK;

#endif
