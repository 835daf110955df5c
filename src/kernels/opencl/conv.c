/* conv.c -- Conv2D, _FusedConv2D and the gradients, as products of matrices (gemm.h): the windows
 * of an image that has its padding are rows of a matrix as they lie in memory. minimal.c computes
 * those of 5 by 5 that it can.
 *
 * 1. Forward, a row is the window of a pixel of the result; its parts are the window's rows.
 * 2. The gradient by the filter has a row for each element of the filter's windows, whose parts are
 *    the rows of the result.
 * 3. The gradient by the input is a forward convolution of dy, spread out by the strides and
 * padded, with the filter turned around.
 */
#include "kernels/cpu/conv.h"
#include "kernels/opencl/minimal.h"
#include "kernels/opencl/walk.h"

typedef struct conv_state {
    leat_conv_attrs attrs; /* first: the kernels of gradients have these alone */
    leat_cl_fused fused;
} conv_state;

/* Images with the channels last: (batch, rows, columns, depth). */
typedef struct images {
    const float *at;
    int64_t batch, rows, columns, depth;
} images;

static int64_t row_of(const images *x)
{
    return x->columns * x->depth;
}

/* Swaps the inner two of three dimensions: (batch, a, b) becomes (batch, b, a). */
static leat_status cross(leat_opencl *d, int64_t batch, int64_t a, int64_t b, void *to,
                         const void *from)
{
    leat_cl_walk w = {0};
    LEAT_TRY(leat_cl_walk_dim(&w, batch, a * b, a * b));
    LEAT_TRY(leat_cl_walk_dim(&w, b, a, 1));
    LEAT_TRY(leat_cl_walk_dim(&w, a, 1, b));
    return leat_cl_move(d, &w, sizeof(float), to, from);
}

static leat_status channels_last(leat_kernel *k, const leat_conv_attrs *a, const leat_tensor *t,
                                 const float **out)
{
    leat_tensor *copy;
    *out = t->data;
    if (!a->channels_first)
        return NULL;
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &t->shape, &copy));
    *out = copy->data;
    return cross(leat_cl_of(k), t->shape.dim[0], t->shape.dim[1], t->shape.dim[2] * t->shape.dim[3],
                 copy->data, t->data);
}

/* Memory for a result with the channels last: the tensor's own, or some that is moved there. */
static leat_status out_begin(leat_kernel *k, const leat_conv_attrs *a, leat_tensor *t, float **out)
{
    leat_tensor *copy = t;
    if (a->channels_first)
        LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &t->shape, &copy));
    *out = copy->data;
    return NULL;
}

static leat_status out_end(leat_kernel *k, leat_tensor *t, const float *from)
{
    if (from == t->data)
        return NULL;
    return cross(leat_cl_of(k), t->shape.dim[0], t->shape.dim[2] * t->shape.dim[3], t->shape.dim[1],
                 t->data, from);
}

/* How elements of one dimension are laid out in a larger one. */
typedef struct spread {
    int64_t size;         /* of the larger one */
    int64_t before, step; /* element i is at before + i * step; what is outside is left out */
    int64_t first, count; /* the elements that are inside */
} spread;

static spread spread_of(int64_t size, int64_t before, int64_t step, int64_t n)
{
    spread s = {size, before, step, 0, 0};
    if (before < 0)
        s.first = (-before + step - 1) / step;
    const int64_t last = (size - 1 - before) / step; /* of those that fit */
    const int64_t end = size - 1 < before ? 0 : last + 1 < n ? last + 1 : n;
    s.count = end > s.first ? end - s.first : 0;
    return s;
}

/* Images laid out in larger ones, with zeros around and between them. */
static leat_status lay_out(leat_kernel *k, images *x, const spread *rows, const spread *columns)
{
    const images from = *x;
    const leat_shape shape = leat_shape(from.batch, rows->size, columns->size, from.depth);
    leat_tensor *t;
    leat_cl_walk w = {0};
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &shape, &t));
    LEAT_TRY(leat_cl_fill(leat_cl_of(k), t->data, t->count, sizeof(float), NULL));
    *x = (images){t->data, from.batch, rows->size, columns->size, from.depth};
    LEAT_TRY(leat_cl_walk_dim(&w, from.batch, x->rows * row_of(x), from.rows * row_of(&from)));
    LEAT_TRY(leat_cl_walk_dim(&w, rows->count, rows->step * row_of(x), row_of(&from)));
    LEAT_TRY(leat_cl_walk_dim(&w, columns->count, columns->step * x->depth, x->depth));
    LEAT_TRY(leat_cl_walk_dim(&w, x->depth, 1, 1));
    const int64_t to = (rows->before + rows->first * rows->step) * row_of(x) +
                       (columns->before + columns->first * columns->step) * x->depth;
    return leat_cl_move(leat_cl_of(k), &w, sizeof(float), (float *)t->data + to,
                        from.at + rows->first * row_of(&from) + columns->first * from.depth);
}

/* The images of the input with their padding, unless they need none. */
static leat_status pad(leat_kernel *k, const leat_conv *c, images *x)
{
    int64_t need[3];
    bool fits = true;
    for (int i = 1; i < 3; i++) {
        need[i] = (c->out[i] - 1) * c->stride[i] + (c->window[i] - 1) * c->rate[i] + 1;
        fits &= !c->before[i] && need[i] <= c->in[i];
    }
    if (fits)
        return NULL;
    const spread rows = spread_of(need[1], c->before[1], 1, c->in[1]);
    const spread columns = spread_of(need[2], c->before[2], 1, c->in[2]);
    return lay_out(k, x, &rows, &columns);
}

/* The windows of c over images x, whose pixels give (rows, columns) results, as the left matrix.
 * `depth` of the channels belong to a group. Sets parts. */
static void windows(leat_cl_product *p, const leat_conv *c, const images *x, const int64_t *stride,
                    int64_t rows, int64_t columns, int64_t depth)
{
    const bool whole = c->rate[2] == 1 && depth == x->depth;
    p->left.rows =
        (leat_cl_digits){(int32_t)rows,
                         (int32_t)columns,
                         {(int32_t)(x->rows * row_of(x)), (int32_t)(stride[1] * row_of(x)),
                          (int32_t)(stride[2] * x->depth)}};
    p->left.parts =
        (leat_cl_digits){(int32_t)c->window[1],
                         whole ? 1 : (int32_t)c->window[2],
                         {0, (int32_t)(c->rate[1] * row_of(x)), (int32_t)(c->rate[2] * x->depth)}};
    p->left.len = (int32_t)(whole ? c->window[2] * depth : depth);
    p->left.by = 1;
    p->parts = whole ? c->window[1] : c->window[1] * c->window[2];
}

/* Whether all places in memory are below 2**31. */
static leat_status countable(const images *x)
{
    int64_t n = x->batch;
    LEAT_REQUIRE(leat_mul_ok(n, x->rows, &n) && leat_mul_ok(n, row_of(x), &n) && n <= INT32_MAX,
                 UNIMPLEMENTED,
                 "kernels of GPUs count to 2**31 - 1, and images here have more elements");
    return NULL;
}

static leat_status fused_init(const leat_node *n, void *state)
{
    conv_state *s = state;
    LEAT_TRY(leat_cl_fused_init(n, &s->fused));
    LEAT_TRY(leat_conv_init(n, &s->attrs));
    LEAT_REQUIRE(!s->attrs.channels_first, UNIMPLEMENTED,
                 "_FusedConv2D: data_format is NCHW, and the kernel of GPUs is for NHWC");
    return NULL;
}

static leat_status conv(leat_kernel *k)
{
    const conv_state *s = leat_kernel_state(k);
    const leat_conv_attrs *a = &s->attrs;
    const leat_tensor *x = leat_kernel_in(k, 0), *w = leat_kernel_in(k, 1);
    leat_tensor *y;
    leat_conv c;
    LEAT_TRY(leat_conv_place(a, &x->shape, &w->shape, &c));
    const leat_shape shape = leat_conv_shape(a, c.batch, c.out, c.out_depth);
    leat_cl_product p = {.n = c.out_depth, .ldc = c.out_depth};
    LEAT_TRY(leat_cl_fused_end(k, &s->fused, &shape, &p.end));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    if (!y->count)
        return NULL;
    if (!x->count || !w->count) { /* a product of no terms */
        p.m = y->count / c.out_depth;
        p.c = y->data;
        return leat_cl_gemm(k, &p);
    }
    images in = {NULL, c.batch, c.in[1], c.in[2], c.in_depth};
    float *out;
    LEAT_TRY(channels_last(k, a, x, &in.at));
    LEAT_TRY(countable(&in));
    LEAT_TRY(out_begin(k, a, y, &out));
    if (leat_conv_suits_minimal(&c)) {
        LEAT_TRY(leat_cl_minimal(k, &c, in.at, w->data, out, &p.end));
        return out_end(k, y, out);
    }
    LEAT_TRY(pad(k, &c, &in));
    LEAT_TRY(countable(&in));
    const int64_t depth = c.in_depth / c.groups, units = c.out_depth / c.groups;
    const float *bias = p.end.bias;
    p.m = c.batch * c.out[1] * c.out[2];
    p.n = units;
    p.b_down = c.out_depth;
    p.b_right = 1;
    windows(&p, &c, &in, c.stride, c.out[1], c.out[2], depth);
    for (int64_t g = 0; g < c.groups; g++) {
        p.a = in.at + g * depth;
        p.b = (const float *)w->data + g * units;
        p.c = out + g * units;
        p.end.bias = bias ? bias + g * units : NULL;
        LEAT_TRY(leat_cl_gemm(k, &p));
    }
    return out_end(k, y, out);
}

/* ---- Gradients ---- */

/* The filter of a group turned around, as the matrix ((row, column, unit), channel). */
static leat_status turn(leat_kernel *k, const leat_conv *c, const float *w, int64_t g,
                        const float **out)
{
    const int64_t depth = c->in_depth / c->groups, units = c->out_depth / c->groups;
    const int64_t column = depth * c->out_depth, row = c->window[2] * column;
    const leat_shape shape = leat_shape(c->window[1] * c->window[2] * units, depth);
    leat_tensor *t;
    leat_cl_walk walk = {0};
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &shape, &t));
    LEAT_TRY(leat_cl_walk_dim(&walk, c->window[1], c->window[2] * units * depth, -row));
    LEAT_TRY(leat_cl_walk_dim(&walk, c->window[2], units * depth, -column));
    LEAT_TRY(leat_cl_walk_dim(&walk, units, depth, 1));
    LEAT_TRY(leat_cl_walk_dim(&walk, depth, 1, c->out_depth));
    *out = t->data;
    return leat_cl_move(leat_cl_of(k), &walk, sizeof(float), t->data,
                        w + (c->window[1] - 1) * row + (c->window[2] - 1) * column + g * units);
}

/* The convolution of dy by the filter turned around that gives dx, if there are no strides. */
static leat_conv turned_of(const leat_conv *c)
{
    leat_conv t = *c;
    t.in_depth = c->out_depth;
    t.out_depth = c->in_depth;
    for (int i = 0; i < LEAT_CONV_SPACE; i++) {
        t.in[i] = c->out[i];
        t.out[i] = c->in[i];
        t.before[i] = (c->window[i] - 1) * c->rate[i] - c->before[i];
    }
    return t;
}

static leat_status by_input(leat_kernel *k)
{
    const leat_conv_attrs *a = leat_kernel_state(k);
    const leat_tensor *w = leat_kernel_in(k, 1), *dy = leat_kernel_in(k, 2);
    leat_shape shape;
    leat_tensor *dx;
    leat_conv c;
    LEAT_TRY(
        leat_conv_read_sizes(leat_kernel_in(k, 0), "Conv2DBackpropInput: input_sizes", &shape));
    LEAT_TRY(leat_conv_place_grad(a, "Conv2DBackpropInput", &shape, &w->shape, &dy->shape, &c));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &dx));
    if (!dx->count || !w->count || !dy->count)
        return leat_cl_fill(leat_cl_of(k), dx->data, dx->count, sizeof(float), NULL);
    images in = {NULL, c.batch, c.out[1], c.out[2], c.out_depth};
    spread at[3];
    float *out;
    LEAT_TRY(channels_last(k, a, dy, &in.at));
    LEAT_TRY(countable(&in));
    const leat_conv turned = turned_of(&c);
    if (leat_conv_suits_minimal(&turned)) {
        const float *filter;
        LEAT_TRY(out_begin(k, a, dx, &out));
        LEAT_TRY(turn(k, &c, w->data, 0, &filter));
        LEAT_TRY(leat_cl_minimal(k, &turned, in.at, filter, out, &(leat_cl_end){0}));
        return out_end(k, dx, out);
    }
    for (int i = 1; i < 3; i++) {
        const int64_t reach = (c.window[i] - 1) * c.rate[i];
        at[i] = spread_of(c.in[i] + reach, reach - c.before[i], c.stride[i], c.out[i]);
    }
    LEAT_TRY(lay_out(k, &in, &at[1], &at[2]));
    LEAT_TRY(countable(&in));
    LEAT_TRY(out_begin(k, a, dx, &out));
    const int64_t depth = c.in_depth / c.groups, units = c.out_depth / c.groups;
    leat_cl_product p = {.m = c.batch * c.in[1] * c.in[2],
                         .n = depth,
                         .b_down = depth,
                         .b_right = 1,
                         .ldc = c.in_depth};
    windows(&p, &c, &in, (int64_t[]){1, 1, 1}, c.in[1], c.in[2], units);
    for (int64_t g = 0; g < c.groups; g++) {
        p.a = in.at + g * units;
        p.c = out + g * depth;
        LEAT_TRY(turn(k, &c, w->data, g, (const float **)&p.b));
        LEAT_TRY(leat_cl_gemm(k, &p));
    }
    return out_end(k, dx, out);
}

static leat_status by_filter(leat_kernel *k)
{
    const leat_conv_attrs *a = leat_kernel_state(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *dy = leat_kernel_in(k, 2);
    leat_shape shape;
    leat_tensor *dw;
    leat_conv c;
    LEAT_TRY(
        leat_conv_read_sizes(leat_kernel_in(k, 1), "Conv2DBackpropFilter: filter_sizes", &shape));
    LEAT_TRY(leat_conv_place_grad(a, "Conv2DBackpropFilter", &x->shape, &shape, &dy->shape, &c));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &dw));
    if (!dw->count || !x->count || !dy->count)
        return leat_cl_fill(leat_cl_of(k), dw->data, dw->count, sizeof(float), NULL);
    images in = {NULL, c.batch, c.in[1], c.in[2], c.in_depth};
    const float *back;
    LEAT_TRY(channels_last(k, a, x, &in.at));
    LEAT_TRY(channels_last(k, a, dy, &back));
    LEAT_TRY(countable(&in));
    if (leat_conv_suits_minimal(&c))
        return leat_cl_minimal_by_filter(k, &c, in.at, back, dw->data);
    LEAT_TRY(pad(k, &c, &in));
    LEAT_TRY(countable(&in));
    const int64_t depth = c.in_depth / c.groups, units = c.out_depth / c.groups;
    leat_cl_product p = {
        .m = c.window[1] * c.window[2] * depth,
        .n = units,
        .parts = c.batch * c.out[1],
        .left = {.rows = {(int32_t)c.window[2],
                          (int32_t)depth,
                          {(int32_t)(c.rate[1] * row_of(&in)), (int32_t)(c.rate[2] * in.depth), 1}},
                 .parts = {(int32_t)c.batch,
                           (int32_t)c.out[1],
                           {0, (int32_t)(in.rows * row_of(&in)),
                            (int32_t)(c.stride[1] * row_of(&in))}},
                 .len = (int32_t)c.out[2],
                 .by = (int32_t)(c.stride[2] * in.depth)},
        .b_down = c.out_depth,
        .b_right = 1,
        .ldc = c.out_depth};
    for (int64_t g = 0; g < c.groups; g++) {
        p.a = in.at + g * depth;
        p.b = back + g * units;
        p.c = (float *)dw->data + g * units;
        LEAT_TRY(leat_cl_gemm(k, &p));
    }
    return NULL;
}

#define ROW(name, fn, host_)                                                                       \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_T(FLOAT)}}, .run = fn, .init = leat_conv_init,            \
        .state_size = sizeof(conv_state), .host = host_                                            \
    }

const leat_kernel_def leat_opencl_conv[] = {
    ROW("Conv2D", conv, NULL),
    {.op = "_FusedConv2D",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = conv,
     .init = fused_init,
     .state_size = sizeof(conv_state)},
    ROW("Conv2DBackpropInput", by_input, "input_sizes"),
    ROW("Conv2DBackpropFilter", by_filter, "filter_sizes"),
    {0},
};
