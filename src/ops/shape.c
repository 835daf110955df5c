/* shape.c -- Shape, ShapeN, Size, Rank: what is known of a tensor without looking at it. */
#include <leat/extend.h>

static leat_status shape_shape(leat_infer *c)
{
    for (int i = 0; i < leat_infer_inputs(c); i++)
        leat_infer_out(c, i, leat_shape(leat_infer_in(c, i).rank)); /* -1 if not known */
    return NULL;
}

const leat_op_def leat_ops_shape[] = {
    {.name = "Shape",
     .inputs = "input: T",
     .outputs = "output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = DT_INT32",
     .shape = shape_shape,
     .grad = leat_grad_none},
    {.name = "ShapeN",
     .inputs = "input: N * T",
     .outputs = "output: N * out_type",
     .attrs = "N: int >= 1; T: type; out_type: {int32, int64} = DT_INT32",
     .shape = shape_shape,
     .grad = leat_grad_none},
    {.name = "Size",
     .inputs = "input: T",
     .outputs = "output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = DT_INT32",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none},
    {.name = "Rank",
     .inputs = "input: T",
     .outputs = "output: int32",
     .attrs = "T: type",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none},
    {0},
};
