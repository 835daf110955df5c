/* grad_zeros.c -- zeros of the shape of an output to which no gradient came. */
#include <leat/ops.h>

#include "graph/gradients_int.h"
#include "graph/loop_grad.h"

leat_out leat_zeros_of_shape(leat_out shape, leat_dtype t)
{
    return leat_fill(shape, leat_scalar(leat_node_graph(shape.node), t, 0), leat_name("zeros"));
}

leat_out leat_grad_zeros_outside_loops(leat_node *n, int i)
{
    leat_out x = {n, i};
    if (leat_dtype_base(leat_out_dtype(x)) == LEAT_RESOURCE) {
        const leat_handle_info *h = n->out_handles ? n->out_handles[i] : NULL;
        return leat_zeros_of_shape(LEAT_OP1("VariableShape", x), h ? h->dtype : LEAT_FLOAT);
    }
    return leat_zeros_like(x, leat_name("zeros_like"));
}

leat_out leat_grad_zeros(leat_backprop *b, leat_node *n, int i)
{
    return leat_grad_zeros_outside_loops(n, i);
}
