/* control_ctx.h -- control contexts: the branches of conds and the bodies of loops, as a tree.
 *
 * 1. Every node belongs to one context (node->ctx; NULL is outside of all). The Enter and Exit
 *    nodes of a loop belong to the loop; an Exit's output lives outside. A cond's Switch belongs to
 *    one of the two branches; each of its outputs lives in its own branch.
 * 2. Inputs of a node live in its context, or in a cond branch inside it. A tensor from further out
 * is captured: through a Switch into a branch, through a constant Enter into a loop, once
 *    for each context.
 * 3. A node in a context runs only when the context does: it has an input or a control input in the
 * context; if it has no other, a control input from the context's pivot.
 */
#ifndef LEAT_CONTROL_CTX_H
#define LEAT_CONTROL_CTX_H

#include "graph/graph_int.h"

struct leat_control_ctx {
    leat_graph *g;
    leat_control_ctx *outer;
    leat_control_ctx *next; /* list of all contexts of a graph, for freeing */
    int depth;              /* 1 for outermost contexts */
    bool is_loop;
    leat_map captured; /* bytes of a leat_out -> the leat_out that represents it in this context */

    /* For a branch of a cond: */
    leat_out pred;             /* the predicate that the Switches use */
    int branch;                /* 1: the branch that runs if pred is true */
    leat_node *pivot;          /* runs whenever the branch runs; NULL: not known yet */
    leat_control_ctx *sibling; /* the other branch */

    /* For a loop: */
    const char *frame;
    int parallel_iterations;
    bool back_prop, swap_memory;
    leat_node *pivot_for_pred, *pivot_for_body; /* each runs in every iteration */
    leat_out loop_cond;                         /* the LoopCond's output */
    leat_out *exits;                            /* of the loop variables */
    int n_exits;
    /* If this is a gradient loop: its forward loop's state; else NULL. */
    struct leat_loop_grad *grad;
    bool is_grad; /* this is a gradient loop */
};

leat_control_ctx *leat_ctx_new(leat_graph *g, leat_control_ctx *outer, bool is_loop);
/* Makes the two branches of a cond on pred in the context `outer`; it is not checked whether outer
 * has them already. */
void leat_ctx_new_branches(leat_graph *g, leat_control_ctx *outer, leat_out pred,
                           leat_control_ctx *branches_out[2]);
/* The context that x lives in. */
leat_control_ctx *leat_out_ctx(leat_out x);
/* The tensor that p is a copy of, by Identities: the pivots of a cond are made from its predicate,
 * other Switches use an Identity of it. */
leat_out leat_ctx_predicate(leat_out p);
/* The innermost loop around ctx, itself included, or NULL. */
leat_control_ctx *leat_ctx_loop(leat_control_ctx *ctx);
/* True also if they are equal. */
bool leat_ctx_inside(const leat_control_ctx *ctx, const leat_control_ctx *outer);

/* The tensor that represents x in ctx (NULL: outside all contexts); adds the nodes needed for
 * that. */
leat_out leat_ctx_capture(leat_control_ctx *ctx, leat_out x);
/* An Enter of the loop for x, which is in the context around the loop. */
leat_out leat_ctx_enter(leat_control_ctx *loop, leat_out x, bool is_constant, const char *name);
/* RefSwitch for references. */
leat_out leat_ctx_switch(leat_out x, leat_out pred, const char *name);

/* Nodes that are added after this call belong to ctx. Gives the context that was open before. */
static inline leat_control_ctx *leat_ctx_open(leat_graph *g, leat_control_ctx *ctx)
{
    leat_control_ctx *before = g->control_ctx;
    g->control_ctx = ctx;
    return before;
}

/* Whether a Switch is controlled by a LoopCond; whether a Merge has an Enter as input. */
bool leat_is_loop_switch(const leat_node *n);
bool leat_is_loop_merge(const leat_node *n);
bool leat_is_constant_enter(const leat_node *n);

/* control_rebuild.c: finds the contexts of nodes of imported graphs from the structure of the
 * graph. */
leat_status leat_ctx_rebuild(leat_graph *g) LEAT_MUST_CHECK;

#endif
