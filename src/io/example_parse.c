/* example_parse.c -- tensors of a serialized Example, by a description of its features. Messages
 * are those of TensorFlow's ParseSingleExample. */
#include <leat/io.h>

#include <stdlib.h>

#include "core/arg.h"
#include "core/buffer.h"
#include "core/checked.h"

static leat_status check_spec(const leat_feature_spec *f, int i)
{
    LEAT_REQUIRE(f->key, INVALID_ARGUMENT, "leat_example_parse: feature %d has no key", i);
    LEAT_REQUIRE(f->dtype == LEAT_FLOAT || f->dtype == LEAT_INT64 || f->dtype == LEAT_STRING,
                 INVALID_ARGUMENT,
                 "Key: %s.  A feature is float, int64 or string; it cannot be parsed as %s", f->key,
                 leat_dtype_name(f->dtype));
    bool known = f->shape.rank >= 0;
    for (int d = 1; d < f->shape.rank; d++)
        known &= f->shape.dim[d] >= 0;
    LEAT_REQUIRE(known, INVALID_ARGUMENT,
                 "Key: %s.  The shape %s of a feature may have one unknown dimension, the first",
                 f->key, leat_shape_show(&f->shape).s);
    if (f->value)
        LEAT_REQUIRE(leat_tensor_dtype(f->value) == f->dtype &&
                         leat_shape_compatible(&f->value->shape, &f->shape),
                     INVALID_ARGUMENT, "Key: %s.  The default is %s %s; the feature is %s %s",
                     f->key, leat_dtype_name(f->value->dtype), leat_shape_show(&f->value->shape).s,
                     leat_dtype_name(f->dtype), leat_shape_show(&f->shape).s);
    return NULL;
}

static bool is_variable(const leat_feature_spec *f)
{
    return f->shape.rank > 0 && f->shape.dim[0] < 0;
}

static leat_status missing(const leat_feature_spec *f, leat_tensor **out)
{
    if (f->value) {
        *out = leat_tensor_ref(f->value);
        return NULL;
    }
    LEAT_REQUIRE(is_variable(f), INVALID_ARGUMENT,
                 "Feature: %s (data type: %s) is required but could not be found.", f->key,
                 leat_dtype_name(f->dtype));
    leat_shape none = f->shape;
    none.dim[0] = 0;
    return leat_tensor_new(f->dtype, none, out);
}

/* The shape for `count` values. */
static leat_status shape_for(const leat_feature_spec *f, int64_t count, leat_shape *out)
{
    leat_shape s = f->shape;
    if (is_variable(f)) {
        s.dim[0] = 1;
        const int64_t row = leat_shape_count(&s);
        s.dim[0] = row > 0 ? count / row : 0;
    }
    LEAT_REQUIRE(leat_shape_count(&s) == count, INVALID_ARGUMENT,
                 "Key: %s.  Number of %s values != expected.  values size: %lld but output shape: "
                 "%s",
                 f->key, leat_dtype_name(f->dtype), (long long)count, leat_shape_show(&f->shape).s);
    *out = s;
    return NULL;
}

static leat_status parse_feature(const leat_example *e, const leat_feature_spec *f,
                                 leat_tensor **out)
{
    leat_tensor *values;
    leat_shape shape;
    leat_status s = leat_example_feature(e, f->key, &values);
    if (leat_status_code(s) == LEAT_NOT_FOUND) {
        leat_status_free(s);
        return missing(f, out);
    }
    LEAT_TRY(s);
    if (values->count == 0 && values->dtype == LEAT_FLOAT) { /* maybe of no kind */
        leat_tensor_unref(values);
        return missing(f, out);
    }
    if (values->dtype != f->dtype)
        s = leat_error(INVALID_ARGUMENT,
                       "Key: %s.  Data types don't match. Expected type: %s, Actual type: %s",
                       f->key, leat_dtype_name(f->dtype), leat_dtype_name(values->dtype));
    if (!s)
        s = shape_for(f, values->count, &shape);
    if (!s)
        s = leat_tensor_reshape(values, shape, out);
    leat_tensor_unref(values);
    return s;
}

leat_status leat_example_parse(const void *bytes, size_t size, const leat_feature_spec *features,
                               int n, leat_tensor **tensors)
{
    leat_example *e;
    LEAT_CHECK_ARG(features);
    LEAT_CHECK_ARG(tensors);
    for (int i = 0; i < n; i++)
        LEAT_TRY(check_spec(&features[i], i));
    LEAT_TRY(leat_example_decode(bytes, size, &e));
    leat_status s = NULL;
    int done = 0;
    while (done < n && !s)
        if (!(s = parse_feature(e, &features[done], &tensors[done])))
            done++;
    leat_example_free(e);
    if (s)
        while (done > 0)
            leat_tensor_unref(tensors[--done]);
    return s;
}
