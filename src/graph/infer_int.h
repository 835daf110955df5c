/* infer_int.h -- constants seen while a graph is built. */
#ifndef LEAT_INFER_INT_H
#define LEAT_INFER_INT_H

#include <leat/extend.h>

/* The value of a Const (also behind Identity), else NULL. Borrowed. */
const leat_tensor *leat_const_value(leat_out x);
/* The integer vector x read as a shape, as far as it can be known without running the graph. */
leat_status leat_const_shape(leat_out x, leat_shape *out) LEAT_MUST_CHECK;

#endif
