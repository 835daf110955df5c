/* list.c -- every file of this folder that has kernels, a line each in list.inc. This folder is
 * compiled once for each level of the processor (src/kernels/levels.c); LEAT_CPU_LEVEL is the one
 * at hand. */
#include "kernels/cpu/level_rows.h"
#include "kernels/levels.h"

#define X(file) extern const leat_kernel_def leat_cpu_##file[];
#include "kernels/cpu/list.inc"
#undef X

static const leat_kernel_def *const lists[] = {
#define X(file) leat_cpu_##file,
#include "kernels/cpu/list.inc"
#undef X
    NULL,
};

const leat_cpu_kernels LEAT_CPU_KERNELS(LEAT_CPU_LEVEL) = {
    .lists = lists,
    .row1_run = leat_row1_run,
    .row1_bind = leat_row1_bind,
    .row2_run = leat_row2_run,
    .row2_run_same = leat_row2_run_same,
    .row2_bind = leat_row2_bind,
    .apply_init = leat_apply_init,
    .apply_run = leat_apply_run,
};
