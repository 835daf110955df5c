/* tensor_test.c -- tensors, views, ownership, reading and printing. */
#include <leat/tensor.h>

#include "core/buffer.h"
#include "test.h"

static void zeros(void)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(2, 3), &t));
    CHECK_INT(leat_tensor_count(t), 6);
    CHECK_INT(leat_tensor_bytes(t), 24);
    CHECK_INT(leat_tensor_rank(t), 2);
    CHECK_INT(leat_tensor_dim(t, 1), 3);
    CHECK_INT(leat_tensor_dim(t, 2), -1);
    CHECK_NEAR(leat_tensor_at(t, 5), 0, 0);
    CHECK(isnan(leat_tensor_at(t, 6)) && isnan(leat_tensor_at(t, -1)));
    leat_shape s = leat_tensor_shape(t), want = leat_shape(2, 3);
    CHECK(leat_shape_equal(&s, &want));
    leat_tensor_unref(t);
    leat_tensor_unref(NULL);
    CHECK(leat_tensor_ref(NULL) == NULL);
}

static void empty(void)
{
    leat_tensor *t, *row;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(0, 3), &t));
    CHECK_INT(leat_tensor_count(t), 0);
    CHECK(leat_tensor_data(t) != NULL && leat_tensor_mutable(t) != NULL);
    CHECK_OK(leat_tensor_rows(t, 0, 0, &row));
    leat_tensor_unref(row);
    CHECK_OK(leat_tensor_reshape(t, leat_shape(5, 0), &row));
    leat_tensor_unref(row);
    CHECK_OK(leat_tensor_clone(NULL, t, &row));
    leat_tensor_unref(row);
    leat_tensor_unref(t);
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(0), NULL, &t));
    leat_tensor_unref(t);
}

static void sharing(void)
{
    leat_tensor *t, *view;
    CHECK_OK(leat_tensor_new(LEAT_INT32, leat_shape(4, 2), &t));
    int32_t *v = leat_tensor_mutable(t);
    CHECK(v != NULL);
    for (int i = 0; i < 8; i++)
        v[i] = i;
    leat_tensor *shared = leat_tensor_ref(t);
    CHECK(leat_tensor_mutable(t) == NULL);
    leat_tensor_unref(shared);
    CHECK_OK(leat_tensor_rows(t, 1, 3, &view));
    CHECK(leat_tensor_mutable(t) == NULL && leat_tensor_mutable(view) == NULL);
    CHECK_INT(leat_tensor_count(view), 4);
    CHECK_NEAR(leat_tensor_at(view, 0), 2, 0);
    leat_tensor_unref(t); /* the view keeps the buffer */
    CHECK_NEAR(leat_tensor_at(view, 3), 5, 0);
    CHECK(leat_tensor_mutable(view) != NULL);
    CHECK_OK(leat_tensor_reshape(view, leat_shape(4), &t));
    leat_tensor_unref(view);
    CHECK_NEAR(leat_tensor_at(t, 3), 5, 0);
    CHECK_ERROR(leat_tensor_reshape(t, leat_shape(3), &view), INVALID_ARGUMENT,
                "Input to reshape is a tensor with 4 values, but the requested shape has 3");
    CHECK_ERROR(leat_tensor_reshape(t, leat_shape(-1), &view), INVALID_ARGUMENT, "fully defined");
    CHECK_ERROR(leat_tensor_rows(t, 1, 5, &view), INVALID_ARGUMENT, "rows [1, 5)");
    CHECK_ERROR(leat_tensor_rows(t, 3, 2, &view), INVALID_ARGUMENT, "rows");
    CHECK_ERROR(leat_tensor_rows(t, -1, 2, &view), INVALID_ARGUMENT, "rows");
    leat_tensor_unref(t);
    t = leat_scalar_int32(1);
    CHECK_ERROR(leat_tensor_rows(t, 0, 1, &view), INVALID_ARGUMENT, "scalar");
    leat_tensor_unref(t);
}

static void bad(void)
{
    leat_tensor *t = NULL;
    leat_shape deep = leat_shape(1);
    deep.rank = 17;
    leat_shape negative = leat_shape(1);
    negative.dim[0] = -7;
    CHECK_ERROR(leat_tensor_new(LEAT_FLOAT, deep, &t), INVALID_ARGUMENT, "Too many dimensions");
    CHECK_ERROR(leat_tensor_new(LEAT_FLOAT, negative, &t), INVALID_ARGUMENT,
                "Dimension -7 must be >= 0");
    CHECK_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape(2, -1), &t), INVALID_ARGUMENT,
                "Shape [2,?] is not fully defined");
    CHECK_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape_unknown(), &t), INVALID_ARGUMENT,
                "not fully defined");
    CHECK_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape(INT64_MAX, 2), &t), INVALID_ARGUMENT,
                "too large (more than 2**63 - 1 entries)");
    CHECK_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape(INT64_MAX), &t), INVALID_ARGUMENT,
                "too large (more than 2**63 - 1 bytes)");
    CHECK_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape(1 << 25, 1 << 25), &t), RESOURCE_EXHAUSTED,
                "OOM when allocating tensor with shape[33554432,33554432] and type float on CPU");
    CHECK_ERROR(leat_tensor_new(LEAT_INVALID, leat_shape(1), &t), INVALID_ARGUMENT, "invalid");
    CHECK_ERROR(leat_tensor_new((leat_dtype)101, leat_shape(1), &t), INVALID_ARGUMENT, "float_ref");
    CHECK_ERROR(leat_tensor_copy_of(LEAT_STRING, leat_shape(1), "", &t), INVALID_ARGUMENT,
                "string");
    CHECK(t == NULL);
}

static void count_free(void *data, void *arg)
{
    ++*(int *)arg;
}

static void wrap(void)
{
    static double numbers[] = {1, 2, 3};
    int freed = 0;
    leat_tensor *t, *view;
    CHECK_OK(leat_tensor_wrap(LEAT_DOUBLE, leat_shape(3), numbers, count_free, &freed, &t));
    CHECK(leat_tensor_data(t) == numbers);
    CHECK_OK(leat_tensor_rows(t, 1, 3, &view));
    leat_tensor_unref(t);
    CHECK_INT(freed, 0);
    CHECK_NEAR(leat_tensor_at(view, 1), 3, 0);
    leat_tensor_unref(view);
    CHECK_INT(freed, 1);
    CHECK_OK(leat_tensor_wrap(LEAT_DOUBLE, leat_shape(0), NULL, count_free, &freed, &t));
    leat_tensor_unref(t);
    CHECK_INT(freed, 2);
    CHECK_OK(leat_tensor_wrap(LEAT_DOUBLE, leat_shape(1), numbers, NULL, NULL, &t));
    leat_tensor_unref(t);
    CHECK_ERROR(leat_tensor_wrap(LEAT_DOUBLE, leat_shape(1), (char *)numbers + 4, NULL, NULL, &t),
                INVALID_ARGUMENT, "not aligned");
    CHECK_ERROR(leat_tensor_wrap(LEAT_DOUBLE, leat_shape(1), NULL, NULL, NULL, &t),
                INVALID_ARGUMENT, "not aligned");
    CHECK_INT(freed, 2);
}

static void strings(void)
{
    leat_tensor *t, *copy, *rows;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(3), &t));
    leat_string *s = leat_tensor_mutable(t);
    CHECK(s[0].data == NULL && s[0].size == 0);
    CHECK(leat_string_set(&s[0], "a\0b", 3));
    CHECK(leat_string_set(&s[1], "first", 5));
    CHECK(leat_string_set(&s[1], "second", 6));
    CHECK(leat_string_set(&s[1], s[1].data + 1, 3)); /* of itself */
    CHECK_STR(s[1].data, "eco");
    CHECK(leat_string_set(&s[2], NULL, 0));
    CHECK_OK(leat_tensor_clone(NULL, t, &copy));
    CHECK_OK(leat_tensor_rows(copy, 1, 2, &rows));
    leat_tensor_unref(t);
    leat_tensor_unref(copy);
    const leat_string *r = leat_tensor_data(rows);
    CHECK_STR(r[0].data, "eco");
    CHECK(isnan(leat_tensor_at(rows, 0)));
    leat_tensor_unref(rows);
    t = leat_scalar_string("abc", 3);
    CHECK_STR(((const leat_string *)leat_tensor_data(t))->data, "abc");
    leat_tensor_unref(t);
}

#define VALUE_IS(dtype, ctype, value, number)                                                      \
    do {                                                                                           \
        ctype v_ = value;                                                                          \
        leat_tensor *t_;                                                                           \
        CHECK_OK(leat_tensor_copy_of(dtype, leat_shape(), &v_, &t_));                              \
        CHECK_NEAR(leat_tensor_at(t_, 0), number, 0);                                              \
        leat_tensor_unref(t_);                                                                     \
    } while (0)

static void at(void)
{
    VALUE_IS(LEAT_FLOAT, float, 1.5f, 1.5);
    VALUE_IS(LEAT_DOUBLE, double, -2.5, -2.5);
    VALUE_IS(LEAT_INT32, int32_t, -3, -3);
    VALUE_IS(LEAT_UINT8, uint8_t, 200, 200);
    VALUE_IS(LEAT_INT16, int16_t, -300, -300);
    VALUE_IS(LEAT_INT8, int8_t, -4, -4);
    VALUE_IS(LEAT_INT64, int64_t, INT64_C(1) << 40, 0x1p40);
    VALUE_IS(LEAT_BOOL, bool, true, 1);
    VALUE_IS(LEAT_BOOL, uint8_t, 7, 1);
    VALUE_IS(LEAT_UINT16, uint16_t, 60000, 60000);
    VALUE_IS(LEAT_UINT32, uint32_t, 4000000000u, 4e9);
    VALUE_IS(LEAT_UINT64, uint64_t, UINT64_C(1) << 63, 0x1p63);
    VALUE_IS(LEAT_HALF, leat_half, leat_half_from_float(0.5f), 0.5);
    VALUE_IS(LEAT_BFLOAT16, leat_bfloat16, leat_bfloat16_from_float(-8), -8);
    leat_tensor *t = leat_scalar_int64(INT64_C(-5));
    CHECK_NEAR(leat_tensor_at(t, 0), -5, 0);
    leat_tensor_unref(t);
    t = leat_scalar_float(0.5f);
    CHECK_NEAR(leat_tensor_at(t, 0), 0.5, 0);
    leat_tensor_unref(t);
}

/* The right-hand sides are what TensorFlow 1.15's Print shows. */
#define TEXT_IS(dtype, ctype, shape, max, text, ...)                                               \
    do {                                                                                           \
        ctype v_[] = {__VA_ARGS__};                                                                \
        leat_tensor *t_;                                                                           \
        CHECK_OK(leat_tensor_copy_of(dtype, shape, v_, &t_));                                      \
        char *s_ = leat_tensor_text(t_, max);                                                      \
        CHECK_STR(s_, text);                                                                       \
        free(s_);                                                                                  \
        leat_tensor_unref(t_);                                                                     \
    } while (0)

static void text(void)
{
    leat_shape square = leat_shape(2, 2), wide = leat_shape(2, 3);
    leat_shape cube = leat_shape(2, 2, 2), none = leat_shape(0);
    TEXT_IS(LEAT_INT32, int32_t, square, 3, "[[1 2][3...]...]", 1, 2, 3, 4);
    TEXT_IS(LEAT_INT32, int32_t, square, 10, "[[1 2][3 4]]", 1, 2, 3, 4);
    TEXT_IS(LEAT_INT32, int32_t, square, 2, "[[1 2]...]", 1, 2, 3, 4);
    TEXT_IS(LEAT_INT32, int32_t, cube, 5, "[[[0 1][2 3]][[4...]]...]", 0, 1, 2, 3, 4, 5, 6, 7);
    TEXT_IS(LEAT_INT32, int32_t, cube, -1, "[[[0 1][2 3]][[4 5][6 7]]]", 0, 1, 2, 3, 4, 5, 6, 7);
    TEXT_IS(LEAT_FLOAT, float, wide, 10, "[[1.5 2e+10 1e-07][0.1 0.333333343 nan]]", 1.5f, 2e10f,
            1e-7f, 0.1f, 1.0f / 3, NAN);
    TEXT_IS(LEAT_DOUBLE, double, wide, 10,
            "[[inf 1e+20 123456789][0.1 0.33333333333333331 16777216]]", INFINITY, 1e20, 123456789,
            0.1, 1.0 / 3, 16777216);
    TEXT_IS(LEAT_BOOL, bool, leat_shape(2), 3, "[1 0]", true, false);
    TEXT_IS(LEAT_UINT8, uint8_t, leat_shape(3), 3, "[1 2 255]", 1, 2, 255);
    TEXT_IS(LEAT_INT64, int64_t, leat_shape(2), 3, "[9223372036854775807 -1]", INT64_MAX, -1);
    TEXT_IS(LEAT_UINT64, uint64_t, leat_shape(1), 3, "[18446744073709551615]", UINT64_MAX);
    TEXT_IS(LEAT_INT32, int32_t, leat_shape(3), 0, "[...]", 1, 2, 3);
    TEXT_IS(LEAT_INT32, int32_t, leat_shape(3), 2, "[1 2...]", 1, 2, 3);
    TEXT_IS(LEAT_FLOAT, float, none, 3, "[]", 0);
    TEXT_IS(LEAT_FLOAT, float, leat_shape(), 3, "3", 3);
    TEXT_IS(LEAT_HALF, leat_half, leat_shape(2), 3, "[1.5 0.0999755859]",
            leat_half_from_float(1.5f), leat_half_from_float(0.1f));
    TEXT_IS(LEAT_COMPLEX64, leat_complex64, leat_shape(1), 3, "[(1.5,-1)]", {1.5f, -1});
    leat_tensor *t = leat_scalar_string("b\0\n'\"\\\xff", 7);
    char *s = leat_tensor_text(t, 3);
    CHECK_STR(s, "b\\000\\n\\'\\\"\\\\\\377");
    free(s);
    leat_tensor_unref(t);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"zeros", zeros}, {"empty", empty}, {"sharing", sharing}, {"bad", bad},
               {"wrap", wrap}, {"strings", strings}, {"at", at}, {"text", text});
}
