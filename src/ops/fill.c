/* fill.c -- Fill, ZerosLike, OnesLike: tensors of one value. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status fill_shape(leat_infer *c)
{
    leat_shape unused, out;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &unused));
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    const leat_tensor *t = leat_infer_value(c, 0);
    for (int64_t i = 0; t && i < t->count; i++)
        LEAT_REQUIRE(leat_int_at(t, i) >= 0, INVALID_ARGUMENT, "Fill dimensions must be >= 0");
    LEAT_TRY(leat_infer_value_shape(c, 0, &out));
    leat_infer_out(c, 0, out);
    leat_infer_pass_handle(c, 1, 0);
    return NULL;
}

static leat_status fill_grad(leat_grad *g)
{
    return leat_grad_in(g, 1, leat_reduce_sum(leat_grad_out(g, 0)));
}

const leat_op_def leat_ops_fill[] = {
    {.name = "Fill",
     .inputs = "dims: index_type, value: T",
     .outputs = "output: T",
     .attrs = "T: type; index_type: {int32, int64} = DT_INT32",
     .shape = fill_shape,
     .grad = fill_grad},
    {.name = "ZerosLike",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: type",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_none},
    {.name = "OnesLike",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, int64, "
              "complex64, complex128, bool}",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_none},
    {0},
};
