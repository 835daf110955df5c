/* relu.c -- Relu, max(x, 0), and ReluGrad, the op that its gradient adds. */
#include <leat/extend.h>
#include <leat/nn.h>

static leat_status relu_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_relu_grad(leat_grad_out(g, 0), leat_grad_output(g, 0)));
}

/* dy where y > 0; the gradient with respect to dy is of the same form. The gradient with respect to
 * the features is zero. */
static leat_status relu_grad_grad(leat_grad *g)
{
    LEAT_TRY(leat_grad_in(g, 0, leat_relu_grad(leat_grad_out(g, 0), leat_grad_input(g, 1))));
    return leat_grad_in(g, 1, leat_zeros_like(leat_grad_input(g, 1)));
}

const leat_op_def leat_ops_relu[] = {
    {.name = "Relu",
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "T: {realnumbertype, qint8}",
     .shape = leat_shape_unchanged,
     .grad = relu_grad,
     .flags = LEAT_OP_CWISE},
    {.name = "ReluGrad",
     .inputs = "gradients: T, features: T",
     .outputs = "backprops: T",
     .attrs = "T: realnumbertype",
     .shape = leat_shape_merged,
     .grad = relu_grad_grad,
     .flags = LEAT_OP_CWISE},
    {0},
};
