/* image_resize.c -- ResizeBilinear and ResizeBilinearGrad, and what the kernels that resize images
 * share.
 *
 * An output row lies between two input rows. Each of these is interpolated horizontally first; the
 * result is kept, since the next output row often needs the same input rows. Columns are done in
 * blocks, so that two rows of a block fit into memory on the stack. */
#include "kernels/cpu/image_resize.h"

float leat_resize_scale(int64_t in, int64_t out, bool align)
{
    return align && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

static leat_status read_attrs(leat_kernel *k, leat_resize *r)
{
    const leat_node *n = leat_kernel_node(k);
    r->align = leat_node_bool(n, "align_corners");
    r->half = leat_node_has(n, "half_pixel_centers") && leat_node_bool(n, "half_pixel_centers");
    return NULL;
}

leat_status leat_resize_begin(leat_kernel *k, leat_resize *r)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *size = leat_kernel_in(k, 1);
    LEAT_TRY(read_attrs(k, r));
    /* QuantizedResizeBilinear, which has more inputs, takes both. */
    LEAT_REQUIRE(!r->half || !r->align || leat_kernel_inputs(k) > 2, INVALID_ARGUMENT,
                 "If half_pixel_centers is True, align_corners must be False.");
    LEAT_REQUIRE(x->shape.rank == 4, INVALID_ARGUMENT, "input must be 4-dimensional%s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(size->shape.rank == 1, INVALID_ARGUMENT, "shape_t must be 1-dimensional%s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(size->count == 2, INVALID_ARGUMENT, "shape_t must have two elements%s",
                 leat_shape_show(&size->shape).s);
    r->x = x;
    r->batch = x->shape.dim[0];
    r->in_height = x->shape.dim[1];
    r->in_width = x->shape.dim[2];
    r->channels = x->shape.dim[3];
    r->out_height = AT(int32_t, size)[0];
    r->out_width = AT(int32_t, size)[1];
    LEAT_REQUIRE(r->in_height < INT32_MAX && r->in_width < INT32_MAX, INVALID_ARGUMENT,
                 "input sizes must be between 0 and max int32");
    LEAT_REQUIRE(r->out_height > 0 && r->out_width > 0, INVALID_ARGUMENT,
                 "output dimensions must be positive");
    LEAT_REQUIRE(r->channels > 0, INVALID_ARGUMENT, "image must have at least one channel");
    LEAT_REQUIRE(r->in_height > 0 && r->in_width > 0, INVALID_ARGUMENT,
                 "input image must be of non-zero size");
    r->height_scale = leat_resize_scale(r->in_height, r->out_height, r->align);
    r->width_scale = leat_resize_scale(r->in_width, r->out_width, r->align);
    return leat_kernel_out(
        k, 0, &(leat_shape){4, {r->batch, r->out_height, r->out_width, r->channels}}, &r->y);
}

leat_status leat_resize_begin_grad(leat_kernel *k, leat_resize *r)
{
    const leat_tensor *dy = leat_kernel_in(k, 0), *original = leat_kernel_in(k, 1);
    LEAT_TRY(read_attrs(k, r));
    LEAT_REQUIRE(!r->half || !r->align, INVALID_ARGUMENT,
                 "If half_pixel_centers is True, align_corners must be False.");
    LEAT_REQUIRE(dy->shape.rank == 4, INVALID_ARGUMENT, "input_grad must be 4-dimensional%s",
                 leat_shape_show(&dy->shape).s);
    LEAT_REQUIRE(original->shape.rank == 4, INVALID_ARGUMENT,
                 "original_image must be 4-dimensional%s", leat_shape_show(&original->shape).s);
    r->x = dy;
    r->batch = dy->shape.dim[0];
    r->out_height = dy->shape.dim[1];
    r->out_width = dy->shape.dim[2];
    r->channels = dy->shape.dim[3];
    r->in_height = original->shape.dim[1];
    r->in_width = original->shape.dim[2];
    LEAT_REQUIRE(r->out_height > 0 && r->out_width > 0, INVALID_ARGUMENT,
                 "resized dimensions must be positive");
    LEAT_REQUIRE(r->in_height > 0 && r->in_width > 0, INVALID_ARGUMENT,
                 "original dimensions must be positive");
    LEAT_REQUIRE(r->in_height < INT32_MAX && r->in_width < INT32_MAX, INVALID_ARGUMENT,
                 "original sizes must be between 0 and max int32");
    LEAT_REQUIRE(r->out_height < INT32_MAX && r->out_width < INT32_MAX, INVALID_ARGUMENT,
                 "resized sizes must be between 0 and max int32");
    r->height_scale = leat_resize_scale(r->in_height, r->out_height, r->align);
    r->width_scale = leat_resize_scale(r->in_width, r->out_width, r->align);
    LEAT_TRY(leat_kernel_out(
        k, 0, &(leat_shape){4, {r->batch, r->in_height, r->in_width, r->channels}}, &r->y));
    memset(r->y->data, 0, (size_t)r->y->count * leat_dtype_size(r->y->dtype));
    return NULL;
}

leat_status leat_resize_temp(leat_kernel *k, int64_t n, size_t size, void *out)
{
    leat_tensor *t;
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT32, &(leat_shape){2, {n, (int64_t)(size / 4)}}, &t));
    *(void **)out = t->data;
    return NULL;
}

leat_status leat_resize_lerps(leat_kernel *k, const leat_resize *r, int64_t in, int64_t out,
                              float scale, leat_lerp **lerps)
{
    LEAT_TRY(leat_resize_temp(k, out, sizeof(leat_lerp), lerps));
    for (int64_t i = 0; i < out; i++) {
        const float at = leat_resize_at(r, i, scale), below = floorf(at);
        (*lerps)[i] = (leat_lerp){.lower = (int32_t)leat_resize_bound((int64_t)below, in),
                                  .upper = (int32_t)leat_resize_bound((int64_t)ceilf(at), in),
                                  .weight = at - below};
    }
    return NULL;
}

/* ---- ResizeBilinear ---- */

typedef struct bilinear {
    leat_resize r;
    const leat_lerp *columns, *rows;
} bilinear;

enum { BLOCK = 2048 }; /* elements of a row that are done at a time */

typedef float four __attribute__((vector_size(16)));

/* Pixels of three floats, four floats at a time: the fourth is overwritten by the next pixel. Gives
 * the first column that is left, whose fourth float may lie outside of the row. */
static int64_t across_three(const bilinear *b, const float *row, int64_t x0, int64_t x1, float *to)
{
    int64_t x = x0;
    for (; x < x1 - 1 && b->columns[x].upper < b->r.in_width - 1; x++, to += 3) {
        const leat_lerp l = b->columns[x];
        four left, right;
        memcpy(&left, row + (int64_t)l.lower * 3, sizeof(left));
        memcpy(&right, row + (int64_t)l.upper * 3, sizeof(right));
        left += (right - left) * l.weight;
        memcpy(to, &left, sizeof(left));
    }
    return x;
}

/* Columns [x0, x1) and channels [c0, c1) of a row, interpolated horizontally. */
#define ACROSS(dtype, T)                                                                           \
    static void across_##T(const bilinear *b, const T *row, int64_t x0, int64_t x1, int64_t c0,    \
                           int64_t c1, float *to)                                                  \
    {                                                                                              \
        const int64_t channels = b->r.channels;                                                    \
        if (channels == 1) {                                                                       \
            for (int64_t x = x0; x < x1; x++) {                                                    \
                const leat_lerp l = b->columns[x];                                                 \
                const float left = (float)row[l.lower], right = (float)row[l.upper];               \
                *to++ = left + (right - left) * l.weight;                                          \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        if (channels == 3) {                                                                       \
            int64_t first = x0;                                                                    \
            if (LEAT_##dtype == LEAT_FLOAT)                                                        \
                first = across_three(b, (const float *)(const void *)row, x0, x1, to);             \
            to += 3 * (first - x0);                                                                \
            for (int64_t x = first; x < x1; x++, to += 3) {                                        \
                const leat_lerp l = b->columns[x];                                                 \
                const T *left = row + (int64_t)l.lower * 3, *right = row + (int64_t)l.upper * 3;   \
                for (int c = 0; c < 3; c++)                                                        \
                    to[c] = (float)left[c] + ((float)right[c] - (float)left[c]) * l.weight;        \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t x = x0; x < x1; x++, to += c1 - c0) {                                         \
            const leat_lerp l = b->columns[x];                                                     \
            const T *left = row + l.lower * channels + c0, *right = row + l.upper * channels + c0; \
            LEAT_SIMD                                                                              \
            for (int64_t c = 0; c < c1 - c0; c++)                                                  \
                to[c] = (float)left[c] + ((float)right[c] - (float)left[c]) * l.weight;            \
        }                                                                                          \
    }                                                                                              \
    static void bilinear_##T(const bilinear *b, int64_t begin, int64_t end, int64_t x0,            \
                             int64_t x1, int64_t c0, int64_t c1)                                   \
    {                                                                                              \
        const leat_resize *r = &b->r;                                                              \
        const int64_t row = r->in_width * r->channels, n = (x1 - x0) * (c1 - c0);                  \
        float memory[2][BLOCK], *kept[2] = {memory[0], memory[1]};                                 \
        int64_t at[2] = {-1, -1}; /* the input rows in kept */                                     \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const leat_lerp l = b->rows[i % r->out_height];                                        \
            const int64_t first = i / r->out_height * r->in_height;                                \
            const int64_t want[2] = {first + l.lower, first + l.upper};                            \
            if (at[0] != want[0] && at[1] == want[0]) {                                            \
                float *other = kept[0];                                                            \
                kept[0] = kept[1];                                                                 \
                kept[1] = other;                                                                   \
                at[1] = at[0];                                                                     \
                at[0] = want[0];                                                                   \
            }                                                                                      \
            for (int j = 0; j < 2; j++) {                                                          \
                if (at[j] == want[j] || (j == 1 && want[1] == want[0]))                            \
                    continue;                                                                      \
                across_##T(b, AT(const T, r->x) + want[j] * row, x0, x1, c0, c1, kept[j]);         \
                at[j] = want[j];                                                                   \
            }                                                                                      \
            const float *top = kept[0], *bottom = want[1] == want[0] ? top : kept[1];              \
            float *y = AT(float, r->y) + (i * r->out_width + x0) * r->channels + c0;               \
            if (c1 - c0 == r->channels) {                                                          \
                LEAT_SIMD                                                                          \
                for (int64_t e = 0; e < n; e++)                                                    \
                    y[e] = top[e] + (bottom[e] - top[e]) * l.weight;                               \
            } else { /* one column */                                                              \
                for (int64_t e = 0; e < c1 - c0; e++)                                              \
                    y[e] = top[e] + (bottom[e] - top[e]) * l.weight;                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void same_##T(void *arg, int64_t begin, int64_t end)                                    \
    {                                                                                              \
        const leat_resize *r = arg;                                                                \
        const T *x = AT(const T, r->x);                                                            \
        float *y = AT(float, r->y);                                                                \
        for (int64_t i = begin; i < end; i++)                                                      \
            y[i] = (float)x[i];                                                                    \
    }
LEAT_X_IMAGE(ACROSS)

/* Output rows [begin, end), counted over all images. */
static void bilinear_part(void *arg, int64_t begin, int64_t end)
{
    const bilinear *b = arg;
    const int64_t channels = b->r.channels, columns = channels > BLOCK ? 1 : BLOCK / channels;
    for (int64_t c0 = 0; c0 < channels; c0 += BLOCK) {
        const int64_t c1 = channels - c0 > BLOCK ? c0 + BLOCK : channels;
        for (int64_t x0 = 0; x0 < b->r.out_width; x0 += columns) {
            const int64_t left = b->r.out_width - x0, x1 = x0 + (left < columns ? left : columns);
            switch (b->r.x->dtype) {
#define CASE(dtype, T)                                                                             \
    case LEAT_##dtype:                                                                             \
        bilinear_##T(b, begin, end, x0, x1, c0, c1);                                               \
        break;
                LEAT_X_IMAGE(CASE)
            default:
                break;
            }
        }
    }
}

static leat_status bilinear_run(leat_kernel *k)
{
    bilinear b = {0};
    leat_resize *r = &b.r;
    LEAT_TRY(leat_resize_begin(k, r));
    if (r->y->count == 0)
        return NULL;
    if (r->in_height == r->out_height && r->in_width == r->out_width) {
        static void (*const same[])(void *, int64_t, int64_t) = {
#define ENTRY(dtype, T) [LEAT_##dtype] = same_##T,
            LEAT_X_IMAGE(ENTRY)};
        leat_kernel_for(k, r->y->count, 0.3, same[r->x->dtype], r);
        return NULL;
    }
    leat_lerp *columns, *rows;
    LEAT_TRY(leat_resize_lerps(k, r, r->in_width, r->out_width, r->width_scale, &columns));
    LEAT_TRY(leat_resize_lerps(k, r, r->in_height, r->out_height, r->height_scale, &rows));
    b.columns = columns;
    b.rows = rows;
    leat_kernel_for(k, r->batch * r->out_height, 1.5 * (double)(r->out_width * r->channels),
                    bilinear_part, &b);
    return NULL;
}

/* ---- ResizeBilinearGrad: dy is added to the four pixels that each output pixel came from ---- */

#define SPREAD(dtype, T)                                                                           \
    static void spread_##T(void *arg, int64_t begin, int64_t end)                                  \
    {                                                                                              \
        const bilinear *b = arg;                                                                   \
        const leat_resize *r = &b->r;                                                              \
        const int64_t channels = r->channels, row = r->in_width * channels;                        \
        const float *dy = AT(const float, r->x) + begin * r->out_height * r->out_width * channels; \
        for (int64_t i = begin; i < end; i++) {                                                    \
            T *image = AT(T, r->y) + i * r->in_height * row;                                       \
            for (int64_t y = 0; y < r->out_height; y++) {                                          \
                const leat_lerp v = b->rows[y];                                                    \
                const float up = 1.0f - v.weight;                                                  \
                T *top = image + v.lower * row, *bottom = image + v.upper * row;                   \
                for (int64_t x = 0; x < r->out_width; x++, dy += channels) {                       \
                    const leat_lerp h = b->columns[x];                                             \
                    const float left = 1.0f - h.weight;                                            \
                    const int64_t l = h.lower * channels, m = h.upper * channels;                  \
                    for (int64_t c = 0; c < channels; c++) {                                       \
                        top[l + c] += (T)(dy[c] * up * left);                                      \
                        top[m + c] += (T)(dy[c] * up * h.weight);                                  \
                        bottom[l + c] += (T)(dy[c] * v.weight * left);                             \
                        bottom[m + c] += (T)(dy[c] * v.weight * h.weight);                         \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
LEAT_X_FLOAT(SPREAD)

static leat_status bilinear_grad_run(leat_kernel *k)
{
    bilinear b = {0};
    leat_resize *r = &b.r;
    leat_lerp *columns, *rows;
    LEAT_TRY(leat_resize_begin_grad(k, r));
    if (r->y->count == 0)
        return NULL;
    LEAT_TRY(leat_resize_lerps(k, r, r->in_width, r->out_width, r->width_scale, &columns));
    LEAT_TRY(leat_resize_lerps(k, r, r->in_height, r->out_height, r->height_scale, &rows));
    b.columns = columns;
    b.rows = rows;
    leat_kernel_for(k, r->batch, 4 * (double)r->x->count / (double)r->batch,
                    r->y->dtype == LEAT_DOUBLE ? spread_double : spread_float, &b);
    return NULL;
}

const leat_kernel_def leat_cpu_image_resize[] = {
    {.op = "ResizeBilinear",
     .where = {{"T", LEAT_TYPES_IMAGE}},
     .run = bilinear_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "ResizeBilinearGrad",
     .where = {{"T", LEAT_ROW_FLOAT}},
     .run = bilinear_grad_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
