/* handles.h -- resources that only their handles refer to. */
#ifndef LEAT_DATASET_HANDLES_H
#define LEAT_DATASET_HANDLES_H

#include "kernels/dataset/iteration.h"

/* Sets output i to a handle of r, and output 1, if there is one, to a deleter, which is empty: the
 * resource ends with its last handle. Takes r. */
leat_status leat_anonymous_handle(leat_kernel *k, int i, const char *name,
                                  leat_resource *r) LEAT_MUST_CHECK;
/* The resource behind input i, for handles of this kind and for others. Shares it. */
leat_status leat_anonymous_resource(leat_kernel *k, int i, const leat_resource_type *type,
                                    leat_resource **out) LEAT_MUST_CHECK;

typedef struct leat_seed_generator {
    leat_resource base;
    leat_seeds *seeds;
} leat_seed_generator;
extern const leat_resource_type leat_seed_generator_type;

#endif
