/* loop_grad.c -- the loops between ys and xs: which there are, which gradient loop a node's
 * gradient belongs to, and the exits that are not used. A gradient loop runs all its variables
 * backwards, so it is built when the gradient of every exit is known or known to be zero. */
#include "graph/loop_grad.h"

#include <leat/ops.h>

struct leat_loop_grads {
    leat_loop_grad *first;
};

static leat_loop_grad *state_of(leat_backprop *b, const leat_control_ctx *forward)
{
    leat_loop_grad *l = b->loops && forward ? b->loops->first : NULL;
    while (l && l->forward != forward)
        l = l->next;
    return l;
}

leat_loop_grad *leat_loops_of(leat_backprop *b, const leat_node *n)
{
    return state_of(b, leat_ctx_loop(n->ctx));
}

static void add_loop(leat_backprop *b, leat_node *exit)
{
    leat_control_ctx *forward = exit->ctx;
    if (state_of(b, forward))
        return;
    if (!b->loops)
        b->loops = leat_arena_new(&b->scratch, leat_loop_grads);
    leat_loop_grad *outer = state_of(b, leat_ctx_loop(forward->outer));
    if (b->colocate)
        leat_colocate_enter(b->g, (leat_out){exit, 0});
    leat_loop_grad *l = leat_loop_grad_new(b, forward, outer);
    if (b->colocate)
        leat_colocate_leave(b->g);
    l->next = b->loops->first;
    b->loops->first = l;
    for (int i = 0; i < forward->n_exits; i++) {
        leat_node *e = forward->exits[i].node;
        if (!leat_grad_state_of(b, e)->between)
            leat_backprop_between(b, e);
    }
}

leat_status leat_loops_find(leat_backprop *b)
{
    for (int i = 0; i < b->n_between && !b->g->status; i++) {
        leat_node *n = b->between[i];
        if (!leat_is_exit(n))
            continue;
        if (!n->ctx)
            LEAT_TRY(leat_ctx_rebuild(b->g));
        LEAT_REQUIRE(n->ctx && n->ctx->is_loop, INVALID_ARGUMENT,
                     "Gradient of loops: '%s' is not the exit of a well-formed loop", n->name);
        LEAT_REQUIRE(!n->ctx->is_grad, UNIMPLEMENTED,
                     "Second-order gradient for while loops not supported.");
        add_loop(b, n);
    }
    return NULL;
}

/* ---- Contexts ---- */

leat_control_ctx *leat_loops_enter(leat_backprop *b, leat_node *n, bool before)
{
    leat_control_ctx *forward = n->ctx;
    if (before && forward && leat_is_exit(n))
        forward = forward->outer;
    leat_loop_grad *l = state_of(b, leat_ctx_loop(forward));
    return leat_ctx_open(b->g, l ? l->backward : b->g->control_ctx);
}

void leat_loops_leave(leat_backprop *b, leat_control_ctx *was)
{
    leat_ctx_open(b->g, was);
}

leat_status leat_loops_check(leat_backprop *b, leat_node *n)
{
    LEAT_REQUIRE(!leat_is_loop_switch(n) || !n->ctx || n->ctx != b->g->control_ctx,
                 INVALID_ARGUMENT,
                 "Cannot compute gradient inside while loop with respect to op '%s'. We do not "
                 "support taking the gradient wrt or through the initial value of a loop variable. "
                 "Gradients can be computed through loop invariants or wrt the input parameters to "
                 "the loop body.",
                 n->in[0].node->name);
    return NULL;
}

/* ---- Exits ---- */

static leat_out zeros_for_exit(leat_backprop *b, leat_out x)
{
    leat_graph *g = b->g;
    leat_control_ctx *forward = x.node->ctx;
    leat_loop_grad *outer = state_of(b, leat_ctx_loop(forward->outer));
    leat_shape s = leat_out_shape(x);
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    leat_control_ctx *before = leat_ctx_open(g, outer ? outer->backward : g->control_ctx);
    leat_out zeros;
    if (leat_shape_known(&s))
        zeros = leat_zeros(g, t, s);
    else if (outer) /* the Shape is added to the forward loop, and its value pushed on a stack */
        zeros = leat_zeros_of_shape(leat_shape_of(x), t);
    else
        zeros = leat_zeros_like(x);
    leat_ctx_open(g, before);
    return zeros;
}

static void send_zeros(leat_backprop *b, leat_out exit)
{
    if (leat_dtype_trainable(leat_out_dtype(exit)))
        leat_grad_send(b, exit, leat_grad_tensor(zeros_for_exit(b, exit)));
}

void leat_loops_begin(leat_backprop *b)
{
    for (leat_loop_grad *l = b->loops ? b->loops->first : NULL; l; l = l->next) {
        for (int i = 0; i < l->forward->n_exits; i++) {
            leat_out x = l->forward->exits[i];
            const leat_grad_node_state *s = leat_grad_state_of(b, x.node);
            if (s->pending)
                continue;
            l->pending_exits--;
            if (!s->queued_y)
                l->unused_exits[l->n_unused++] = x;
        }
        for (int i = 0; l->pending_exits == 0 && i < l->n_unused; i++) {
            send_zeros(b, l->unused_exits[i]);
            if (leat_dtype_trainable(leat_out_dtype(l->unused_exits[i])))
                leat_backprop_enqueue(b, l->unused_exits[i].node);
        }
    }
}

/* An exit is delayed until the gradients of all exits of its loop are known. */
static void exit_ready(leat_backprop *b, leat_loop_grad *l, leat_out x)
{
    l->deferred_exits[l->n_deferred++] = x;
    if (--l->pending_exits > 0)
        return;
    bool some = false;
    for (int i = 0; i < l->n_deferred; i++) {
        leat_out y = l->deferred_exits[i];
        if (leat_grad_came(b, y.node)) {
            some = true;
            leat_backprop_enqueue(b, y.node);
        } else {
            l->unused_exits[l->n_unused++] = y;
        }
    }
    for (int i = 0; i < l->n_unused; i++) {
        if (some)
            send_zeros(b, l->unused_exits[i]);
        leat_backprop_enqueue(b, l->unused_exits[i].node);
    }
}

void leat_loops_ready(leat_backprop *b, leat_out x)
{
    leat_loop_grad *l = leat_is_exit(x.node) ? leat_loops_of(b, x.node) : NULL;
    if (l)
        exit_ready(b, l, x);
    else
        leat_backprop_enqueue(b, x.node);
}

/* ---- Closing the loops ---- */

/* A variable whose gradient does not depend on the next iteration: zeros are fed back. */
static void close_with_zeros(leat_loop_grad *l, leat_out merge)
{
    leat_graph *g = l->b->g;
    leat_out enter = merge.node->in[0];
    leat_dtype t = leat_dtype_base(leat_out_dtype(enter));
    leat_shape s = leat_out_shape(enter);
    leat_out zeros = {0};
    bool known = leat_shape_known(&s);
    leat_control_ctx *outer = l->backward->outer;
    leat_control_ctx *before = leat_ctx_open(g, outer ? outer : g->control_ctx);
    if (!known)
        zeros = leat_zeros_of_shape(leat_shape_of(enter.node->in[0]), t);
    leat_ctx_open(g, l->backward);
    if (known)
        zeros = leat_zeros(g, t, s);
    leat_loop_next(merge, leat_op(g, "NextIteration", leat_in(zeros)));
    leat_ctx_open(g, before);
}

void leat_loops_end(leat_backprop *b)
{
    for (leat_loop_grad *l = b->loops ? b->loops->first : NULL; l; l = l->next) {
        size_t i = 0;
        const char *key;
        void *merge;
        while (leat_map_next(&l->switches, &i, &key, &merge) && !b->g->status) {
            leat_node *m = merge;
            if (m->in[0].node == m->in[1].node && m->in[0].index == m->in[1].index)
                close_with_zeros(l, (leat_out){m, 0});
        }
    }
}

void leat_loops_free(leat_backprop *b)
{
    for (leat_loop_grad *l = b->loops ? b->loops->first : NULL; l; l = l->next) {
        leat_map_release(&l->history);
        leat_map_release(&l->switches);
        l->backward->grad = NULL;
    }
}
