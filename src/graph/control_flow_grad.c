/* control_flow_grad.c -- gradients of the flow ops. In the gradient, a Merge becomes a Switch and a
 * Switch a Merge, an Exit is an Enter and an Enter an Exit; NextIterations are added where a loop
 * closes. */
#include "graph/control_flow.h"

#include <leat/ops.h>

#include "graph/loop_grad.h"

/* The Switch of a loop is differentiated twice. The first time, the gradient of its exit output is
 * known: a Merge is added, which starts the gradient loop's variable. The second time, the gradient
 * that went through the body is known: the NextIteration is added. */
static leat_status loop_switch_grad(leat_grad *g)
{
    leat_loop_grad *l = leat_loops_of(g->b, g->node);
    if (!l) /* gradients that are computed inside the body end at its variables */
        return NULL;
    leat_node *merge = leat_map_get(&l->switches, g->node->name);
    if (merge) {
        if (leat_grad_has_out(g, 1))
            leat_loop_next((leat_out){merge, 0},
                           leat_op(g->b->g, "NextIteration", leat_in(leat_grad_out(g, 1))));
        return NULL;
    }
    if (!leat_grad_has_out(g, 0))
        return NULL;
    leat_out m = leat_loop_merge(leat_grad_out(g, 0), "b_switch");
    if (leat_out_ok(m))
        leat_map_put(&l->switches, g->node->name, m.node);
    return leat_grad_in(g, 0, m);
}

/* An output without a gradient gets zeros, which are alive only if the output's branch has run, so
 * that the Merge has exactly one live input. */
leat_status leat_switch_grad(leat_grad *g)
{
    if (leat_is_loop_switch(g->node))
        return loop_switch_grad(g);
    const leat_out both[2] = {leat_grad_out(g, 0), leat_grad_out(g, 1)};
    return leat_grad_in(g, 0, LEAT_OPN("Merge", both, 2, leat_name("cond_grad")));
}

/* A Merge that belongs to no known cond: the input that was chosen gets the gradient, the others
 * get dead values. */
static leat_status any_merge_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0), which = leat_grad_output(g, 1);
    for (int i = 0; i < g->node->n_in; i++) {
        leat_out chosen = leat_equal(which, leat_scalar_like(which, i));
        LEAT_TRY(leat_grad_in(g, i, leat_output(leat_ctx_switch(dy, chosen, NULL), 1)));
    }
    return NULL;
}

leat_status leat_merge_grad(leat_grad *g)
{
    if (!leat_grad_has_out(g, 0))
        return NULL;
    const leat_control_ctx *from = leat_out_ctx(g->node->in[0]);
    leat_out pred;
    const char *name = "cond_grad";
    if (leat_is_loop_merge(g->node)) {
        const leat_control_ctx *loop = g->b->g->control_ctx;
        if (!loop || !loop->is_grad)
            return NULL;
        pred = loop->loop_cond;
        name = NULL;
    } else if (g->node->n_in == 2 && from && !from->is_loop && from->branch == 0 &&
               leat_out_ctx(g->node->in[1]) == from->sibling) {
        pred = from->pred;
    } else {
        return any_merge_grad(g);
    }
    leat_out both = leat_ctx_switch(leat_grad_out(g, 0), pred, name);
    LEAT_TRY(leat_grad_in(g, 0, leat_output(both, 0)));
    return leat_grad_in(g, 1, leat_output(both, 1));
}

leat_status leat_exit_grad(leat_grad *g)
{
    leat_control_ctx *loop = g->b->g->control_ctx; /* the gradient loop */
    if (!loop || !loop->is_grad || !loop->back_prop)
        return NULL;
    leat_out dy = leat_grad_out(g, 0);
    return leat_grad_in(g, 0, leat_ctx_enter(loop, dy, false, "b_exit"));
}

leat_status leat_enter_grad(leat_grad *g)
{
    leat_loop_grad *l = leat_loops_of(g->b, g->node);
    if (!l || !l->forward->back_prop)
        return leat_grad_in_value(g, 0, leat_grad_out_value(g, 0));
    if (leat_is_constant_enter(g->node))
        return leat_grad_in_value(g, 0,
                                  leat_loop_accumulate(l, g->node, leat_grad_out_value(g, 0)));
    return leat_grad_in(g, 0, leat_op(g->b->g, "Exit", leat_in(leat_grad_out(g, 0))));
}

leat_status leat_next_iteration_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_grad_out(g, 0));
}
