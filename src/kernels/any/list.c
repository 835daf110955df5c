/* list.c -- every file of this folder that has kernels, a line each in list.inc. */
#include "runtime/kernel_int.h"

#define X(file) extern const leat_kernel_def leat_any_##file[];
#include "kernels/any/list.inc"
#undef X

const leat_kernel_def *const leat_any_kernel_lists[] = {
#define X(file) leat_any_##file,
#include "kernels/any/list.inc"
#undef X
    NULL,
};
