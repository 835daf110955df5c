/* activation.c -- Relu6, Elu, Selu, LeakyRelu, Softplus, Softsign, and the ops that their gradients
 * add. */
#include <leat/extend.h>
#include <leat/nn.h>

/* The gradient is the op `with`, applied to dy and the op's output. */
static leat_status by_output(leat_grad *g, const char *with)
{
    return leat_grad_in(g, 0, LEAT_OP2(with, leat_grad_out(g, 0), leat_grad_output(g, 0)));
}

static leat_status relu6_grad(leat_grad *g)
{
    return by_output(g, "Relu6Grad");
}

static leat_status elu_grad(leat_grad *g)
{
    return by_output(g, "EluGrad");
}

static leat_status selu_grad(leat_grad *g)
{
    return by_output(g, "SeluGrad");
}

static leat_status leaky_relu_grad(leat_grad *g)
{
    double alpha = leat_node_float(leat_grad_node(g), "alpha");
    return leat_grad_in(g, 0,
                        leat_leaky_relu_grad(leat_grad_out(g, 0), leat_grad_input(g, 0), alpha));
}

static leat_status softplus_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_mul(leat_grad_out(g, 0), leat_sigmoid(leat_grad_input(g, 0))));
}

static leat_status softsign_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_softsign_grad(leat_grad_out(g, 0), leat_grad_input(g, 0)));
}

/* ---- Second derivatives: of f(dy, x), where x may also be the output ---- */

/* The op is piecewise linear: the gradient with respect to x is zero. */
static leat_status relu6_grad_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 1);
    LEAT_TRY(leat_grad_in(g, 0, leat_relu6_grad(leat_grad_out(g, 0), x)));
    return leat_grad_in(g, 1, leat_zeros_like(x));
}

static leat_status leaky_relu_grad_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 1);
    double alpha = leat_node_float(leat_grad_node(g), "alpha");
    LEAT_TRY(leat_grad_in(g, 0, leat_leaky_relu_grad(leat_grad_out(g, 0), x, alpha)));
    return leat_grad_in(g, 1, leat_zeros_like(x));
}

/* dy * (y + c) where y < 0 */
static leat_status exponential_grad_grad(leat_grad *g)
{
    leat_out d = leat_grad_out(g, 0), dy = leat_grad_input(g, 0), y = leat_grad_input(g, 1);
    leat_out below = leat_less(y, leat_scalar_like(y, 0));
    LEAT_TRY(leat_grad_in(g, 0, LEAT_OP2(leat_node_op(leat_grad_node(g)), d, y)));
    return leat_grad_in(g, 1, leat_select(below, leat_mul(d, dy), leat_zeros_like(y)));
}

/* dy / (1 + e^-x) */
static leat_status softplus_grad_grad(leat_grad *g)
{
    leat_out d = leat_grad_out(g, 0), dy = leat_grad_input(g, 0), x = leat_grad_input(g, 1);
    leat_out below = leat_add(leat_exp(leat_neg(x)), leat_scalar_like(x, 2));
    LEAT_TRY(leat_grad_in(g, 0, leat_softplus_grad(d, x)));
    return leat_grad_in(g, 1, leat_div(leat_mul(d, dy), leat_add(below, leat_exp(x))));
}

#define FLOATS "{half, bfloat16, float, double}"
#define UNARY(op, types, gradient, f)                                                              \
    {                                                                                              \
        .name = op, .inputs = "features: T", .outputs = "activations: T", .attrs = types,          \
        .shape = leat_shape_unchanged, .grad = gradient, .flags = f                                \
    }
#define BINARY(op, second, types, gradient, f)                                                     \
    {                                                                                              \
        .name = op, .inputs = "gradients: T, " second ": T", .outputs = "backprops: T",            \
        .attrs = types, .shape = leat_shape_merged, .grad = gradient, .flags = f                   \
    }
#define ALPHA "alpha: float = 0.2; T: " FLOATS " = DT_FLOAT"

const leat_op_def leat_ops_activation[] = {
    UNARY("Relu6", "T: realnumbertype", relu6_grad, LEAT_OP_CWISE),
    BINARY("Relu6Grad", "features", "T: realnumbertype", relu6_grad_grad, LEAT_OP_CWISE),
    UNARY("Elu", "T: " FLOATS, elu_grad, LEAT_OP_CWISE),
    BINARY("EluGrad", "outputs", "T: " FLOATS, exponential_grad_grad, LEAT_OP_CWISE),
    UNARY("Selu", "T: " FLOATS, selu_grad, LEAT_OP_CWISE),
    BINARY("SeluGrad", "outputs", "T: " FLOATS, exponential_grad_grad, LEAT_OP_CWISE),
    UNARY("LeakyRelu", ALPHA, leaky_relu_grad, 0),
    BINARY("LeakyReluGrad", "features", ALPHA, leaky_relu_grad_grad, 0),
    UNARY("Softplus", "T: " FLOATS, softplus_grad, LEAT_OP_CWISE),
    BINARY("SoftplusGrad", "features", "T: " FLOATS, softplus_grad_grad, LEAT_OP_CWISE),
    UNARY("Softsign", "T: " FLOATS, softsign_grad, LEAT_OP_CWISE),
    BINARY("SoftsignGrad", "features", "T: " FLOATS, leat_grad_missing, LEAT_OP_CWISE),
    {0},
};
