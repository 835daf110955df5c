/* window.h -- sizes of what windows that slide over a dimension give, for shape functions. */
#ifndef LEAT_OPS_WINDOW_H
#define LEAT_OPS_WINDOW_H

#include "ops/infer_util.h"

/* The number of windows over a dimension of size `in` (-1: not known), each `window` elements long
 * and `stride` after the one before. With SAME padding there are as many as strides are begun. */
static inline leat_status leat_dim_windows(int64_t in, int64_t window, int64_t stride, bool same,
                                           int64_t *out)
{
    LEAT_REQUIRE(stride > 0, INVALID_ARGUMENT, "Stride must be > 0, but got %" PRId64, stride);
    LEAT_REQUIRE(window > 0, INVALID_ARGUMENT, "Sliding window must be > 0, but got %" PRId64,
                 window);
    int64_t rest = in;
    if (!same)
        LEAT_TRY(leat_dim_sub(in, window, &rest));
    LEAT_TRY(leat_dim_add(rest, same ? stride - 1 : stride, &rest));
    *out = rest < 0 ? -1 : rest / stride;
    return NULL;
}

/* The n values of an attribute that is a list of int32. `words` stands in the error message. */
static inline leat_status leat_infer_int32s(leat_infer *c, const char *attr, const char *words,
                                            int n, int64_t *out)
{
    int count;
    const int64_t *v = leat_node_ints(leat_infer_node(c), attr, &count);
    LEAT_REQUIRE(count == n, INVALID_ARGUMENT, "%s attribute to contain %d values, but got: %d",
                 words, n, count);
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(v[i] >= INT32_MIN && v[i] <= INT32_MAX, INVALID_ARGUMENT,
                     "Attr %s has value %" PRId64 " out of range for an int32", attr, v[i]);
        out[i] = v[i];
    }
    return NULL;
}

#endif
