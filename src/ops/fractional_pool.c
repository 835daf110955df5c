/* fractional_pool.c -- FractionalMaxPool, FractionalAvgPool: pooling over windows whose sizes are
 * drawn at random, so that images shrink by a ratio that is not whole; and their gradients. */
#include <leat/ops.h>
#include <math.h>

#include "ops/infer_util.h"

static leat_status pool_shape(leat_infer *c)
{
    leat_shape s;
    int n;
    const double *ratio = leat_node_floats(leat_infer_node(c), "pooling_ratio", &n);
    LEAT_TRY(leat_infer_rank(c, 0, 4, &s));
    LEAT_REQUIRE(n == 4, INVALID_ARGUMENT, "pooling_ratio field must specify 4 dimensions");
    for (int i = 0; i < 4; i++) {
        LEAT_REQUIRE(ratio[i] >= 1, INVALID_ARGUMENT,
                     "pooling_ratio cannot be smaller than 1, got: %g", ratio[i]);
        if (s.dim[i] >= 0)
            s.dim[i] = (int64_t)floorf((float)s.dim[i] / (float)ratio[i]);
    }
    leat_infer_out(c, 0, s);
    for (int i = 1; i < 3; i++) /* where each window begins, and where the last one ends */
        leat_infer_out(c, i, leat_shape(s.dim[i] < 0 ? -1 : s.dim[i] + 1));
    return NULL;
}

static leat_status max_grad_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status avg_grad_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, 0, &s));
    leat_infer_out(c, 0, s.rank < 0 ? leat_shape_unknown_dims(4) : s);
    return NULL;
}

static leat_arg overlapping(leat_grad *g)
{
    return leat_attr_bool("overlapping", leat_node_bool(leat_grad_node(g), "overlapping"));
}

static leat_status max_grad(leat_grad *g)
{
    const leat_out in[] = {leat_grad_input(g, 0), leat_grad_output(g, 0), leat_grad_out(g, 0),
                           leat_grad_output(g, 1), leat_grad_output(g, 2)};
    return leat_grad_in(g, 0, LEAT_OPN("FractionalMaxPoolGrad", in, 5, overlapping(g)));
}

static leat_status avg_grad(leat_grad *g)
{
    leat_out shape = leat_cast(leat_shape_of(leat_grad_input(g, 0)), LEAT_INT64);
    return leat_grad_in(g, 0,
                        LEAT_OP4("FractionalAvgPoolGrad", shape, leat_grad_out(g, 0),
                                 leat_grad_output(g, 1), leat_grad_output(g, 2), overlapping(g)));
}

#define POOL(name_, grad_)                                                                         \
    {                                                                                              \
        .name = name_, .inputs = "value: T",                                                       \
        .outputs = "output: T, row_pooling_sequence: int64, col_pooling_sequence: int64",          \
        .attrs = "pooling_ratio: list(float) >= 4; pseudo_random: bool = false; "                  \
                 "overlapping: bool = false; deterministic: bool = false; seed: int = 0; "         \
                 "seed2: int = 0; T: {float, double, int32, int64}",                               \
        .shape = pool_shape, .grad = grad_                                                         \
    }
#define POOL_GRAD(name_, inputs_, shape_)                                                          \
    {                                                                                              \
        .name = name_,                                                                             \
        .inputs = inputs_ ", row_pooling_sequence: int64, col_pooling_sequence: int64",            \
        .outputs = "output: T",                                                                    \
        .attrs = "overlapping: bool = false; T: {float, double, int32, int64}", .shape = shape_,   \
        .grad = leat_grad_missing                                                                  \
    }

const leat_op_def leat_ops_fractional_pool[] = {
    POOL("FractionalMaxPool", max_grad),
    POOL("FractionalAvgPool", avg_grad),
    POOL_GRAD("FractionalMaxPoolGrad", "orig_input: T, orig_output: T, out_backprop: T",
              max_grad_shape),
    POOL_GRAD("FractionalAvgPoolGrad", "orig_input_tensor_shape: int64, out_backprop: T",
              avg_grad_shape),
    {0},
};
