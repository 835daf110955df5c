/* level_rows.h -- leat/rows.h as this folder has it.
 *
 * This folder is compiled once for each level of the processor (kernels/levels.c), and has the
 * functions of leat/rows.h for its level under names of its own. Programs call those of levels.c,
 * which call the functions of the level in use.
 */
#ifndef LEAT_KERNELS_CPU_LEVEL_ROWS_H
#define LEAT_KERNELS_CPU_LEVEL_ROWS_H

#define leat_row1_run leat_cpu_row1_run
#define leat_row1_bind leat_cpu_row1_bind
#define leat_row2_run leat_cpu_row2_run
#define leat_row2_run_same leat_cpu_row2_run_same
#define leat_row2_bind leat_cpu_row2_bind
#define leat_apply_init leat_cpu_apply_init
#define leat_apply_run leat_cpu_apply_run

#include <leat/rows.h>

#endif
