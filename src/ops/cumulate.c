/* cumulate.c -- running sums and products along one dimension: Cumsum, Cumprod. */
#include <leat/extend.h>
#include <leat/ops.h>

static bool flag(leat_grad *g, const char *name)
{
    return leat_node_bool(leat_grad_node(g), name);
}

/* The gradient of a running sum is the running sum of dy from the other end. */
static leat_out running_back(leat_grad *g, leat_out d)
{
    return leat_cumsum(d, leat_grad_input(g, 1), leat_attr_bool("exclusive", flag(g, "exclusive")),
                       leat_attr_bool("reverse", !flag(g, "reverse")));
}

static leat_status cumsum_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, running_back(g, leat_grad_out(g, 0)));
}

/* Like TensorFlow's, which divides by x and so is wrong for zeros. */
static leat_status cumprod_grad(leat_grad *g)
{
    leat_out d = leat_mul(leat_grad_output(g, 0), leat_grad_out(g, 0));
    return leat_grad_in(g, 0, leat_div(running_back(g, d), leat_grad_input(g, 0)));
}

#define CUMULATE(op, gradient)                                                                     \
    {                                                                                              \
        .name = op, .inputs = "x: T, axis: Tidx", .outputs = "out: T",                             \
        .attrs = "exclusive: bool = false; reverse: bool = false; T: numbertype; "                 \
                 "Tidx: {int32, int64} = DT_INT32",                                                \
        .shape = leat_shape_unchanged, .grad = gradient                                            \
    }

const leat_op_def leat_ops_cumulate[] = {
    CUMULATE("Cumsum", cumsum_grad),
    CUMULATE("Cumprod", cumprod_grad),
    {0},
};
