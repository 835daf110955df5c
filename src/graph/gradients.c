/* gradients.c -- leat_gradients: reverse-mode differentiation as new nodes of the graph.
 *
 * The nodes between ys and xs are found first, and for each the number of its consumers that will
 * contribute a gradient. Starting from the ys, a node all of whose consumers are differentiated is
 * differentiated itself: the gradients of its outputs are summed, its gradient function is called,
 * and the results are added to the gradients of its inputs. Names and order are TensorFlow's, so
 * that graphs of both can be compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "graph/gradients_int.h"
#include "graph/loop_grad.h"

bool leat_dtype_trainable(leat_dtype t)
{
    static const leat_types trainable =
        LEAT_TYPES_FLOATING | LEAT_TYPES_COMPLEX | LEAT_T(RESOURCE) | LEAT_T(VARIANT);
    return leat_types_has(trainable, leat_dtype_base(t));
}

/* ---- The nodes between xs and ys ---- */

/* Marks all nodes that depend on an x through trainable tensors. Inputs have smaller ids except for
 * the back edges of loops, so one pass more than loops are nested suffices. */
static void mark_reached(leat_backprop *b)
{
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < b->n_nodes; i++) {
            leat_node *n = b->g->nodes[i];
            bool reached = b->nodes[i].reached || b->nodes[i].is_x;
            for (int k = 0; !reached && k < n->n_in; k++) {
                leat_out x = n->in[k];
                reached = x.node && b->nodes[x.node->id].reached &&
                          leat_dtype_trainable(x.node->out_types[x.index]);
            }
            again |= reached && !b->nodes[i].reached && i > 0;
            b->nodes[i].reached = reached;
        }
    }
}

void leat_backprop_between(leat_backprop *b, leat_node *n)
{
    leat_grad_state_of(b, n)->between = true;
    leat_grow(b->between, b->n_between, b->cap_between);
    b->between[b->n_between++] = n;
}

/* Breadth first from the ys, through nodes that depend on an x; the list itself is the queue. */
static void mark_between(leat_backprop *b, const leat_out *ys, int n_y)
{
    for (int i = 0; i < n_y; i++) {
        leat_grad_node_state *s = leat_grad_state_of(b, ys[i].node);
        if (s->reached && !s->between)
            leat_backprop_between(b, ys[i].node);
    }
    for (int i = 0; i < b->n_between; i++) {
        leat_node *n = b->between[i];
        for (int k = 0; k < n->n_in; k++) {
            leat_grad_node_state *s = leat_grad_state_of(b, n->in[k].node);
            if (s->reached && !s->between)
                leat_backprop_between(b, n->in[k].node);
        }
    }
}

static void count_pending(leat_backprop *b)
{
    for (int i = 0; i < b->n_between; i++)
        for (int k = 0; k < b->between[i]->n_in; k++) {
            leat_grad_node_state *s = leat_grad_state_of(b, b->between[i]->in[k].node);
            s->pending += s->between;
        }
}

/* An x that depends on another x is passed through; an x that does not is where the search ends. */
static void mark_stops(leat_backprop *b, const leat_out *xs, int n_x,
                       const leat_gradients_options *o)
{
    for (int i = 0; i < n_x; i++) {
        bool end = true;
        for (int k = 0; k < xs[i].node->n_in; k++)
            end &= leat_grad_state_of(b, xs[i].node->in[k].node)->pending == 0;
        leat_grad_state_of(b, xs[i].node)->stop |= end;
    }
    for (int i = 0; i < o->n_stop; i++)
        leat_grad_state_of(b, o->stop[i].node)->stop = true;
}

void leat_backprop_enqueue(leat_backprop *b, leat_node *n)
{
    leat_grow(b->queue, b->queue_tail, b->cap_queue);
    b->queue[b->queue_tail++] = n;
}

/* ---- The gradients of ys ---- */

static bool real_or_int(leat_dtype t)
{
    return leat_types_has(LEAT_TYPES_REAL, leat_dtype_base(t));
}

static leat_status check_grad_y(leat_out y, leat_out dy)
{
    leat_dtype t = leat_dtype_base(leat_out_dtype(y)), dt = leat_dtype_base(leat_out_dtype(dy));
    const char *name = y.node->name;
    if (real_or_int(t))
        LEAT_REQUIRE(real_or_int(dt), INVALID_ARGUMENT,
                     "Gradient type %s generated for real or integer-valued tensor %s with type "
                     "%s must be real or integer",
                     leat_dtype_name(dt), name, leat_dtype_name(t));
    else if (leat_types_has(LEAT_TYPES_COMPLEX, t))
        LEAT_REQUIRE(leat_types_has(LEAT_TYPES_COMPLEX, dt), INVALID_ARGUMENT,
                     "Gradient type %s generated for complex-valued tensor %s with type %s must "
                     "be complex",
                     leat_dtype_name(dt), name, leat_dtype_name(t));
    else if (t == LEAT_VARIANT)
        LEAT_REQUIRE(dt == LEAT_VARIANT, INVALID_ARGUMENT,
                     "Gradient type %s generated for variant tensor %s with type %s must be "
                     "variant",
                     leat_dtype_name(dt), name, leat_dtype_name(t));
    else if (t == LEAT_RESOURCE)
        LEAT_REQUIRE(dt != LEAT_RESOURCE, INVALID_ARGUMENT,
                     "Input gradient %s for resource tensor %s should not be a resource",
                     dy.node->name, name);
    else
        return leat_error(INVALID_ARGUMENT,
                          "Tensor %s with type %s must be numeric to obtain a default gradient",
                          name, leat_dtype_name(t));
    return NULL;
}

/* dy as given, or ones. */
static leat_status seed(leat_backprop *b, leat_out y, leat_out dy, int i)
{
    leat_graph *g = b->g;
    char name[32];
    snprintf(name, sizeof(name), "grad_ys_%d", i);
    if (dy.node) {
        LEAT_TRY(check_grad_y(y, dy));
        leat_grad_send(b, y, leat_grad_tensor(leat_identity(dy, leat_name(name))));
        return NULL;
    }
    leat_dtype t = leat_dtype_base(leat_out_dtype(y));
    LEAT_REQUIRE(!leat_types_has(LEAT_TYPES_COMPLEX, t), INVALID_ARGUMENT,
                 "Gradients of complex tensors must set grad_ys (y.dtype = %s)",
                 leat_dtype_name(t));
    LEAT_REQUIRE(real_or_int(t), INVALID_ARGUMENT,
                 "Tensor %s with type %s must be numeric to obtain a default gradient",
                 y.node->name, leat_dtype_name(t));
    leat_shape s = leat_out_shape(y);
    leat_out shape = leat_shape_known(&s) ? leat_shape_const(g, s) : leat_shape_of(y);
    leat_grad_send(b, y, leat_grad_tensor(leat_fill(shape, leat_scalar(g, t, 1))));
    return NULL;
}

static leat_status seeds(leat_backprop *b, const leat_out *ys, int n_y,
                         const leat_gradients_options *o)
{
    for (int i = 0; i < n_y; i++) {
        if (b->colocate)
            leat_colocate_enter(b->g, ys[i]);
        leat_status s = seed(b, ys[i], o->grad_ys ? o->grad_ys[i] : (leat_out){0}, i);
        if (b->colocate)
            leat_colocate_leave(b->g);
        LEAT_TRY(s);
    }
    return NULL;
}

/* ---- Differentiating one node ---- */

static leat_status call_gradient(leat_backprop *b, leat_grad *c)
{
    leat_node *n = c->node;
    const leat_op_def *def = n->op->def;
    if (def->grad == leat_grad_none)
        return NULL;
    LEAT_REQUIRE(def->grad && def->grad != leat_grad_missing, NOT_FOUND,
                 "No gradient defined for operation '%s' (op type: %s)", n->name, def->name);
    leat_name_scope_enter(b->g, leat_arena_printf(&b->scratch, "%s_grad", n->name));
    leat_status s = def->grad(c);
    if (!s && b->gate)
        leat_grad_gate(c);
    leat_name_scope_leave(b->g);
    return leat_status_prefix(s, "Gradient of %s '%s': ", def->name, n->name);
}

/* Checks that a gradient has the dtype of its tensor, and sets what is known of the shape. */
static leat_status check_gradient(leat_grad *c, int i)
{
    leat_out x = c->node->in[i], dx = c->in[i].value;
    leat_dtype t = leat_dtype_base(leat_out_dtype(x)), dt = leat_dtype_base(leat_out_dtype(dx));
    if (t == LEAT_RESOURCE || t == LEAT_VARIANT || !leat_out_ok(dx))
        return NULL;
    LEAT_REQUIRE(t == dt, INVALID_ARGUMENT,
                 "The gradient of input %d of '%s' (op type: %s) is %s, the input is %s", i,
                 c->node->name, c->node->op->def->name, leat_dtype_name(dt), leat_dtype_name(t));
    if (c->in[i].indices.node)
        return NULL;
    leat_shape want = leat_out_shape(x), got = leat_out_shape(dx);
    leat_status s = leat_shape_merge(&want, &got, &dx.node->out_shapes[dx.index]);
    if (!s)
        return NULL;
    leat_status_free(s);
    return leat_error(INVALID_ARGUMENT,
                      "Incompatible shapes between op input and calculated input gradient. Forward "
                      "operation: %s. Input index: %d. Original input shape: %s. Calculated input "
                      "gradient shape: %s",
                      c->node->name, i, leat_shape_show(&want).s, leat_shape_show(&got).s);
}

static leat_status differentiate(leat_backprop *b, leat_node *n)
{
    leat_grad c = {b, n, leat_arena_array(&b->scratch, leat_grad_value, n->n_out + 1),
                   leat_arena_array(&b->scratch, leat_grad_value, n->n_in + 1)};
    leat_control_ctx *was = leat_loops_enter(b, n, true);
    leat_grad_sums(b, n, c.out);
    leat_loops_leave(b, was);
    bool some = false;
    for (int i = 0; i < n->n_out; i++)
        some |= leat_grad_some(c.out[i]);
    if (!some || leat_grad_state_of(b, n)->stop)
        return NULL;
    was = leat_loops_enter(b, n, false);
    leat_status s = leat_loops_check(b, n);
    if (!s)
        s = call_gradient(b, &c);
    for (int i = 0; !s && i < n->n_in; i++) {
        if (!leat_grad_some(c.in[i]))
            continue;
        s = check_gradient(&c, i);
        leat_grad_send(b, n->in[i], c.in[i]);
    }
    leat_loops_leave(b, was);
    return s;
}

static void update_pending(leat_backprop *b, leat_node *n)
{
    for (int k = 0; k < n->n_in; k++) {
        leat_node *x = n->in[k].node;
        int left = --leat_grad_state_of(b, x)->pending;
        if (left == 0 || (left > 0 && b->loops && leat_is_loop_switch(x)))
            leat_loops_ready(b, n->in[k]);
    }
}

static leat_status run(leat_backprop *b, const leat_out *ys, int n_y)
{
    for (int i = 0; i < n_y; i++) {
        leat_grad_node_state *s = leat_grad_state_of(b, ys[i].node);
        if (s->pending == 0 && s->between && !s->queued_y) {
            s->queued_y = true;
            leat_backprop_enqueue(b, ys[i].node);
        }
    }
    leat_loops_begin(b);
    while (b->queue_head < b->queue_tail && !b->g->status) {
        leat_node *n = b->queue[b->queue_head++];
        if (b->colocate)
            leat_colocate_enter(b->g, (leat_out){n, 0});
        leat_status s = differentiate(b, n);
        if (b->colocate)
            leat_colocate_leave(b->g);
        LEAT_TRY(s);
        update_pending(b, n);
    }
    leat_loops_end(b);
    return NULL;
}

/* ---- The call ---- */

static leat_status check_outs(const leat_graph *g, const char *what, const leat_out *x, int n)
{
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(x[i].node && x[i].index >= 0 && x[i].index < x[i].node->n_out,
                     INVALID_ARGUMENT, "leat_gradients: %s[%d] is not a tensor", what, i);
        LEAT_REQUIRE(x[i].node->graph == g, INVALID_ARGUMENT,
                     "leat_gradients: %s[%d], %s, is from another graph", what, i, x[i].node->name);
    }
    return NULL;
}

static leat_status gradients(leat_backprop *b, const leat_out *ys, int n_y, const leat_out *xs,
                             int n_x, const leat_gradients_options *o, leat_grad_value *grads_out)
{
    LEAT_TRY(check_outs(b->g, "ys", ys, n_y));
    LEAT_TRY(check_outs(b->g, "xs", xs, n_x));
    LEAT_TRY(check_outs(b->g, "stop", o->stop, o->n_stop));
    for (int i = 0; o->grad_ys && i < n_y; i++)
        if (o->grad_ys[i].node)
            LEAT_TRY(check_outs(b->g, "grad_ys", &o->grad_ys[i], 1));
    LEAT_TRY(seeds(b, ys, n_y, o));
    if (b->g->status)
        return NULL;
    for (int i = 0; i < n_x; i++)
        leat_grad_state_of(b, xs[i].node)->is_x = true;
    mark_reached(b);
    mark_between(b, ys, n_y);
    LEAT_TRY(leat_loops_find(b));
    count_pending(b);
    mark_stops(b, xs, n_x, o);
    LEAT_TRY(run(b, ys, n_y));
    for (int i = 0; i < n_x && !b->g->status; i++) {
        grads_out[i] = leat_grad_sum(b, xs[i]);
        if (!grads_out[i].value.node)
            grads_out[i].value = leat_no_gradient(xs[i]);
    }
    return NULL;
}

static void begin(leat_backprop *b, const leat_gradients_options *o)
{
    leat_arena_init(&b->scratch);
    b->n_nodes = b->g->n_nodes;
    b->nodes = leat_new_array(leat_grad_node_state, b->n_nodes + 1);
    b->ctx = b->g->control_ctx;
    b->gate = o->gate;
    b->colocate = o->colocate;
}

static void end(leat_backprop *b)
{
    leat_loops_free(b);
    free(b->nodes);
    free(b->between);
    free(b->queue);
    leat_arena_release(&b->scratch);
}

leat_status leat_gradients_at(leat_loc at, const leat_out *ys, int n_y, const leat_out *xs, int n_x,
                              const leat_gradients_options *options, leat_grad_value *grads_out)
{
    leat_backprop b = {.g = n_y && ys[0].node   ? ys[0].node->graph
                            : n_x && xs[0].node ? xs[0].node->graph
                                                : NULL};
    leat_graph *g = b.g;
    /* grads_out may be the array ys. */
    leat_grad_value *grads = leat_new_array(leat_grad_value, n_x + 1);
    leat_status s = NULL;
    if (!g) {
        s = leat_error(INVALID_ARGUMENT, "leat_gradients wants at least one tensor");
    } else if (!g->status) {
        leat_loc outer = g->at_override;
        if (!outer.file)
            g->at_override = at;
        begin(&b, options);
        leat_name_scope_enter(g, options->name ? options->name : "gradients");
        leat_graph_fail(g, at, gradients(&b, ys, n_y, xs, n_x, options, grads));
        leat_name_scope_leave(g);
        end(&b);
        leat_at_leave(g, outer);
    }
    if (g)
        s = leat_status_copy(g->status);
    for (int i = 0; i < n_x; i++)
        grads_out[i] = s ? (leat_grad_value){.value = {g ? g->poison : NULL, 0}} : grads[i];
    free(grads);
    return s;
}
