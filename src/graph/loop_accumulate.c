/* loop_accumulate.c -- the gradient of a tensor that is the same in all iterations of a loop: the
 * sum of the gradients of each iteration, kept in a variable of the gradient loop. Rows
 * (IndexedSlices) are concatenated, not summed. */
#include <leat/ops.h>

#include "graph/loop_grad.h"

typedef struct accumulator {
    leat_out merge, was; /* was: the value before this iteration */
    leat_out end;        /* the Exit */
} accumulator;

/* Adds a variable of the gradient loop with the initial value `first`, which is outside the
 * loop. */
static accumulator begin(leat_loop_grad *l, leat_out first, const leat_shape *every)
{
    leat_graph *g = l->b->g;
    accumulator a = {0};
    leat_control_ctx *c = l->backward;
    leat_out enter = leat_ctx_enter(c, first, false, "b_acc");
    if (every && leat_out_ok(enter))
        enter.node->out_shapes[0] = *every;
    a.merge = leat_loop_merge(enter, "b_acc");
    leat_out sw = leat_op(g, "Switch", leat_in(a.merge), leat_in(c->loop_cond));
    a.was = leat_output(sw, 1);
    a.end = leat_output(sw, 0);
    return a;
}

static leat_out finish(leat_loop_grad *l, accumulator *a, leat_out next)
{
    leat_graph *g = l->b->g;
    leat_loop_next(a->merge, leat_op(g, "NextIteration", leat_in(next)));
    return leat_op(g, "Exit", leat_in(a->end), leat_name("b_acc"));
}

/* The shape of the tensor that entered the forward loop. */
static leat_out shape_of_entered(leat_out x, leat_dtype t)
{
    if (leat_dtype_base(leat_out_dtype(x)) == LEAT_RESOURCE)
        return LEAT_OP1("VariableShape", x, leat_attr_type("out_type", t));
    return leat_shape_of(x, leat_attr_type("out_type", t));
}

/* Opens the context around the gradient loop, where the tensor that enters the forward loop is
 * available: as it is or, if that context is a gradient loop too, from the history. */
static leat_control_ctx *open_outside(leat_loop_grad *l)
{
    leat_graph *g = l->b->g;
    return leat_ctx_open(g, l->backward->outer ? l->backward->outer : l->b->ctx);
}

static leat_grad_value accumulate_tensor(leat_loop_grad *l, leat_node *enter, leat_out grad)
{
    leat_graph *g = l->b->g;
    leat_dtype t = leat_dtype_base(leat_out_dtype(grad));
    leat_shape s = leat_out_shape(grad);
    leat_control_ctx *inside = open_outside(l);
    leat_out zeros = leat_shape_known(&s)
                         ? leat_zeros(g, t, s)
                         : leat_zeros_of_shape(shape_of_entered(enter->in[0], LEAT_INT32), t);
    leat_ctx_open(g, inside);
    accumulator a = begin(l, zeros, NULL);
    return leat_grad_tensor(finish(l, &a, leat_add(a.was, grad)));
}

/* One row of zeros for index 0, which adds nothing. */
static leat_out first_values(leat_graph *g, leat_node *enter, leat_out values, leat_shape *every)
{
    leat_dtype t = leat_dtype_base(leat_out_dtype(values));
    leat_shape s = leat_out_shape(values);
    *every = s;
    if (s.rank > 0)
        every->dim[0] = -1;
    if (leat_shape_known(&s)) {
        s.dim[0] = 1;
        return leat_zeros(g, t, s);
    }
    leat_out whole = shape_of_entered(enter->in[0], LEAT_INT32);
    leat_out from = leat_ints(g, 1), by = leat_ints(g, 1), to = leat_ints(g, 0);
    leat_out rest = leat_strided_slice(whole, from, to, by, leat_attr_int("end_mask", 1));
    const leat_out parts[2] = {leat_ints(g, 1), rest};
    return leat_zeros_of_shape(leat_concat(parts, 2, leat_scalar(g, LEAT_INT32, 0)), t);
}

static leat_grad_value accumulate_rows(leat_loop_grad *l, leat_node *enter, leat_grad_value grad)
{
    leat_graph *g = l->b->g;
    leat_shape values_shape, indices_shape = leat_shape(-1);
    leat_control_ctx *inside = open_outside(l);
    leat_out values0 = first_values(g, enter, grad.value, &values_shape);
    leat_out indices0 = leat_zeros(g, leat_out_dtype(grad.indices), leat_shape(1));
    leat_out shape0 = {0};
    if (grad.dense_shape.node)
        shape0 = leat_zeros_like(shape_of_entered(enter->in[0], leat_out_dtype(grad.dense_shape)));
    leat_ctx_open(g, inside);
    accumulator indices = begin(l, indices0, &indices_shape);
    accumulator values = begin(l, values0, &values_shape);
    leat_out axis = leat_scalar(g, LEAT_INT32, 0);
    const leat_out all_indices[2] = {indices.was, grad.indices};
    const leat_out all_values[2] = {values.was, grad.value};
    leat_grad_value sum = {0};
    sum.indices = finish(l, &indices, leat_concat(all_indices, 2, axis));
    sum.value = finish(l, &values, leat_concat(all_values, 2, axis));
    if (shape0.node) {
        accumulator shape = begin(l, shape0, NULL);
        sum.dense_shape = finish(l, &shape, leat_maximum(grad.dense_shape, shape.was));
    }
    return sum;
}

leat_grad_value leat_loop_accumulate(leat_loop_grad *l, leat_node *enter, leat_grad_value grad)
{
    return grad.indices.node ? accumulate_rows(l, enter, grad)
                             : accumulate_tensor(l, enter, grad.value);
}
