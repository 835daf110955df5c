/* reduce_grad.h -- what the gradients of reductions share. */
#ifndef LEAT_OPS_REDUCE_GRAD_H
#define LEAT_OPS_REDUCE_GRAD_H

#include <leat/extend.h>

/* Two shapes as int32 vectors: x's with ones for the reduced dimensions, and how often each of its
 * dimensions is repeated in x. */
typedef struct leat_reduced {
    leat_out kept, times;
} leat_reduced;

leat_status leat_reduced_shape(leat_out x, leat_out axes, leat_reduced *out) LEAT_MUST_CHECK;

leat_status leat_prod_grad(leat_grad *g) LEAT_MUST_CHECK;

#endif
