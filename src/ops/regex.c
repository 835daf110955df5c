/* regex.c -- StaticRegexFullMatch, by which TensorFlow 2's savers check file names. */
#include <leat/extend.h>

const leat_op_def leat_ops_regex[] = {
    {.name = "StaticRegexFullMatch",
     .inputs = "input: string",
     .outputs = "output: bool",
     .attrs = "pattern: string",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {0},
};
