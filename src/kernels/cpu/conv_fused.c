/* conv_fused.c -- FusedPadConv2D and FusedResizeAndPadConv2D: the images are resized and mirrored
 * into memory of the run, and convolved there. */
#include "kernels/cpu/conv.h"
#include "kernels/cpu/image_resize.h"

/* A row or column of the padded images: where it lies in the images. */
typedef struct mirrored {
    int64_t lower, upper;
    float weight; /* of upper */
} mirrored;

typedef struct border {
    leat_dtype dtype;
    const void *x;
    void *to;
    int64_t in[2], out[2], channels; /* rows and columns; out: padded */
    const mirrored *rows, *columns;
} border;

#define LINES(T)                                                                                   \
    static void lines_##T(const border *b, int64_t begin, int64_t end)                             \
    {                                                                                              \
        const int64_t line = b->in[1] * b->channels;                                               \
        T *to = (T *)b->to + begin * b->out[1] * b->channels;                                      \
        for (int64_t l = begin; l < end; l++) {                                                    \
            const mirrored *r = &b->rows[l % b->out[0]];                                           \
            const T *image = (const T *)b->x + l / b->out[0] * b->in[0] * line;                    \
            const T *top = image + r->lower * line, *bottom = image + r->upper * line;             \
            for (int64_t x = 0; x < b->out[1]; x++) {                                              \
                const mirrored *m = &b->columns[x];                                                \
                const int64_t left = m->lower * b->channels, right = m->upper * b->channels;       \
                for (int64_t c = 0; c < b->channels; c++) {                                        \
                    const T above = top[left + c] + (top[right + c] - top[left + c]) * m->weight;  \
                    const T below =                                                                \
                        bottom[left + c] + (bottom[right + c] - bottom[left + c]) * m->weight;     \
                    *to++ = above + (below - above) * r->weight;                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
LINES(float)
LINES(double)

static void lines_part(void *arg, int64_t begin, int64_t end)
{
    if (((border *)arg)->dtype == LEAT_DOUBLE)
        lines_double(arg, begin, end);
    else
        lines_float(arg, begin, end);
}

/* `size` rows or columns with mirrored ones before and after them, resized from `in`. */
static leat_status mirror(leat_kernel *k, int64_t in, int64_t size, int64_t before, int64_t out,
                          bool align, bool reflect, const mirrored **result)
{
    mirrored *m;
    LEAT_TRY(leat_resize_temp(k, out, sizeof(mirrored), &m));
    const float scale = leat_resize_scale(in, size, align);
    for (int64_t i = 0; i < out; i++) {
        int64_t at = i - before;
        if (at < 0)
            at = reflect ? -at : -at - 1;
        else if (at >= size)
            at = reflect ? 2 * size - 2 - at : 2 * size - 1 - at;
        const float place = in == size ? (float)at : (float)at * scale, low = floorf(place);
        m[i].lower = leat_resize_bound(in == size ? at : (int64_t)low, in);
        m[i].upper = leat_resize_bound(in == size ? at : (int64_t)ceilf(place), in);
        m[i].weight = place - low;
    }
    *result = m;
    return NULL;
}

static leat_status fused_init(const leat_node *n, void *state)
{
    leat_conv_attrs *a = state;
    const int64_t *v;
    int count;
    *a = (leat_conv_attrs){.space = 2, .padding = leat_padding_of(n), .rate = {1, 1, 1}};
    LEAT_TRY(leat_window_attr(n, "strides", &v, &count));
    LEAT_REQUIRE(count == 4, INVALID_ARGUMENT,
                 "Sliding window strides field must specify 4 dimensions");
    LEAT_REQUIRE(v[0] == 1 && v[3] == 1, INVALID_ARGUMENT,
                 "Current implementation does not yet support strides in the batch and depth "
                 "dimensions.");
    a->stride[0] = 1;
    a->stride[1] = v[1];
    a->stride[2] = v[2];
    return NULL;
}

static leat_status read_size(const leat_tensor *x, const leat_tensor *size, leat_shape *resized)
{
    LEAT_REQUIRE(x->shape.rank == 4, INVALID_ARGUMENT, "input must be 4-dimensional%s",
                 leat_shape_show(&x->shape).s);
    *resized = x->shape;
    if (!size)
        return NULL;
    LEAT_REQUIRE(size->shape.rank == 1, INVALID_ARGUMENT, "shape_t must be 1-dimensional%s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(size->count == 2, INVALID_ARGUMENT, "shape_t must have two elements%s",
                 leat_shape_show(&size->shape).s);
    for (int i = 0; i < 2; i++) {
        resized->dim[1 + i] = AT(int32_t, size)[i];
        LEAT_REQUIRE(resized->dim[1 + i] > 0, INVALID_ARGUMENT,
                     "output dimensions must be positive");
    }
    return NULL;
}

/* Checks the paddings and gives the shape with them. */
static leat_status read_pads(const leat_tensor *pads, const leat_shape *resized, bool reflect,
                             leat_shape *padded)
{
    LEAT_REQUIRE(pads->shape.rank == 2 && pads->shape.dim[1] == 2, INVALID_ARGUMENT,
                 "paddings must be a matrix with 2 columns: %s", leat_shape_show(&pads->shape).s);
    LEAT_REQUIRE(pads->shape.dim[0] == 4, INVALID_ARGUMENT,
                 "The first dimension of paddings must be the rank of inputs: 4 %s %s",
                 leat_shape_show(&pads->shape).s, leat_shape_show(resized).s);
    *padded = *resized;
    for (int d = 0; d < 4; d++) {
        const int64_t before = leat_index_at(pads, 2 * d), after = leat_index_at(pads, 2 * d + 1);
        const int64_t most = resized->dim[d] - reflect;
        LEAT_REQUIRE(before >= 0 && after >= 0, INVALID_ARGUMENT,
                     "paddings must be non-negative: %" PRId64 " %" PRId64, before, after);
        LEAT_REQUIRE(before <= most && after <= most, INVALID_ARGUMENT,
                     "paddings must be %s the dimension size: %" PRId64 ", %" PRId64
                     " %s than %" PRId64,
                     reflect ? "less than" : "no greater than", before, after,
                     reflect ? "not less" : "greater", resized->dim[d]);
        padded->dim[d] += before + after;
    }
    LEAT_REQUIRE(padded->dim[0] == resized->dim[0], INVALID_ARGUMENT,
                 "Fused mirror padding only support spatial padding, not batches");
    LEAT_REQUIRE(padded->dim[3] == resized->dim[3], INVALID_ARGUMENT,
                 "Fused mirror padding only support spatial padding, not channels");
    return NULL;
}

static leat_status fused(leat_kernel *k)
{
    const leat_conv_attrs *a = leat_kernel_state(k);
    const leat_node *n = leat_kernel_node(k);
    const bool resizes = leat_kernel_inputs(k) == 4;
    const bool align = resizes && leat_node_bool(n, "resize_align_corners");
    const bool reflect = !strcmp(leat_node_string(n, "mode"), "REFLECT");
    const leat_tensor *x = leat_kernel_in(k, 0), *pads = leat_kernel_in(k, 1 + resizes);
    const leat_tensor *w = leat_kernel_in(k, 2 + resizes);
    leat_shape resized, padded;
    leat_tensor *t, *y;
    leat_conv c;
    leat_loop_stop stop;
    LEAT_REQUIRE(x->count > 0, INVALID_ARGUMENT, "Input tensor can't be empty");
    LEAT_TRY(read_size(x, resizes ? leat_kernel_in(k, 1) : NULL, &resized));
    LEAT_TRY(read_pads(pads, &resized, reflect, &padded));
    LEAT_REQUIRE(w->shape.rank == 4, INVALID_ARGUMENT, "filter must be 4-dimensional: %s",
                 leat_shape_show(&w->shape).s);
    LEAT_REQUIRE(padded.dim[3] == w->shape.dim[2], INVALID_ARGUMENT,
                 "input and filter must have the same depth: %" PRId64 " vs %" PRId64,
                 padded.dim[3], w->shape.dim[2]);
    LEAT_TRY(leat_conv_place(a, &padded, &w->shape, &c));
    const leat_shape shape = leat_conv_shape(a, c.batch, c.out, c.out_depth);
    LEAT_REQUIRE(leat_shape_count(&shape) != 0, INVALID_ARGUMENT, "Output tensor can't be empty");
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    LEAT_TRY(leat_kernel_temp(k, x->dtype, &padded, &t));
    border b = {.dtype = x->dtype,
                .x = x->data,
                .to = t->data,
                .in = {x->shape.dim[1], x->shape.dim[2]},
                .out = {padded.dim[1], padded.dim[2]},
                .channels = padded.dim[3]};
    LEAT_TRY(mirror(k, b.in[0], resized.dim[1], leat_index_at(pads, 2), b.out[0], align, reflect,
                    &b.rows));
    LEAT_TRY(mirror(k, b.in[1], resized.dim[2], leat_index_at(pads, 4), b.out[1], align, reflect,
                    &b.columns));
    leat_kernel_for(k, c.batch * b.out[0], (double)(b.out[1] * b.channels), lines_part, &b);
    const leat_gemm_epilogue e = {.stop = leat_kernel_stop(k, &stop)};
    const leat_conv_patches p = {
        .c = &c, .dtype = x->dtype, .x = t->data, .depth = c.in_depth, .channels = c.in_depth};
    return leat_conv_multiply(k, leat_kernel_device(k)->intra, LEAT_GEMM_N,
                              c.batch * leat_conv_volume(c.out), c.out_depth,
                              leat_conv_volume(c.window) * c.in_depth, &p, w->data, c.out_depth,
                              y->data, c.out_depth, &e);
}

#define KERNEL(name)                                                                               \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_ROW_FLOAT}}, .run = fused,                                \
        .state_size = sizeof(leat_conv_attrs), .init = fused_init,                                 \
        .flags = LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_EXPENSIVE                                     \
    }

const leat_kernel_def leat_cpu_conv_fused[] = {
    KERNEL("FusedPadConv2D"),
    KERNEL("FusedResizeAndPadConv2D"),
    {0},
};
