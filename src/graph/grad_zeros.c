/* grad_zeros.c -- zeros of the shape of an output that has no gradient. */
#include <leat/ops.h>

#include "graph/gradients_int.h"
#include "graph/loop_grad.h"

leat_out leat_zeros_of_shape(leat_out shape, leat_dtype t)
{
    return leat_fill(shape, leat_scalar(leat_node_graph(shape.node), t, 0), leat_name("zeros"));
}

/* Zeros for a variable behind a handle. */
static leat_out zeros_of_variable(leat_node *n, int i)
{
    const leat_handle_info *h = n->out_handles ? n->out_handles[i] : NULL;
    leat_out shape = LEAT_OP1("VariableShape", ((leat_out){n, i}));
    return leat_zeros_of_shape(shape, h ? h->dtype : LEAT_FLOAT);
}

/* If x is in a branch of a cond, zeros must be dead when the branch is dead: they depend on the
 * predicate of that iteration. */
static leat_out guard(leat_out zeros, leat_node *n, int i)
{
    return leat_is_switch(n) ? leat_output(leat_ctx_switch(zeros, n->in[1], NULL), i) : zeros;
}

static leat_out zeros_in_loop(leat_backprop *b, leat_node *n, int i)
{
    leat_out x = {n, i};
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    leat_shape s = leat_out_shape(x);
    if (t == LEAT_RESOURCE)
        return guard(zeros_of_variable(n, i), n, i);
    if (leat_shape_known(&s))
        return guard(leat_zeros(b->g, t, s), n, i);
    /* The Shape is added to x's branch in the forward loop, and its value is kept (see
     * control_ctx.c). */
    return leat_zeros_of_shape(leat_shape_of(x), t);
}

leat_out leat_grad_zeros(leat_backprop *b, leat_node *n, int i)
{
    leat_out x = {n, i};
    if (leat_loops_of(b, n))
        return zeros_in_loop(b, n, i);
    if (leat_dtype_base(leat_out_dtype(x)) == LEAT_RESOURCE)
        return zeros_of_variable(n, i);
    return leat_zeros_like(x, leat_name("zeros_like"));
}
