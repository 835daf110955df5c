/* vector_compare.h -- compares two tensors, with the tolerance of their dtype. */
#ifndef LEAT_TEST_VECTOR_COMPARE_H
#define LEAT_TEST_VECTOR_COMPARE_H

#include <leat/tensor.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "vector_file.h"

/* |got - want| <= scale * (relative * |want| + absolute). */
typedef struct vec_tolerance {
    double relative, absolute;
} vec_tolerance;

static inline vec_tolerance vec_tolerance_of(leat_dtype t)
{
    switch (t) {
    case LEAT_HALF:
        return (vec_tolerance){2e-3, 1e-3};
    case LEAT_BFLOAT16:
        return (vec_tolerance){1e-2, 5e-3};
    case LEAT_FLOAT:
    case LEAT_COMPLEX64:
        return (vec_tolerance){1e-5, 1e-6};
    default:
        return (vec_tolerance){1e-12, 1e-13};
    }
}

static inline bool vec_is_floating(leat_dtype t)
{
    return t == LEAT_HALF || t == LEAT_BFLOAT16 || t == LEAT_FLOAT || t == LEAT_DOUBLE ||
           t == LEAT_COMPLEX64 || t == LEAT_COMPLEX128;
}

/* Number i of a tensor; a complex element is two numbers. */
static inline double vec_number(const leat_tensor *t, int64_t i)
{
    const void *p = leat_tensor_data(t);
    switch (leat_tensor_dtype(t)) {
    case LEAT_COMPLEX64:
        return ((const float *)p)[i];
    case LEAT_COMPLEX128:
        return ((const double *)p)[i];
    default:
        return leat_tensor_at(t, i);
    }
}

/* All NaNs are equal; the sign of zero counts for VEC_BITS only. */
static inline bool vec_number_alike(double got, double want, uint32_t kind, double scale,
                                    vec_tolerance tol)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want);
    if (kind == VEC_BITS)
        return got == want && signbit(got) == signbit(want);
    if (kind == VEC_VALUES)
        return got == want;
    return got == want || fabs(got - want) <= scale * (tol.relative * fabs(want) + tol.absolute);
}

static inline bool vec_strings_alike(const leat_tensor *got, const leat_tensor *want, char *why,
                                     size_t n)
{
    const leat_string *g = leat_tensor_data(got), *w = leat_tensor_data(want);
    for (int64_t i = 0; i < leat_tensor_count(want); i++) {
        if (g[i].size == w[i].size && (!g[i].size || memcmp(g[i].data, w[i].data, g[i].size) == 0))
            continue;
        snprintf(why, n, "element %lld is \"%s\", want \"%s\"", (long long)i,
                 g[i].data ? g[i].data : "", w[i].data ? w[i].data : "");
        return false;
    }
    return true;
}

/* True if the tensors are alike; else `why` says which element differs, and both values. */
static inline bool vec_alike(const leat_tensor *got, const leat_tensor *want, uint32_t kind,
                             double scale, char *why, size_t n)
{
    leat_dtype t = leat_tensor_dtype(want);
    leat_shape gs = leat_tensor_shape(got), ws = leat_tensor_shape(want);
    if (leat_tensor_dtype(got) != t) {
        snprintf(why, n, "dtype is %s, want %s", leat_dtype_name(leat_tensor_dtype(got)),
                 leat_dtype_name(t));
        return false;
    }
    if (!leat_shape_equal(&gs, &ws)) {
        char text[120];
        snprintf(why, n, "shape is %s", leat_shape_text(&gs, text, sizeof text));
        snprintf(why + strlen(why), n - strlen(why), ", want %s",
                 leat_shape_text(&ws, text, sizeof text));
        return false;
    }
    if (t == LEAT_STRING)
        return vec_strings_alike(got, want, why, n);
    int64_t count = leat_tensor_count(want);
    size_t size = leat_dtype_size(t);
    if (!vec_is_floating(t)) {
        const char *g = leat_tensor_data(got), *w = leat_tensor_data(want);
        for (int64_t i = 0; i < count; i++) {
            if (memcmp(g + size * (size_t)i, w + size * (size_t)i, size) == 0)
                continue;
            snprintf(why, n, "element %lld is %.17g, want %.17g", (long long)i,
                     leat_tensor_at(got, i), leat_tensor_at(want, i));
            return false;
        }
        return true;
    }
    if (t == LEAT_COMPLEX64 || t == LEAT_COMPLEX128)
        count *= 2;
    for (int64_t i = 0; i < count; i++) {
        double g = vec_number(got, i), w = vec_number(want, i);
        if (vec_number_alike(g, w, kind, scale, vec_tolerance_of(t)))
            continue;
        snprintf(why, n, "element %lld is %.9g, want %.9g (%s)", (long long)i, g, w,
                 kind == VEC_RELATIVE ? leat_dtype_name(t) : "exactly");
        return false;
    }
    return true;
}

#endif
