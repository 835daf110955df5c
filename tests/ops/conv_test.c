/* conv_test.c -- convolutions that TensorFlow's CPU kernels refuse, so that no vectors are there of
 * them: channels first, groups, gradients of dilated windows, different strides of depthwise
 * convolutions. Values against plain loops, gradients against finite differences; and sizes that
 * make no sense. */
#include "test.h"

#include <leat/leat.h>
#include <string.h>

typedef struct shape2d {
    bool first; /* channels first */
    int64_t batch, in[2], channels, window[2], group_in, out_depth, stride[2], rate[2], before[2],
        after[2];
} shape2d;

static int64_t out_size(const shape2d *c, int i)
{
    return (c->in[i] + c->before[i] + c->after[i] - (c->window[i] - 1) * c->rate[i] - 1) /
               c->stride[i] +
           1;
}

/* Where element (n, y, x, ch) of images of this size is. */
static int64_t at(const shape2d *c, const int64_t *size, int64_t depth, int64_t n, int64_t y,
                  int64_t x, int64_t ch)
{
    return c->first ? ((n * depth + ch) * size[0] + y) * size[1] + x
                    : ((n * size[0] + y) * size[1] + x) * depth + ch;
}

static double plain(const shape2d *c, const double *x, const double *w, int64_t n, int64_t oy,
                    int64_t ox, int64_t o)
{
    const int64_t groups = c->channels / c->group_in, group = o / (c->out_depth / groups);
    double sum = 0;
    for (int64_t i = 0; i < c->window[0]; i++)
        for (int64_t j = 0; j < c->window[1]; j++) {
            const int64_t y = oy * c->stride[0] - c->before[0] + i * c->rate[0];
            const int64_t z = ox * c->stride[1] - c->before[1] + j * c->rate[1];
            for (int64_t k = 0; k < c->group_in; k++)
                if (y >= 0 && y < c->in[0] && z >= 0 && z < c->in[1])
                    sum += x[at(c, c->in, c->channels, n, y, z, group * c->group_in + k)] *
                           w[((i * c->window[1] + j) * c->group_in + k) * c->out_depth + o];
        }
    return sum;
}

static leat_tensor *numbers(leat_shape s)
{
    static uint32_t random = 123456789;
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_DOUBLE, s, &t));
    for (int64_t i = 0; i < leat_tensor_count(t); i++) {
        random = random * 1664525 + 1013904223;
        ((double *)leat_tensor_mutable(t))[i] = (double)(random >> 8) / 16777216.0 - 0.5;
    }
    return t;
}

static leat_shape image(const shape2d *c, int64_t y, int64_t x, int64_t depth)
{
    return c->first ? leat_shape(c->batch, depth, y, x) : leat_shape(c->batch, y, x, depth);
}

static void one(const shape2d *c)
{
    const int64_t a = c->first ? 2 : 1, size[] = {out_size(c, 0), out_size(c, 1)};
    int64_t strides[4] = {1, 1, 1, 1}, rates[4] = {1, 1, 1, 1}, pads[8] = {0};
    for (int i = 0; i < 2; i++) {
        strides[a + i] = c->stride[i];
        rates[a + i] = c->rate[i];
        pads[2 * (a + i)] = c->before[i];
        pads[2 * (a + i) + 1] = c->after[i];
    }
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *tx = numbers(image(c, c->in[0], c->in[1], c->channels)), *got = NULL;
    leat_tensor *tw = numbers(leat_shape(c->window[0], c->window[1], c->group_in, c->out_depth));
    leat_out in[2] = {leat_placeholder(g, LEAT_DOUBLE, leat_tensor_shape(tx)),
                      leat_placeholder(g, LEAT_DOUBLE, leat_tensor_shape(tw))};
    leat_out y =
        LEAT_OP2("Conv2D", in[0], in[1], leat_attr_ints("strides", strides, 4),
                 leat_attr_ints("dilations", rates, 4), leat_attr_string("padding", "EXPLICIT"),
                 leat_attr_ints("explicit_paddings", pads, 8),
                 leat_attr_string("data_format", c->first ? "NCHW" : "NHWC"));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_FEED({in[0], tx}, {in[1], tw}), LEAT_FETCH({y, &got}),
                              LEAT_NO_TARGET));
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t i = 0; i < size[0]; i++)
            for (int64_t j = 0; j < size[1]; j++)
                for (int64_t o = 0; o < c->out_depth; o++)
                    CHECK_NEAR(((const double *)leat_tensor_data(
                                   got))[at(c, size, c->out_depth, n, i, j, o)],
                               plain(c, leat_tensor_data(tx), leat_tensor_data(tw), n, i, j, o),
                               1e-12);
    double worst = 1;
    CHECK_OK(leat_check_gradients(s, y, in, 2, LEAT_FEED({in[0], tx}, {in[1], tw}), &worst));
    CHECK(worst < 1e-6);
    leat_tensor_unref(tx);
    leat_tensor_unref(tw);
    leat_tensor_unref(got);
    leat_session_close(s);
    leat_graph_free(g);
}

static void refused_by_tensorflow(void)
{
    static const shape2d cases[] = {
        {0, 1, {7, 6}, 2, {3, 2}, 2, 3, {1, 1}, {2, 3}, {1, 2}, {0, 1}},   /* dilated */
        {0, 1, {7, 6}, 13, {3, 2}, 13, 3, {1, 1}, {2, 3}, {1, 0}, {2, 1}}, /* by a convolution */
        {0, 2, {6, 7}, 3, {2, 3}, 3, 2, {2, 1}, {2, 2}, {0, 3}, {1, 0}},   /* with strides */
        {0, 1, {4, 5}, 6, {3, 2}, 2, 9, {1, 1}, {1, 1}, {1, 0}, {1, 1}},   /* groups */
        {0, 1, {4, 4}, 24, {2, 2}, 12, 4, {1, 1}, {1, 2}, {1, 1}, {0, 1}},
        {0, 2, {3, 3}, 4, {1, 1}, 2, 6, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
        {1, 2, {5, 4}, 3, {3, 2}, 3, 4, {1, 2}, {1, 1}, {1, 1}, {1, 1}}, /* channels first */
        {1, 2, {5, 4}, 4, {2, 2}, 2, 4, {2, 1}, {2, 1}, {1, 0}, {0, 2}},
        {1, 1, {4, 4}, 12, {3, 3}, 12, 2, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {0, 1, {3, 3}, 1, {2, 2}, 1, 2, {1, 1}, {1, 1}, {4, 3}, {3, 4}}, /* windows over padding */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        one(&cases[i]);
}

/* Of ops whose images are transposed, with the channels first and last. */
static void layouts(void)
{
    static const struct {
        const char *op, *first;
        int rank;
        int64_t x[5], w[5], strides_last[5], strides_first[5], rates_last[5], rates_first[5];
    } cases[] = {
        {"DepthwiseConv2dNative",
         "NCHW",
         4,
         {2, 5, 6, 3},
         {3, 2, 3, 2},
         {1, 2, 1, 1},
         {1, 1, 2, 1},
         {1, 1, 1, 1},
         {1, 1, 1, 1}},
        {"DepthwiseConv2dNative",
         "NCHW",
         4,
         {1, 4, 4, 5},
         {3, 3, 5, 1},
         {1, 1, 1, 1},
         {1, 1, 1, 1},
         {1, 1, 1, 1},
         {1, 1, 1, 1}},
        {"Conv3D",
         "NCDHW",
         5,
         {1, 4, 5, 4, 2},
         {2, 2, 2, 2, 3},
         {1, 1, 2, 1, 1},
         {1, 1, 1, 2, 1},
         {1, 2, 1, 3, 1},
         {1, 1, 2, 1, 3}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const int rank = cases[i].rank;
        leat_graph *g = leat_graph_new();
        leat_session *s;
        leat_tensor *tx = numbers(leat_shape_make(rank, cases[i].x)), *got[2] = {NULL, NULL};
        leat_tensor *tw = numbers(leat_shape_make(rank, cases[i].w));
        leat_out in[2] = {leat_placeholder(g, LEAT_DOUBLE, leat_tensor_shape(tx)),
                          leat_placeholder(g, LEAT_DOUBLE, leat_tensor_shape(tw))};
        leat_out there = rank == 4 ? leat_ints(g, 0, 3, 1, 2) : leat_ints(g, 0, 4, 1, 2, 3);
        leat_out back = rank == 4 ? leat_ints(g, 0, 2, 3, 1) : leat_ints(g, 0, 2, 3, 4, 1);
#define CONV(x, side, format)                                                                      \
    LEAT_OP2(cases[i].op, x, in[1], leat_attr_string("padding", "SAME"),                           \
             leat_attr_ints("strides", cases[i].strides_##side, rank),                             \
             leat_attr_ints("dilations", cases[i].rates_##side, rank),                             \
             leat_attr_string("data_format", format))
        leat_out last = CONV(in[0], last, rank == 4 ? "NHWC" : "NDHWC");
        leat_out turned = leat_transpose(in[0], there);
        leat_out crossed = CONV(turned, first, cases[i].first);
        leat_out first = leat_transpose(crossed, back);
        CHECK_OK(leat_graph_status(g));
        CHECK_OK(leat_session_open(g, &s));
        CHECK_OK(leat_session_run(s, LEAT_FEED({in[0], tx}, {in[1], tw}),
                                  LEAT_FETCH({last, &got[0]}, {first, &got[1]}), LEAT_NO_TARGET));
        CHECK(leat_tensor_count(got[0]) == leat_tensor_count(got[1]));
        CHECK(!memcmp(leat_tensor_data(got[0]), leat_tensor_data(got[1]),
                      (size_t)leat_tensor_count(got[0]) * sizeof(double)));
        double worst = 1;
        CHECK_OK(
            leat_check_gradients(s, first, in, 2, LEAT_FEED({in[0], tx}, {in[1], tw}), &worst));
        CHECK(worst < 1e-6);
        CHECK_OK(leat_check_gradients(s, last, in, 2, LEAT_FEED({in[0], tx}, {in[1], tw}), &worst));
        CHECK(worst < 1e-6);
        leat_tensor_unref(tx);
        leat_tensor_unref(tw);
        leat_tensor_unref(got[0]);
        leat_tensor_unref(got[1]);
        leat_session_close(s);
        leat_graph_free(g);
    }
}

static void senseless(void)
{
    static const struct {
        int64_t x[4], w[4], stride, rate, pad;
        const char *words;
    } cases[] = {
        {{1, 4, 4, 2}, {2, 2, 2, 3}, 0, 1, 0, "Stride must be > 0, but got 0"},
        {{1, 4, 4, 2}, {2, 2, 2, 3}, -3, 1, 0, "Stride must be > 0, but got -3"},
        {{1, 4, 4, 2}, {2, 2, 2, 3}, 1, 0, 0, "Dilation rate must be >= 1, but got 0"},
        {{1, 4, 4, 2},
         {2, 2, 2, 3},
         1LL << 32,
         1,
         0,
         "Attr strides has value 4294967296 out of range for an int32"},
        {{1, 4, 4, 2},
         {2, 2, 2, 3},
         1,
         1,
         -1,
         "All elements of explicit_paddings must be nonnegative"},
        {{1, 4, 4, 2}, {2, 2, 2, 3}, 1, 1, INT64_MAX, "Dimension size overflow from adding"},
        {{1, 4, 4, 2}, {2, 2, 0, 3}, 1, 1, 0, "Depth of filter must not be 0"},
        {{1, 4, 4, 3}, {2, 2, 2, 3}, 1, 1, 0, "is not a multiple of input depth of filter (2)"},
        {{1, 4, 4, 4}, {2, 2, 2, 3}, 1, 1, 0, "is not a multiple of the number of groups (2)"},
        {{1, 4, 4, 2}, {5, 2, 2, 3}, 1, 1, 0, "Negative dimension size caused by subtracting"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        leat_graph *g = leat_graph_new();
        const int64_t strides[] = {1, cases[i].stride, 1, 1}, rates[] = {1, cases[i].rate, 1, 1};
        const int64_t pads[] = {0, 0, cases[i].pad, cases[i].pad, 0, 0, 0, 0};
        LEAT_OP2("Conv2D", leat_placeholder(g, LEAT_FLOAT, leat_shape_make(4, cases[i].x)),
                 leat_placeholder(g, LEAT_FLOAT, leat_shape_make(4, cases[i].w)),
                 leat_attr_ints("strides", strides, 4), leat_attr_ints("dilations", rates, 4),
                 leat_attr_string("padding", "EXPLICIT"),
                 leat_attr_ints("explicit_paddings", pads, 8));
        CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, cases[i].words);
        leat_graph_free(g);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"refused_by_tensorflow", refused_by_tensorflow}, {"layouts", layouts},
               {"senseless", senseless});
}
