/* sparse_move.c -- ops that reorder, reshape, concatenate, split and slice sparse tensors:
 * SparseReorder, SparseReshape, SparseConcat, SparseSplit, SparseSlice, SparseFillEmptyRows and the
 * gradient of the last. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status reorder_shape(leat_infer *c)
{
    leat_shape indices, values, unused;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &indices));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &values));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &unused));
    leat_infer_out(c, 0, indices);
    leat_infer_out(c, 1, values);
    return NULL;
}

static leat_status reshape_shape(leat_infer *c)
{
    leat_shape indices, old, new;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &indices));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &old));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &new));
    leat_infer_out(c, 0, leat_shape(indices.dim[0], new.dim[0]));
    leat_infer_out(c, 1, new);
    return NULL;
}

static leat_status concat_shape(leat_infer *c)
{
    int n = leat_infer_inputs(c) / 3;
    int64_t rows = 0, rank = -1;
    leat_shape indices, values, shape;
    for (int i = 0; i < n; i++) {
        LEAT_TRY(leat_infer_rank(c, i, 2, &indices));
        LEAT_TRY(leat_infer_rank(c, n + i, 1, &values));
        LEAT_TRY(leat_infer_rank(c, 2 * n + i, 1, &shape));
        int64_t here;
        LEAT_TRY(leat_dim_merge(indices.dim[0], values.dim[0], &here));
        rows = rows < 0 || here < 0 ? -1 : rows + here;
        LEAT_TRY(leat_dim_merge(rank, indices.dim[1], &rank));
        LEAT_TRY(leat_dim_merge(rank, shape.dim[0], &rank));
    }
    leat_infer_out(c, 0, leat_shape(rows, rank));
    leat_infer_out(c, 1, leat_shape(rows));
    leat_infer_out(c, 2, leat_shape(rank));
    return NULL;
}

static leat_status split_shape(leat_infer *c)
{
    leat_shape shape = leat_infer_in(c, 3);
    int n = leat_infer_outputs(c) / 3;
    for (int i = 0; i < n; i++) {
        leat_infer_out(c, i, leat_shape(-1, shape.rank == 1 ? shape.dim[0] : -1));
        leat_infer_out(c, n + i, leat_shape(-1));
        leat_infer_out(c, 2 * n + i, shape);
    }
    return NULL;
}

static leat_status slice_shape(leat_infer *c)
{
    leat_shape shape = leat_infer_in(c, 2);
    leat_infer_out(c, 0, leat_shape(-1, shape.rank == 1 ? shape.dim[0] : -1));
    leat_infer_out(c, 1, leat_shape(-1));
    leat_infer_out(c, 2, shape);
    return NULL;
}

static leat_status fill_shape(leat_infer *c)
{
    leat_shape indices, values, shape, unused, dense;
    int64_t n, rank;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &indices));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &values));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &shape));
    LEAT_TRY(leat_infer_rank(c, 3, 0, &unused));
    LEAT_TRY(leat_dim_merge(indices.dim[0], values.dim[0], &n));
    LEAT_TRY(leat_dim_merge(indices.dim[1], shape.dim[0], &rank));
    LEAT_REQUIRE(rank != 0, INVALID_ARGUMENT, "dense_shape must not be empty");
    LEAT_TRY(leat_infer_value_shape(c, 2, &dense));
    leat_infer_out(c, 0, leat_shape(-1, rank));
    leat_infer_out(c, 1, leat_shape(-1));
    leat_infer_out(c, 2, leat_shape(dense.rank > 0 ? dense.dim[0] : -1));
    leat_infer_out(c, 3, leat_shape(n));
    return NULL;
}

static leat_status fill_grad_shape(leat_infer *c)
{
    leat_shape map, unused;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &map));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    leat_infer_out(c, 0, map);
    leat_infer_out(c, 1, leat_shape());
    return NULL;
}

static leat_status fill_grad(leat_grad *g)
{
    leat_out d = LEAT_OP2("SparseFillEmptyRowsGrad", leat_grad_output(g, 3), leat_grad_out(g, 1));
    LEAT_TRY(leat_grad_in(g, 1, d));
    return leat_grad_in(g, 3, (leat_out){d.node, 1});
}

#define SPARSE_OUT "output_indices: int64, output_values: T, output_shape: int64"

const leat_op_def leat_ops_sparse_move[] = {
    {.name = "SparseReorder",
     .inputs = "input_indices: int64, input_values: T, input_shape: int64",
     .outputs = "output_indices: int64, output_values: T",
     .attrs = "T: type",
     .shape = reorder_shape,
     .grad = leat_grad_missing},
    {.name = "SparseReshape",
     .inputs = "input_indices: int64, input_shape: int64, new_shape: int64",
     .outputs = "output_indices: int64, output_shape: int64",
     .shape = reshape_shape,
     .grad = leat_grad_none},
    {.name = "SparseConcat",
     .inputs = "indices: N * int64, values: N * T, shapes: N * int64",
     .outputs = SPARSE_OUT,
     .attrs = "concat_dim: int; N: int >= 2; T: type",
     .shape = concat_shape,
     .grad = leat_grad_none},
    {.name = "SparseSplit",
     .inputs = "split_dim: int64, indices: int64, values: T, shape: int64",
     .outputs = "output_indices: num_split * int64, output_values: num_split * T, "
                "output_shape: num_split * int64",
     .attrs = "num_split: int >= 1; T: type",
     .shape = split_shape,
     .grad = leat_grad_none},
    {.name = "SparseSlice",
     .inputs = "indices: int64, values: T, shape: int64, start: int64, size: int64",
     .outputs = SPARSE_OUT,
     .attrs = "T: type",
     .shape = slice_shape,
     .grad = leat_grad_missing},
    {.name = "SparseFillEmptyRows",
     .inputs = "indices: int64, values: T, dense_shape: int64, default_value: T",
     .outputs = "output_indices: int64, output_values: T, empty_row_indicator: bool, "
                "reverse_index_map: int64",
     .attrs = "T: type",
     .shape = fill_shape,
     .grad = fill_grad},
    {.name = "SparseFillEmptyRowsGrad",
     .inputs = "reverse_index_map: int64, grad_values: T",
     .outputs = "d_values: T, d_default_value: T",
     .attrs = "T: type",
     .shape = fill_grad_shape,
     .grad = leat_grad_missing},
    {0},
};
