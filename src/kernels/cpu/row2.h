/* row2.h -- element-wise kernels of two operands that broadcast against each other, as numpy does.
 *
 * Dimensions are merged as far as both operands allow, so that equal shapes, a scalar with a
 * tensor, a row or a column with a matrix need one or two loops. The inner loop is a row function
 * (leat/rows.h): n elements, of each operand either n contiguous elements or one for all.
 */
#ifndef LEAT_KERNELS_CPU_ROW2_H
#define LEAT_KERNELS_CPU_ROW2_H

#include "kernels/cpu/arith.h"

typedef struct leat_broadcast {
    int rank;                      /* after merging; at least 1 */
    int64_t dim[LEAT_MAX_RANK];    /* of the output, outer first */
    int64_t a_step[LEAT_MAX_RANK]; /* elements of a to the next of this dimension, 0: the same */
    int64_t b_step[LEAT_MAX_RANK];
    int64_t count; /* elements of the output */
    leat_shape out;
} leat_broadcast;

/* INVALID_ARGUMENT: "Incompatible shapes: [2] vs. [3]" */
leat_status leat_broadcast_init(leat_broadcast *c, const leat_shape *a,
                                const leat_shape *b) LEAT_MUST_CHECK;

/* Runs the row function on tensors of a kernel that does more than this; z has the shape c->out. */
leat_status leat_row2_apply(leat_kernel *k, const leat_row2 *r, const leat_broadcast *c,
                            const leat_tensor *a, const leat_tensor *b,
                            leat_tensor *z) LEAT_MUST_CHECK;
leat_status leat_row2_check_same(const char *name, const char *op, const leat_shape *a,
                                 const leat_shape *b) LEAT_MUST_CHECK;

#endif
