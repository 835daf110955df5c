/* loop_history.c -- what a gradient loop needs of the forward loop: the number of iterations, and
 * values of every iteration, which are kept on stacks. */
#include <leat/ops.h>

#include "graph/loop_grad.h"

leat_out leat_loop_merge(leat_out first, const char *name)
{
    const leat_out both[2] = {first, first};
    return leat_op_of((leat_loc){0}, "Merge", both, 2, LEAT_ARGS(leat_name(name)));
}

void leat_loop_next(leat_out merge, leat_out next)
{
    if (!leat_out_ok(merge) || !leat_out_ok(next))
        return;
    leat_graph_fail(merge.node->graph, (leat_loc){0}, leat_node_set_input(merge.node, 1, next));
}

static leat_out next_iteration(leat_graph *g, leat_out x)
{
    return leat_op(g, "NextIteration", leat_in(x));
}

static void order(leat_out after, leat_out before)
{
    if (leat_out_ok(after) && leat_out_ok(before))
        leat_node_add_control(after.node, before.node);
}

/* Adds n = 0; while (the loop runs) n++; gives the n at the end. */
static leat_out count_forward(leat_loop_grad *l)
{
    leat_graph *g = l->b->g;
    leat_out n = leat_scalar(g, LEAT_INT32, 0);
    /* The pushes of one run of the loop precede those of the next run. */
    if (l->outer && leat_out_ok(n))
        order(n, l->outer->forward_index.node->in[0]);
    leat_control_ctx *before = leat_ctx_open(g, l->forward);
    leat_out merge = leat_loop_merge(leat_ctx_enter(l->forward, n, false, "f_count"), NULL);
    leat_out sw = leat_op(g, "Switch", leat_in(merge), leat_in(l->forward->loop_cond));
    leat_out index = leat_add(leat_output(sw, 1), leat_scalar(g, LEAT_INT32, 1));
    l->forward_index = next_iteration(g, index);
    leat_loop_next(merge, l->forward_index);
    leat_out total = leat_op(g, "Exit", leat_in(leat_output(sw, 0)), leat_name("f_count"));
    leat_ctx_open(g, before);
    return total;
}

/* Adds n = count; while (n >= 1) n--, which controls the gradient loop. */
static void count_backward(leat_loop_grad *l, leat_out count)
{
    leat_graph *g = l->b->g;
    leat_control_ctx *c = l->backward;
    leat_out one = leat_scalar(g, LEAT_INT32, 1);
    leat_control_ctx *before = leat_ctx_open(g, c);
    count = leat_ctx_capture(c->outer, count);
    leat_out merge = leat_loop_merge(leat_ctx_enter(c, count, false, "b_count"), NULL);
    if (leat_out_ok(merge)) {
        c->pivot_for_pred = merge.node;
        leat_out more = leat_greater_equal(merge, one);
        c->loop_cond = leat_op(g, "LoopCond", leat_in(more), leat_name("b_count"));
        leat_out sw = leat_op(g, "Switch", leat_in(merge), leat_in(c->loop_cond));
        leat_out index = leat_sub(leat_output(sw, 1), one);
        c->pivot_for_body = index.node;
        l->grad_index = next_iteration(g, index);
        leat_loop_next(merge, l->grad_index);
        leat_out end = leat_op(g, "Exit", leat_in(leat_output(sw, 0)), leat_name("b_count"));
        /* The pops of one run of the loop precede those of the next run. */
        if (l->outer && leat_out_ok(end))
            leat_node_add_control(leat_loop_grad_sync(l->outer), end.node);
    }
    leat_ctx_open(g, before);
}

static leat_control_ctx *new_backward(leat_loop_grad *l)
{
    leat_graph *g = l->b->g;
    leat_control_ctx *c = leat_ctx_new(g, g->control_ctx, true);
    c->frame = leat_unique_name(g, l->forward->frame);
    c->parallel_iterations = l->forward->parallel_iterations;
    c->back_prop = l->forward->back_prop;
    c->swap_memory = l->forward->swap_memory;
    c->grad = l;
    c->is_grad = true;
    return c;
}

leat_loop_grad *leat_loop_grad_new(leat_backprop *b, leat_control_ctx *forward,
                                   leat_loop_grad *outer)
{
    leat_graph *g = b->g;
    leat_loop_grad *l = leat_arena_new(&g->arena, leat_loop_grad);
    l->b = b;
    l->outer = outer;
    l->forward = forward;
    l->unused_exits = leat_arena_array(&b->scratch, leat_out, forward->n_exits + 1);
    l->deferred_exits = leat_arena_array(&b->scratch, leat_out, forward->n_exits + 1);
    l->pending_exits = forward->n_exits;
    leat_control_ctx *around = outer ? outer->forward : forward->outer;
    leat_control_ctx *before = leat_ctx_open(g, around ? around : g->control_ctx);
    leat_out count = count_forward(l);
    if (g->status) {
        l->backward = new_backward(l);
    } else if (outer) {
        leat_ctx_open(g, before);
        leat_out stack = leat_loop_push(outer, count);
        leat_ctx_open(g, outer->backward);
        l->backward = new_backward(l);
        count_backward(l, leat_loop_pop(outer, stack, count));
    } else {
        l->backward = new_backward(l);
        count_backward(l, count);
    }
    leat_ctx_open(g, before);
    return l;
}

/* ---- Sync nodes: inside a cond, pushes and pops run in some iterations only. A node that waits
 * for all of them must run in every iteration, which ControlTrigger does. ---- */

static leat_node *new_sync(leat_graph *g, const char *name, leat_control_ctx *ctx, leat_out index)
{
    leat_control_clear_enter(g);
    leat_out t = LEAT_OP0(g, "ControlTrigger", leat_name(name));
    leat_control_leave(g);
    if (t.node == g->poison)
        return NULL;
    t.node->ctx = ctx;
    leat_node_add_control(index.node, t.node);
    return t.node;
}

static leat_node *forward_sync(leat_loop_grad *l)
{
    if (!l->forward_sync)
        l->forward_sync = new_sync(l->b->g, "f_sync", l->forward, l->forward_index);
    return l->forward_sync;
}

leat_node *leat_loop_grad_sync(leat_loop_grad *l)
{
    if (!l->grad_sync)
        l->grad_sync = new_sync(l->b->g, "b_sync", l->backward, l->grad_index);
    return l->grad_sync;
}

/* ---- Stacks ---- */

static leat_out new_stack(leat_loop_grad *l, leat_out value)
{
    leat_graph *g = l->b->g;
    leat_dtype t = leat_dtype_base(leat_out_dtype(value));
    leat_control_ctx *before = leat_ctx_open(g, l->b->ctx);
    leat_colocate_enter(g, value);
    leat_out stack = leat_op(g, "StackV2", leat_in(leat_scalar(g, LEAT_INT32, -1)),
                             leat_attr_type("elem_type", t), leat_attr_string("stack_name", ""),
                             leat_name("f_acc"));
    leat_colocate_leave(g);
    leat_ctx_open(g, before);
    return stack;
}

leat_out leat_loop_push(leat_loop_grad *l, leat_out value)
{
    leat_graph *g = l->b->g;
    leat_control_clear_enter(g);
    leat_out stack = new_stack(l, value);
    leat_out inside = leat_ctx_capture(l->forward, stack);
    leat_control_ctx *ctx = leat_out_ctx(value);
    leat_control_ctx *before = leat_ctx_open(g, ctx);
    leat_out push = leat_op(g, "StackPushV2", leat_in(inside), leat_in(value),
                            leat_attr_bool("swap_memory", l->forward->swap_memory));
    leat_ctx_open(g, before);
    leat_control_leave(g);
    if (!leat_out_ok(push))
        return push;
    leat_node *waits = ctx == l->forward ? l->forward_index.node : forward_sync(l);
    if (waits)
        leat_node_add_control(waits, push.node);
    leat_node_add_control(push.node, l->forward_index.node->in[0].node);
    return stack;
}

/* The cond branch inside the loops that has the value, or NULL. */
static leat_control_ctx *branch_of(leat_loop_grad *l, leat_out value)
{
    leat_control_ctx *c = leat_out_ctx(value);
    while (c && c != l->b->ctx && c->is_loop)
        c = c->outer;
    return c == l->b->ctx ? NULL : c;
}

leat_out leat_loop_pop(leat_loop_grad *l, leat_out stack, leat_out value)
{
    leat_graph *g = l->b->g;
    leat_control_clear_enter(g);
    leat_control_ctx *before = leat_ctx_open(g, l->backward);
    leat_control_ctx *branch = branch_of(l, value);
    if (branch) /* popped only in iterations in which it was pushed */
        stack = leat_output(leat_ctx_switch(stack, branch->pred, NULL), branch->branch);
    leat_out pop = leat_op(g, "StackPopV2", leat_in(stack),
                           leat_attr_type("elem_type", leat_dtype_base(leat_out_dtype(value))));
    leat_ctx_open(g, before);
    leat_control_leave(g);
    if (!leat_out_ok(pop))
        return pop;
    pop.node->out_shapes[0] = leat_out_shape(value);
    if (l->backward->parallel_iterations > 1 && leat_loop_grad_sync(l))
        leat_node_add_control(leat_loop_grad_sync(l), pop.node);
    return pop;
}

/* ---- Values ---- */

static bool passes_reference(const leat_node *n)
{
    return leat_node_flag(n, LEAT_OP_IDENTITY) && n->op->out[0].is_ref;
}

/* The constant Enter of which x is an unchanged copy, or NULL. */
static leat_node *constant_enter(leat_out x)
{
    const leat_node *n = x.node;
    while (leat_is_switch(n) || leat_is_identity(n) || passes_reference(n))
        n = n->in[0].node;
    return leat_is_constant_enter(n) ? (leat_node *)n : NULL;
}

static leat_out find_value(leat_loop_grad *l, leat_out value)
{
    leat_graph *g = l->b->g;
    leat_loop_grad *at = l; /* the loop that has the value */
    for (leat_node *e; (e = constant_enter(value));) {
        value = e->in[0];
        at = at->outer;
        if (!at) /* the same in all iterations of all loops */
            return leat_ctx_capture(l->backward, value);
    }
    if (leat_is_const(value.node)) {
        leat_control_ctx *before = leat_ctx_open(g, l->backward);
        leat_out same = leat_const(g, leat_node_tensor(value.node, "value"));
        leat_ctx_open(g, before);
        return same;
    }
    leat_out stack = leat_loop_push(at, value);
    leat_out popped = leat_loop_pop(at, stack, value);
    return at == l ? popped : leat_ctx_capture(l->backward, popped);
}

leat_out leat_loop_real_value(leat_loop_grad *l, leat_out value)
{
    int key[2] = {value.node->id, value.index};
    const leat_out *known = leat_map_get_n(&l->history, key, sizeof(key));
    if (known)
        return *known;
    leat_out real = find_value(l, value);
    if (leat_out_ok(real))
        leat_map_put_n(&l->history, key, sizeof(key),
                       leat_arena_memdup(&l->b->scratch, &real, sizeof(real)));
    return real;
}
