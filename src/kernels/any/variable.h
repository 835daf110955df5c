/* variable.h -- the kernels of VariableV2, Assign and IsVariableInitialized. */
#ifndef LEAT_KERNELS_ANY_VARIABLE_H
#define LEAT_KERNELS_ANY_VARIABLE_H

#include "runtime/kernel_int.h"

enum { LEAT_VARIABLE_STATE = sizeof(void *) };
leat_status leat_variable_kernel_run(leat_kernel *k);
void leat_variable_kernel_release(void *state);
/* A row of a list of kernels: VariableV2 or Variable, of these dtypes. */
#define LEAT_VARIABLE_KERNEL(name, types)                                                          \
    {                                                                                              \
        .op = name, .where = {{"dtype", types}}, .run = leat_variable_kernel_run,                  \
        .state_size = LEAT_VARIABLE_STATE, .release = leat_variable_kernel_release                 \
    }

leat_status leat_assign_run(leat_kernel *k);
/* Its output is in the host's memory. */
leat_status leat_is_initialized_run(leat_kernel *k);

#endif
