/* ragged.c -- RaggedTensorToSparse: converts rows of different lengths, given by the end of each
 * row, to a sparse tensor. */
#include "ops/infer_util.h"

static leat_status ragged_shape(leat_infer *c)
{
    int levels = leat_infer_inputs(c) - 1;
    leat_shape values, splits;
    LEAT_TRY(leat_infer_rank_at_least(c, levels, 1, &values));
    for (int i = 0; i < levels; i++)
        LEAT_TRY(leat_infer_rank(c, i, 1, &splits));
    int64_t rank = values.rank < 0 ? -1 : levels + values.rank, n = leat_shape_count(&values);
    leat_infer_out(c, 0, leat_shape(n, rank));
    leat_infer_out(c, 1, leat_shape(n));
    leat_infer_out(c, 2, leat_shape(rank));
    return NULL;
}

const leat_op_def leat_ops_ragged[] = {
    {.name = "RaggedTensorToSparse",
     .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T",
     .outputs = "sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
     .attrs = "RAGGED_RANK: int >= 1; T: type; Tsplits: {int32, int64} = DT_INT64",
     .shape = ragged_shape,
     .grad = leat_grad_missing},
    {0},
};
