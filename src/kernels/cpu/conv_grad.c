/* conv_grad.c -- the gradients of Conv2D and Conv3D by their input and by their filter.
 *
 * By the input: if all strides are 1, a convolution of dy with the filter, whose windows are
 * reversed and whose channels are exchanged. Else, and if x has few channels, dy times the
 * transposed filter gives the gradient of each patch, and the patches are added into dx.
 *
 * By the filter: the transposed patches times dy. Pixels are divided into parts, whose products
 * are added; the number of parts depends on sizes only, so that threads do not change the sums. */
#include "kernels/cpu/conv_minimal.h"
#include "kernels/cpu/conv_thin.h"
#include "kernels/cpu/move.h"

enum {
    COLUMNS_BYTES = 4 << 20, /* of gradients of patches that are computed at a time */
    FEW_CHANNELS = 12,
    PART_PIXELS = 1024, /* least size of a part of the pixels */
    MOST_PARTS = 16,
    PARTS_BYTES = 32 << 20 /* most memory for the products of parts */
};

typedef struct grad_args {
    leat_kernel *k;
    leat_conv c;
    leat_dtype dtype;
    size_t size;
    int64_t channels, units; /* of a group: of x and of y */
    const char *x, *w, *dy;
    char *dx, *dw;
    leat_gemm_epilogue e;
} grad_args;

static void group_sizes(grad_args *a, leat_dtype t)
{
    a->dtype = t;
    a->size = leat_dtype_size(t);
    a->channels = a->c.in_depth / a->c.groups;
    a->units = a->c.out_depth / a->c.groups;
}

/* ---- By the input: a convolution ---- */

typedef struct reversal {
    const grad_args *a;
    int64_t group;
    void *to;
} reversal;

/* Windows [begin, end) of the reversed filter, (window, units, channels). */
static void reverse_part(void *arg, int64_t begin, int64_t end)
{
    const reversal *r = arg;
    const grad_args *a = r->a;
    const int64_t windows = leat_conv_volume(a->c.window);
    for (int64_t i = begin; i < end; i++)
        leat_move_crossed(a->size, (char *)r->to + (size_t)(i * a->units * a->channels) * a->size,
                          a->channels,
                          a->w + (size_t)(((windows - 1 - i) * a->channels) * a->c.out_depth +
                                          r->group * a->units) *
                                     a->size,
                          a->c.out_depth, a->units, a->channels);
}

static leat_status by_convolution(grad_args *a)
{
    leat_conv turned = a->c;
    leat_tensor *filter;
    const int64_t windows = leat_conv_volume(a->c.window);
    turned.in_depth = a->c.out_depth;
    turned.out_depth = a->c.in_depth;
    for (int i = 0; i < LEAT_CONV_SPACE; i++) {
        turned.in[i] = a->c.out[i];
        turned.out[i] = a->c.in[i];
        turned.before[i] = (a->c.window[i] - 1) * a->c.rate[i] - a->c.before[i];
    }
    LEAT_TRY(leat_kernel_temp(a->k, a->dtype, &(leat_shape){2, {windows * a->units, a->channels}},
                              &filter));
    for (int64_t g = 0; g < a->c.groups; g++) {
        reversal r = {a, g, filter->data};
        leat_kernel_for(a->k, windows, 0.5 * (double)(a->units * a->channels), reverse_part, &r);
        if (leat_conv_minimal_fits(&turned, a->dtype))
            return leat_conv_minimal(a->k, &turned, (const float *)a->dy, filter->data,
                                     (float *)a->dx, &a->e);
        const leat_conv_patches p = {.c = &turned,
                                     .dtype = a->dtype,
                                     .x = a->dy + (size_t)(g * a->units) * a->size,
                                     .depth = turned.in_depth,
                                     .channels = a->units};
        LEAT_TRY(leat_conv_multiply(a->k, leat_kernel_device(a->k)->intra, LEAT_GEMM_N,
                                    a->c.batch * leat_conv_volume(a->c.in), a->channels,
                                    windows * a->units, &p, filter->data, a->channels,
                                    a->dx + (size_t)(g * a->channels) * a->size, a->c.in_depth,
                                    &a->e));
    }
    return NULL;
}

/* ---- By the input: patches that are added ---- */

typedef struct columns {
    const grad_args *a;
    int64_t group;
    const void *data;   /* gradients of patches, (line, out width, window, channels) */
    int64_t begin, end; /* lines of (batch, out) that they are of */
    int64_t first;      /* the first line of (batch, in) that is looked at */
} columns;

/* The place in out over which window element w lies, if it lies over element i of in; else -1. */
static int64_t over(const leat_conv *c, int d, int64_t i, int64_t w)
{
    const int64_t at = i + c->before[d] - w * c->rate[d];
    return at < 0 || at % c->stride[d] || at / c->stride[d] >= c->out[d] ? -1 : at / c->stride[d];
}

/* Adds a line of patches, of which only the part that lies over one line of x is taken. */
#define ADD_LINE(T)                                                                                \
    static void add_line_##T(const grad_args *a, const T *from, T *restrict to)                    \
    {                                                                                              \
        const leat_conv *c = &a->c;                                                                \
        const int64_t patch = leat_conv_volume(c->window) * a->channels;                           \
        const bool dense = c->rate[2] == 1 && a->channels == c->in_depth;                          \
        for (int64_t o = 0; o < c->out[2]; o++, from += patch) {                                   \
            const int64_t left = o * c->stride[2] - c->before[2];                                  \
            if (dense) {                                                                           \
                const int64_t w0 = left < 0 ? -left : 0;                                           \
                const int64_t w1 =                                                                 \
                    c->in[2] - left < c->window[2] ? c->in[2] - left : c->window[2];               \
                for (int64_t i = w0 * a->channels; i < w1 * a->channels; i++)                      \
                    to[left * a->channels + i] += from[i];                                         \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t w = 0; w < c->window[2]; w++) {                                           \
                const int64_t x = left + w * c->rate[2];                                           \
                for (int64_t i = 0; x >= 0 && x < c->in[2] && i < a->channels; i++)                \
                    to[x * c->in_depth + i] += from[w * a->channels + i];                          \
            }                                                                                      \
        }                                                                                          \
    }
ADD_LINE(float)
ADD_LINE(double)

/* Lines [begin, end) of (batch, in), counted from `first`. */
static void add_part(void *arg, int64_t begin, int64_t end)
{
    const columns *s = arg;
    const grad_args *a = s->a;
    const leat_conv *c = &a->c;
    const int64_t line = c->out[2] * leat_conv_volume(c->window) * a->channels;
    for (int64_t l = s->first + begin; l < s->first + end; l++) {
        const int64_t i1 = l % c->in[1], i0 = l / c->in[1] % c->in[0], n = l / c->in[1] / c->in[0];
        char *to = a->dx + (size_t)(l * c->in[2] * c->in_depth + s->group * a->channels) * a->size;
        for (int64_t w0 = 0; w0 < c->window[0]; w0++) {
            const int64_t o0 = over(c, 0, i0, w0);
            for (int64_t w1 = 0; o0 >= 0 && w1 < c->window[1]; w1++) {
                const int64_t o1 = over(c, 1, i1, w1), at = (n * c->out[0] + o0) * c->out[1] + o1;
                if (o1 < 0 || at < s->begin || at >= s->end)
                    continue;
                const char *from = (const char *)s->data +
                                   (size_t)((at - s->begin) * line +
                                            (w0 * c->window[1] + w1) * c->window[2] * a->channels) *
                                       a->size;
                if (a->dtype == LEAT_DOUBLE)
                    add_line_double(a, (const double *)from, (double *)to);
                else
                    add_line_float(a, (const float *)from, (float *)to);
            }
        }
    }
}

static leat_status by_columns(grad_args *a, leat_tensor *dx)
{
    const leat_conv *c = &a->c;
    const int64_t patch = leat_conv_volume(c->window) * a->channels;
    const int64_t lines = c->batch * c->out[0] * c->out[1];
    int64_t line;
    LEAT_REQUIRE(leat_mul_ok(c->out[2], patch, &line), RESOURCE_EXHAUSTED,
                 "The patches of a line of images are too large: %" PRId64 " of %" PRId64
                 " elements each",
                 c->out[2], patch);
    int64_t some = COLUMNS_BYTES / (int64_t)a->size / line;
    some = some < 1 ? 1 : some < lines ? some : lines;
    leat_tensor *t;
    LEAT_TRY(leat_kernel_temp(a->k, a->dtype, &(leat_shape){2, {some, line}}, &t));
    memset(a->dx, 0, (size_t)dx->count * a->size);
    for (int64_t g = 0; g < c->groups; g++) {
        for (int64_t at = 0; at < lines && !leat_kernel_cancelled(a->k); at += some) {
            columns s = {a, g, t->data, at, at + some < lines ? at + some : lines, 0};
            leat_gemm(a->dtype, leat_kernel_device(a->k)->intra, LEAT_GEMM_N, LEAT_GEMM_T,
                      (s.end - s.begin) * c->out[2], patch, a->units,
                      a->dy + (size_t)(at * c->out[2] * c->out_depth + g * a->units) * a->size,
                      c->out_depth, a->w + (size_t)(g * a->units) * a->size, c->out_depth, t->data,
                      patch, &a->e);
            const int64_t in_lines = c->in[0] * c->in[1], out_lines = c->out[0] * c->out[1];
            s.first = s.begin / out_lines * in_lines; /* the first line of an image */
            const int64_t last = ((s.end - 1) / out_lines + 1) * in_lines;
            leat_kernel_for(a->k, last - s.first,
                            0.2 * (double)((s.end - s.begin) * line) / (double)(last - s.first),
                            add_part, &s);
        }
    }
    return NULL;
}

static leat_status by_input(leat_kernel *k)
{
    const leat_conv_attrs *attrs = leat_kernel_state(k);
    const leat_tensor *w = leat_kernel_in(k, 1), *dy = leat_kernel_in(k, 2);
    const char *op = leat_node_op(leat_kernel_node(k));
    leat_shape shape = leat_kernel_in(k, 0)->shape;
    leat_tensor *dx;
    leat_loop_stop stop;
    grad_args a = {.k = k, .e = {.stop = leat_kernel_stop(k, &stop)}};
    if (strcmp(op, "Conv3DBackpropInput"))
        LEAT_TRY(leat_conv_read_sizes(leat_kernel_in(k, 0),
                                      attrs->space == 3 ? "Conv3DBackpropInputV2: input_sizes"
                                                        : "Conv2DBackpropInput: input_sizes",
                                      &shape));
    LEAT_TRY(leat_conv_place_grad(
        attrs, attrs->space == 3 ? "Conv3DBackpropInputOp" : "Conv2DBackpropInput", &shape,
        &w->shape, &dy->shape, &a.c));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &dx));
    if (!dx->count)
        return NULL;
    if (!w->count || !dy->count) {
        LEAT_TRY(leat_move_zero(k, dx));
        return NULL;
    }
    group_sizes(&a, dx->dtype);
    a.w = w->data;
    LEAT_TRY(leat_conv_channels_last(k, attrs, dy, (const void **)&a.dy));
    LEAT_TRY(leat_conv_out_begin(k, attrs, dx, (void **)&a.dx));
    const bool steps = a.c.stride[0] != 1 || a.c.stride[1] != 1 || a.c.stride[2] != 1;
    if (steps || a.channels < FEW_CHANNELS)
        LEAT_TRY(by_columns(&a, dx));
    else
        LEAT_TRY(by_convolution(&a));
    return leat_conv_out_end(k, attrs, dx, a.dx);
}

/* ---- By the filter ---- */

typedef struct parts {
    const grad_args *a;
    int64_t group, count, rows, pixels; /* rows: of dw */
    char *sums;                         /* (parts, rows, units) */
    int64_t ld;                         /* between rows of a part's sums */
    leat_pool *pool;
    leat_status status[MOST_PARTS];
} parts;

static void product_part(void *arg, int64_t begin, int64_t end)
{
    parts *s = arg;
    const grad_args *a = s->a;
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = s->pixels * i / s->count, to = s->pixels * (i + 1) / s->count;
        const leat_conv_patches p = {.c = &a->c,
                                     .dtype = a->dtype,
                                     .x = a->x + (size_t)(s->group * a->channels) * a->size,
                                     .depth = a->c.in_depth,
                                     .channels = a->channels,
                                     .first = from};
        s->status[i] = leat_conv_multiply(
            a->k, s->pool, LEAT_GEMM_T, s->rows, a->units, to - from, &p,
            a->dy + (size_t)(from * a->c.out_depth + s->group * a->units) * a->size, a->c.out_depth,
            s->sums + (size_t)(i * s->rows * a->units) * a->size, s->ld, &a->e);
    }
}

#define SUM(T)                                                                                     \
    static void sum_##T(const parts *s, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const int64_t units = s->a->units, all = s->rows * units;                                  \
        for (int64_t r = begin; r < end; r++) {                                                    \
            const T *from = (const T *)s->sums + r * units;                                        \
            T *restrict to = (T *)s->a->dw + r * s->a->c.out_depth + s->group * units;             \
            for (int64_t u = 0; u < units; u++)                                                    \
                to[u] = from[u];                                                                   \
            for (int64_t i = 1; i < s->count; i++)                                                 \
                for (int64_t u = 0; u < units; u++)                                                \
                    to[u] += from[i * all + u];                                                    \
        }                                                                                          \
    }
SUM(float)
SUM(double)

static void sum_part(void *arg, int64_t begin, int64_t end)
{
    if (((parts *)arg)->a->dtype == LEAT_DOUBLE)
        sum_double(arg, begin, end);
    else
        sum_float(arg, begin, end);
}

/* If the filter is large, its rows are divided among threads instead of the pixels. */
static leat_status by_parts(grad_args *a)
{
    parts s = {.a = a,
               .rows = leat_conv_volume(a->c.window) * a->channels,
               .pixels = a->c.batch * leat_conv_volume(a->c.out)};
    const int64_t bytes = s.rows * a->units * (int64_t)a->size;
    s.count = s.pixels / PART_PIXELS < MOST_PARTS ? s.pixels / PART_PIXELS : MOST_PARTS;
    if (s.count > PARTS_BYTES / bytes)
        s.count = PARTS_BYTES / bytes;
    leat_tensor *t = NULL;
    if (s.count > 1)
        LEAT_TRY(
            leat_kernel_temp(a->k, a->dtype, &(leat_shape){3, {s.count, s.rows, a->units}}, &t));
    for (s.group = 0; s.group < a->c.groups; s.group++) {
        if (s.count > 1) {
            s.sums = t->data;
            s.ld = a->units;
            leat_kernel_for(a->k, s.count,
                            0.02 * (double)s.rows * (double)a->units * (double)(s.pixels / s.count),
                            product_part, &s);
        } else {
            s.count = 1;
            s.sums = a->dw + (size_t)(s.group * a->units) * a->size;
            s.ld = a->c.out_depth;
            s.pool = leat_kernel_device(a->k)->intra;
            product_part(&s, 0, 1);
        }
        leat_status bad = NULL;
        for (int64_t i = 0; i < s.count; i++) {
            if (bad)
                leat_status_free(s.status[i]);
            else
                bad = s.status[i];
        }
        LEAT_TRY(bad);
        if (s.count > 1)
            leat_kernel_for(a->k, s.rows, 0.1 * (double)(s.count * a->units), sum_part, &s);
    }
    return NULL;
}

static leat_status by_filter(leat_kernel *k)
{
    const leat_conv_attrs *attrs = leat_kernel_state(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *dy = leat_kernel_in(k, 2);
    const char *op = leat_node_op(leat_kernel_node(k));
    leat_shape shape = leat_kernel_in(k, 1)->shape;
    leat_tensor *dw;
    leat_loop_stop stop;
    grad_args a = {.k = k, .e = {.stop = leat_kernel_stop(k, &stop)}};
    if (strcmp(op, "Conv3DBackpropFilter"))
        LEAT_TRY(leat_conv_read_sizes(leat_kernel_in(k, 1),
                                      attrs->space == 3 ? "Conv3DBackpropFilterV2: filter_sizes"
                                                        : "Conv2DBackpropFilter: filter_sizes",
                                      &shape));
    LEAT_TRY(leat_conv_place_grad(
        attrs, attrs->space == 3 ? "Conv3DBackpropFilterOp" : "Conv2DBackpropFilter", &x->shape,
        &shape, &dy->shape, &a.c));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &dw));
    if (!dw->count)
        return NULL;
    if (!x->count || !dy->count) {
        LEAT_TRY(leat_move_zero(k, dw));
        return NULL;
    }
    group_sizes(&a, dw->dtype);
    a.dw = dw->data;
    LEAT_TRY(leat_conv_channels_last(k, attrs, x, (const void **)&a.x));
    LEAT_TRY(leat_conv_channels_last(k, attrs, dy, (const void **)&a.dy));
    const bool minimal = leat_conv_minimal_fits(&a.c, a.dtype);
    if (minimal || leat_conv_thin_fits(&a.c, a.dtype))
        return (minimal ? leat_conv_minimal_by_filter : leat_conv_thin_by_filter)(
            k, &a.c, (const float *)a.x, (const float *)a.dy, (float *)a.dw, a.e.stop);
    return by_parts(&a);
}

#define KERNEL(name, fn)                                                                           \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_ROW_FLOAT}}, .run = fn,                                   \
        .state_size = sizeof(leat_conv_attrs), .init = leat_conv_init,                             \
        .flags = LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_EXPENSIVE                                     \
    }

const leat_kernel_def leat_cpu_conv_grad[] = {
    KERNEL("Conv2DBackpropInput", by_input),
    KERNEL("Conv2DBackpropFilter", by_filter),
    KERNEL("Conv3DBackpropInput", by_input),
    KERNEL("Conv3DBackpropInputV2", by_input),
    KERNEL("Conv3DBackpropFilter", by_filter),
    KERNEL("Conv3DBackpropFilterV2", by_filter),
    {0},
};
