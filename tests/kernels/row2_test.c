/* row2_test.c -- broadcasting against the definition, on random shapes that merge in all ways; what
 * has no result; sizes that do not fit. */
#include "kernels/run.h"

static leat_tensor *numbers(leat_dtype t, leat_shape s, uint64_t *seed)
{
    leat_tensor *x = tensor_of(t, s);
    for (int64_t i = 0; i < leat_tensor_count(x); i++) {
        const int v = (int)random_to(seed, 19) - 9;
        if (t == LEAT_FLOAT)
            ((float *)leat_tensor_mutable(x))[i] = (float)v;
        else
            ((int32_t *)leat_tensor_mutable(x))[i] = v ? v : 1;
    }
    return x;
}

/* Element i of the output (at these places) comes from which of x's. */
static int64_t index_in(leat_shape x, leat_shape z, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = 1; d <= z.rank; d++) {
        const int64_t place = i % z.dim[z.rank - d];
        i /= z.dim[z.rank - d];
        if (d > x.rank)
            continue;
        at += x.dim[x.rank - d] == 1 ? 0 : place * step;
        step *= x.dim[x.rank - d];
    }
    return at;
}

static void one(leat_dtype t, const char *op, double (*f)(double, double), uint64_t *seed)
{
    static const int64_t sizes[] = {1, 1, 2, 3, 5, 7, 30, 70, 0};
    leat_shape a = {.rank = (int)random_to(seed, 5)}, b = {.rank = (int)random_to(seed, 5)}, z;
    for (int d = 1; d <= 4; d++) {
        const int64_t n = sizes[random_to(seed, random_to(seed, 20) ? 8 : 9)];
        if (d <= a.rank)
            a.dim[a.rank - d] = random_to(seed, 3) ? n : 1;
        if (d <= b.rank)
            b.dim[b.rank - d] = random_to(seed, 3) ? n : 1;
    }
    leat_tensor *in[2] = {numbers(t, a, seed), numbers(t, b, seed)}, *out = NULL;
    CHECK_OK(run_op(op, in, 2, NULL, 1 + (int)random_to(seed, 2), &out));
    if (out) {
        z = leat_tensor_shape(out);
        CHECK_INT(z.rank, a.rank > b.rank ? a.rank : b.rank);
        int wrong = 0;
        for (int64_t i = 0; i < leat_tensor_count(out); i++)
            wrong += leat_tensor_at(out, i) != f(leat_tensor_at(in[0], index_in(a, z, i)),
                                                 leat_tensor_at(in[1], index_in(b, z, i)));
        if (wrong)
            printf("%s of %s and %s: %d wrong\n", op, leat_shape_show(&a).s, leat_shape_show(&b).s,
                   wrong);
        CHECK_INT(wrong, 0);
    }
    leat_tensor_unref(in[0]);
    leat_tensor_unref(in[1]);
    leat_tensor_unref(out);
}

static double sub(double x, double y)
{
    return x - y;
}

static double less(double x, double y)
{
    return x < y;
}

static double floor_div(double x, double y)
{
    return floor(x / y);
}

static void shapes(void)
{
    uint64_t seed = 1;
    for (int i = 0; i < 300; i++) {
        one(LEAT_FLOAT, "Sub", sub, &seed);
        one(LEAT_FLOAT, "Less", less, &seed);
        one(LEAT_INT32, "FloorDiv", floor_div, &seed);
    }
}

static void errors(void)
{
    leat_tensor *in[2] = {tensor_of(LEAT_INT32, leat_shape(2, 3)),
                          tensor_of(LEAT_INT32, leat_shape(2))};
    leat_tensor *out = NULL;
    CHECK_ERROR(run_op("Add", in, 2, NULL, 1, &out), INVALID_ARGUMENT,
                "Incompatible shapes: [2,3] vs. [2]");
    leat_tensor_unref(in[1]);
    in[1] = tensor_of(LEAT_INT32, leat_shape(3));
    CHECK_ERROR(run_op("FloorMod", in, 2, NULL, 1, &out), INVALID_ARGUMENT,
                "Integer division by zero");
    leat_tensor_unref(in[0]);
    leat_tensor_unref(in[1]);
    in[0] = tensor_of(LEAT_INT32, leat_shape(1 << 20, 1)); /* 2^40 elements */
    in[1] = tensor_of(LEAT_INT32, leat_shape(1 << 20));
    CHECK_ERROR(run_op("Add", in, 2, NULL, 1, &out), RESOURCE_EXHAUSTED, "OOM");
    leat_tensor_unref(in[0]);
    leat_tensor_unref(in[1]);
}

/* The least integer has no opposite: it wraps. */
static void wraps(void)
{
    leat_tensor *in[2] = {leat_scalar_int32(INT32_MIN), leat_scalar_int32(-1)}, *out = NULL;
    static const struct {
        const char *op;
        int32_t want;
    } rows[] = {{"Mul", INT32_MIN},      {"FloorDiv", INT32_MIN},    {"FloorMod", 0},
                {"Add", INT32_MAX},      {"TruncateDiv", INT32_MIN}, {"TruncateMod", 0},
                {"SquaredDifference", 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK_OK(run_op(rows[i].op, in, 2, NULL, 1, &out));
        CHECK_INT(leat_tensor_at(out, 0), rows[i].want);
        leat_tensor_unref(out);
        out = NULL;
    }
    leat_tensor_unref(in[0]);
    leat_tensor_unref(in[1]);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"shapes", shapes}, {"errors", errors}, {"wraps", wraps});
}
