/* sparse_map.c -- sparse tensors that are stored under numbers, so that they can be put into a
 * queue: AddSparseToTensorsMap gives a number, TakeManySparseFromTensorsMap a batch for a vector of
 * numbers. */
#include <leat/extend.h>

static leat_status add_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &unused));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &unused));
    leat_infer_out(c, 0, leat_shape());
    return NULL;
}

static leat_status add_many_shape(leat_infer *c)
{
    LEAT_TRY(add_shape(c));
    leat_infer_out(c, 0, leat_shape(-1));
    return NULL;
}

static leat_status take_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &unused));
    leat_infer_out(c, 0, leat_shape(-1, -1));
    leat_infer_out(c, 1, leat_shape(-1));
    leat_infer_out(c, 2, leat_shape(-1));
    return NULL;
}

#define SPARSE "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
#define SHARED "container: string = ''; shared_name: string = ''"

const leat_op_def leat_ops_sparse_map[] = {
    {.name = "AddSparseToTensorsMap",
     .inputs = SPARSE,
     .outputs = "sparse_handle: int64",
     .attrs = "T: type; " SHARED,
     .shape = add_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "AddManySparseToTensorsMap",
     .inputs = SPARSE,
     .outputs = "sparse_handles: int64",
     .attrs = "T: type; " SHARED,
     .shape = add_many_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "TakeManySparseFromTensorsMap",
     .inputs = "sparse_handles: int64",
     .outputs = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     .attrs = "dtype: type; " SHARED,
     .shape = take_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
