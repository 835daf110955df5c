/* save_restore.c -- checkpoints: SaveV2, RestoreV2, MergeV2Checkpoints, the older Save, SaveSlices,
 * Restore, RestoreSlice, and the names of shards. */
#include "core/buffer.h"
#include "io/slice.h"
#include "ops/infer_util.h"

/* Input 0 is a scalar; inputs [1, fixed) are vectors with one element for each of the tensors that
 * follow. */
static leat_status save_shape(leat_infer *c, int fixed)
{
    leat_shape s;
    int64_t unused;
    LEAT_TRY(leat_infer_rank(c, 0, 0, &s));
    for (int i = 1; i < fixed; i++) {
        LEAT_TRY(leat_infer_rank(c, i, 1, &s));
        LEAT_TRY(leat_dim_merge(s.dim[0], leat_infer_inputs(c) - fixed, &unused));
    }
    return NULL;
}

static leat_status save_two_shape(leat_infer *c)
{
    return save_shape(c, 2);
}

static leat_status save_three_shape(leat_infer *c)
{
    return save_shape(c, 3);
}

/* Output i has the shape that a description such as "10 4 0,5:-" gives; unknown if it is empty. */
static leat_status out_from_spec(leat_infer *c, int i, const leat_string *spec)
{
    leat_shape whole, part = leat_shape_unknown();
    leat_slice slice;
    if (spec->size)
        LEAT_TRY(leat_slice_parse(spec->data, spec->size, &whole, &slice, &part));
    leat_infer_out(c, i, part);
    return NULL;
}

static leat_status restore_v2_shape(leat_infer *c)
{
    leat_shape s, names, specs;
    LEAT_TRY(leat_infer_rank(c, 0, 0, &s));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &names));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &specs));
    LEAT_TRY(leat_shape_merge(&names, &specs, &s));
    const leat_tensor *v = leat_infer_value(c, 2);
    LEAT_REQUIRE(!v || v->count == leat_infer_outputs(c), INVALID_ARGUMENT,
                 "The number of shape_and_slice doesn't match tensor outputs.");
    for (int i = 0; v && i < v->count; i++)
        LEAT_TRY(out_from_spec(c, i, (const leat_string *)v->data + i));
    return NULL;
}

static leat_status scalars_shape(leat_infer *c)
{
    leat_shape s;
    for (int i = 0; i < leat_infer_inputs(c); i++)
        LEAT_TRY(leat_infer_rank(c, i, 0, &s));
    return NULL;
}

static leat_status restore_slice_shape(leat_infer *c)
{
    LEAT_TRY(scalars_shape(c));
    const leat_tensor *v = leat_infer_value(c, 2);
    return v && v->count == 1 ? out_from_spec(c, 0, v->data) : NULL;
}

static leat_status merge_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &s));
    return leat_infer_rank(c, 1, 0, &s);
}

static leat_status sharded_shape(leat_infer *c)
{
    LEAT_TRY(scalars_shape(c));
    return leat_shape_scalar(c);
}

const leat_op_def leat_ops_save_restore[] = {
    {.name = "SaveV2",
     .inputs = "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes",
     .attrs = "dtypes: list(type) >= 1",
     .shape = save_three_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "RestoreV2",
     .inputs = "prefix: string, tensor_names: string, shape_and_slices: string",
     .outputs = "tensors: dtypes",
     .attrs = "dtypes: list(type) >= 1",
     .shape = restore_v2_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "MergeV2Checkpoints",
     .inputs = "checkpoint_prefixes: string, destination_prefix: string",
     .attrs = "delete_old_dirs: bool = true",
     .shape = merge_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "Save",
     .inputs = "filename: string, tensor_names: string, data: T",
     .attrs = "T: list(type) >= 1",
     .shape = save_two_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "SaveSlices",
     .inputs = "filename: string, tensor_names: string, shapes_and_slices: string, data: T",
     .attrs = "T: list(type) >= 1",
     .shape = save_three_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "Restore",
     .inputs = "file_pattern: string, tensor_name: string",
     .outputs = "tensor: dt",
     .attrs = "dt: type; preferred_shard: int = -1",
     .shape = scalars_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "RestoreSlice",
     .inputs = "file_pattern: string, tensor_name: string, shape_and_slice: string",
     .outputs = "tensor: dt",
     .attrs = "dt: type; preferred_shard: int = -1",
     .shape = restore_slice_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "ShardedFilename",
     .inputs = "basename: string, shard: int32, num_shards: int32",
     .outputs = "filename: string",
     .shape = sharded_shape,
     .grad = leat_grad_missing},
    {.name = "ShardedFilespec",
     .inputs = "basename: string, num_shards: int32",
     .outputs = "filename: string",
     .shape = sharded_shape,
     .grad = leat_grad_missing},
    {0},
};
