/* infer_util.h -- helpers of shape functions. */
#ifndef LEAT_OPS_INFER_UTIL_H
#define LEAT_OPS_INFER_UTIL_H

#include <inttypes.h>
#include <leat/extend.h>
#include <string.h>

#include "core/buffer.h"
#include "core/checked.h"

static inline int64_t leat_int_at(const leat_tensor *t, int64_t i)
{
    return t->dtype == LEAT_INT32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

/* Input i, an int32 or int64 of one element, if it is constant. */
static inline bool leat_infer_int(leat_infer *c, int i, int64_t *out)
{
    const leat_tensor *t = leat_infer_value(c, i);
    if (!t || t->count != 1)
        return false;
    *out = leat_int_at(t, 0);
    return true;
}

/* The least rank of a shape that has this axis, counted from the front or, if negative, from the
 * back. */
static inline int64_t leat_axis_rank(int64_t axis)
{
    return axis < 0 ? -(axis + 1) + (axis != INT64_MIN) : axis + (axis != INT64_MAX);
}

/* Sums and products of dims; -1 if one is not known. */
static inline leat_status leat_dim_add(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0) {
        *out = a == 0 ? b : b == 0 ? a : -1;
        return NULL;
    }
    LEAT_REQUIRE(leat_add_ok(a, b, out), INVALID_ARGUMENT,
                 "Dimension size overflow from adding %" PRId64 " and %" PRId64, a, b);
    return NULL;
}
static inline leat_status leat_dim_sub(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0) {
        *out = b == 0 ? a : -1;
        return NULL;
    }
    LEAT_REQUIRE(a >= b, INVALID_ARGUMENT,
                 "Negative dimension size caused by subtracting %" PRId64 " from %" PRId64, b, a);
    *out = a - b;
    return NULL;
}
static inline leat_status leat_dim_mul(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0) {
        *out = a == 0 || b == 0 ? 0 : a == 1 ? b : b == 1 ? a : -1;
        return NULL;
    }
    LEAT_REQUIRE(leat_mul_ok(a, b, out), INVALID_ARGUMENT,
                 "Negative dimension size caused by overflow when multiplying %" PRId64
                 " and %" PRId64,
                 a, b);
    return NULL;
}

/* prefix followed by dimensions [from, ...) of s; unknown if either is, or if the rank is too
 * high. */
static inline leat_shape leat_shape_concat(const leat_shape *prefix, const leat_shape *s, int from)
{
    if (prefix->rank < 0 || s->rank < 0 || prefix->rank + s->rank - from > LEAT_MAX_RANK)
        return leat_shape_unknown();
    leat_shape r = *prefix;
    memcpy(r.dim + r.rank, s->dim + from, sizeof(*r.dim) * (size_t)(s->rank - from));
    r.rank += s->rank - from;
    return r;
}

/* Checks the rank of s: gives a copy of s, with unknown dimensions if the rank was unknown. */
static inline leat_status leat_shape_with_rank(const leat_shape *s, int64_t rank, leat_shape *out)
{
    LEAT_REQUIRE(s->rank < 0 || s->rank == rank, INVALID_ARGUMENT,
                 "Shape must be rank %" PRId64 " but is rank %d", rank, s->rank);
    *out = s->rank < 0 ? leat_shape_unknown_dims((int)rank) : *s;
    return NULL;
}

/* Checks that s begins with prefix; both may be partly known. */
static inline leat_status leat_shape_merge_prefix(const leat_shape *s, const leat_shape *prefix)
{
    if (s->rank < 0 || prefix->rank < 0)
        return NULL;
    LEAT_REQUIRE(s->rank >= prefix->rank, INVALID_ARGUMENT,
                 "Shape must be at least rank %d but is rank %d", prefix->rank, s->rank);
    for (int i = 0; i < prefix->rank; i++) {
        int64_t unused;
        LEAT_TRY(leat_dim_merge(s->dim[i], prefix->dim[i], &unused));
    }
    return NULL;
}

/* scatter.c: checks that updates fit indices and the tensor they are scattered to, as far as
 * known. */
leat_status leat_shape_scatter_nd(const leat_shape *var, const leat_shape *indices,
                                  const leat_shape *updates) LEAT_MUST_CHECK;

/* reduce.c, segment.c: shape functions of reductions, and of those by unsorted segments. */
leat_status leat_shape_reduction(leat_infer *c) LEAT_MUST_CHECK;
leat_status leat_shape_unsorted_segment(leat_infer *c) LEAT_MUST_CHECK;

/* Shape function: two vectors in, two vectors of unknown sizes out. */
static inline leat_status leat_shape_two_vectors(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &unused));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    leat_infer_out(c, 0, leat_shape(-1));
    leat_infer_out(c, 1, leat_shape(-1));
    return NULL;
}

/* The dtype and shape behind a handle are passed from input to output. */
static inline void leat_infer_pass_handle(leat_infer *c, int in, int out)
{
    leat_dtype t;
    leat_shape s;
    if (leat_infer_in_handle(c, in, &t, &s))
        leat_infer_out_handle(c, out, t, s);
}

#endif
