/* slice.h -- parts of tensors: a start and a length in each dimension. Checkpoints hold the parts
 * of partitioned variables under keys made of the whole tensor's name and the slice. */
#ifndef LEAT_IO_SLICE_H
#define LEAT_IO_SLICE_H

#include <leat/tensor.h>
#include "core/strbuf.h"
#include "proto/checkpoint.pb-c.h"

typedef struct leat_slice {
    int rank;
    int64_t start[LEAT_MAX_RANK];
    int64_t length[LEAT_MAX_RANK]; /* -1: all of the dimension; its start is 0 */
} leat_slice;

leat_slice leat_slice_all(int rank);
bool leat_slice_equal(const leat_slice *a, const leat_slice *b);
leat_text leat_slice_text(const leat_slice *s); /* "0,5:-" */
/* The shape of the part of a tensor of this shape; INTERNAL if the part does not fit the shape. */
leat_status leat_slice_shape(const leat_slice *s, const leat_shape *whole,
                             leat_shape *out) LEAT_MUST_CHECK;
/* True if the part is the whole tensor. */
bool leat_slice_is_all(const leat_slice *s, const leat_shape *whole);
/* The intersection of two parts; false if it is empty. */
bool leat_slice_intersect(const leat_slice *a, const leat_slice *b, leat_slice *out);

/* "10 4 0,5:-": the shape of the whole tensor, then the part. */
leat_status leat_slice_parse(const char *text, size_t n, leat_shape *whole, leat_slice *slice,
                             leat_shape *part) LEAT_MUST_CHECK;

leat_status leat_slice_from_proto(const Leat__TensorSliceProto *p, leat_slice *out) LEAT_MUST_CHECK;
/* Gives a message; free with leat_proto_free. */
Leat__TensorSliceProto *leat_slice_to_proto(const leat_slice *s);
/* Adds the key of a part: TensorFlow's ordered code of 0, the name, the rank and the extents. */
void leat_slice_key(const char *name, size_t n, const leat_slice *s, leat_strbuf *out);

/* Copies the intersection of two parts of one tensor from one to the other. Both slices fit the
 * whole tensor. */
leat_status leat_slice_copy(leat_dtype t, const leat_shape *whole, const leat_slice *from,
                            const void *src, const leat_slice *to, void *dst) LEAT_MUST_CHECK;

#endif
