/* shapes.h -- helpers for tensors that hold shapes, axes and indices. */
#ifndef LEAT_CPU_SHAPES_H
#define LEAT_CPU_SHAPES_H

#include "kernels/cpu/cpu.h"

/* A shape from a vector of int32 or int64: "Dimension -1 must be >= 0", "... would have more than
 * 2**63 - 1 elements". */
leat_status leat_shape_from_tensor(const leat_tensor *t, leat_shape *out) LEAT_MUST_CHECK;
/* The number of elements of dims [begin, end). */
static inline int64_t leat_shape_product(const leat_shape *s, int begin, int end)
{
    int64_t n = 1; /* A tensor's does not overflow: see leat_shape_count. */
    for (int i = begin; i < end; i++)
        n *= s->dim[i];
    return n;
}
/* Whether s begins with prefix. */
bool leat_shape_starts_with(const leat_shape *s, const leat_shape *prefix);
/* prefix followed by dims [from, ...) of s; INVALID_ARGUMENT if the rank is too high. */
leat_status leat_shape_join(const leat_shape *prefix, const leat_shape *s, int from,
                            leat_shape *out) LEAT_MUST_CHECK;
/* The element of x that is broadcast to element `flat` of a shape. */
int64_t leat_broadcast_at(const leat_shape *out, const leat_shape *x, int64_t flat);
/* Integers as text, "1,2,3" if between is ",", for messages; at most as much as fits. */
leat_text leat_ints_show(const leat_tensor *t, const char *between);

#endif
