/* levels.h -- selects the CPU kernels that this process uses: those of one level of the
 * processor. */
#ifndef LEAT_KERNELS_LEVELS_H
#define LEAT_KERNELS_LEVELS_H

#include <leat/rows.h>

#include "runtime/kernel_int.h"

/* What a level gives to the rest of the library: the one symbol of the level that is not local to
 * it. cpu/list.c defines it. */
typedef struct leat_cpu_kernels {
    /* NULL-ended; each entry is an array that ends with a kernel without an op. */
    const leat_kernel_def *const *lists;
    /* The functions of leat/rows.h, for kernels of programs. */
    leat_status (*row1_run)(leat_kernel *k);
    void (*row1_bind)(const leat_node *n, const leat_row1_fn *fns, double unit_ns, void *state);
    leat_status (*row2_run)(leat_kernel *k);
    leat_status (*row2_run_same)(leat_kernel *k);
    void (*row2_bind)(const leat_node *n, const leat_row2_fn *fns, double unit_ns,
                      const char *error, void *state);
    leat_status (*apply_init)(const leat_node *n, void *state);
    leat_status (*apply_run)(leat_kernel *k);
} leat_cpu_kernels;
#define LEAT_CPU_KERNELS(level) LEAT_CPU_KERNELS_(level)
#define LEAT_CPU_KERNELS_(level) leat_cpu_kernels_##level

/* The kernels of the selected level; of the lowest if none could be selected. */
const leat_kernel_def *const *leat_cpu_kernel_lists(void);
const char *leat_cpu_level(void); /* "x86-64-v3"; "none" if none could be selected */
/* FAILED_PRECONDITION: the processor has none of the levels, or not the one that LEAT_CPU names. */
leat_status leat_cpu_level_check(void) LEAT_MUST_CHECK;

#endif
