/* reduce.c -- reductions over dimensions: Sum, Mean, Prod, Max, Min, EuclideanNorm, All, Any. */
#include <leat/extend.h>
#include <leat/ops.h>

#include "core/buffer.h"
#include "graph/infer_int.h"
#include "ops/reduce_grad.h"
#include "ops/infer_util.h"

/* The constant axes as a set of dimensions of a tensor of this rank. */
static leat_status axis_set(const leat_tensor *axes, int rank, bool *reduced)
{
    for (int d = 0; d < rank; d++)
        reduced[d] = false;
    for (int64_t i = 0; i < axes->count; i++) {
        const int64_t a = (int64_t)leat_tensor_at(axes, i);
        LEAT_REQUIRE(a >= -rank && a < rank, INVALID_ARGUMENT,
                     "Invalid reduction dimension %lld for input with %d dimensions.", (long long)a,
                     rank);
        reduced[a < 0 ? a + rank : a] = true;
    }
    return NULL;
}

leat_status leat_shape_reduction(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), axes = leat_infer_in(c, 1), out = leat_shape();
    const bool keep = leat_node_bool(leat_infer_node(c), "keep_dims");
    const leat_tensor *value = leat_infer_value(c, 1);
    LEAT_REQUIRE(axes.rank <= 1, INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                 axes.rank);
    if (in.rank < 0 || !value) {
        leat_infer_out(
            c, 0, keep && in.rank >= 0 ? leat_shape_unknown_dims(in.rank) : leat_shape_unknown());
        return NULL;
    }
    bool reduced[LEAT_MAX_RANK];
    LEAT_TRY(axis_set(value, in.rank, reduced));
    for (int d = 0; d < in.rank; d++)
        if (!reduced[d])
            out.dim[out.rank++] = in.dim[d];
        else if (keep)
            out.dim[out.rank++] = 1;
    leat_infer_out(c, 0, out);
    return NULL;
}

/* ---- Gradients ---- */
leat_status leat_reduced_shape(leat_out x, leat_out axes, leat_reduced *out)
{
    leat_graph *g = leat_node_graph(x.node);
    leat_shape s = leat_out_shape(x);
    const leat_tensor *value = leat_const_value(axes);
    if (value && leat_shape_known(&s)) {
        bool reduced[LEAT_MAX_RANK];
        leat_shape kept = s, times = s;
        LEAT_TRY(axis_set(value, s.rank, reduced));
        for (int d = 0; d < s.rank; d++) {
            kept.dim[d] = reduced[d] ? 1 : s.dim[d];
            times.dim[d] = reduced[d] ? s.dim[d] : s.dim[d] > 0;
        }
        *out = (leat_reduced){leat_shape_const(g, kept), leat_shape_const(g, times)};
        return NULL;
    }
    /* For the shape [2, 3, 5] and axis 1: DynamicStitch takes dimensions 0 1 2 from 2 3 5, and
     * those of the axes from ones. */
    leat_out size = leat_shape_of(x), rank = leat_size_of(size);
    axes = leat_reshape(leat_cast(axes, LEAT_INT32), leat_ints(g, -1));
    axes = leat_floor_mod(leat_add(axes, rank), rank);
    leat_out all = leat_range(leat_scalar(g, LEAT_INT32, 0), rank, leat_scalar(g, LEAT_INT32, 1));
    leat_out ones = leat_fill(leat_shape_of(axes), leat_scalar(g, LEAT_INT32, 1));
    const leat_out indices[2] = {all, axes}, data[2] = {size, ones};
    out->kept = leat_dynamic_stitch(indices, data, 2);
    out->times = leat_floor_div(size, leat_maximum(out->kept, leat_scalar(g, LEAT_INT32, 1)));
    return NULL;
}

/* dy, repeated along the dimensions that were reduced. */
static leat_status spread(leat_grad *g, leat_out *dx)
{
    leat_out x = leat_grad_input(g, 0), dy = leat_grad_out(g, 0);
    leat_shape s = leat_out_shape(x);
    const leat_tensor *axes = leat_const_value(leat_grad_input(g, 1));
    bool all = s.rank >= 0 && axes && axes->count == s.rank;
    for (int d = 0; all && d < s.rank; d++)
        all = leat_tensor_at(axes, d) == d;
    if (all) { /* reduced to a scalar */
        leat_shape ones = s;
        for (int d = 0; d < s.rank; d++)
            ones.dim[d] = 1;
        *dx = leat_tile(leat_reshape_to(dy, ones), leat_shape_known(&s)
                                                       ? leat_shape_const(leat_grad_graph(g), s)
                                                       : leat_shape_of(x));
        return NULL;
    }
    leat_reduced r;
    LEAT_TRY(leat_reduced_shape(x, leat_grad_input(g, 1), &r));
    *dx = leat_tile(leat_reshape(dy, r.kept), r.times);
    return NULL;
}

static leat_status sum_grad(leat_grad *g)
{
    leat_out dx;
    LEAT_TRY(spread(g, &dx));
    return leat_grad_in(g, 0, dx);
}

static leat_status mean_grad(leat_grad *g)
{
    leat_out dx, x = leat_grad_input(g, 0), y = leat_grad_output(g, 0);
    LEAT_TRY(spread(g, &dx));
    leat_shape sx = leat_out_shape(x), sy = leat_out_shape(y);
    const leat_dtype t = leat_dtype_base(leat_out_dtype(dx));
    leat_out n;
    if (leat_shape_known(&sx) && leat_shape_known(&sy)) {
        const int64_t in = leat_shape_count(&sx), out = leat_shape_count(&sy);
        n = leat_scalar_like(dx, (double)(in / (out > 1 ? out : 1)));
    } else {
        leat_graph *graph = leat_grad_graph(g);
        leat_out out = leat_maximum(leat_size_of(y), leat_scalar(graph, LEAT_INT32, 1));
        n = leat_cast(leat_floor_div(leat_size_of(x), out), t);
    }
    return leat_grad_in(g, 0, leat_div(dx, n));
}

/* If several elements are the greatest, they share the gradient equally. */
static leat_status max_min_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), axes = leat_grad_input(g, 1);
    leat_reduced r;
    LEAT_TRY(leat_reduced_shape(x, axes, &r));
    leat_out y = leat_reshape(leat_grad_output(g, 0), r.kept);
    leat_out dy = leat_reshape(leat_grad_out(g, 0), r.kept);
    leat_out chosen = leat_cast(leat_equal(y, x), leat_dtype_base(leat_out_dtype(dy)));
    leat_out number = leat_reshape(leat_sum(chosen, axes), r.kept);
    return leat_grad_in(g, 0, leat_mul(leat_div(chosen, number), dy));
}

#define REDUCTION(op, gradient)                                                                    \
    {                                                                                              \
        .name = op, .inputs = "input: T, reduction_indices: Tidx", .outputs = "output: T",         \
        .attrs = "keep_dims: bool = false; T: numbertype; Tidx: {int32, int64} = DT_INT32",        \
        .shape = leat_shape_reduction, .grad = gradient                                                 \
    }
#define REDUCTION_OF_BOOLS(op)                                                                     \
    {                                                                                              \
        .name = op, .inputs = "input: bool, reduction_indices: Tidx", .outputs = "output: bool",   \
        .attrs = "keep_dims: bool = false; Tidx: {int32, int64} = DT_INT32",                       \
        .shape = leat_shape_reduction, .grad = leat_grad_missing                                        \
    }

const leat_op_def leat_ops_reduce[] = {
    REDUCTION("Sum", sum_grad),
    REDUCTION("Mean", mean_grad),
    REDUCTION("Prod", leat_prod_grad),
    REDUCTION("Max", max_min_grad),
    REDUCTION("Min", max_min_grad),
    REDUCTION("EuclideanNorm", leat_grad_none),
    REDUCTION_OF_BOOLS("All"),
    REDUCTION_OF_BOOLS("Any"),
    {0},
};
