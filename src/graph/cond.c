/* cond.c -- leat_cond: one of two branches runs. Each is built in a context of its own; their
 * results are joined by Merges. */
#include <leat/control.h>

#include <stdlib.h>

#include "core/alloc.h"
#include "graph/control_ctx.h"

/* The results of a branch, as tensors in the branch's context. For the completion of a node, the
 * result is the branch's pivot with a control edge from the node. */
static leat_out branch_result(leat_control_ctx *ctx, leat_out x)
{
    if (!leat_out_ok(x) || x.index >= 0)
        return leat_ctx_capture(ctx, x);
    leat_out y;
    leat_with_colocate(ctx->g, ((leat_out){ctx->pivot, 0})) y =
        leat_identity(((leat_out){ctx->pivot, 0}), leat_after(x), leat_name("control_dependency"));
    return y;
}

/* outer: the location that nodes of fn get if it is set, instead of their own. */
static void build_branch(leat_loc at, leat_loc outer, leat_control_ctx *ctx, leat_branch_fn fn,
                         void *arg, leat_out *outs, int n)
{
    leat_graph *g = ctx->g;
    leat_control_ctx *before = leat_ctx_open(g, ctx);
    for (int i = 0; i < n; i++)
        outs[i] = (leat_out){0};
    leat_at_leave(g, outer);
    fn(g, arg, outs);
    leat_at_enter(g, at);
    for (int i = 0; i < n; i++) {
        if (!outs[i].node)
            outs[i] = leat_graph_fail(g, at,
                                      leat_error(INVALID_ARGUMENT,
                                                 "leat_cond: %s must have a return value: outs[%d]",
                                                 ctx->branch ? "true_fn" : "false_fn", i));
        else if (outs[i].node->graph != g)
            outs[i] = leat_graph_fail(g, at,
                                      leat_error(INVALID_ARGUMENT,
                                                 "leat_cond: '%s' is from another graph",
                                                 outs[i].node->name));
        outs[i] = branch_result(ctx, outs[i]);
    }
    leat_ctx_open(g, before);
}

static leat_out merge(leat_loc at, leat_out f, leat_out t)
{
    leat_graph *g = f.node->graph;
    leat_dtype tf = leat_out_dtype(f), tt = leat_out_dtype(t);
    if (!leat_out_ok(f) || !leat_out_ok(t))
        return (leat_out){g->poison, 0};
    if (leat_dtype_base(tf) != leat_dtype_base(tt))
        return leat_graph_fail(
            g, at,
            leat_error(INVALID_ARGUMENT,
                       "Outputs of true_fn and false_fn must have the same type: %s, %s",
                       leat_dtype_name(tt), leat_dtype_name(tf)));
    const leat_out both[2] = {f, t};
    bool refs = leat_dtype_is_ref(tf) && leat_dtype_is_ref(tt);
    return leat_op_of(at, refs ? "RefMerge" : "Merge", both, 2, LEAT_ARGS(leat_name("Merge")));
}

void leat_cond_at(leat_loc at, leat_out pred, leat_branch_fn true_fn, leat_branch_fn false_fn,
                  void *arg, leat_out *outs, int n, const leat_cond_options *o)
{
    leat_graph *g = pred.node ? pred.node->graph : NULL;
    for (int i = 0; i < n; i++)
        outs[i] = (leat_out){g ? g->poison : NULL, 0};
    if (!g)
        return;
    leat_loc outer = leat_at_enter(g, at);
    leat_name_scope_enter(g, o->name ? o->name : "cond");
    leat_out p = LEAT_OP2("Switch", pred, pred);
    leat_out t = leat_identity(leat_output(p, 1), leat_name("switch_t"));
    leat_out f = leat_identity(leat_output(p, 0), leat_name("switch_f"));
    leat_out id = leat_identity(pred, leat_name("pred_id"));
    if (!g->status) {
        leat_control_ctx *branches[2];
        leat_ctx_new_branches(g, g->control_ctx, id, branches);
        branches[0]->pivot = f.node;
        branches[1]->pivot = t.node;
        f.node->ctx = branches[0];
        t.node->ctx = branches[1];
        leat_out *from = leat_new_array(leat_out, 2 * n + 1);
        build_branch(at, outer, branches[1], true_fn, arg, from + n, n);
        build_branch(at, outer, branches[0], false_fn, arg, from, n);
        for (int i = 0; i < n; i++)
            outs[i] = merge(at, from[i], from[n + i]);
        free(from);
    }
    leat_name_scope_leave(g);
    leat_at_leave(g, outer);
}

/* ---- Many branches: the second branch of each cond is another cond ---- */

typedef struct cases {
    leat_loc at;
    leat_out index;
    const leat_branch_fn *branches;
    int first, n_branches; /* the branches that are left */
    void *arg;
    int n;
} cases;

static void this_case(leat_graph *g, void *arg, leat_out *outs)
{
    cases *c = arg;
    c->branches[c->first](g, c->arg, outs);
}

static void other_cases(leat_graph *g, void *arg, leat_out *outs)
{
    cases rest = *(cases *)arg;
    rest.first++;
    if (rest.first + 1 >= rest.n_branches) {
        this_case(g, &rest, outs);
        return;
    }
    leat_out number = leat_scalar_at(rest.at, g, LEAT_INT32, rest.first);
    const leat_out both[2] = {rest.index, number};
    leat_cond_at(rest.at, leat_op_of(rest.at, "Equal", both, 2, LEAT_ARGS()), this_case,
                 other_cases, &rest, outs, rest.n, &(leat_cond_options){0});
}

void leat_switch_case_at(leat_loc at, leat_out index, const leat_branch_fn *branches,
                         int n_branches, void *arg, leat_out *outs, int n,
                         const leat_cond_options *o)
{
    leat_graph *g = index.node ? index.node->graph : NULL;
    for (int i = 0; i < n; i++)
        outs[i] = (leat_out){g ? g->poison : NULL, 0};
    if (!g)
        return;
    if (n_branches < 1) {
        leat_graph_fail(g, at, leat_error(INVALID_ARGUMENT, "Must provide at least one branch"));
        return;
    }
    leat_name_scope_enter(g, o->name ? o->name : "switch_case");
    cases all = {at, index, branches, -1, n_branches, arg, n};
    other_cases(g, &all, outs);
    leat_name_scope_leave(g);
}
