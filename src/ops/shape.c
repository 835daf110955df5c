/* shape.c -- Shape, ShapeN, Size, Rank. */
#include <leat/extend.h>

static leat_status shape_shape(leat_infer *c)
{
    for (int i = 0; i < leat_infer_inputs(c); i++)
        leat_infer_out(c, i, leat_shape(leat_infer_in(c, i).rank)); /* -1 if not known */
    return NULL;
}

static leat_status shape_value(leat_infer *c, int i, leat_shape *out)
{
    *out = leat_infer_in(c, i);
    return NULL;
}

static leat_status size_value(leat_infer *c, int i, leat_shape *out)
{
    leat_shape s = leat_infer_in(c, i);
    *out = leat_shape(leat_shape_count(&s));
    return NULL;
}

static leat_status rank_value(leat_infer *c, int i, leat_shape *out)
{
    *out = leat_shape(leat_infer_in(c, i).rank);
    return NULL;
}

const leat_op_def leat_ops_shape[] = {
    {.name = "Shape",
     .inputs = "input: T",
     .outputs = "output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = DT_INT32",
     .shape = shape_shape,
     .grad = leat_grad_none,
     .role = LEAT_ROLE_SHAPE,
     .value = shape_value},
    {.name = "ShapeN",
     .inputs = "input: N * T",
     .outputs = "output: N * out_type",
     .attrs = "N: int >= 1; T: type; out_type: {int32, int64} = DT_INT32",
     .shape = shape_shape,
     .grad = leat_grad_none,
     .role = LEAT_ROLE_SHAPE,
     .value = shape_value},
    {.name = "Size",
     .inputs = "input: T",
     .outputs = "output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = DT_INT32",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none,
     .role = LEAT_ROLE_SIZE,
     .value = size_value},
    {.name = "Rank",
     .inputs = "input: T",
     .outputs = "output: int32",
     .attrs = "T: type",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none,
     .role = LEAT_ROLE_RANK,
     .value = rank_value},
    {0},
};
