/* map_stage.c -- staging maps: tuples of tensors that one run leaves for a later one under a key,
 * an int64. All ops whose nodes have the same container and shared_name use the same map. */
#include "ops/infer_util.h"

#define MAP(types)                                                                                 \
    "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type)" types                 \
    "; container: string = ''; shared_name: string = ''"
#define STAGE                                                                                      \
    "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); "                     \
    "fake_dtypes: list(type) >= 1; container: string = ''; shared_name: string = ''"

/* Both kinds of an op; the outputs, where there are some, have unknown shapes. */
#define BOTH(op, ...)                                                                              \
    {.name = "Map" op,                                                                             \
     .shape = leat_shape_any,                                                                      \
     .grad = leat_grad_none,                                                                       \
     .flags = LEAT_OP_STATEFUL,                                                                    \
     __VA_ARGS__},                                                                                 \
    {                                                                                              \
        .name = "OrderedMap" op, .shape = leat_shape_any, .grad = leat_grad_none,                  \
        .flags = LEAT_OP_STATEFUL, __VA_ARGS__                                                     \
    }
#define BOTH_SIZES(op)                                                                             \
    {.name = "Map" op,                                                                             \
     .outputs = "size: int32",                                                                     \
     .attrs = MAP(""),                                                                             \
     .shape = leat_shape_scalar,                                                                   \
     .grad = leat_grad_none,                                                                       \
     .flags = LEAT_OP_STATEFUL},                                                                   \
    {                                                                                              \
        .name = "OrderedMap" op, .outputs = "size: int32", .attrs = MAP(""),                       \
        .shape = leat_shape_scalar, .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL              \
    }

const leat_op_def leat_ops_map_stage[] = {
    BOTH("Stage", .inputs = "key: int64, indices: int32, values: fake_dtypes", .attrs = STAGE),
    BOTH("Unstage", .inputs = "key: int64, indices: int32", .outputs = "values: dtypes",
         .attrs = MAP(" >= 1")),
    BOTH("UnstageNoKey", .inputs = "indices: int32", .outputs = "key: int64, values: dtypes",
         .attrs = MAP(" >= 1")),
    BOTH("Peek", .inputs = "key: int64, indices: int32", .outputs = "values: dtypes",
         .attrs = MAP(" >= 1")),
    BOTH_SIZES("Size"),
    BOTH_SIZES("IncompleteSize"),
    BOTH("Clear", .attrs = MAP("")),
    {0},
};
