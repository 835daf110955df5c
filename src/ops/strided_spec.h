/* strided_spec.h -- what StridedSlice's begin, end, strides and masks mean for a given shape. */
#ifndef LEAT_OPS_STRIDED_SPEC_H
#define LEAT_OPS_STRIDED_SPEC_H

#include <leat/extend.h>

typedef struct leat_strided_masks {
    int64_t begin, end, ellipsis, new_axis, shrink_axis;
} leat_strided_masks;

/* For each dimension of the input: the elements begin, begin + stride, ... , size of them. */
typedef struct leat_strided_spec {
    int rank;
    int64_t begin[LEAT_MAX_RANK], stride[LEAT_MAX_RANK];
    int64_t size[LEAT_MAX_RANK]; /* -1: not known */
    leat_shape out;              /* the output's shape, with axes removed and added */
    bool whole;                  /* the output is the whole input, in order */
} leat_strided_spec;

leat_strided_masks leat_strided_masks_of(const leat_node *n);
/* begin and end may be NULL, and dims of the shape -1, while a graph is built. INVALID_ARGUMENT:
 * "slice index 5 of dimension 0 out of bounds.", "strides[0] must be non-zero" ... */
leat_status leat_strided_resolve(const leat_shape *in, const leat_tensor *begin,
                                 const leat_tensor *end, const leat_tensor *strides,
                                 const leat_strided_masks *masks,
                                 leat_strided_spec *out) LEAT_MUST_CHECK;

#endif
