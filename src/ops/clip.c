/* clip.c -- ClipByValue. leat_clip_by_value is made of Minimum and Maximum, as in TensorFlow, and
 * has their gradients. */
#include <leat/extend.h>

const leat_op_def leat_ops_clip[] = {
    {.name = "ClipByValue",
     .inputs = "t: T, clip_value_min: T, clip_value_max: T",
     .outputs = "output: T",
     .attrs = "T: numbertype",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {0},
};
