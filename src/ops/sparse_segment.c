/* sparse_segment.c -- reductions of rows that are chosen by indices, by segments with sorted ids:
 * SparseSegmentSum, Mean and SqrtN, and the ops that the gradients of the latter two add. */
#include <leat/extend.h>
#include <leat/ops.h>

/* The number of rows that input i gives; -1 if it is not known. */
static leat_status rows_of(leat_infer *c, int i, const char *name, int64_t *n)
{
    leat_shape scalar;
    *n = -1;
    LEAT_TRY(leat_infer_rank(c, i, 0, &scalar));
    const leat_tensor *value = leat_infer_value(c, i);
    if (!value)
        return NULL;
    *n = (int64_t)leat_tensor_at(value, 0);
    LEAT_REQUIRE(*n >= 0, INVALID_ARGUMENT, "Cannot specify a negative value for %s", name);
    return NULL;
}

static leat_status rows_shape(leat_infer *c, int64_t n)
{
    leat_shape data, indices, ids, both;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &data));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &indices));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &ids));
    LEAT_TRY(leat_shape_merge(&indices, &ids, &both));
    if (data.rank > 0)
        data.dim[0] = n;
    leat_infer_out(c, 0, data);
    return NULL;
}

static leat_status open_shape(leat_infer *c)
{
    return rows_shape(c, -1);
}

static leat_status numbered_shape(leat_infer *c)
{
    int64_t n;
    LEAT_TRY(rows_of(c, 3, "num_segments", &n));
    return rows_shape(c, n);
}

static leat_status grad_shape(leat_infer *c)
{
    int64_t n;
    LEAT_TRY(rows_of(c, 3, "output_dim0", &n));
    return rows_shape(c, n);
}

static leat_out first_dimension(leat_out x)
{
    leat_graph *g = leat_node_graph(x.node);
    return leat_strided_slice(leat_shape_of(x), leat_ints(g, 0), leat_ints(g, 1), leat_ints(g, 1),
                              leat_attr_int("shrink_axis_mask", 1));
}

static leat_status sum_grad(leat_grad *g)
{
    leat_out zero = leat_scalar(leat_grad_graph(g), LEAT_INT32, 0);
    leat_out rows = leat_gather(leat_grad_out(g, 0), leat_grad_input(g, 2), zero);
    leat_out n = first_dimension(leat_grad_input(g, 0));
    return leat_grad_in(g, 0, leat_unsorted_segment_sum(rows, leat_grad_input(g, 1), n));
}

static leat_status scaled_grad(leat_grad *g, const char *op)
{
    leat_out n = first_dimension(leat_grad_input(g, 0));
    return leat_grad_in(
        g, 0, LEAT_OP4(op, leat_grad_out(g, 0), leat_grad_input(g, 1), leat_grad_input(g, 2), n));
}

static leat_status mean_grad(leat_grad *g)
{
    return scaled_grad(g, "SparseSegmentMeanGrad");
}

static leat_status sqrt_n_grad(leat_grad *g)
{
    return scaled_grad(g, "SparseSegmentSqrtNGrad");
}

#define TIDX "; Tidx: {int32, int64} = DT_INT32"
#define SPARSE(op, types, gradient)                                                                \
    {.name = op,                                                                                   \
     .inputs = "data: T, indices: Tidx, segment_ids: int32",                                       \
     .outputs = "output: T",                                                                       \
     .attrs = "T: " types TIDX,                                                                    \
     .shape = open_shape,                                                                          \
     .grad = gradient},                                                                            \
    {                                                                                              \
        .name = op "WithNumSegments",                                                              \
        .inputs = "data: T, indices: Tidx, segment_ids: int32, num_segments: Tnumsegments",        \
        .outputs = "output: T",                                                                    \
        .attrs = "T: " types TIDX "; Tnumsegments: {int32, int64} = DT_INT32",                     \
        .shape = numbered_shape, .grad = gradient                                                  \
    }
#define SPARSE_GRAD(op)                                                                            \
    {                                                                                              \
        .name = op, .inputs = "grad: T, indices: Tidx, segment_ids: int32, output_dim0: int32",    \
        .outputs = "output: T", .attrs = "T: {float, double}" TIDX, .shape = grad_shape,           \
        .grad = leat_grad_missing                                                                  \
    }

const leat_op_def leat_ops_sparse_segment[] = {
    SPARSE("SparseSegmentSum", "realnumbertype", sum_grad),
    SPARSE("SparseSegmentMean", "{float, double}", mean_grad),
    SPARSE("SparseSegmentSqrtN", "{float, double}", sqrt_n_grad),
    SPARSE_GRAD("SparseSegmentMeanGrad"),
    SPARSE_GRAD("SparseSegmentSqrtNGrad"),
    {0},
};
