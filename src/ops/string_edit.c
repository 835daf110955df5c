/* string_edit.c -- a string from a string: StringLower, StringUpper, StringStrip, Substr,
 * EncodeBase64, DecodeBase64. */
#include "ops/infer_util.h"

static leat_status substr_shape(leat_infer *c)
{
    leat_shape pos = leat_infer_in(c, 1), len = leat_infer_in(c, 2), unused;
    if (len.rank >= 0)
        LEAT_TRY(leat_infer_rank(c, 1, len.rank, &unused));
    for (int i = 0; i < pos.rank && len.rank >= 0; i++)
        LEAT_REQUIRE(pos.dim[i] == len.dim[i], INVALID_ARGUMENT,
                     "pos and len shapes must match: %s vs. %s", leat_shape_show(&pos).s,
                     leat_shape_show(&len).s);
    return leat_shape_broadcast_binary(c);
}

#define EDIT(name_, attrs_)                                                                        \
    {                                                                                              \
        .name = name_, .inputs = "input: string", .outputs = "output: string", .attrs = attrs_,    \
        .shape = leat_shape_unchanged, .grad = leat_grad_missing                                   \
    }

const leat_op_def leat_ops_string_edit[] = {
    EDIT("StringLower", "encoding: string = ''"),
    EDIT("StringUpper", "encoding: string = ''"),
    EDIT("StringStrip", NULL),
    EDIT("EncodeBase64", "pad: bool = false"),
    EDIT("DecodeBase64", NULL),
    {.name = "Substr",
     .inputs = "input: string, pos: T, len: T",
     .outputs = "output: string",
     .attrs = "T: {int32, int64}; unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
     .shape = substr_shape,
     .grad = leat_grad_missing},
    {0},
};
