/* sets.c -- rows of the last dimension as sets: their unions, intersections, differences, sizes. */
#include "ops/infer_util.h"

static void result_shape(leat_infer *c, int64_t rank)
{
    leat_infer_out(c, 0, leat_shape(-1, rank));
    leat_infer_out(c, 1, leat_shape(-1));
    leat_infer_out(c, 2, leat_shape(rank));
}

static leat_status dense_dense_shape(leat_infer *c)
{
    leat_shape a, b, unused;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 2, &a));
    LEAT_TRY(leat_infer_rank_at_least(c, 1, 2, &b));
    if (a.rank >= 0)
        LEAT_TRY(leat_infer_rank(c, 1, a.rank, &b));
    int rank = a.rank >= 0 ? a.rank : b.rank;
    a.rank -= a.rank > 0;
    b.rank -= b.rank > 0;
    LEAT_TRY(leat_shape_merge(&a, &b, &unused));
    result_shape(c, rank);
    return NULL;
}

/* The rank of the sparse tensor of inputs i, i+1, i+2; -1 if it is not known. */
static leat_status sparse_rank(leat_infer *c, int i, int64_t *out)
{
    leat_shape indices, values, shape;
    int64_t n;
    LEAT_TRY(leat_infer_rank(c, i, 2, &indices));
    LEAT_TRY(leat_infer_rank(c, i + 1, 1, &values));
    LEAT_TRY(leat_infer_rank(c, i + 2, 1, &shape));
    LEAT_TRY(leat_dim_merge(indices.dim[0], values.dim[0], &n));
    return leat_dim_merge(indices.dim[1], shape.dim[0], out);
}

static leat_status dense_sparse_shape(leat_infer *c)
{
    leat_shape a;
    int64_t rank;
    LEAT_TRY(sparse_rank(c, 1, &rank));
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 2, &a));
    LEAT_TRY(leat_dim_merge(rank, a.rank, &rank));
    result_shape(c, rank);
    return NULL;
}

static leat_status sparse_sparse_shape(leat_infer *c)
{
    int64_t a, b;
    LEAT_TRY(sparse_rank(c, 0, &a));
    LEAT_TRY(sparse_rank(c, 3, &b));
    LEAT_TRY(leat_dim_merge(a, b, &a));
    LEAT_REQUIRE(a < 0 || a >= 2, INVALID_ARGUMENT, "Input rank %lld is less than 2", (long long)a);
    result_shape(c, a);
    return NULL;
}

#define TYPES "T: {int8, int16, int32, int64, uint8, uint16, string}"
#define SET(name_, inputs_, shape_)                                                                \
    {                                                                                              \
        .name = name_, .inputs = inputs_,                                                          \
        .outputs = "result_indices: int64, result_values: T, result_shape: int64",                 \
        .attrs = "set_operation: string; validate_indices: bool = true; " TYPES, .shape = shape_,  \
        .grad = leat_grad_none                                                                     \
    }

const leat_op_def leat_ops_sets[] = {
    SET("DenseToDenseSetOperation", "set1: T, set2: T", dense_dense_shape),
    SET("DenseToSparseSetOperation",
        "set1: T, set2_indices: int64, set2_values: T, set2_shape: int64", dense_sparse_shape),
    SET("SparseToSparseSetOperation",
        "set1_indices: int64, set1_values: T, set1_shape: int64, "
        "set2_indices: int64, set2_values: T, set2_shape: int64",
        sparse_sparse_shape),
    {.name = "SetSize",
     .inputs = "set_indices: int64, set_values: T, set_shape: int64",
     .outputs = "size: int32",
     .attrs = "validate_indices: bool = true; " TYPES,
     .shape = leat_shape_any,
     .grad = leat_grad_none},
    {0},
};
