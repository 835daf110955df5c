/* sparse_math.c -- arithmetic on sparse tensors: sums, products, extremes, reductions, softmax. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status dense_add_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_infer_in(c, 3));
    return NULL;
}

/* The gradient of the sparse values is dy at their indices. */
static leat_status dense_add_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0);
    LEAT_TRY(leat_grad_in(g, 1, leat_gather_nd(dy, leat_grad_input(g, 0))));
    return leat_grad_in(g, 3, dy);
}

static leat_status add_shape(leat_infer *c)
{
    leat_shape shape;
    LEAT_TRY(leat_infer_rank(c, 2, 1, &shape));
    leat_infer_out(c, 0, leat_shape(-1, shape.dim[0]));
    leat_infer_out(c, 1, leat_shape(-1));
    leat_infer_out(c, 2, shape);
    return NULL;
}

static leat_status add_grad(leat_grad *g)
{
    leat_out d = LEAT_OP4("SparseAddGrad", leat_grad_out(g, 1), leat_grad_input(g, 0),
                          leat_grad_input(g, 3), leat_grad_output(g, 0));
    LEAT_TRY(leat_grad_in(g, 1, d));
    return leat_grad_in(g, 4, (leat_out){d.node, 1});
}

static leat_status add_grad_shape(leat_infer *c)
{
    for (int i = 0; i < 2; i++) {
        leat_shape at;
        LEAT_TRY(leat_infer_rank(c, i + 1, 2, &at));
        leat_infer_out(c, i, leat_shape(at.dim[0]));
    }
    return NULL;
}

static leat_status slice_grad_shape(leat_infer *c)
{
    leat_shape at;
    LEAT_TRY(leat_infer_rank(c, 1, 2, &at));
    leat_infer_out(c, 0, leat_shape(at.dim[0]));
    return NULL;
}

static leat_status both_shape(leat_infer *c)
{
    leat_shape shape = leat_infer_in(c, 2);
    leat_infer_out(c, 0, leat_shape(-1, shape.rank == 1 ? shape.dim[0] : -1));
    leat_infer_out(c, 1, leat_shape(-1));
    return NULL;
}

static leat_status values_shape(leat_infer *c)
{
    leat_shape values;
    LEAT_TRY(leat_infer_rank(c, 1, 1, &values));
    leat_infer_out(c, 0, values);
    return NULL;
}

#define SPARSE "sp_indices: int64, sp_values: T, sp_shape: int64"
#define TWO                                                                                        \
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64"
#define REDUCED "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32"
#define CWISE(name_)                                                                               \
    {                                                                                              \
        .name = name_, .inputs = SPARSE ", dense: T", .outputs = "output: T",                      \
        .attrs = "T: numbertype", .shape = values_shape, .grad = leat_grad_missing                 \
    }
#define REDUCE(name_, types)                                                                       \
    {.name = name_,                                                                                \
     .inputs = REDUCED,                                                                            \
     .outputs = "output: T",                                                                       \
     .attrs = "keep_dims: bool = false; T: " types,                                                \
     .shape = leat_shape_any,                                                                      \
     .grad = leat_grad_missing},                                                                   \
    {                                                                                              \
        .name = name_ "Sparse", .inputs = REDUCED,                                                 \
        .outputs = "output_indices: int64, output_values: T, output_shape: int64",                 \
        .attrs = "keep_dims: bool = false; T: " types, .shape = leat_shape_any,                    \
        .grad = leat_grad_missing                                                                  \
    }
#define EXTREME(name_, types)                                                                      \
    {                                                                                              \
        .name = name_, .inputs = TWO, .outputs = "output_indices: int64, output_values: T",        \
        .attrs = "T: " types, .shape = both_shape, .grad = leat_grad_missing                       \
    }

const leat_op_def leat_ops_sparse_math[] = {
    {.name = "SparseTensorDenseAdd",
     .inputs = "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T",
     .outputs = "output: T",
     .attrs = "T: numbertype; Tindices: {int32, int64}",
     .shape = dense_add_shape,
     .grad = dense_add_grad},
    {.name = "SparseAdd",
     .inputs = TWO ", thresh: Treal",
     .outputs = "sum_indices: int64, sum_values: T, sum_shape: int64",
     .attrs = "T: numbertype; Treal: realnumbertype",
     .shape = add_shape,
     .grad = add_grad},
    {.name = "SparseAddGrad",
     .inputs = "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64",
     .outputs = "a_val_grad: T, b_val_grad: T",
     .attrs = "T: numbertype",
     .shape = add_grad_shape,
     .grad = leat_grad_none},
    {.name = "SparseSliceGrad",
     .inputs = "backprop_val_grad: T, input_indices: int64, input_start: int64, "
               "output_indices: int64",
     .outputs = "val_grad: T",
     .attrs = "T: numbertype",
     .shape = slice_grad_shape,
     .grad = leat_grad_missing},
    EXTREME("SparseSparseMaximum", "realnumbertype"),
    EXTREME("SparseSparseMinimum", "numbertype"),
    CWISE("SparseDenseCwiseAdd"),
    CWISE("SparseDenseCwiseMul"),
    CWISE("SparseDenseCwiseDiv"),
    REDUCE("SparseReduceSum", "numbertype"),
    REDUCE("SparseReduceMax", "realnumbertype"),
    {.name = "SparseSoftmax",
     .inputs = SPARSE,
     .outputs = "output: T",
     .attrs = "T: {float, double}",
     .shape = values_shape,
     .grad = leat_grad_missing},
    {0},
};
