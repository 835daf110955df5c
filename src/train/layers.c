/* layers.c -- dense, dropout, flatten. */
#include <leat/nn.h>

#include <inttypes.h>

#include "graph/given.h"
#include "train/train_int.h"

/* If the rank of x is above 2, its other dimensions are flattened for the product. */
static leat_out multiply(leat_out x, leat_out kernel, int64_t in, int64_t units)
{
    leat_graph *g = leat_graph_of(x);
    leat_shape s = leat_out_shape(x);
    if (s.rank == 2)
        return leat_matmul(x, kernel);
    leat_out flat = leat_reshape(x, leat_ints(g, -1, in), leat_name("Reshape"));
    leat_out outer =
        leat_slice(leat_shape_of(x), leat_ints(g, 0), leat_ints(g, s.rank - 1), leat_name("outer"));
    const leat_out dims[2] = {outer, leat_ints(g, units)};
    leat_out shape = leat_concat(dims, 2, leat_scalar(g, LEAT_INT32, 0));
    return leat_reshape(leat_matmul(flat, kernel), shape);
}

static leat_out dense(leat_graph *g, leat_out x, int64_t units, const leat_dense_options *o)
{
    leat_shape s = leat_out_shape(x);
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    if (units < 1)
        return leat_graph_fail(g, (leat_loc){0},
                               leat_error(INVALID_ARGUMENT,
                                          "leat_dense: units must be positive, got %" PRId64,
                                          units));
    if (s.rank < 2 || s.dim[s.rank - 1] < 0)
        return leat_graph_fail(g, (leat_loc){0},
                               leat_error(INVALID_ARGUMENT,
                                          "The last dimension of the inputs to `Dense` should be "
                                          "defined. Found shape %s.",
                                          leat_shape_show(&s).s));
    int64_t in = s.dim[s.rank - 1];
    leat_out kernel = leat_get_variable(
        g, "kernel", leat_shape(in, units), .dtype = t, .initializer = o->kernel_initializer,
        .regularizer = o->kernel_regularizer, .not_trainable = o->not_trainable);
    leat_initializer zeros = leat_zeros_initializer();
    leat_out bias = {0};
    if (!o->no_bias)
        bias = leat_get_variable(
            g, "bias", leat_shape(units), .dtype = t, .regularizer = leat_no_regularizer(),
            .initializer = o->bias_initializer.make ? o->bias_initializer : zeros,
            .not_trainable = o->not_trainable);
    leat_out y = multiply(x, kernel, in, units);
    if (bias.node)
        y = leat_bias_add(y, bias);
    return o->activation ? LEAT_OP1(o->activation, y) : y;
}

leat_out leat_dense_at(leat_loc at, leat_out x, int64_t units, const leat_dense_options *o)
{
    if (!x.node || !leat_out_ok(x))
        return x;
    leat_graph *g = leat_graph_of(x);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    leat_with_variable_scope(g, o->name, .default_name = "dense", .reuse = o->reuse) y =
        dense(g, x, units, o);
    leat_at_leave(g, outer);
    return y;
}

leat_out leat_dropout_at(leat_loc at, leat_out x, double rate, const leat_random_options *o)
{
    if (!x.node || !leat_out_ok(x) || rate == 0)
        return x;
    leat_graph *g = leat_graph_of(x);
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    if (!(rate > 0 && rate < 1))
        return leat_graph_fail(g, at,
                               leat_error(INVALID_ARGUMENT,
                                          "leat_dropout: rate must be in the range [0, 1), got %g",
                                          rate));
    leat_loc outer = leat_at_enter(g, at);
    int64_t seed, seed2;
    leat_out y = {0};
    leat_with_name(g, "dropout")
    {
        leat_out limit = leat_py_number(g, t, rate, "rate");
        leat_out shape = leat_shape_of(x);
        leat_graph_seeds(g, leat_is_given(&o->given, "seed", o->seed != 0) ? &o->seed : NULL, &seed,
                         &seed2);
        leat_out draw = LEAT_OP1("RandomUniform", shape, leat_attr_type("dtype", t),
                                 leat_attr_int("seed", seed), leat_attr_int("seed2", seed2),
                                 leat_name("random_uniform/RandomUniform"));
        leat_out keep = leat_greater_equal(draw, limit);
        leat_out scaled = leat_py_right("Mul", "mul", x, 1 / (1 - rate));
        y = leat_py("Mul", "mul", scaled, leat_cast(keep, t));
    }
    leat_at_leave(g, outer);
    return y;
}

leat_out leat_flatten_at(leat_loc at, leat_out x)
{
    if (!x.node || !leat_out_ok(x))
        return x;
    leat_graph *g = leat_graph_of(x);
    leat_shape s = leat_out_shape(x);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    int64_t rest = 1;
    for (int i = 1; i < s.rank; i++)
        rest = rest < 0 || s.dim[i] < 0 ? -1 : rest * s.dim[i];
    leat_with_name(g, "flatten")
    {
        if (s.rank >= 1 && rest > 0) {
            y = leat_reshape(x, leat_ints(g, -1, rest));
        } else if (s.rank >= 1 && s.dim[0] > 0) {
            y = leat_reshape(x, leat_ints(g, s.dim[0], -1));
        } else {
            leat_out batch = leat_slice(leat_shape_of(x), leat_ints(g, 0), leat_ints(g, 1));
            const leat_out dims[2] = {batch, leat_ints(g, -1)};
            y = leat_reshape(x, leat_concat(dims, 2, leat_scalar(g, LEAT_INT32, 0)));
        }
    }
    leat_at_leave(g, outer);
    return y;
}
