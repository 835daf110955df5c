/* infer_int.h -- values of tensors that are known while a graph is built. */
#ifndef LEAT_INFER_INT_H
#define LEAT_INFER_INT_H

#include <leat/extend.h>

enum {
    LEAT_INFER_DEPTH = 16, /* how many nodes are followed to find the value of a shape */
    LEAT_INFER_VALUES = 4  /* inputs for which leat_infer_value computes a value */
};

struct leat_infer {
    leat_node *node;
    int depth; /* how many more nodes may be followed; LEAT_INFER_DEPTH for a shape function */
    leat_tensor *values[LEAT_INFER_VALUES];
    int n_values;
};

/* The value of a Const (also behind Identity), else NULL. Borrowed. */
const leat_tensor *leat_const_value(leat_out x);
/* The integer vector x read as a shape, as far as it is known without running the graph. */
leat_status leat_const_shape(leat_out x, int depth, leat_shape *out) LEAT_MUST_CHECK;
/* The same for a vector or a scalar, which is read as a shape of one dimension. */
leat_status leat_const_known(leat_out x, int depth, leat_shape *out) LEAT_MUST_CHECK;

#endif
