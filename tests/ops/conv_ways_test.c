/* conv_ways_test.c -- convolutions that floats have ways of their own for, against those of
 * doubles, which are products of patches: windows of 5 by 5 with many channels (minimal filtering)
 * and images with few channels. Values and both gradients, for sizes that tiles fill and for sizes
 * that they do not, all paddings, biases and activations. */
#include "test.h"

#include <leat/leat.h>
#include <string.h>

typedef struct layer {
    int64_t batch, height, width, in, out;
    const char *padding;
    int64_t pads[4];    /* top, bottom, left, right; of EXPLICIT */
    int64_t rows, cols; /* of the window; 0: 5 */
} layer;

static uint32_t seed = 1;
static double noise(void) /* in [-1, 1) */
{
    seed = seed * 1664525 + 1013904223;
    return (double)(int32_t)seed / 2147483648.0;
}

/* The same numbers in both types, of at most 24 bits. */
static void numbers(leat_shape s, leat_tensor *t[2])
{
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_FLOAT, s, &t[0]));
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_DOUBLE, s, &t[1]));
    for (int64_t i = 0; i < leat_tensor_count(t[0]); i++)
        ((double *)leat_tensor_mutable(t[1]))[i] = ((float *)leat_tensor_mutable(t[0]))[i] =
            (float)noise();
}

enum { FORWARD, BY_INPUT, BY_FILTER, FUSED, WAYS };

static leat_out op(const layer *l, int way, leat_out x, leat_out w, leat_out dy, leat_out b)
{
    static const int64_t strides[] = {1, 1, 1, 1};
    const int64_t pads[] = {0, 0, l->pads[0], l->pads[1], l->pads[2], l->pads[3], 0, 0};
    const bool given = strcmp(l->padding, "EXPLICIT") == 0;
#define WINDOW                                                                                     \
    leat_attr_ints("strides", strides, 4), leat_attr_string("padding", l->padding),                \
        leat_attr_ints("explicit_paddings", pads, given ? 8 : 0)
    switch (way) {
    case BY_INPUT:
        return LEAT_OP3("Conv2DBackpropInput", leat_shape_of(x), w, dy, WINDOW);
    case BY_FILTER:
        return LEAT_OP3("Conv2DBackpropFilter", x, leat_shape_of(w), dy, WINDOW);
    case FUSED:
        return leat_relu6(leat_bias_add(LEAT_OP2("Conv2D", x, w, WINDOW), b));
    default:
        return LEAT_OP2("Conv2D", x, w, WINDOW);
    }
}

/* How far the floats are from the doubles, relative to the largest double. */
static double difference(const leat_tensor *a, const leat_tensor *b)
{
    double worst = 0, largest = 0;
    CHECK_INT(leat_tensor_count(a), leat_tensor_count(b));
    for (int64_t i = 0; i < leat_tensor_count(a); i++) {
        const double want = ((const double *)leat_tensor_data(b))[i];
        const double d = fabs(((const float *)leat_tensor_data(a))[i] - want);
        worst = d <= worst ? worst : d; /* takes NaN, too */
        largest = fmax(largest, fabs(want));
    }
    return worst / largest;
}

static void check(const layer *l)
{
    const bool valid = strcmp(l->padding, "VALID") == 0;
    const bool given = strcmp(l->padding, "EXPLICIT") == 0;
    const int64_t high = l->rows ? l->rows : 5, wide = l->cols ? l->cols : 5;
    const int64_t rows = valid ? 1 - high : given ? l->pads[0] + l->pads[1] + 1 - high : 0;
    const int64_t cols = valid ? 1 - wide : given ? l->pads[2] + l->pads[3] + 1 - wide : 0;
    leat_tensor *x[2], *w[2], *dy[2], *b[2], *y[2][WAYS];
    numbers(leat_shape(l->batch, l->height, l->width, l->in), x);
    numbers(leat_shape(high, wide, l->in, l->out), w);
    numbers(leat_shape(l->batch, l->height + rows, l->width + cols, l->out), dy);
    numbers(leat_shape(l->out), b);
    for (int t = 0; t < 2; t++) {
        leat_graph *g = leat_graph_new();
        const leat_dtype type = t ? LEAT_DOUBLE : LEAT_FLOAT;
        leat_session *s;
        leat_out ins[4];
        leat_tensor *fed[] = {x[t], w[t], dy[t], b[t]};
        for (int i = 0; i < 4; i++)
            ins[i] = leat_placeholder(g, type, leat_tensor_shape(fed[i]));
        CHECK_OK(leat_session_open(g, &s));
        for (int way = 0; way < WAYS; way++) {
            leat_out out = op(l, way, ins[0], ins[1], ins[2], ins[3]);
            CHECK_OK(leat_session_run(
                s, LEAT_FEED({ins[0], x[t]}, {ins[1], w[t]}, {ins[2], dy[t]}, {ins[3], b[t]}),
                LEAT_FETCH({out, &y[t][way]}), LEAT_NO_TARGET));
        }
        leat_session_close(s);
        leat_graph_free(g);
    }
    for (int way = 0; way < WAYS; way++) {
        /* Of the fused one, errors are those of sums of up to 60, and the largest result is 6. */
        CHECK_NEAR(difference(y[0][way], y[1][way]), 0, way == FUSED ? 1e-4 : 3e-5);
        leat_tensor_unref(y[0][way]);
        leat_tensor_unref(y[1][way]);
    }
    for (int t = 0; t < 2; t++) {
        leat_tensor_unref(x[t]);
        leat_tensor_unref(w[t]);
        leat_tensor_unref(dy[t]);
        leat_tensor_unref(b[t]);
    }
}

static void values(void)
{
    static const layer layers[] = {
        {8, 12, 12, 64, 64, "SAME", {0}},  {5, 11, 13, 32, 48, "SAME", {0}},
        {3, 17, 14, 64, 32, "VALID", {0}}, {4, 10, 19, 32, 32, "EXPLICIT", {1, 3, 0, 4}},
        {33, 4, 4, 48, 32, "SAME", {0}},   {2, 21, 21, 32, 160, "SAME", {0}},
    };
    for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++)
        check(&layers[i]);
}

/* The results do not depend on the threads. */
static void threads_of(int64_t channels)
{
    const layer l = {.padding = "SAME"};
    leat_tensor *x[2], *w[2], *dy[2], *b[2], *y[2][WAYS];
    numbers(leat_shape(16, 12, 12, channels), x);
    numbers(leat_shape(5, 5, channels, 64), w);
    numbers(leat_shape(16, 12, 12, 64), dy);
    numbers(leat_shape(64), b);
    for (int n = 0; n < 2; n++) {
        leat_graph *g = leat_graph_new();
        leat_session *s;
        leat_out ins[4];
        leat_tensor *fed[] = {x[0], w[0], dy[0], b[0]};
        for (int i = 0; i < 4; i++)
            ins[i] = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(fed[i]));
        CHECK_OK(leat_session_open(g, &s, .intra_op_threads = n ? 3 : 1));
        for (int way = 0; way < WAYS; way++)
            CHECK_OK(leat_session_run(
                s, LEAT_FEED({ins[0], x[0]}, {ins[1], w[0]}, {ins[2], dy[0]}, {ins[3], b[0]}),
                LEAT_FETCH({op(&l, way, ins[0], ins[1], ins[2], ins[3]), &y[n][way]}),
                LEAT_NO_TARGET));
        leat_session_close(s);
        leat_graph_free(g);
    }
    for (int way = 0; way < WAYS; way++) {
        CHECK(memcmp(leat_tensor_data(y[0][way]), leat_tensor_data(y[1][way]),
                     (size_t)leat_tensor_count(y[0][way]) * sizeof(float)) == 0);
        leat_tensor_unref(y[0][way]);
        leat_tensor_unref(y[1][way]);
    }
    for (int t = 0; t < 2; t++) {
        leat_tensor_unref(x[t]);
        leat_tensor_unref(w[t]);
        leat_tensor_unref(dy[t]);
        leat_tensor_unref(b[t]);
    }
}

static void threads(void)
{
    threads_of(64);
    threads_of(3);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"values", values}, {"threads", threads});
}
