/* wide_channels_test.c -- ops on images with many channels, which vectors compute and the stored
 * vectors of TensorFlow's values are too small for, against plain loops in double: the gradient of
 * max-pooling, LRN and its gradient, and the gradient of biases. */
#include "test.h"

#include <leat/leat.h>

static uint32_t seed = 1;
static double noise(void) /* in [-1, 1), with many equal values */
{
    seed = seed * 1664525 + 1013904223;
    return (double)((int32_t)seed >> 20) / 2048.0;
}

static leat_tensor *numbers(leat_dtype t, leat_shape s)
{
    leat_tensor *x;
    LEAT_DIE_ON_ERROR(leat_tensor_new(t, s, &x));
    for (int64_t i = 0; i < leat_tensor_count(x); i++) {
        const double v = noise();
        if (t == LEAT_FLOAT)
            ((float *)leat_tensor_mutable(x))[i] = (float)v;
        else if (t == LEAT_DOUBLE)
            ((double *)leat_tensor_mutable(x))[i] = v;
        else
            ((int32_t *)leat_tensor_mutable(x))[i] = (int32_t)(v * 1e9);
    }
    return x;
}

/* Runs an op of three inputs, or of as many as are not NULL. */
static leat_tensor *run(leat_out (*op)(leat_graph *g, leat_out *in), leat_tensor *const *in)
{
    leat_graph *g = leat_graph_new();
    leat_out ins[3] = {{0}};
    leat_feed feeds[3];
    leat_session *s;
    leat_tensor *out = NULL;
    int n = 0;
    for (; n < 3 && in[n]; n++) {
        ins[n] = leat_placeholder(g, leat_tensor_dtype(in[n]), leat_tensor_shape(in[n]));
        feeds[n] = (leat_feed){ins[n], in[n]};
    }
    leat_out y = op(g, ins);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, (leat_feeds){feeds, n}, LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
    leat_session_close(s);
    leat_graph_free(g);
    return out;
}

/* ---- Max-pooling, 3 by 3, every second pixel ---- */

enum { BATCH = 3, SIDE = 9, OUT = 5 };

static const int64_t window[] = {1, 3, 3, 1}, step[] = {1, 2, 2, 1};
#define POOLING                                                                                    \
    leat_attr_ints("ksize", window, 4), leat_attr_ints("strides", step, 4),                        \
        leat_attr_string("padding", "SAME")

static leat_out pool(leat_graph *g, leat_out *in)
{
    return LEAT_OP1("MaxPool", in[0], POOLING);
}

static leat_out pool_gradient(leat_graph *g, leat_out *in)
{
    return LEAT_OP3("MaxPoolGrad", in[0], in[1], in[2], POOLING);
}

/* dx by definition: dy goes to the first of the largest elements of its window. */
static void spread(const leat_tensor *x, const leat_tensor *dy, int64_t ch, double *dx)
{
    for (int64_t o = 0; o < BATCH * OUT * OUT * ch; o++) {
        const int64_t c = o % ch, q = o / ch % OUT, p = o / ch / OUT % OUT, n = o / ch / OUT / OUT;
        int64_t best = -1;
        for (int64_t r = 2 * p - 1; r < 2 * p + 2; r++)
            for (int64_t s = 2 * q - 1; s < 2 * q + 2; s++) {
                const int64_t at = ((n * SIDE + r) * SIDE + s) * ch + c;
                if (r >= 0 && s >= 0 && r < SIDE && s < SIDE &&
                    (best < 0 || leat_tensor_at(x, at) > leat_tensor_at(x, best)))
                    best = at;
            }
        dx[best] += leat_tensor_at(dy, o);
    }
}

static void max_pool(void)
{
    static const int64_t channels[] = {64, 16, 83, 7, 136};
    for (size_t i = 0; i < sizeof(channels) / sizeof(*channels); i++) {
        for (int t = 0; t < 2; t++) {
            const leat_dtype type = t ? LEAT_DOUBLE : LEAT_FLOAT;
            const int64_t ch = channels[i], count = BATCH * SIDE * SIDE * ch;
            leat_tensor *x = numbers(type, leat_shape(BATCH, SIDE, SIDE, ch));
            leat_tensor *dy = numbers(type, leat_shape(BATCH, OUT, OUT, ch));
            leat_tensor *y = run(pool, (leat_tensor *[]){x, NULL});
            leat_tensor *dx = run(pool_gradient, (leat_tensor *[]){x, y, dy});
            double *want = calloc((size_t)count, sizeof(*want));
            spread(x, dy, ch, want);
            int wrong = 0;
            for (int64_t j = 0; j < count; j++)
                wrong += fabs(leat_tensor_at(dx, j) - want[j]) > 1e-6;
            CHECK_INT(wrong, 0);
            free(want);
            leat_tensor_unref(x), leat_tensor_unref(y);
            leat_tensor_unref(dy), leat_tensor_unref(dx);
        }
    }
}

/* ---- LRN ---- */

static double bias;

#define NORMALISATION                                                                              \
    leat_attr_int("depth_radius", 4), leat_attr_float("bias", bias),                               \
        leat_attr_float("alpha", 0.3), leat_attr_float("beta", 0.75)

static leat_out normalised(leat_graph *g, leat_out *in)
{
    return LEAT_OP1("LRN", in[0], NORMALISATION);
}

static leat_out normalised_gradient(leat_graph *g, leat_out *in)
{
    return LEAT_OP3("LRNGrad", in[0], in[1], in[2], NORMALISATION);
}

static double norm_of(const leat_tensor *x, int64_t row, int64_t ch, int64_t c)
{
    double sum = 0;
    for (int64_t i = c < 4 ? 0 : c - 4; i < ch && i <= c + 4; i++)
        sum += leat_tensor_at(x, row * ch + i) * leat_tensor_at(x, row * ch + i);
    return bias + 0.3f * sum;
}

/* The last bias makes some norms so small that roots are taken by the processor's instruction. */
static void lrn(void)
{
    static const double biases[] = {1, 0.01, 1e-20};
    static const int64_t channels[] = {64, 83, 5};
    for (int i = 0; i < 3; i++) {
        const int64_t ch = channels[i], rows = 50;
        bias = biases[i];
        leat_tensor *x = numbers(LEAT_FLOAT, leat_shape(1, 5, 10, ch));
        leat_tensor *dy = numbers(LEAT_FLOAT, leat_shape(1, 5, 10, ch));
        for (int64_t j = 0; i == 2 && j < rows * ch / 2; j++)
            ((float *)leat_tensor_mutable(x))[j] = 0;
        leat_tensor *y = run(normalised, (leat_tensor *[]){x, NULL});
        leat_tensor *dx = run(normalised_gradient, (leat_tensor *[]){dy, x, y});
        double worst = 0, worst_gradient = 0;
        for (int64_t j = 0; j < rows * ch; j++) {
            const int64_t row = j / ch, c = j % ch;
            const double norm = norm_of(x, row, ch, c);
            const double want = leat_tensor_at(x, j) * pow(norm, -0.75);
            double gradient = leat_tensor_at(dy, j) * pow(norm, -0.75), size = fabs(gradient);
            for (int64_t k = c < 4 ? 0 : c - 4; k < ch && k <= c + 4; k++) {
                const double part =
                    2 * 0.3f * 0.75 * leat_tensor_at(x, j) * leat_tensor_at(x, row * ch + k) *
                    leat_tensor_at(dy, row * ch + k) * pow(norm_of(x, row, ch, k), -1.75);
                gradient -= part;
                size += fabs(part);
            }
            worst = fmax(worst, fabs(leat_tensor_at(y, j) - want) / (fabs(want) + 1e-30));
            worst_gradient =
                fmax(worst_gradient, fabs(leat_tensor_at(dx, j) - gradient) / (size + 1e-30));
        }
        CHECK_NEAR(worst, 0, 1e-6);
        CHECK_NEAR(worst_gradient, 0, 2e-6);
        leat_tensor_unref(x), leat_tensor_unref(y);
        leat_tensor_unref(dy), leat_tensor_unref(dx);
    }
}

/* ---- Gradients of biases ---- */

static leat_out bias_gradient(leat_graph *g, leat_out *in)
{
    return LEAT_OP1("BiasAddGrad", in[0]);
}

/* Few rows, and so many that they are summed in parts; integers wrap. */
static void biases(void)
{
    static const int64_t rows[] = {3, 1023, 5000}, channels[] = {64, 150, 1};
    static const leat_dtype types[] = {LEAT_FLOAT, LEAT_DOUBLE, LEAT_INT32};
    for (int i = 0; i < 27; i++) {
        const int64_t n = rows[i % 3], ch = channels[i / 3 % 3];
        const leat_dtype t = types[i / 9];
        leat_tensor *x = numbers(t, leat_shape(n, ch));
        leat_tensor *y = run(bias_gradient, (leat_tensor *[]){x, NULL});
        for (int64_t c = 0; c < ch; c++) {
            double sum = 0;
            int64_t whole = 0;
            for (int64_t r = 0; r < n; r++) {
                sum += leat_tensor_at(x, r * ch + c);
                whole += (int64_t)leat_tensor_at(x, r * ch + c);
            }
            CHECK_NEAR(leat_tensor_at(y, c), t == LEAT_INT32 ? (double)(int32_t)whole : sum,
                       t == LEAT_FLOAT ? 1e-3 : 1e-9);
        }
        leat_tensor_unref(x), leat_tensor_unref(y);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"max_pool", max_pool}, {"lrn", lrn}, {"biases", biases});
}
