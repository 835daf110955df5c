/* row1.h -- element-wise kernels of one operand: internals beyond leat/rows.h. */
#ifndef LEAT_KERNELS_CPU_ROW1_H
#define LEAT_KERNELS_CPU_ROW1_H

#include "kernels/cpu/arith.h"

/* Runs the row function on tensors of a kernel that does more than this; y has x's shape. */
void leat_row1_apply(leat_kernel *k, const leat_row1 *r, const leat_tensor *x, leat_tensor *y);

#endif
