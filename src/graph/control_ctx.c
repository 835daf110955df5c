/* control_ctx.c -- what is done to a node that is added while a cond branch or a loop is open: its
 * inputs are captured, its control inputs are captured, its context is recorded. */
#include "graph/control_ctx.h"

#include <stdlib.h>
#include <string.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "graph/loop_grad.h"

leat_control_ctx *leat_ctx_new(leat_graph *g, leat_control_ctx *outer, bool is_loop)
{
    leat_control_ctx *c = leat_arena_new(&g->arena, leat_control_ctx);
    c->g = g;
    c->outer = outer;
    c->depth = outer ? outer->depth + 1 : 1;
    c->is_loop = is_loop;
    c->back_prop = true;
    c->parallel_iterations = 10;
    c->next = g->contexts;
    g->contexts = c;
    return c;
}

void leat_ctx_new_branches(leat_graph *g, leat_control_ctx *outer, leat_out pred,
                           leat_control_ctx *branches_out[2])
{
    for (int i = 0; i < 2; i++) {
        branches_out[i] = leat_ctx_new(g, outer, false);
        branches_out[i]->pred = pred;
        branches_out[i]->branch = i;
    }
    branches_out[0]->sibling = branches_out[1];
    branches_out[1]->sibling = branches_out[0];
}

void leat_control_ctxs_free(leat_graph *g)
{
    for (leat_control_ctx *c = g->contexts; c; c = c->next)
        leat_map_release(&c->captured);
}

bool leat_is_loop_switch(const leat_node *n)
{
    return leat_is_switch(n) && leat_node_role(n->in[1].node) == LEAT_ROLE_LOOP_COND;
}

bool leat_is_loop_merge(const leat_node *n)
{
    return leat_is_merge(n) && n->in[0].node && leat_is_enter(n->in[0].node);
}

bool leat_is_constant_enter(const leat_node *n)
{
    return leat_is_enter(n) && leat_node_bool(n, "is_constant");
}

leat_out leat_ctx_predicate(leat_out p)
{
    while (leat_is_identity(p.node))
        p = p.node->in[0];
    return p;
}

/* A Switch that brings x into one of the two branches. */
static bool leads_into(const leat_node *n, const leat_control_ctx *branch)
{
    if (!leat_is_switch(n))
        return false;
    leat_out p = leat_ctx_predicate(n->in[1]), q = leat_ctx_predicate(branch->pred);
    return p.node == q.node && p.index == q.index;
}

leat_control_ctx *leat_out_ctx(leat_out x)
{
    leat_control_ctx *c = x.node->ctx;
    if (!c)
        return NULL;
    if (c->is_loop)
        return leat_is_exit(x.node) ? c->outer : c;
    return x.index >= 0 && x.index != c->branch && leads_into(x.node, c) ? c->sibling : c;
}

leat_control_ctx *leat_ctx_loop(leat_control_ctx *ctx)
{
    while (ctx && !ctx->is_loop)
        ctx = ctx->outer;
    return ctx;
}

bool leat_ctx_inside(const leat_control_ctx *ctx, const leat_control_ctx *outer)
{
    while (ctx && ctx != outer)
        ctx = ctx->outer;
    return ctx == outer;
}

/* ---- Capture ---- */

static bool lives_in(const leat_control_ctx *ctx, leat_out x)
{
    const leat_control_ctx *c = leat_out_ctx(x);
    while (c && c != ctx && !c->is_loop)
        c = c->outer;
    return c == ctx;
}

typedef struct key {
    int id, index;
} key;

static void remember(leat_control_ctx *ctx, leat_out x, leat_out inside)
{
    key k = {x.node->id, x.index};
    leat_map_put_n(&ctx->captured, &k, sizeof(k),
                   leat_arena_memdup(&ctx->g->arena, &inside, sizeof(inside)));
}

leat_out leat_ctx_switch(leat_out x, leat_out pred, const char *name)
{
    leat_graph *g = x.node->graph;
    const char *op = leat_dtype_is_ref(leat_out_dtype(x)) ? "RefSwitch" : "Switch";
    leat_colocate_only_enter(g, x);
    leat_out y = leat_op(g, op, leat_in(x), leat_in(pred), leat_name(name ? name : "Switch"));
    leat_colocate_leave(g);
    return y;
}

/* Into a branch: a Switch that depends only on x and the predicate. */
static leat_out into_branch(leat_control_ctx *ctx, leat_out x)
{
    leat_graph *g = ctx->g;
    leat_control_clear_enter(g);
    g->ctx_off++;
    leat_out y = leat_ctx_switch(x, ctx->pred, NULL);
    g->ctx_off--;
    leat_control_leave(g);
    if (!leat_out_ok(y))
        return y;
    y.node->ctx = ctx;
    return (leat_out){y.node, ctx->branch};
}

/* An Enter may have control inputs from the contexts around the loop, up to the next loop. */
static void keep_outer_controls(leat_node *n, leat_control_ctx *loop)
{
    int kept = 0;
    for (int i = 0; i < n->n_controls; i++) {
        leat_control_ctx *of = leat_out_ctx((leat_out){n->controls[i], -1}), *c = loop->outer;
        while (c && c != of && !c->is_loop)
            c = c->outer;
        if (c == of)
            n->controls[kept++] = n->controls[i];
    }
    n->n_controls = kept;
}

leat_out leat_ctx_enter(leat_control_ctx *loop, leat_out x, bool is_constant, const char *name)
{
    leat_graph *g = loop->g;
    const char *op = leat_dtype_is_ref(leat_out_dtype(x)) ? "RefEnter" : "Enter";
    g->ctx_off++;
    leat_out y = leat_op(g, op, leat_in(x), leat_attr_string("frame_name", loop->frame),
                         leat_attr_bool("is_constant", is_constant),
                         leat_attr_int("parallel_iterations", loop->parallel_iterations),
                         leat_name(name ? name : "Enter"));
    g->ctx_off--;
    if (leat_out_ok(y)) {
        y.node->ctx = loop;
        keep_outer_controls(y.node, loop);
    }
    return y;
}

leat_out leat_ctx_capture(leat_control_ctx *ctx, leat_out x)
{
    if (!ctx || !leat_out_ok(x) || lives_in(ctx, x))
        return x;
    key k = {x.node->id, x.index};
    const leat_out *known = leat_map_get_n(&ctx->captured, &k, sizeof(k));
    if (known)
        return *known;
    leat_out inside;
    if (ctx->grad && leat_ctx_loop(leat_out_ctx(x)) == leat_loop_grad_forward(ctx->grad)) {
        inside = leat_loop_real_value(ctx->grad, x);
    } else {
        leat_out outside = leat_ctx_capture(ctx->outer, x);
        if (!leat_out_ok(outside))
            return outside;
        inside =
            ctx->is_loop ? leat_ctx_enter(ctx, outside, true, NULL) : into_branch(ctx, outside);
    }
    if (leat_out_ok(inside))
        remember(ctx, x, inside);
    return inside;
}

/* ---- A node is added ---- */

/* Values leave a loop only through Exit. A gradient loop may use values of its forward loop. */
static leat_status check_input(leat_control_ctx *ctx, leat_out x, const char *name)
{
    leat_control_ctx *from = leat_ctx_loop(leat_out_ctx(x)), *loop = leat_ctx_loop(ctx);
    if (!from || leat_ctx_inside(loop, from))
        return NULL;
    const leat_control_ctx *forward =
        loop && loop->grad ? leat_loop_grad_forward(loop->grad) : NULL;
    if (forward && (leat_ctx_inside(forward, from) || from->outer == forward))
        return NULL;
    LEAT_REQUIRE(loop, INVALID_ARGUMENT,
                 "Cannot use '%s' as input to '%s' because '%s' is in a while loop.", x.node->name,
                 name, x.node->name);
    return leat_error(INVALID_ARGUMENT,
                      "Cannot use '%s' as input to '%s' because they are in different while loops.",
                      x.node->name, name);
}

/* If a gradient loop needs only the shape of a value of the forward loop, the Shape node is added
 * to the forward loop, so that the shape, and not the value, is kept for every iteration. */
static bool moves_forward(const leat_control_ctx *loop, const char *op, leat_out x)
{
    if (!loop || !loop->grad || !leat_out_ok(x) ||
        leat_ctx_loop(leat_out_ctx(x)) != leat_loop_grad_forward(loop->grad))
        return false;
    const leat_op_info *info = leat_op_find(op);
    const leat_role role = info ? info->def->role : LEAT_ROLE_NONE;
    return role == LEAT_ROLE_SHAPE || role == LEAT_ROLE_SIZE || role == LEAT_ROLE_RANK;
}

leat_status leat_ctx_take_inputs(leat_graph *g, const char *op, const char *name, leat_out *in,
                                 int n_in, leat_control_ctx **ctx_out)
{
    *ctx_out = NULL;
    if (g->ctx_off)
        return NULL;
    leat_control_ctx *ctx = g->control_ctx;
    if (n_in == 1 && moves_forward(leat_ctx_loop(ctx), op, in[0]))
        ctx = leat_out_ctx(in[0]);
    *ctx_out = ctx;
    bool scoped = false;
    for (int i = 0; i < n_in; i++) {
        if (!leat_out_ok(in[i]))
            continue;
        LEAT_TRY(check_input(ctx, in[i], name));
        if (!ctx || lives_in(ctx, in[i]))
            continue;
        if (!scoped)
            leat_name_scope_enter(g, leat_arena_printf(&g->arena, "%s/", name));
        scoped = true;
        in[i] = leat_ctx_capture(ctx, in[i]);
    }
    if (scoped)
        leat_name_scope_leave(g);
    return leat_status_copy(g->status);
}

static leat_node *pivot_of(leat_control_ctx *ctx)
{
    if (ctx->is_loop)
        return ctx->pivot_for_body ? ctx->pivot_for_body : ctx->pivot_for_pred;
    if (!ctx->pivot) { /* a cond of an imported graph */
        leat_out p = leat_ctx_capture(ctx, ctx->pred);
        leat_control_clear_enter(ctx->g);
        leat_control_ctx *before = leat_ctx_open(ctx->g, ctx);
        p = leat_identity(p);
        leat_ctx_open(ctx->g, before);
        leat_control_leave(ctx->g);
        ctx->pivot = leat_out_ok(p) ? p.node : NULL;
    }
    return ctx->pivot;
}

/* Moves control inputs that come from outside the loop around ctx to external; gives their
 * number. */
static int split_controls(leat_control_ctx *ctx, leat_node *n, leat_node **external)
{
    leat_control_ctx *loop = leat_ctx_loop(ctx);
    int kept = 0, n_external = 0;
    for (int i = 0; loop && i < n->n_controls; i++) {
        leat_node *c = n->controls[i];
        if (leat_ctx_loop(leat_out_ctx((leat_out){c, -1})) == loop)
            n->controls[kept++] = c;
        else
            external[n_external++] = c;
    }
    if (loop)
        n->n_controls = kept;
    return n_external;
}

static bool waits_inside(const leat_control_ctx *ctx, const leat_node *n)
{
    for (int i = 0; i < n->n_controls; i++)
        if (leat_ctx_inside(leat_out_ctx((leat_out){n->controls[i], -1}), ctx))
            return true;
    return false;
}

/* True if n has no input or control input in its context, which would make it run. */
static bool needs_pivot(const leat_control_ctx *ctx, const leat_node *n)
{
    if (!ctx->is_loop && !n->n_in)
        return !waits_inside(ctx, n);
    bool call =
        leat_node_is(n, "SymbolicGradient") || leat_map_get(&ctx->g->functions, n->op->def->name);
    if (!ctx->is_loop)
        return call;
    for (int i = 0; i < n->n_in && !call; i++)
        if (!n->in[i].node || !leat_is_constant_enter(n->in[i].node))
            return false;
    return n->n_controls == 0;
}

/* A control input from outside a loop is brought inside by an Identity of the node's first output;
 * the node must have one. */
static void bring_inside(leat_control_ctx *ctx, leat_node *n, leat_node *external)
{
    if (external->n_out == 0)
        return;
    leat_graph *g = ctx->g;
    leat_control_clear_enter(g);
    leat_control_ctx *before = leat_ctx_open(g, ctx);
    leat_out y = leat_identity(((leat_out){external, 0}));
    leat_ctx_open(g, before);
    leat_control_leave(g);
    if (leat_out_ok(y))
        leat_node_add_control(n, y.node);
}

leat_status leat_ctx_take_controls(leat_control_ctx *ctx, leat_node *n)
{
    if (!ctx)
        return NULL;
    leat_node **external = leat_new_array(leat_node *, n->n_controls + 1);
    int n_external = split_controls(ctx, n, external);
    if (needs_pivot(ctx, n) && pivot_of(ctx))
        leat_node_add_control(n, pivot_of(ctx));
    for (int i = 0; ctx->is_loop && i < n_external; i++)
        bring_inside(ctx, n, external[i]);
    free(external);
    n->ctx = ctx;
    return leat_status_copy(ctx->g->status);
}
