/* string.c -- StringJoin, AsString, StringToNumber, StringLength. */
#include <leat/extend.h>

/* Scalars fit any shape; the other inputs must have one shape. */
static leat_status join_shape(leat_infer *c)
{
    leat_shape out = leat_shape_unknown();
    bool scalars = true;
    for (int i = 0; i < leat_infer_inputs(c); i++) {
        leat_shape s = leat_infer_in(c, i);
        scalars &= s.rank == 0;
        if (s.rank > 0)
            LEAT_TRY(leat_shape_merge(&out, &s, &out));
    }
    leat_infer_out(c, 0, scalars ? leat_shape() : out);
    return NULL;
}

const leat_op_def leat_ops_string[] = {
    {.name = "StringJoin",
     .inputs = "inputs: N * string",
     .outputs = "output: string",
     .attrs = "N: int >= 1; separator: string = ''",
     .shape = join_shape,
     .grad = leat_grad_missing},
    {.name = "AsString",
     .inputs = "input: T",
     .outputs = "output: string",
     .attrs = "T: {int8, int16, int32, int64, complex64, complex128, float, double, bool}; "
              "precision: int = -1; scientific: bool = false; shortest: bool = false; "
              "width: int = -1; fill: string = ''",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {.name = "StringToNumber",
     .inputs = "string_tensor: string",
     .outputs = "output: out_type",
     .attrs = "out_type: {float, double, int32, int64} = DT_FLOAT",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_none},
    {.name = "StringLength",
     .inputs = "input: string",
     .outputs = "output: int32",
     .attrs = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {0},
};
