/* state.c -- variables behind references. As in TensorFlow, a variable of integers is the CPU's:
 * integers count steps and make shapes, which the host wants to know. */
#include "kernels/any/variable.h"
#include "kernels/opencl/opencl.h"

const leat_kernel_def leat_opencl_state[] = {
    LEAT_VARIABLE_KERNEL("VariableV2", LEAT_T(FLOAT)),
    LEAT_VARIABLE_KERNEL("Variable", LEAT_T(FLOAT)),
    {.op = "IsVariableInitialized",
     .where = {{"dtype", LEAT_T(FLOAT)}},
     .run = leat_is_initialized_run,
     .host = "is_initialized"},
    {.op = "Assign", .where = {{"T", LEAT_T(FLOAT)}}, .run = leat_assign_run},
    {0},
};
