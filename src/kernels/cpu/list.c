/* list.c -- every file of this room that has kernels, a line each in list.inc. */
#include "kernels/cpu/cpu.h"

#define X(file) extern const leat_kernel_def leat_cpu_##file[];
#include "kernels/cpu/list.inc"
#undef X

const leat_kernel_def *const leat_cpu_kernel_lists[] = {
#define X(file) leat_cpu_##file,
#include "kernels/cpu/list.inc"
#undef X
    NULL,
};
