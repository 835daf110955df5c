/* window.h -- how windows slide over a dimension: the sizes of what convolutions and pools give. */
#ifndef LEAT_OPS_WINDOW_H
#define LEAT_OPS_WINDOW_H

#include "ops/infer_util.h"

typedef enum leat_padding {
    LEAT_PADDING_SAME,    /* as many outputs as strides fit, zeros on both sides */
    LEAT_PADDING_VALID,   /* no padding */
    LEAT_PADDING_EXPLICIT /* by the attribute explicit_paddings */
} leat_padding;

static inline leat_padding leat_padding_of(const leat_node *n)
{
    const char *s = leat_node_string(n, "padding");
    return !strcmp(s, "SAME")    ? LEAT_PADDING_SAME
           : !strcmp(s, "VALID") ? LEAT_PADDING_VALID
                                 : LEAT_PADDING_EXPLICIT;
}

/* True if the channels are dimension 1: NCHW, NCDHW. */
static inline bool leat_channels_first(const leat_node *n)
{
    return leat_node_has(n, "data_format") && !strncmp(leat_node_string(n, "data_format"), "NC", 2);
}

/* Attribute `name`, a value for each dimension of an image; each must fit into 32 bits. */
static inline leat_status leat_window_attr(const leat_node *n, const char *name, const int64_t **v,
                                           int *count)
{
    *v = leat_node_ints(n, name, count);
    for (int i = 0; i < *count; i++)
        LEAT_REQUIRE((*v)[i] >= INT32_MIN && (*v)[i] <= INT32_MAX, INVALID_ARGUMENT,
                     "Attr %s has value %" PRId64 " out of range for an int32", name, (*v)[i]);
    return NULL;
}

/* Checks explicit_paddings, a pair for each of `rank` dimensions. */
static inline leat_status leat_window_check_pads(leat_padding padding, const int64_t *v, int count,
                                                 int rank, int channel)
{
    if (padding != LEAT_PADDING_EXPLICIT) {
        LEAT_REQUIRE(count == 0, INVALID_ARGUMENT,
                     "explicit_paddings attribute must be empty if the padding attribute is not "
                     "EXPLICIT");
        return NULL;
    }
    LEAT_REQUIRE(count == 2 * rank, INVALID_ARGUMENT,
                 "explicit_paddings attribute must contain %d values, but got: %d", 2 * rank,
                 count);
    for (int i = 0; i < count; i++)
        LEAT_REQUIRE(v[i] >= 0, INVALID_ARGUMENT,
                     "All elements of explicit_paddings must be nonnegative");
    LEAT_REQUIRE(!v[0] && !v[1] && !v[2 * channel] && !v[2 * channel + 1], INVALID_ARGUMENT,
                 "Nonzero explicit padding in the batch or depth dimensions is not supported");
    return NULL;
}

static inline leat_status leat_window_check_steps(int64_t stride, int64_t rate)
{
    LEAT_REQUIRE(stride > 0, INVALID_ARGUMENT, "Stride must be > 0, but got %" PRId64, stride);
    LEAT_REQUIRE(rate >= 1, INVALID_ARGUMENT, "Dilation rate must be >= 1, but got %" PRId64, rate);
    return NULL;
}

/* For shape functions: the number of windows in a dimension; sizes may be -1. pads is the sum of
 * both explicit paddings, else 0. */
static inline leat_status leat_window_count(int64_t in, int64_t window, int64_t rate,
                                            int64_t stride, leat_padding padding, int64_t pads,
                                            int64_t *out)
{
    LEAT_TRY(leat_window_check_steps(stride, rate));
    int64_t n = -1;
    if (padding == LEAT_PADDING_SAME) {
        LEAT_TRY(leat_dim_add(in, stride - 1, &n));
    } else {
        LEAT_TRY(leat_dim_add(in, pads, &in));
        if (rate > 1) {
            LEAT_TRY(leat_dim_sub(window, 1, &window));
            LEAT_TRY(leat_dim_mul(window, rate, &window));
            LEAT_TRY(leat_dim_add(window, 1, &window));
        }
        LEAT_TRY(leat_dim_sub(in, window, &n));
        LEAT_TRY(leat_dim_add(n, stride, &n));
    }
    *out = n < 0 ? -1 : n / stride;
    return NULL;
}

/* For kernels: the same of sizes that are known, and the zeros before the first element.
 * before and after are the explicit paddings, and are set for other kinds of padding. */
static inline leat_status leat_window_place(int64_t in, int64_t window, int64_t rate,
                                            int64_t stride, leat_padding padding, int64_t *before,
                                            int64_t after, int64_t *out)
{
    LEAT_TRY(leat_window_check_steps(stride, rate));
    int64_t span, pads = 0;
    LEAT_REQUIRE(in < INT32_MAX && window < INT32_MAX && leat_mul_ok(window - 1, rate, &span) &&
                     span < INT64_MAX / 4,
                 INVALID_ARGUMENT,
                 "Windows are too large: %" PRId64 " with a rate of %" PRId64
                 " over a dimension of %" PRId64,
                 window, rate, in);
    span++;
    if (padding == LEAT_PADDING_EXPLICIT) {
        LEAT_REQUIRE(*before < INT32_MAX && after < INT32_MAX, INVALID_ARGUMENT,
                     "explicit_paddings are too large: %" PRId64 ", %" PRId64, *before, after);
        pads = *before + after;
    }
    if (padding == LEAT_PADDING_SAME) {
        *out = (in + stride - 1) / stride;
        const int64_t need = (*out - 1) * stride + span - in;
        *before = need > 0 ? need / 2 : 0;
    } else {
        *out = (in + pads - span + stride) / stride;
        if (padding == LEAT_PADDING_VALID)
            *before = 0;
    }
    LEAT_REQUIRE(*out >= 0, INVALID_ARGUMENT,
                 "Computed output size would be negative: %" PRId64 " [input_size: %" PRId64
                 ", effective_filter_size: %" PRId64 ", stride: %" PRId64 "]",
                 *out, in, span, stride);
    return NULL;
}

/* Checks how the channels of an image and of a filter fit together; sizes may be -1. */
static inline leat_status leat_window_check_depths(int64_t in, int64_t filter_in, int64_t out)
{
    if (in < 0 || filter_in < 0)
        return NULL;
    LEAT_REQUIRE(filter_in != 0, INVALID_ARGUMENT, "Depth of filter must not be 0");
    LEAT_REQUIRE(in % filter_in == 0, INVALID_ARGUMENT,
                 "Depth of input (%" PRId64 ") is not a multiple of input depth of filter (%" PRId64
                 ")",
                 in, filter_in);
    if (in == filter_in || out < 0)
        return NULL;
    const int64_t groups = in / filter_in;
    LEAT_REQUIRE(groups != 0, INVALID_ARGUMENT, "Number of groups must not be 0");
    LEAT_REQUIRE(out % groups == 0, INVALID_ARGUMENT,
                 "Depth of output (%" PRId64 ") is not a multiple of the number of groups (%" PRId64
                 ")",
                 out, groups);
    return NULL;
}

/* The number of windows of a pool, which has no rate; `in` may be -1. */
static inline leat_status leat_dim_windows(int64_t in, int64_t window, int64_t stride, bool same,
                                           int64_t *out)
{
    LEAT_REQUIRE(stride > 0, INVALID_ARGUMENT, "Stride must be > 0, but got %" PRId64, stride);
    LEAT_REQUIRE(window > 0, INVALID_ARGUMENT, "Sliding window must be > 0, but got %" PRId64,
                 window);
    return leat_window_count(in, window, 1, stride, same ? LEAT_PADDING_SAME : LEAT_PADDING_VALID,
                             0, out);
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
