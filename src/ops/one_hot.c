/* one_hot.c -- OneHot: on_value at the index, off_value elsewhere. */
#include "ops/infer_util.h"

static leat_status one_hot_shape(leat_infer *c)
{
    leat_shape ix = leat_infer_in(c, 0), s;
    int64_t axis = leat_node_int(leat_infer_node(c), "axis"), depth = -1;
    LEAT_REQUIRE(axis >= -1, INVALID_ARGUMENT, "axis must be >= -1");
    LEAT_TRY(leat_infer_rank(c, 1, 0, &s));
    if (leat_infer_int(c, 1, &depth))
        LEAT_REQUIRE(depth >= 0, INVALID_ARGUMENT,
                     "Dimension size, given by scalar input 1, must be non-negative but is "
                     "%" PRId64,
                     depth);
    if (ix.rank < 0 || ix.rank >= LEAT_MAX_RANK)
        return NULL;
    int at = (int)((axis % (ix.rank + 1) + ix.rank + 1) % (ix.rank + 1));
    s = leat_shape_make(at, ix.dim);
    s.dim[s.rank++] = depth;
    leat_infer_out(c, 0, leat_shape_concat(&s, &ix, at));
    return NULL;
}

const leat_op_def leat_ops_one_hot[] = {
    {.name = "OneHot",
     .inputs = "indices: TI, depth: int32, on_value: T, off_value: T",
     .outputs = "output: T",
     .attrs = "axis: int = -1; T: type; TI: {uint8, int32, int64} = DT_INT64",
     .shape = one_hot_shape,
     .grad = leat_grad_none},
    {0},
};
