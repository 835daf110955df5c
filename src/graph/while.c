/* while.c -- leat_while_loop. The nodes of each variable:
 *
 *     Enter -> Merge -> Switch -> Identity -> body -> NextIteration -> (back to the Merge)
 *                        |  by LoopCond of cond(the Merges)
 *                        -> Exit
 */
#include <leat/control.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/control_ctx.h"
#include "graph/given.h"

typedef struct loop {
    leat_loc at, outer; /* of the call; of nodes that cond_fn and body_fn make, if it is set */
    leat_graph *g;
    leat_control_ctx *ctx;
    leat_loop_cond_fn cond_fn;
    leat_loop_body_fn body_fn;
    void *arg;
    const leat_while_options *o;
    int n;        /* variables, the counter included */
    bool counted; /* the first variable is the counter of maximum_iterations */
    int parallel_iterations;
    leat_out *vars, *enters, *merges, *switches, *now; /* n each */
    leat_out *next;
} loop;

static leat_out fail(const loop *l, leat_status s)
{
    return leat_graph_fail(l->g, l->at, s);
}

static bool shape_within(const leat_shape *s, const leat_shape *limit)
{
    if (limit->rank < 0)
        return true;
    if (s->rank != limit->rank)
        return false;
    for (int i = 0; i < s->rank; i++)
        if (limit->dim[i] >= 0 && s->dim[i] != limit->dim[i])
            return false;
    return true;
}

/* The shape of variable i that holds in every iteration. */
static leat_shape invariant(const loop *l, int i)
{
    return l->o->shapes && i >= l->counted ? l->o->shapes[i - l->counted]
                                           : leat_out_shape(l->vars[i]);
}

static void enter(loop *l, int i)
{
    leat_shape s = invariant(l, i), first = leat_out_shape(l->vars[i]);
    if (!shape_within(&first, &s)) {
        fail(l,
             leat_error(INVALID_ARGUMENT,
                        "The shape invariant specified for %s is not compatible with the "
                        "initial shape of the loop variable. It enters the loop with shape %s, "
                        "but the specified shape invariant is %s.",
                        l->vars[i].node->name, leat_shape_show(&first).s, leat_shape_show(&s).s));
        return;
    }
    leat_out x = leat_ctx_capture(l->ctx->outer, l->vars[i]);
    l->enters[i] = leat_ctx_enter(l->ctx, x, false, NULL);
    if (!leat_out_ok(l->enters[i]))
        return;
    leat_node *e = l->enters[i].node;
    e->out_shapes[0] = s;
    /* If the initial value is constant in a loop outside, this makes it run in every iteration of
     * that loop. */
    leat_control_ctx *c = l->ctx->outer;
    while (c && !c->pivot && !c->pivot_for_body && !c->pivot_for_pred)
        c = c->outer;
    if (c && leat_is_constant_enter(e->in[0].node))
        leat_node_add_control(e, !c->is_loop         ? c->pivot
                                 : c->pivot_for_body ? c->pivot_for_body
                                                     : c->pivot_for_pred);
}

static leat_out build_cond(loop *l)
{
    leat_graph *g = l->g;
    leat_out left = {0};
    if (l->counted)
        left = leat_less(l->merges[0], l->o->maximum_iterations);
    leat_at_leave(g, l->outer);
    leat_out more = l->cond_fn(g, l->arg, l->merges + l->counted);
    leat_at_enter(g, l->at);
    if (!more.node)
        return fail(l, leat_error(INVALID_ARGUMENT, "leat_while_loop: cond_fn gives no tensor"));
    if (l->counted)
        more = leat_logical_and(left, more);
    return leat_op(g, "LoopCond", leat_in(more));
}

static void build_body(loop *l)
{
    leat_graph *g = l->g;
    int c = l->counted;
    for (int i = 0; i < l->n; i++)
        l->next[i] = (leat_out){0};
    if (c)
        l->next[0] = leat_add(l->now[0], leat_scalar_like(l->now[0], 1));
    leat_at_leave(g, l->outer);
    l->body_fn(g, l->arg, l->now + c, l->next + c);
    leat_at_enter(g, l->at);
    for (int i = c; i < l->n; i++)
        if (!l->next[i].node || l->next[i].index < 0)
            l->next[i] = fail(l, leat_error(INVALID_ARGUMENT,
                                            "Number of inputs and outputs of body must match "
                                            "loop_vars: next[%d] is not set",
                                            i - c));
}

/* The back edge. */
static void go_round(loop *l, int i)
{
    leat_out x = leat_op(l->g, "NextIteration", leat_in(l->next[i]));
    if (!leat_out_ok(x))
        return;
    leat_shape was = leat_out_shape(l->merges[i]), is = leat_out_shape(x);
    leat_dtype t = leat_dtype_base(leat_out_dtype(l->merges[i]));
    if (leat_dtype_base(leat_out_dtype(x)) != t)
        fail(l, leat_error(INVALID_ARGUMENT,
                           "Loop variable %d, '%s', is %s, but %s after one iteration",
                           i - l->counted, l->vars[i].node->name, leat_dtype_name(t),
                           leat_dtype_name(leat_out_dtype(x))));
    else if (!shape_within(&is, &was))
        fail(l, leat_error(INVALID_ARGUMENT,
                           "Input tensor '%s' enters the loop with shape %s, but has shape %s "
                           "after one iteration. To allow the shape to vary across iterations, "
                           "use the option .shapes of leat_while_loop to specify a "
                           "less-specific shape.",
                           l->vars[i].node->name, leat_shape_show(&was).s, leat_shape_show(&is).s));
    else
        fail(l, leat_node_set_input(l->merges[i].node, 1, x));
}

static void build(loop *l)
{
    leat_graph *g = l->g;
    leat_control_ctx *ctx = l->ctx;
    for (int i = 0; i < l->n && !g->status; i++)
        enter(l, i);
    for (int i = 0; i < l->n && !g->status; i++) {
        const leat_out both[2] = {l->enters[i], l->enters[i]};
        l->merges[i] = LEAT_OPN("Merge", both, 2);
    }
    if (g->status)
        return;
    ctx->pivot_for_pred = l->merges[0].node;
    ctx->loop_cond = build_cond(l);
    for (int i = 0; i < l->n && !g->status; i++)
        l->switches[i] = leat_ctx_switch(l->merges[i], ctx->loop_cond, NULL);
    for (int i = 0; i < l->n && !g->status; i++)
        l->now[i] = leat_identity(leat_output(l->switches[i], 1));
    if (g->status)
        return;
    ctx->pivot_for_body = l->now[0].node;
    build_body(l);
    for (int i = 0; i < l->n && !g->status; i++)
        go_round(l, i);
    ctx->exits = leat_arena_array(&g->arena, leat_out, l->n);
    for (int i = 0; i < l->n && !g->status; i++)
        ctx->exits[ctx->n_exits++] = leat_op(g, "Exit", leat_in(leat_output(l->switches[i], 0)));
}

static leat_status check(const loop *l)
{
    LEAT_REQUIRE(l->n > l->counted, INVALID_ARGUMENT, "No loop variables provided");
    LEAT_REQUIRE(l->parallel_iterations > 0, INVALID_ARGUMENT,
                 "`parallel_iterations` must be a positive integer: %d", l->parallel_iterations);
    for (int i = 0; i < l->n; i++)
        LEAT_REQUIRE(l->vars[i].node && l->vars[i].node->graph == l->g && l->vars[i].index >= 0,
                     INVALID_ARGUMENT, "leat_while_loop: vars[%d] is not a tensor of this graph",
                     i - l->counted);
    if (l->counted) {
        leat_shape s = leat_out_shape(l->o->maximum_iterations);
        LEAT_REQUIRE(s.rank <= 0, INVALID_ARGUMENT,
                     "maximum_iterations must be a scalar, saw shape: %s", leat_shape_show(&s).s);
    }
    return NULL;
}

static void prepare(loop *l, const leat_out *vars)
{
    leat_out *room = leat_new_array(leat_out, 6 * l->n + 1);
    l->vars = room;
    l->enters = room + l->n;
    l->merges = room + 2 * l->n;
    l->switches = room + 3 * l->n;
    l->now = room + 4 * l->n;
    l->next = room + 5 * l->n;
    if (l->counted)
        l->vars[0] = leat_scalar_like(l->o->maximum_iterations, 0);
    for (int i = l->counted; i < l->n; i++) {
        leat_out x = vars[i - l->counted];
        l->vars[i] = leat_dtype_is_ref(leat_out_dtype(x)) ? leat_identity(x) : x;
    }
}

void leat_while_loop_at(leat_loc at, leat_loop_cond_fn cond_fn, leat_loop_body_fn body_fn,
                        void *arg, const leat_out *vars, int n, leat_out *outs,
                        const leat_while_options *o)
{
    leat_graph *g = n > 0 && vars[0].node ? vars[0].node->graph : NULL;
    if (!g || g->status) {
        for (int i = 0; i < n; i++)
            outs[i] = (leat_out){g ? g->poison : NULL, 0};
        return;
    }
    loop l = {.at = at, .g = g, .cond_fn = cond_fn, .body_fn = body_fn, .arg = arg, .o = o};
    l.counted = o->maximum_iterations.node != NULL;
    l.n = n + l.counted;
    l.parallel_iterations =
        (int)leat_given_int_or(&o->given, "parallel_iterations", o->parallel_iterations, 10);
    l.outer = leat_at_enter(g, at);
    leat_name_scope_enter(g, o->name ? o->name : "while");
    prepare(&l, vars);
    fail(&l, check(&l));
    if (!g->status) {
        l.ctx = leat_ctx_new(g, g->control_ctx, true);
        l.ctx->frame = leat_unique_name(g, "while_context");
        l.ctx->parallel_iterations = l.parallel_iterations;
        l.ctx->back_prop = !o->no_back_prop;
        l.ctx->swap_memory = o->swap_memory;
        leat_control_ctx *before = leat_ctx_open(g, l.ctx);
        build(&l);
        leat_ctx_open(g, before);
    }
    leat_name_scope_leave(g);
    leat_at_leave(g, l.outer);
    for (int i = 0; i < n; i++)
        outs[i] = g->status ? (leat_out){g->poison, 0} : l.ctx->exits[i + l.counted];
    free(l.vars);
}
