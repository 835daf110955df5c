/* unique.c -- Unique and similar ops, which find duplicates; ListDiff. */
#include "ops/infer_util.h"

static leat_status unique_shape(leat_infer *c)
{
    leat_shape x;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &x));
    leat_infer_out(c, 0, leat_shape(-1));
    leat_infer_out(c, 1, x);
    leat_infer_out(c, 2, leat_shape(-1));
    return NULL;
}

/* With an axis, y has the shape of x except along that axis, and idx has the length of the axis. */
static leat_status unique_v2_shape(leat_infer *c)
{
    leat_shape x = leat_infer_in(c, 0), n = leat_infer_in(c, 1);
    int64_t axis = 0;
    const leat_tensor *t = leat_infer_value(c, 1);
    leat_infer_out(c, 1, leat_shape(-1));
    leat_infer_out(c, 2, leat_shape(-1));
    if (!t || x.rank < 0 || n.rank != 1 || t->count > 1)
        return NULL;
    if (t->count == 1) {
        axis = leat_int_at(t, 0) + (leat_int_at(t, 0) < 0 ? x.rank : 0);
        LEAT_REQUIRE(axis >= 0 && axis < x.rank, INVALID_ARGUMENT, "axis has to be between [0, %d)",
                     x.rank);
    }
    if (axis >= x.rank)
        return NULL;
    leat_infer_out(c, 1, leat_shape(x.dim[axis]));
    x.dim[axis] = -1;
    leat_infer_out(c, 0, x);
    return NULL;
}

const leat_op_def leat_ops_unique[] = {
    {.name = "Unique",
     .inputs = "x: T",
     .outputs = "y: T, idx: out_idx",
     .attrs = "T: type; out_idx: {int32, int64} = DT_INT32",
     .shape = unique_shape,
     .grad = leat_grad_missing},
    {.name = "UniqueWithCounts",
     .inputs = "x: T",
     .outputs = "y: T, idx: out_idx, count: out_idx",
     .attrs = "T: type; out_idx: {int32, int64} = DT_INT32",
     .shape = unique_shape,
     .grad = leat_grad_missing},
    {.name = "UniqueV2",
     .inputs = "x: T, axis: Taxis",
     .outputs = "y: T, idx: out_idx",
     .attrs = "T: type; Taxis: {int32, int64} = DT_INT64; out_idx: {int32, int64} = DT_INT32",
     .shape = unique_v2_shape,
     .grad = leat_grad_missing},
    {.name = "UniqueWithCountsV2",
     .inputs = "x: T, axis: Taxis",
     .outputs = "y: T, idx: out_idx, count: out_idx",
     .attrs = "T: type; Taxis: {int32, int64} = DT_INT64; out_idx: {int32, int64} = DT_INT32",
     .shape = unique_v2_shape,
     .grad = leat_grad_missing},
    {.name = "ListDiff",
     .inputs = "x: T, y: T",
     .outputs = "out: T, idx: out_idx",
     .attrs = "T: type; out_idx: {int32, int64} = DT_INT32",
     .shape = leat_shape_two_vectors,
     .grad = leat_grad_missing},
    {0},
};
