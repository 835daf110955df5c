/* rows.h -- the row function of an element-wise op, for kernels that compute several ops. */
#ifndef LEAT_KERNELS_CPU_ROWS_H
#define LEAT_KERNELS_CPU_ROWS_H

#include "kernels/cpu/row1.h"
#include "kernels/cpu/row2.h"

typedef struct leat_rows {
    leat_row1 one; /* fn is set in either one or two */
    leat_row2 two;
    bool same; /* for two operands: they must have the same shape */
} leat_rows;

/* The row functions of op's own kernel for the dtype T of n, which is that of n's last input.
 * INVALID_ARGUMENT if op is not element-wise. */
leat_status leat_rows_find(const leat_node *n, const char *op, leat_rows *out) LEAT_MUST_CHECK;

#endif
