/* stage.c -- staging areas: tuples of tensors that one run leaves for a later one, first in, first
 * out. All ops whose nodes have the same container and shared_name use the same area. */
#include "ops/infer_util.h"

#define AREA(types)                                                                                \
    "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type)" types                 \
    "; container: string = ''; shared_name: string = ''"

const leat_op_def leat_ops_stage[] = {
    {.name = "Stage",
     .inputs = "values: dtypes",
     .attrs = AREA(" >= 1"),
     .shape = leat_shape_any,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "Unstage",
     .outputs = "values: dtypes",
     .attrs = AREA(" >= 1"),
     .shape = leat_shape_any,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "StagePeek",
     .inputs = "index: int32",
     .outputs = "values: dtypes",
     .attrs = AREA(" >= 1"),
     .shape = leat_shape_any,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "StageSize",
     .outputs = "size: int32",
     .attrs = AREA(""),
     .shape = leat_shape_scalar,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "StageClear",
     .attrs = AREA(""),
     .shape = leat_shape_any,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
