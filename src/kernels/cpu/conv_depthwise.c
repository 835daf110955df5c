/* conv_depthwise.c -- DepthwiseConv2dNative, in which each channel is convolved with filters of its
 * own, and its gradients. x is (batch, rows, columns, channels), w is (window rows, window columns,
 * channels, multiplier), y is (batch, rows, columns, channels * multiplier).
 *
 * Each pixel of y is a sum over windows of products of channels, which vectors do side by side. */
#include "kernels/cpu/conv.h"
#include "kernels/cpu/move.h"

enum { PART_LINES = 16, MOST_PARTS = 16, PARTS_BYTES = 128 << 20 };

typedef struct depthwise {
    leat_kernel *k;
    leat_conv c; /* in_depth is that of x; out_depth is channels * multiplier */
    leat_dtype dtype;
    int64_t multiplier;
    const void *x, *w, *dy;
    void *out;     /* y, dx or the sums of dw's parts */
    void *dw;      /* the sum of the parts */
    int64_t parts; /* of the lines of y */
} depthwise;

static leat_status depthwise_init(const leat_node *n, void *state)
{
    leat_conv_attrs *a = state;
    const int64_t *v;
    int count;
    *a = (leat_conv_attrs){.space = 2,
                           .channels_first = leat_channels_first(n),
                           .padding = leat_padding_of(n),
                           .rate = {1, 1, 1}};
    LEAT_TRY(leat_window_attr(n, "strides", &v, &count));
    LEAT_REQUIRE(count == 4, INVALID_ARGUMENT,
                 "Sliding window strides field must specify 4 dimensions");
    LEAT_REQUIRE(v[0] == 1 && v[a->channels_first ? 1 : 3] == 1, INVALID_ARGUMENT,
                 "Current implementation does not yet support strides in the batch and depth "
                 "dimensions.");
    a->stride[0] = 1;
    a->stride[1] = v[a->channels_first ? 2 : 1];
    a->stride[2] = v[a->channels_first ? 3 : 2];
    /* Dilations have no effect, as in TensorFlow 1.15; those that are none are refused. */
    LEAT_TRY(leat_window_attr(n, "dilations", &v, &count));
    LEAT_REQUIRE(count == 4, INVALID_ARGUMENT,
                 "Sliding window dilations field must specify 4 dimensions");
    for (int i = 0; i < count; i++)
        LEAT_TRY(leat_window_check_steps(1, v[i]));
    return NULL;
}

/* Pixels of y [o, o_end) over which window column w of x's width lies. */
static inline void columns(const leat_conv *c, int64_t w, int64_t *begin, int64_t *end)
{
    const int64_t s = c->stride[2], at = w - c->before[2]; /* the column of x below pixel 0 */
    *begin = at >= 0 ? 0 : (-at + s - 1) / s;
    *end = at >= c->in[2] ? 0 : (c->in[2] - at + s - 1) / s;
    if (*end > c->out[2])
        *end = c->out[2];
}

/* Calls BODY for each pixel of line l of y and each window element over an element of x, with x at
 * the pixel of the image, w at the window element, and y at the pixel. Returns early once the step
 * is over. */
#define EACH(T, d, l, look, image, filter, result, BODY)                                           \
    const leat_conv *c = &(d)->c;                                                                  \
    const int64_t top = (l) % c->out[1] * c->stride[1] - c->before[1], depth = c->out_depth;       \
    const int64_t first = (l) / c->out[1] * c->in[1];                                              \
    for (int64_t w1 = 0; w1 < c->window[1]; w1++) {                                                \
        if (top + w1 < 0 || top + w1 >= c->in[1])                                                  \
            continue;                                                                              \
        if (leat_look_over(look, c->window[2] * c->out[2] * depth))                                \
            return;                                                                                \
        for (int64_t w2 = 0; w2 < c->window[2]; w2++) {                                            \
            int64_t o, o_end;                                                                      \
            columns(c, w2, &o, &o_end);                                                            \
            T *w = (T *)(filter) + (w1 * c->window[2] + w2) * depth;                               \
            for (; o < o_end; o++) {                                                               \
                T *x = (T *)(image) +                                                              \
                       ((first + top + w1) * c->in[2] + o * c->stride[2] - c->before[2] + w2) *    \
                           c->in_depth;                                                            \
                T *y = (T *)(result) + ((l)*c->out[2] + o) * depth;                                \
                BODY(T, x, w, y, (d)->multiplier, c->in_depth)                                     \
            }                                                                                      \
        }                                                                                          \
    }

#define FORWARD(T, x, w, y, multiplier, channels)                                                  \
    if (multiplier == 1) {                                                                         \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < channels; i++)                                                     \
            y[i] += x[i] * w[i];                                                                   \
    } else {                                                                                       \
        for (int64_t i = 0, j = 0; i < channels; i++)                                              \
            for (int64_t q = 0; q < multiplier; q++, j++)                                          \
                y[j] += x[i] * w[j];                                                               \
    }
#define BY_INPUT(T, x, w, y, multiplier, channels)                                                 \
    if (multiplier == 1) {                                                                         \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < channels; i++)                                                     \
            x[i] += y[i] * w[i];                                                                   \
    } else {                                                                                       \
        for (int64_t i = 0, j = 0; i < channels; i++)                                              \
            for (int64_t q = 0; q < multiplier; q++, j++)                                          \
                x[i] += y[j] * w[j];                                                               \
    }
#define BY_FILTER(T, x, w, y, multiplier, channels)                                                \
    if (multiplier == 1) {                                                                         \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < channels; i++)                                                     \
            w[i] += x[i] * y[i];                                                                   \
    } else {                                                                                       \
        for (int64_t i = 0, j = 0; i < channels; i++)                                              \
            for (int64_t q = 0; q < multiplier; q++, j++)                                          \
                w[j] += x[i] * y[j];                                                               \
    }

#define LINES(T)                                                                                   \
    static void forward_##T(const depthwise *d, int64_t l, leat_look *look)                        \
    {                                                                                              \
        EACH(T, d, l, look, d->x, d->w, d->out, FORWARD)                                           \
    }                                                                                              \
    static void by_input_##T(const depthwise *d, int64_t l, leat_look *look)                       \
    {                                                                                              \
        EACH(T, d, l, look, d->out, d->w, d->dy, BY_INPUT)                                         \
    }                                                                                              \
    static void by_filter_##T(const depthwise *d, int64_t l, leat_look *look, T *sums)             \
    {                                                                                              \
        EACH(T, d, l, look, d->x, sums, d->dy, BY_FILTER)                                          \
    }                                                                                              \
    static void sum_parts_##T(const depthwise *d, int64_t begin, int64_t end)                      \
    {                                                                                              \
        const int64_t n = leat_conv_volume(d->c.window) * d->c.out_depth;                          \
        for (int64_t i = begin; i < end; i++) {                                                    \
            T sum = 0;                                                                             \
            for (int64_t p = 0; p < d->parts; p++)                                                 \
                sum += ((const T *)d->out)[p * n + i];                                             \
            ((T *)d->dw)[i] = sum;                                                                 \
        }                                                                                          \
    }
LINES(float)
LINES(double)

/* Lines [begin, end) of y. */
static void forward_part(void *arg, int64_t begin, int64_t end)
{
    const depthwise *d = arg;
    leat_look look = leat_look_begin(d->k);
    const size_t line = (size_t)(d->c.out[2] * d->c.out_depth) * leat_dtype_size(d->dtype);
    memset((char *)d->out + (size_t)begin * line, 0, (size_t)(end - begin) * line);
    for (int64_t l = begin; l < end; l++) {
        if (d->dtype == LEAT_DOUBLE)
            forward_double(d, l, &look);
        else
            forward_float(d, l, &look);
    }
}

/* Images [begin, end): lines of y share lines of dx. */
static void by_input_part(void *arg, int64_t begin, int64_t end)
{
    const depthwise *d = arg;
    leat_look look = leat_look_begin(d->k);
    const int64_t image = leat_conv_volume(d->c.in) * d->c.in_depth;
    const size_t bytes = (size_t)image * leat_dtype_size(d->dtype);
    memset((char *)d->out + (size_t)begin * bytes, 0, (size_t)(end - begin) * bytes);
    for (int64_t l = begin * d->c.out[1]; l < end * d->c.out[1]; l++) {
        if (d->dtype == LEAT_DOUBLE)
            by_input_double(d, l, &look);
        else
            by_input_float(d, l, &look);
    }
}

static void by_filter_part(void *arg, int64_t begin, int64_t end)
{
    const depthwise *d = arg;
    leat_look look = leat_look_begin(d->k);
    const int64_t n = leat_conv_volume(d->c.window) * d->c.out_depth;
    const int64_t lines = d->c.batch * d->c.out[1];
    const size_t bytes = (size_t)n * leat_dtype_size(d->dtype);
    for (int64_t p = begin; p < end; p++) {
        char *sums = (char *)d->out + (size_t)p * bytes;
        memset(sums, 0, bytes);
        for (int64_t l = lines * p / d->parts; l < lines * (p + 1) / d->parts; l++) {
            if (d->dtype == LEAT_DOUBLE)
                by_filter_double(d, l, &look, (double *)sums);
            else
                by_filter_float(d, l, &look, (float *)sums);
        }
    }
}

static void sum_part(void *arg, int64_t begin, int64_t end)
{
    if (((depthwise *)arg)->dtype == LEAT_DOUBLE)
        sum_parts_double(arg, begin, end);
    else
        sum_parts_float(arg, begin, end);
}

/* The sizes; the rank of both shapes was checked. */
static leat_status place(const leat_conv_attrs *a, const leat_shape *x, const leat_shape *w,
                         depthwise *d)
{
    leat_conv *c = &d->c;
    const int at = a->channels_first ? 2 : 1;
    *c = (leat_conv){.batch = x->dim[0],
                     .in_depth = x->dim[a->channels_first ? 1 : 3],
                     .groups = 1,
                     .in = {1, x->dim[at], x->dim[at + 1]},
                     .window = {1, w->dim[0], w->dim[1]},
                     .out = {1}};
    d->multiplier = w->dim[3];
    LEAT_REQUIRE(leat_mul_ok(c->in_depth, d->multiplier, &c->out_depth), INVALID_ARGUMENT,
                 "Output depth too large: %" PRId64 " times %" PRId64, c->in_depth, d->multiplier);
    for (int i = 0; i < LEAT_CONV_SPACE; i++) {
        c->stride[i] = a->stride[i];
        c->rate[i] = 1;
        LEAT_TRY(leat_window_place(c->in[i], c->window[i], 1, c->stride[i], a->padding,
                                   &c->before[i], 0, &c->out[i]));
    }
    return NULL;
}

/* The time that a line of y takes. */
static double line_ns(const depthwise *d)
{
    return 0.1 * (double)leat_conv_volume(d->c.window) * (double)d->c.out[2] *
           (double)d->c.out_depth;
}

static leat_status forward(leat_kernel *k)
{
    const leat_conv_attrs *a = leat_kernel_state(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *w = leat_kernel_in(k, 1);
    leat_tensor *y;
    depthwise d = {.k = k};
    LEAT_REQUIRE(x->shape.rank == 4, INVALID_ARGUMENT, "input must be 4-dimensional%s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(w->shape.rank == 4, INVALID_ARGUMENT, "filter must be 4-dimensional: %s",
                 leat_shape_show(&w->shape).s);
    const int64_t depth = x->shape.dim[a->channels_first ? 1 : 3];
    LEAT_REQUIRE(depth == w->shape.dim[2], INVALID_ARGUMENT,
                 "input and filter must have the same depth: %" PRId64 " vs %" PRId64, depth,
                 w->shape.dim[2]);
    LEAT_TRY(place(a, &x->shape, &w->shape, &d));
    const leat_shape shape = leat_conv_shape(a, d.c.batch, d.c.out, d.c.out_depth);
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    if (!y->count)
        return NULL;
    d.dtype = y->dtype;
    d.w = w->data;
    LEAT_TRY(leat_conv_channels_last(k, a, x, &d.x));
    LEAT_TRY(leat_conv_out_begin(k, a, y, &d.out));
    leat_kernel_for(k, d.c.batch * d.c.out[1], line_ns(&d), forward_part, &d);
    return leat_conv_out_end(k, a, y, d.out);
}

/* Checks the shapes of x, w and dy. */
static leat_status place_grad(const leat_conv_attrs *a, const char *label, const leat_shape *x,
                              const leat_shape *w, const leat_shape *dy, depthwise *d)
{
    const int channel = a->channels_first ? 1 : 3;
    LEAT_REQUIRE(x->rank == 4, INVALID_ARGUMENT, "%s: input must be 4-dimensional", label);
    LEAT_REQUIRE(w->rank == 4, INVALID_ARGUMENT, "%s: filter must be 4-dimensional", label);
    LEAT_REQUIRE(dy->rank == 4, INVALID_ARGUMENT, "%s: out_backprop must be 4-dimensional", label);
    LEAT_REQUIRE(x->dim[0] == dy->dim[0], INVALID_ARGUMENT,
                 "%s: input and out_backprop must have the same batch size", label);
    LEAT_REQUIRE(x->dim[channel] == w->dim[2], INVALID_ARGUMENT,
                 "%s: input and filter must have the same in_depth", label);
    LEAT_TRY(place(a, x, w, d));
    LEAT_REQUIRE(d->c.out_depth == dy->dim[channel], INVALID_ARGUMENT,
                 "%s: depth_multiplier * in_depth not equal to out_depth", label);
    for (int i = 1; i < LEAT_CONV_SPACE; i++)
        LEAT_REQUIRE(dy->dim[i + a->channels_first] == d->c.out[i], INVALID_ARGUMENT,
                     "%s: Number of %s of out_backprop doesn't match computed: actual = %" PRId64
                     ", computed = %" PRId64,
                     label, i == 1 ? "rows" : "cols", dy->dim[i + a->channels_first], d->c.out[i]);
    return NULL;
}

static leat_status by_input(leat_kernel *k)
{
    const leat_conv_attrs *a = leat_kernel_state(k);
    const leat_tensor *w = leat_kernel_in(k, 1), *dy = leat_kernel_in(k, 2);
    leat_shape shape;
    leat_tensor *dx;
    depthwise d = {.k = k};
    LEAT_TRY(
        leat_conv_read_sizes(leat_kernel_in(k, 0), "Conv2DBackpropInput: input_sizes", &shape));
    LEAT_TRY(place_grad(a, "DepthwiseConv2DBackpropInput", &shape, &w->shape, &dy->shape, &d));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &dx));
    if (!dx->count)
        return NULL;
    d.dtype = dx->dtype;
    d.w = w->data;
    LEAT_TRY(leat_conv_channels_last(k, a, dy, &d.dy));
    LEAT_TRY(leat_conv_out_begin(k, a, dx, &d.out));
    leat_kernel_for(k, d.c.batch, line_ns(&d) * (double)d.c.out[1], by_input_part, &d);
    return leat_conv_out_end(k, a, dx, d.out);
}

/* Parts of the lines of y; each needs the memory of dw. */
static int64_t parts_of(int64_t lines, const leat_tensor *dw)
{
    const int64_t held = PARTS_BYTES / (int64_t)leat_tensor_bytes(dw);
    const int64_t most = held < MOST_PARTS ? held : MOST_PARTS, parts = lines / PART_LINES;
    return parts < 2 || most < 2 ? 1 : parts < most ? parts : most;
}

static leat_status by_filter(leat_kernel *k)
{
    const leat_conv_attrs *a = leat_kernel_state(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *dy = leat_kernel_in(k, 2);
    leat_shape shape;
    leat_tensor *dw, *sums;
    depthwise d = {.k = k};
    LEAT_TRY(
        leat_conv_read_sizes(leat_kernel_in(k, 1), "Conv2DBackpropFilter: filter_sizes", &shape));
    LEAT_TRY(place_grad(a, "DepthwiseConv2DBackpropFilter", &x->shape, &shape, &dy->shape, &d));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &dw));
    if (!dw->count)
        return NULL;
    const int64_t lines = d.c.batch * d.c.out[1];
    d.dtype = dw->dtype;
    d.dw = dw->data;
    d.parts = parts_of(lines, dw);
    d.out = dw->data;
    if (d.parts > 1) {
        LEAT_TRY(leat_kernel_temp(k, dw->dtype, &(leat_shape){2, {d.parts, dw->count}}, &sums));
        d.out = sums->data;
    }
    LEAT_TRY(leat_conv_channels_last(k, a, x, &d.x));
    LEAT_TRY(leat_conv_channels_last(k, a, dy, &d.dy));
    leat_kernel_for(k, d.parts, line_ns(&d) * (double)lines / (double)d.parts, by_filter_part, &d);
    if (d.parts > 1)
        leat_kernel_for(k, dw->count, (double)d.parts, sum_part, &d);
    return NULL;
}

#define KERNEL(name, fn)                                                                           \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_ROW_FLOAT}}, .run = fn,                                   \
        .state_size = sizeof(leat_conv_attrs), .init = depthwise_init,                             \
        .flags = LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_EXPENSIVE                                     \
    }

const leat_kernel_def leat_cpu_conv_depthwise[] = {
    KERNEL("DepthwiseConv2dNative", forward),
    KERNEL("DepthwiseConv2dNativeBackpropInput", by_input),
    KERNEL("DepthwiseConv2dNativeBackpropFilter", by_filter),
    {0},
};
