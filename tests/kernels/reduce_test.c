/* reduce_test.c -- reductions against the definition, on random shapes and axes; sums that lose no
 * more than they must, and are the same whatever the threads. */
#include "kernels/run.h"

static leat_tensor *numbers(leat_shape s, uint64_t *seed)
{
    leat_tensor *x = tensor_of(LEAT_FLOAT, s);
    float *v = leat_tensor_mutable(x);
    for (int64_t i = 0; i < leat_tensor_count(x); i++)
        v[i] = (float)((int)random_to(seed, 7) - 3);
    return x;
}

static leat_tensor *ints(const int32_t *v, int n)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(n), v, &t));
    return t;
}

static double start(char op)
{
    return op == 'S' ? 0 : op == 'P' ? 1 : op == 'M' ? -INFINITY : INFINITY;
}

static double step(char op, double a, double b)
{
    return op == 'S' ? a + b : op == 'P' ? a * b : op == 'M' ? fmax(a, b) : fmin(a, b);
}

static void one(const char *name, char op, uint64_t *seed)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 9, 33, 70, 300, 0};
    leat_shape s = {.rank = (int)random_to(seed, 5)};
    int32_t axes[4];
    int n = 0;
    int64_t count = 1;
    bool reduced[4] = {0};
    for (int d = 0; d < s.rank; d++) {
        s.dim[d] = sizes[random_to(seed, random_to(seed, 20) ? 8 : 9)];
        if (count * s.dim[d] > 200000)
            s.dim[d] = 2;
        count *= s.dim[d];
        reduced[d] = random_to(seed, 2);
        if (reduced[d])
            axes[n++] = random_to(seed, 2) ? d : d - s.rank;
    }
    leat_tensor *in[2] = {numbers(s, seed), ints(axes, n)}, *out = NULL;
    CHECK_OK(run_op(name, in, 2, NULL, 1 + (int)random_to(seed, 2), &out));
    double *want = calloc((size_t)(out ? leat_tensor_count(out) : 0) + 1, sizeof(double));
    for (int64_t i = 0; out && i < leat_tensor_count(out); i++)
        want[i] = start(op);
    for (int64_t i = 0; out && i < count; i++) {
        int64_t to = 0, by = 1, rest = i;
        for (int d = s.rank - 1; d >= 0; rest /= s.dim[d--]) {
            to += reduced[d] ? 0 : rest % s.dim[d] * by;
            by *= reduced[d] ? 1 : s.dim[d];
        }
        want[to] = step(op, want[to], leat_tensor_at(in[0], i));
    }
    int wrong = 0;
    for (int64_t i = 0; out && i < leat_tensor_count(out); i++)
        wrong += op == 'P' ? fabs(want[i]) < 1e30 &&
                                 fabs(leat_tensor_at(out, i) - want[i]) > 1e-5 * fabs(want[i])
                           : leat_tensor_at(out, i) != want[i];
    if (wrong)
        printf("%s of %s over %d axes: %d wrong\n", name, leat_shape_show(&s).s, n, wrong);
    CHECK_INT(wrong, 0);
    free(want);
    leat_tensor_unref(in[0]);
    leat_tensor_unref(in[1]);
    leat_tensor_unref(out);
}

/* The middle one of three dimensions, of sizes around those at which the work is cut up. */
static void cut_up(void)
{
    static const int64_t outers[] = {1, 2, 33}, alongs[] = {1, 32, 49, 64, 65, 129, 3435},
                         inners[] = {1, 63, 1024, 2047, 2709, 4096, 4097, 10608};
    uint64_t seed = 3;
    for (int i = 0; i < 3 * 7 * 8; i++) {
        const int64_t outer = outers[i % 3], along = alongs[i / 3 % 7], inner = inners[i / 21];
        if (outer * along * inner > 12000000)
            continue;
        leat_tensor *in[2] = {numbers(leat_shape(outer, along, inner), &seed),
                              ints((int32_t[]){1}, 1)};
        for (int threads = 1; threads <= 2; threads++) {
            leat_tensor *out = NULL;
            CHECK_OK(run_op("Sum", in, 2, NULL, threads, &out));
            const float *x = leat_tensor_data(in[0]), *y = leat_tensor_data(out);
            int64_t wrong = 0;
            for (int64_t o = 0; o < outer; o++) {
                for (int64_t c = 0; c < inner; c++) {
                    double sum = 0;
                    for (int64_t r = 0; r < along; r++)
                        sum += x[(o * along + r) * inner + c];
                    wrong += y[o * inner + c] != sum;
                }
            }
            if (wrong)
                printf("(%d, %d, %d):\n", (int)outer, (int)along, (int)inner);
            CHECK_INT(wrong, 0);
            leat_tensor_unref(out);
        }
        leat_tensor_unref(in[0]);
        leat_tensor_unref(in[1]);
    }
}

static void shapes(void)
{
    uint64_t seed = 7;
    for (int i = 0; i < 150; i++) {
        one("Sum", 'S', &seed);
        one("Prod", 'P', &seed);
        one("Max", 'M', &seed);
        one("Min", 'm', &seed);
    }
}

/* A million times 0.1 in float: one sum from left to right ends at 100958. */
static void precise(void)
{
    const int32_t both[] = {0, 1};
    const leat_shape s[] = {leat_shape(1000000, 1), leat_shape(1, 1000000), leat_shape(125000, 8)};
    for (int i = 0; i < 3; i++) {
        leat_tensor *in[2] = {tensor_of(LEAT_FLOAT, s[i]), ints(both, i == 2 ? 1 : 2)}, *out = NULL;
        float *v = leat_tensor_mutable(in[0]);
        for (int j = 0; j < 1000000; j++)
            v[j] = 0.1f;
        CHECK_OK(run_op("Sum", in, 2, NULL, 1, &out));
        CHECK_NEAR(leat_tensor_at(out, 0), i == 2 ? 12500 : 100000, i == 2 ? 0.1 : 0.5);
        leat_tensor_unref(in[0]);
        leat_tensor_unref(in[1]);
        leat_tensor_unref(out);
    }
}

static void same_for_all_threads(void)
{
    uint64_t seed = 3;
    const int32_t axes[] = {0, 1};
    for (int n = 1; n <= 2; n++) {
        leat_tensor *in[2] = {tensor_of(LEAT_FLOAT, leat_shape(3000, 130)), ints(axes, n)};
        leat_tensor *a = NULL, *b = NULL;
        float *v = leat_tensor_mutable(in[0]);
        for (int i = 0; i < 3000 * 130; i++)
            v[i] = (float)random_to(&seed, 1000) / 7;
        CHECK_OK(run_op("Sum", in, 2, NULL, 1, &a));
        CHECK_OK(run_op("Sum", in, 2, NULL, 2, &b));
        CHECK(memcmp(leat_tensor_data(a), leat_tensor_data(b), leat_tensor_bytes(a)) == 0);
        leat_tensor_unref(in[0]);
        leat_tensor_unref(in[1]);
        leat_tensor_unref(a);
        leat_tensor_unref(b);
    }
}

static void errors(void)
{
    const int32_t bad[] = {2};
    leat_tensor *in[2] = {tensor_of(LEAT_FLOAT, leat_shape(2, 3)), ints(bad, 1)}, *out = NULL;
    CHECK_ERROR(run_op("Sum", in, 2, NULL, 1, &out), INVALID_ARGUMENT,
                "Invalid reduction dimension (2 for input with 2 dimension(s)");
    leat_tensor_unref(in[0]);
    leat_tensor_unref(in[1]);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"shapes", shapes}, {"cut_up", cut_up}, {"precise", precise},
               {"same_for_all_threads", same_for_all_threads}, {"errors", errors});
}
