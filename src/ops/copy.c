/* copy.c -- _CopyToHost and _CopyToDevice: between the host's memory and that of the device that a
 * node is on. runtime/copies.c adds them; no user writes these. */
#include <leat/extend.h>

const leat_op_def leat_ops_copy[] = {
    {.name = "_CopyToHost",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {.name = "_CopyToDevice",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type; keep: bool = false", /* keep: the input is the same in every step */
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {0},
};
