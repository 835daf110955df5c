/* conv_thin.c -- convolutions of images with few channels, and their gradients by the filter.
 *
 * A line of a window lies in one piece in the image, and the windows of neighbouring pixels lie
 * `channels` elements apart. So an image, once it has its padding, can be multiplied as it is: its
 * elements are those of the matrix of patches, each read at several places. An image is copied with
 * its padding into memory that stays in the first level of cache. */
#include "kernels/cpu/conv_thin.h"

#include <stdatomic.h>

#include "kernels/cpu/conv_vec.h"
#include "kernels/cpu/gemm_int.h"

enum {
    HIGH = LANES == 16 ? 12 : 6, /* pixels of a tile of y */
    DEEP = LANES == 16 ? 8 : 4,  /* elements of a line of the window in a tile of dw */
    ACROSS = 2,                  /* vectors of units in a tile */
    MOST_CHANNELS = 8,           /* of x */
    LEAST_WIDTH = 6,             /* of y: lower tiles are slow */
    IMAGE_BYTES = 64 << 10,      /* most of an image with its padding */
    BAND_BYTES = 24 << 10,       /* of dy that is multiplied at a time */
    MOST_PARTS = 16,             /* of the images, whose gradients are summed one by one */
};

typedef struct thin {
    const leat_conv *c;
    int64_t high, wide; /* an image with its padding */
    int64_t line;       /* elements of a line of the window */
    const float *x, *w, *dy;
    float *y;
    float *sums; /* (part, window, channels, units) */
    int64_t parts;
    const leat_gemm_epilogue *e;
    atomic_bool failed; /* no memory for an image */
} thin;

static thin thin_of(const leat_conv *c)
{
    return (thin){.c = c,
                  .high = c->out[1] + c->window[1] - 1,
                  .wide = c->out[2] + c->window[2] - 1,
                  .line = c->window[2] * c->in_depth};
}

/* This thread's memory for an image; NULL if there is none. */
static float *image_memory(thin *t)
{
    const size_t bytes = (size_t)(t->high * t->wide * t->c->in_depth) * sizeof(float);
    float *image = leat_gemm_scratch(SCRATCH_TILES, bytes);
    if (!image)
        atomic_store_explicit(&t->failed, true, memory_order_relaxed);
    return image;
}

/* Copies image n with its padding. */
static void take_image(const thin *t, int64_t n, float *to)
{
    const leat_conv *c = t->c;
    const int64_t ch = c->in_depth, left = c->before[2] < t->wide ? c->before[2] : t->wide;
    const int64_t width = c->in[2] < t->wide - left ? c->in[2] : t->wide - left;
    memset(to, 0, (size_t)(t->high * t->wide * ch) * sizeof(float));
    for (int64_t r = 0; r < c->in[1]; r++) {
        const int64_t row = r + c->before[1];
        if (row < t->high)
            memcpy(to + (row * t->wide + left) * ch, t->x + (n * c->in[1] + r) * c->in[2] * ch,
                   (size_t)(width * ch) * sizeof(float));
    }
}

/* ---- y ---- */

/* `rows` pixels of a line of y, two vectors of units from u on. */
INLINE void tile(const int rows, const int64_t channels, const thin *t, const float *image,
                 int64_t u, float *y)
{
    vec sum[HIGH][ACROSS];
    UNROLL for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (vec){0};
    const int64_t units = t->c->out_depth;
    const float *w = t->w + u;
    for (int64_t l = 0; l < t->c->window[1]; l++, image += t->wide * channels) {
        for (int64_t p = 0; p < t->line; p++, w += units) {
            const vec w0 = load(w), w1 = load(w + LANES);
            const float *x = image + p;
            /* gcc would keep elements for later rounds, which read them again, on the stack. */
            __asm__("" : "+r"(x));
            UNROLL for (int r = 0; r < rows; r++)
            {
                sum[r][0] += x[r * channels] * w0;
                sum[r][1] += x[r * channels] * w1;
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
    {
        store(y + r * units + u, finished(sum[r][0], t->e, u));
        store(y + r * units + u + LANES, finished(sum[r][1], t->e, u + LANES));
    }
}

typedef void tile_fn(const thin *t, const float *image, int64_t u, float *y);
#define TILE(rows)                                                                                 \
    static void tile_##rows##_of_3(const thin *t, const float *image, int64_t u, float *y)         \
    {                                                                                              \
        tile(rows, 3, t, image, u, y);                                                             \
    }                                                                                              \
    static void tile_##rows##_of_any(const thin *t, const float *image, int64_t u, float *y)       \
    {                                                                                              \
        tile(rows, t->c->in_depth, t, image, u, y);                                                \
    }
/* clang-format off */
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#define LOW(of) tile_1_##of, tile_2_##of, tile_3_##of, tile_4_##of, tile_5_##of, tile_6_##of
#ifdef __AVX512F__
TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
#define ALL(of) {LOW(of), tile_7_##of, tile_8_##of, tile_9_##of, tile_10_##of, tile_11_##of, tile_12_##of}
#else
#define ALL(of) {LOW(of)}
#endif
static tile_fn *const tiles[2][HIGH] = {ALL(of_any), ALL(of_3)}; /* channels are 3, rows - 1 */
/* clang-format on */

/* Images [begin, end). */
static void forward_images(void *arg, int64_t begin, int64_t end)
{
    thin *t = arg;
    const leat_conv *c = t->c;
    const int64_t count = ceil_div(c->out[2], HIGH), units = c->out_depth;
    tile_fn *const *by_height = tiles[c->in_depth == 3];
    float *image = image_memory(t);
    for (int64_t n = begin; image && n < end && !leat_loop_stopped(t->e->stop); n++) {
        take_image(t, n, image);
        for (int64_t row = 0; row < c->out[1]; row++) {
            float *y = t->y + (n * c->out[1] + row) * c->out[2] * units;
            for (int64_t i = 0; i < count; i++) {
                const int64_t from = part(c->out[2], i, count), to = part(c->out[2], i + 1, count);
                for (int64_t u = 0; u < units; u += ACROSS * LANES)
                    by_height[to - from - 1](t, image + (row * t->wide + from) * c->in_depth, u,
                                             y + from * units);
            }
            const int64_t first = (n * c->out[1] + row) * c->out[2];
            for (int64_t i = 0; t->e->row_fn && i < c->out[2]; i++)
                t->e->row_fn(t->e->arg, first + i, 0, y + i * units, units);
        }
    }
}

static leat_status memory_status(leat_kernel *k, const thin *t)
{
    LEAT_REQUIRE(!t->failed, RESOURCE_EXHAUSTED, "%s: out of memory for an image",
                 leat_node_op(leat_kernel_node(k)));
    return NULL;
}

/* Estimated ns of an image. */
static double image_ns(const thin *t)
{
    return 0.02 * (double)(t->c->out[1] * t->c->out[2] * t->c->window[1] * t->line) *
           (double)t->c->out_depth;
}

leat_status leat_conv_thin(leat_kernel *k, const leat_conv *c, const float *x, const float *w,
                           float *y, const leat_gemm_epilogue *e)
{
    thin t = thin_of(c);
    t.x = x, t.w = w, t.y = y, t.e = e;
    leat_kernel_for(k, c->batch, image_ns(&t), forward_images, &t);
    return memory_status(k, &t);
}

/* ---- dw ---- */

/* Adds, to `rows` rows of dw, the products of elements of the lines [begin, end) of the image with
 * two vectors of units of dy. */
INLINE void add_tile(const int rows, const int64_t channels, const thin *t, const float *image,
                     const float *dy, int64_t lines, float *dw)
{
    vec sum[DEEP][ACROSS];
    const int64_t units = t->c->out_depth, width = t->c->out[2];
    UNROLL for (int r = 0; r < rows; r++)
    {
        sum[r][0] = load(dw + r * units);
        sum[r][1] = load(dw + r * units + LANES);
    }
    for (int64_t l = 0; l < lines; l++, image += t->wide * channels) {
        const float *x = image;
        for (int64_t i = 0; i < width; i++, x += channels, dy += units) {
            const vec d0 = load(dy), d1 = load(dy + LANES);
            UNROLL for (int r = 0; r < rows; r++)
            {
                sum[r][0] += x[r] * d0;
                sum[r][1] += x[r] * d1;
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
    {
        store(dw + r * units, sum[r][0]);
        store(dw + r * units + LANES, sum[r][1]);
    }
}

typedef void add_fn(const thin *t, const float *image, const float *dy, int64_t lines, float *dw);
#define ADD(rows)                                                                                  \
    static void add_##rows(const thin *t, const float *image, const float *dy, int64_t lines,      \
                           float *dw)                                                              \
    {                                                                                              \
        add_tile(rows, t->c->in_depth, t, image, dy, lines, dw);                                   \
    }
/* clang-format off */
ADD(1) ADD(2) ADD(3) ADD(4)
#ifdef __AVX512F__
ADD(5) ADD(6) ADD(7) ADD(8)
static add_fn *const adds[DEEP] = {add_1, add_2, add_3, add_4, add_5, add_6, add_7, add_8};
#else
static add_fn *const adds[DEEP] = {add_1, add_2, add_3, add_4};
#endif
/* clang-format on */

/* Adds the gradient of lines [begin, end) of an image's y. */
static void add_band(const thin *t, const float *image, const float *dy, int64_t begin, int64_t end,
                     float *dw)
{
    const leat_conv *c = t->c;
    const int64_t units = c->out_depth, count = ceil_div(t->line, DEEP);
    for (int64_t l = 0; l < c->window[1]; l++)
        for (int64_t i = 0; i < count; i++) {
            const int64_t from = part(t->line, i, count), to = part(t->line, i + 1, count);
            for (int64_t u = 0; u < units; u += ACROSS * LANES)
                adds[to - from - 1](t, image + (begin + l) * t->wide * c->in_depth + from,
                                    dy + begin * c->out[2] * units + u, end - begin,
                                    dw + (l * t->line + from) * units + u);
        }
}

/* Parts [begin, end) of the images. */
static void sum_parts(void *arg, int64_t begin, int64_t end)
{
    thin *t = arg;
    const leat_conv *c = t->c;
    const int64_t filter = c->window[1] * t->line * c->out_depth, size = c->out[1] * c->out[2];
    int64_t band = BAND_BYTES / (int64_t)sizeof(float) / (c->out[2] * c->out_depth);
    band = band < 1 ? 1 : band;
    float *image = image_memory(t);
    for (int64_t p = begin; image && p < end; p++) {
        float *dw = t->sums + p * filter;
        memset(dw, 0, (size_t)filter * sizeof(float));
        for (int64_t n = part(c->batch, p, t->parts); n < part(c->batch, p + 1, t->parts); n++) {
            if (leat_loop_stopped(t->e->stop))
                return;
            take_image(t, n, image);
            for (int64_t row = 0; row < c->out[1]; row += band)
                add_band(t, image, t->dy + n * size * c->out_depth, row,
                         row + band < c->out[1] ? row + band : c->out[1], dw);
        }
    }
}

leat_status leat_conv_thin_by_filter(leat_kernel *k, const leat_conv *c, const float *x,
                                     const float *dy, float *dw, const leat_loop_stop *stop)
{
    const leat_gemm_epilogue e = {.stop = stop};
    thin t = thin_of(c);
    const int64_t filter = c->window[1] * t.line * c->out_depth;
    leat_tensor *sums;
    t.x = x, t.dy = dy, t.e = &e;
    t.parts = c->batch < MOST_PARTS ? c->batch : MOST_PARTS;
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &(leat_shape){2, {t.parts, filter}}, &sums));
    t.sums = sums->data;
    leat_kernel_for(k, t.parts, image_ns(&t) * (double)(c->batch / t.parts), sum_parts, &t);
    for (int64_t i = 0; i < filter; i++)
        dw[i] = t.sums[i];
    for (int64_t p = 1; p < t.parts; p++)
        for (int64_t i = 0; i < filter; i++)
            dw[i] += t.sums[p * filter + i];
    return memory_status(k, &t);
}

bool leat_conv_thin_fits(const leat_conv *c, leat_dtype t)
{
    if (t != LEAT_FLOAT || c->groups != 1 || c->in_depth > MOST_CHANNELS ||
        c->out_depth % (ACROSS * UNIT) || c->out[2] < LEAST_WIDTH || c->window[0] != 1 ||
        c->in[0] != 1 || c->out[0] != 1 || c->before[0] != 0)
        return false;
    for (int i = 1; i < LEAT_CONV_SPACE; i++)
        if (c->stride[i] != 1 || c->rate[i] != 1 || c->before[i] < 0)
            return false;
    const thin s = thin_of(c);
    return c->window[1] * s.line <= 512 && s.high * s.wide * c->in_depth <= IMAGE_BYTES / 4;
}
