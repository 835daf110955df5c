/* list.c -- every file of this folder that defines ops, a line each in list.inc. */
#include <stddef.h>

#include "graph/op_info.h"

#define X(file) extern const leat_op_def leat_ops_##file[];
#include "ops/list.inc"
#undef X

const leat_op_def *const leat_op_lists[] = {
#define X(file) leat_ops_##file,
#include "ops/list.inc"
#undef X
    NULL,
};
