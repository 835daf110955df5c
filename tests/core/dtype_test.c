/* dtype_test.c -- dtypes' names and sizes, shapes, half and bfloat16. */
#include <leat/tensor.h>

#include <inttypes.h>

#include "test.h"

static void names(void)
{
    CHECK_STR(leat_dtype_name(LEAT_FLOAT), "float");
    CHECK_STR(leat_dtype_name((leat_dtype)(LEAT_FLOAT + LEAT_REF)), "float_ref");
    CHECK_STR(leat_dtype_name(LEAT_INVALID), "invalid");
    CHECK_STR(leat_dtype_name(LEAT_REF), "invalid");
    CHECK_STR(leat_dtype_name((leat_dtype)-1), "invalid");
    CHECK_STR(leat_dtype_name((leat_dtype)24), "invalid");
    CHECK_INT(leat_dtype_parse("float32"), LEAT_FLOAT);
    CHECK_INT(leat_dtype_parse("float16"), LEAT_HALF);
    CHECK_INT(leat_dtype_parse("float64_ref"), LEAT_DOUBLE + LEAT_REF);
    CHECK_INT(leat_dtype_parse("DT_FLOAT"), LEAT_FLOAT);
    CHECK_INT(leat_dtype_parse("DT_INT64_REF"), LEAT_INT64 + LEAT_REF);
    CHECK_INT(leat_dtype_parse("FLOAT"), LEAT_INVALID);
    CHECK_INT(leat_dtype_parse("DT_"), LEAT_INVALID);
    CHECK_INT(leat_dtype_parse("_ref"), LEAT_INVALID);
    CHECK_INT(leat_dtype_parse(""), LEAT_INVALID);
    CHECK_INT(leat_dtype_parse(NULL), LEAT_INVALID);
    for (int i = 1; i <= 23; i++)
        CHECK_INT(leat_dtype_parse(leat_dtype_name((leat_dtype)i)), i);
}

static void sizes(void)
{
    CHECK_INT(leat_dtype_size(LEAT_FLOAT), 4);
    CHECK_INT(leat_dtype_size(LEAT_COMPLEX128), 16);
    CHECK_INT(leat_dtype_size(LEAT_BOOL), 1);
    CHECK_INT(leat_dtype_size((leat_dtype)(LEAT_HALF + LEAT_REF)), 2);
    CHECK_INT(leat_dtype_size(LEAT_INVALID), 0);
    CHECK_INT(leat_dtype_size((leat_dtype)77), 0);
    CHECK_INT(leat_dtype_size((leat_dtype)-1), 0);
}

/* Every half survives the way through float, and those between two halves go to the even one. */
static void half(void)
{
    int bad = 0;
    for (unsigned bits = 0; bits < 65536; bits++) {
        leat_half h = {(uint16_t)bits};
        float f = leat_half_to_float(h);
        uint16_t back = leat_half_from_float(f).bits;
        if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff))
            bad += !isnan(f) || back != (bits | 0x200); /* quiet, payload kept */
        else
            bad += back != bits;
        if ((bits & 0x7fff) < 0x7bff) {
            leat_half up = {(uint16_t)(bits + 1)};
            float middle = (f + leat_half_to_float(up)) / 2; /* exact */
            unsigned even = bits & 1 ? bits + 1 : bits;
            bad += leat_half_from_float(middle).bits != even;
            bad += leat_half_from_float(nextafterf(middle, f)).bits != bits;
            bad +=
                leat_half_from_float(nextafterf(middle, leat_half_to_float(up))).bits != bits + 1;
        }
    }
    CHECK_INT(bad, 0);
    CHECK_INT(leat_half_from_float(1.0f).bits, 0x3c00);
    CHECK_INT(leat_half_from_float(-2.0f).bits, 0xc000);
    CHECK_INT(leat_half_from_float(65519.0f).bits, 0x7bff);
    CHECK_INT(leat_half_from_float(65520.0f).bits, 0x7c00);
    CHECK_INT(leat_half_from_float(-1e30f).bits, 0xfc00);
    CHECK_INT(leat_half_from_float(INFINITY).bits, 0x7c00);
    CHECK_INT(leat_half_from_float(0x1p-25f).bits, 0);
    CHECK_INT(leat_half_from_float(0x1.8p-25f).bits, 1);
    CHECK_INT(leat_half_from_float(-0.0f).bits, 0x8000);
    CHECK_INT(leat_half_from_float(1e-40f).bits, 0);
}

static void bfloat16(void)
{
    int bad = 0;
    for (unsigned bits = 0; bits < 65536; bits++) {
        leat_bfloat16 h = {(uint16_t)bits};
        float f = leat_bfloat16_to_float(h);
        uint16_t back = leat_bfloat16_from_float(f).bits;
        bad += isnan(f) ? !isnan(leat_bfloat16_to_float((leat_bfloat16){back})) : back != bits;
    }
    CHECK_INT(bad, 0);
    CHECK_INT(leat_bfloat16_from_float(0x1.01p0f).bits, 0x3f80); /* half way, to even */
    CHECK_INT(leat_bfloat16_from_float(0x1.03p0f).bits, 0x3f82);
    CHECK_INT(leat_bfloat16_from_float(0x1.010002p0f).bits, 0x3f81);
    CHECK_INT(leat_bfloat16_from_float(3.4e38f).bits, 0x7f80);
    float nan;
    memcpy(&nan, &(uint32_t){0x7f800001}, 4);
    CHECK(isnan(leat_bfloat16_to_float(leat_bfloat16_from_float(nan))));
}

static void shapes(void)
{
    leat_shape s = leat_shape(2, 3), scalar = leat_shape(), open = leat_shape(2, -1);
    leat_shape unknown = leat_shape_unknown();
    CHECK_INT(leat_shape_count(&s), 6);
    CHECK_INT(leat_shape_count(&scalar), 1);
    CHECK_INT(leat_shape_count(&open), -1);
    CHECK_INT(leat_shape_count(&unknown), -1);
    CHECK(leat_shape_known(&s) && leat_shape_known(&scalar));
    CHECK(!leat_shape_known(&open) && !leat_shape_known(&unknown));
    CHECK(leat_shape_equal(&s, &s) && !leat_shape_equal(&s, &open));
    CHECK(!leat_shape_equal(&s, &scalar) && leat_shape_equal(&unknown, &unknown));
    CHECK(!leat_shape_equal(&scalar, &unknown));
    CHECK(leat_shape_compatible(&s, &open) && leat_shape_compatible(&s, &unknown));
    CHECK(!leat_shape_compatible(&s, &scalar));
    leat_shape other = leat_shape(3, -1), dims = leat_shape_unknown_dims(2);
    CHECK(!leat_shape_compatible(&open, &other) && leat_shape_compatible(&dims, &s));
    CHECK_INT(leat_shape_unknown_dims(17).rank, -1);
    CHECK_INT(leat_shape_make(17, (int64_t[17]){0}).rank, -1);
    CHECK_INT(leat_shape(3, -2).rank, -1);
    CHECK_INT(leat_shape_make(-5, NULL).rank, -1);
}

static void shape_overflow(void)
{
    leat_shape big = leat_shape(INT64_C(1) << 32, INT64_C(1) << 31);
    leat_shape fits = leat_shape((INT64_C(1) << 32) - 1, INT64_C(1) << 31);
    leat_shape empty = leat_shape(INT64_C(1) << 30, INT64_C(1) << 30, 0);
    leat_shape beyond = leat_shape(INT64_C(1) << 62, INT64_C(1) << 62, 0);
    CHECK_INT(leat_shape_count(&big), -1);
    CHECK(leat_shape_count(&fits) > 0);
    CHECK_INT(leat_shape_count(&empty), 0);
    CHECK_INT(leat_shape_count(&beyond), -1); /* Kernels multiply some of the dimensions. */
}

static void shape_text(void)
{
    char buf[16];
    leat_shape s = leat_shape(2, -1, 3), scalar = leat_shape(), unknown = leat_shape_unknown();
    CHECK_STR(leat_shape_text(&s, buf, sizeof buf), "[2,?,3]");
    CHECK_STR(leat_shape_text(&scalar, buf, sizeof buf), "[]");
    CHECK_STR(leat_shape_text(&unknown, buf, sizeof buf), "<unknown>");
    CHECK_STR(leat_shape_text(&s, buf, 5), "[2,?");
    CHECK_STR(leat_shape_text(&s, buf, 1), "");
    CHECK(leat_shape_text(&s, buf, 0) == buf);
    leat_shape longest = leat_shape_unknown_dims(16);
    for (int i = 0; i < 16; i++)
        longest.dim[i] = INT64_MAX;
    CHECK(strlen(leat_shape_show(&longest).s) < sizeof(leat_text));
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"names", names}, {"sizes", sizes}, {"half", half},
               {"bfloat16", bfloat16}, {"shapes", shapes}, {"shape_overflow", shape_overflow},
               {"shape_text", shape_text});
}
