/* fused_end.h -- what a product does to its result, row by row, in place of nodes that the fuse
 * pass removed: a bias and an element-wise op of one operand. */
#ifndef LEAT_KERNELS_CPU_FUSED_END_H
#define LEAT_KERNELS_CPU_FUSED_END_H

#include "kernels/cpu/arith.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/rows.h"

typedef struct leat_fused_end {
    bool bias; /* input 2 is added to each row */
    leat_gemm_act act;
    leat_row1_fn row; /* applied to the result; NULL: none */
} leat_fused_end;

/* By the attributes fused_ops and num_args. */
leat_status leat_fused_end_init(const leat_node *n, leat_fused_end *end) LEAT_MUST_CHECK;
/* Adds the end, which must live as long as the product runs, to the epilogue of a product whose
 * result has this shape. */
leat_status leat_fused_end_use(leat_kernel *k, const leat_fused_end *end, const leat_shape *result,
                               leat_gemm_epilogue *e) LEAT_MUST_CHECK;

#endif
