/* conv_minimal.c -- convolutions of 5 by 5 pixels by minimal filtering (S. Winograd, Arithmetic
 * Complexity of Computations; A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural
 * Networks): 64 multiplications for a tile of 4 by 4 pixels of the result, which take 400 by
 * definition.
 *
 * In one dimension: 4 elements of the correlation of 8 elements d with 5 elements g are
 * A^T (G g * B^T d), where * is element by element. The rows of A, B and G belong to the points 0,
 * 1, -1, 2, -2, 1/2, -1/2 and infinity, at which polynomials are multiplied (wino_* below). In two
 * dimensions it is done along both. The sum over channels is taken before A^T, so that for each of
 * the 64 points there is a product of matrices: tiles by channels, times channels by units.
 *
 * The gradient by the filter has 5 by 5 elements, which are the correlation of the same 8 by 8
 * pixels of x with 4 by 4 pixels of dy, by the same points; its sum is over the tiles.
 *
 * Errors, relative to the largest element of the result, for 64 channels: below 1e-5 forward, where
 * those of products of patches are below 1e-6; by the filter, of 128 images, below 3e-5.
 *
 * Tiles are computed in blocks that stay in the second level of cache. A block's elements lie point
 * by point, in slots of the same size; the product of point p is written into the slot before that
 * which it reads, so that one array does for both. */
#include "kernels/cpu/conv_minimal.h"

#include <stdatomic.h>

#include "kernels/cpu/conv_vec.h"
#include "kernels/cpu/gemm_int.h"

enum {
    OUT = LEAT_CONV_MINIMAL_TILE, /* a tile of the result has OUT by OUT pixels */
    WINDOW = 5,                   /* the filter WINDOW by WINDOW */
    IN = 8,                       /* a tile of x IN by IN */
    POINTS = IN * IN,
    TILES = 36,              /* of a block: a multiple of the height of a product's tiles */
    BLOCK_BYTES = 720 << 10, /* most memory of a block's elements */
    PARTS = 4,               /* of the tiles, whose gradients are summed one by one */
};

/* ---- The transforms, in one dimension ---- */

/* B^T d */
INLINE void wino_x(const vec d[IN], vec t[IN])
{
    const vec a = d[2] + d[6] - 4.25f * d[4], b = d[1] + d[5] - 4.25f * d[3];
    const vec e = d[6] + 0.25f * d[2] - 1.25f * d[4], o = 0.5f * d[1] - 2.5f * d[3] + 2.0f * d[5];
    const vec f = d[6] + 4.0f * d[2] - 5.0f * d[4], q = 2.0f * d[1] - 2.5f * d[3] + 0.5f * d[5];
    t[0] = d[0] - d[6] + 5.25f * (d[4] - d[2]);
    t[1] = a + b;
    t[2] = a - b;
    t[3] = e + o;
    t[4] = e - o;
    t[5] = f + q;
    t[6] = f - q;
    t[7] = d[7] - d[1] + 5.25f * (d[3] - d[5]);
}

/* G g, for n = WINDOW or OUT elements */
INLINE void wino_w(const int n, const vec g[WINDOW], vec t[IN])
{
    const vec g4 = n == WINDOW ? g[4] : (vec){0};
    const vec even1 = g[0] + g[2] + g4, odd1 = g[1] + g[3];
    const vec even2 = g[0] + 4.0f * g[2] + 16.0f * g4, odd2 = 2.0f * g[1] + 8.0f * g[3];
    const vec even3 = g[0] + 0.25f * g[2] + 0.0625f * g4, odd3 = 0.5f * g[1] + 0.125f * g[3];
    t[0] = g[0];
    t[1] = (-2.0f / 9) * (even1 + odd1);
    t[2] = (-2.0f / 9) * (even1 - odd1);
    t[3] = (1.0f / 90) * (even2 + odd2);
    t[4] = (1.0f / 90) * (even2 - odd2);
    t[5] = (32.0f / 45) * (even3 + odd3);
    t[6] = (32.0f / 45) * (even3 - odd3);
    t[7] = g[n - 1];
}

/* A^T m, n = OUT or WINDOW elements */
INLINE void wino_y(const int n, const vec m[IN], vec y[WINDOW])
{
    const vec s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
    const vec s3 = m[5] + m[6], d3 = m[5] - m[6];
    y[0] = m[0] + s1 + s2 + s3;
    y[1] = d1 + 2.0f * d2 + 0.5f * d3;
    y[2] = s1 + 4.0f * s2 + 0.25f * s3;
    y[3] = d1 + 8.0f * d2 + 0.125f * d3;
    if (n == WINDOW)
        y[4] = s1 + 16.0f * s2 + 0.0625f * s3;
    y[n - 1] += m[7];
}

/* ---- Tiles ---- */

typedef struct grid {
    const leat_conv *c;
    int64_t down, across, tiles; /* tiles of an image, and of all */
    int64_t units;               /* the larger number of channels, of x and y */
    int64_t block;               /* tiles of a block */
    int64_t slot;                /* elements of a slot; not a power of two, for the caches' sake */
} grid;

static grid grid_of(const leat_conv *c)
{
    grid g = {.c = c};
    g.down = (c->out[1] + OUT - 1) / OUT;
    g.across = (c->out[2] + OUT - 1) / OUT;
    g.tiles = c->batch * g.down * g.across;
    g.units = c->in_depth > c->out_depth ? c->in_depth : c->out_depth;
    g.block = TILES;
    while (g.block > 12 && g.block * g.units * POINTS * 4 > BLOCK_BYTES)
        g.block -= 12;
    g.slot = g.block * g.units + UNIT;
    return g;
}

static int64_t blocks_of(const grid *g)
{
    return (g->tiles + g->block - 1) / g->block;
}

static size_t block_bytes(const grid *g, int64_t slots)
{
    return (size_t)(slots * g->slot) * sizeof(float);
}

static leat_status memory_status(leat_kernel *k, const atomic_bool *failed)
{
    LEAT_REQUIRE(!*failed, RESOURCE_EXHAUSTED, "%s: out of memory for tiles of the images",
                 leat_node_op(leat_kernel_node(k)));
    return NULL;
}

/* The pixels of tile t of images that are `size` large and `depth` deep: `side` by `side` pixels
 * from (row, col) = tile * OUT - before on; `none`, which has `depth` zeros, where there are none.
 */
INLINE void pixels_of(const grid *g, const float *images, const int64_t *size, int64_t depth,
                      const int64_t *before, const int side, int64_t t, const float *none,
                      const float **at)
{
    const int64_t n = t / (g->down * g->across);
    const int64_t row = t / g->across % g->down * OUT - before[1];
    const int64_t col = t % g->across * OUT - before[2];
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            const int64_t r = row + i, c = col + j;
            const bool there = r >= 0 && r < size[1] && c >= 0 && c < size[2];
            at[i * side + j] = there ? images + ((n * size[1] + r) * size[2] + c) * depth : none;
        }
}

/* Writes the transform of `side` by `side` pixels, of all channels, to `to`, whose points are
 * `slot` apart. side is IN for tiles of x, WINDOW for a filter and OUT for tiles of dy. */
INLINE void transform(const int side, const float *const *at, int64_t depth, float *to,
                      int64_t slot)
{
    for (int64_t ch = 0; ch < depth; ch += LANES) {
        vec half[IN][IN]; /* half[j][i]: along the first dimension */
        for (int j = 0; j < side; j++) {
            vec d[IN];
            UNROLL for (int i = 0; i < side; i++) d[i] = load(at[i * side + j] + ch);
            if (side == IN)
                wino_x(d, half[j]);
            else
                wino_w(side, d, half[j]);
        }
        for (int i = 0; i < IN; i++) {
            vec d[IN], t[IN];
            UNROLL for (int j = 0; j < side; j++) d[j] = half[j][i];
            if (side == IN)
                wino_x(d, t);
            else
                wino_w(side, d, t);
            UNROLL for (int j = 0; j < IN; j++) store(to + (i * IN + j) * slot + ch, t[j]);
        }
    }
}

/* y[i][j]: A^T m A of a vector of channels, whose points are `slot` apart. */
INLINE void inverse(const int n, const float *m, int64_t slot, vec y[WINDOW][WINDOW])
{
    vec half[WINDOW][IN];
    for (int j = 0; j < IN; j++) {
        vec d[IN], t[WINDOW];
        UNROLL for (int i = 0; i < IN; i++) d[i] = load(m + (i * IN + j) * slot);
        wino_y(n, d, t);
        UNROLL for (int i = 0; i < n; i++) half[i][j] = t[i];
    }
    UNROLL for (int i = 0; i < n; i++) wino_y(n, half[i], y[i]);
}

static __attribute__((noinline)) void transform_x(const float *const *at, int64_t depth, float *to,
                                                  int64_t slot)
{
    transform(IN, at, depth, to, slot);
}

static __attribute__((noinline)) void transform_dy(const float *const *at, int64_t depth, float *to,
                                                   int64_t slot)
{
    transform(OUT, at, depth, to, slot);
}

/* ---- y = x * w ---- */

typedef struct forward {
    grid g;
    const float *x, *w, *none;
    float *filter; /* the transformed filter, (point, channel, unit) */
    float *y;
    const leat_gemm_epilogue *e;
    atomic_bool failed; /* no memory for a block's elements */
} forward;

/* Channels [begin, end) of the filter. */
static void filter_part(void *arg, int64_t begin, int64_t end)
{
    const forward *f = arg;
    const leat_conv *c = f->g.c;
    const int64_t slot = c->in_depth * c->out_depth;
    for (int64_t ch = begin; ch < end; ch++) {
        const float *at[WINDOW * WINDOW];
        for (int i = 0; i < WINDOW * WINDOW; i++)
            at[i] = f->w + (i * c->in_depth + ch) * c->out_depth;
        transform(WINDOW, at, c->out_depth, f->filter + ch * c->out_depth, slot);
    }
}

/* Writes the pixels of tile t that are in the image, with the epilogue. */
static void write_tile(const forward *f, int64_t t, const float *m)
{
    const leat_conv *c = f->g.c;
    const leat_gemm_epilogue *e = f->e;
    const int64_t image = t / (f->g.down * f->g.across);
    const int64_t row = t / f->g.across % f->g.down * OUT, col = t % f->g.across * OUT;
    const int64_t rows = c->out[1] - row < OUT ? c->out[1] - row : OUT;
    const int64_t cols = c->out[2] - col < OUT ? c->out[2] - col : OUT;
    const int64_t first = (image * c->out[1] + row) * c->out[2] + col;
    for (int64_t u = 0; u < c->out_depth; u += LANES) {
        vec y[WINDOW][WINDOW];
        inverse(OUT, m + u, f->g.slot, y);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                store(f->y + (first + i * c->out[2] + j) * c->out_depth + u,
                      finished(y[i][j], e, u));
    }
    for (int64_t i = 0; e->row_fn && i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            const int64_t pixel = first + i * c->out[2] + j;
            e->row_fn(e->arg, pixel, 0, f->y + pixel * c->out_depth, c->out_depth);
        }
}

/* Blocks [begin, end). */
static void forward_blocks(void *arg, int64_t begin, int64_t end)
{
    forward *f = arg;
    const grid *g = &f->g;
    const leat_conv *c = g->c;
    float *m = leat_gemm_scratch(SCRATCH_TILES, block_bytes(g, POINTS + 1)), *v = m + g->slot;
    if (!m)
        atomic_store_explicit(&f->failed, true, memory_order_relaxed);
    for (int64_t b = begin; m && b < end && !leat_loop_stopped(f->e->stop); b++) {
        const int64_t t0 = b * g->block;
        const int64_t tiles = g->tiles - t0 < g->block ? g->tiles - t0 : g->block;
        for (int64_t t = 0; t < tiles; t++) {
            const float *at[POINTS];
            pixels_of(g, f->x, c->in, c->in_depth, c->before, IN, t0 + t, f->none, at);
            transform_x(at, c->in_depth, v + t * c->in_depth, g->slot);
        }
        for (int64_t p = 0; p < POINTS; p++)
            leat_gemm_f32(NULL, LEAT_GEMM_N, LEAT_GEMM_N, tiles, c->out_depth, c->in_depth,
                          v + p * g->slot, c->in_depth, f->filter + p * c->in_depth * c->out_depth,
                          c->out_depth, m + p * g->slot, c->out_depth, NULL);
        for (int64_t t = 0; t < tiles; t++)
            write_tile(f, t0 + t, m + t * c->out_depth);
    }
}

/* Zeros for the pixels that are not there, and after them `count` elements of memory. */
static leat_status memory_for(leat_kernel *k, const grid *g, int64_t count, float **none,
                              float **memory)
{
    leat_tensor *t;
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &(leat_shape){1, {g->units + count}}, &t));
    *none = t->data;
    *memory = *none + g->units;
    memset(*none, 0, (size_t)g->units * sizeof(float));
    return NULL;
}

leat_status leat_conv_minimal(leat_kernel *k, const leat_conv *c, const float *x, const float *w,
                              float *y, const leat_gemm_epilogue *e)
{
    forward f = {.g = grid_of(c), .x = x, .w = w, .y = y, .e = e};
    float *none;
    LEAT_TRY(memory_for(k, &f.g, POINTS * c->in_depth * c->out_depth, &none, &f.filter));
    f.none = none;
    leat_kernel_for(k, c->in_depth, 3.0 * (double)c->out_depth, filter_part, &f);
    leat_kernel_for(k, blocks_of(&f.g), 1.5 * (double)(f.g.block * c->in_depth * c->out_depth),
                    forward_blocks, &f);
    return memory_status(k, &f.failed);
}

/* ---- dw ---- */

typedef struct backward {
    grid g;
    const float *x, *dy, *none;
    float *dw;
    float *sums; /* (part, point, channel, unit) */
    int64_t parts, blocks;
    const leat_loop_stop *stop;
    atomic_bool failed; /* no memory for a block's elements */
} backward;

static void sum_part(void *arg, int64_t begin, int64_t end)
{
    backward *f = arg;
    const grid *g = &f->g;
    const leat_conv *c = g->c;
    static const int64_t no_padding[LEAT_CONV_SPACE];
    const leat_gemm_epilogue add = {.accumulate = true}, begins = {0};
    const int64_t filter = c->in_depth * c->out_depth;
    float *v = leat_gemm_scratch(SCRATCH_TILES, block_bytes(g, 2 * POINTS));
    float *d = v + POINTS * g->slot;
    if (!v)
        atomic_store_explicit(&f->failed, true, memory_order_relaxed);
    for (int64_t part = begin; v && part < end; part++) {
        float *sums = f->sums + part * POINTS * filter;
        const int64_t first = f->blocks * part / f->parts, last = f->blocks * (part + 1) / f->parts;
        for (int64_t b = first; b < last; b++) {
            const int64_t t0 = b * g->block;
            const int64_t tiles = g->tiles - t0 < g->block ? g->tiles - t0 : g->block;
            if (leat_loop_stopped(f->stop))
                return;
            for (int64_t t = 0; t < tiles; t++) {
                const float *at[POINTS];
                pixels_of(g, f->x, c->in, c->in_depth, c->before, IN, t0 + t, f->none, at);
                transform_x(at, c->in_depth, v + t * c->in_depth, g->slot);
                pixels_of(g, f->dy, c->out, c->out_depth, no_padding, OUT, t0 + t, f->none, at);
                transform_dy(at, c->out_depth, d + t * c->out_depth, g->slot);
            }
            for (int64_t p = 0; p < POINTS; p++)
                leat_gemm_f32(NULL, LEAT_GEMM_T, LEAT_GEMM_N, c->in_depth, c->out_depth, tiles,
                              v + p * g->slot, c->in_depth, d + p * g->slot, c->out_depth,
                              sums + p * filter, c->out_depth, b > first ? &add : &begins);
        }
    }
}

/* Channels [begin, end) of dw. */
static void finish_part(void *arg, int64_t begin, int64_t end)
{
    const backward *f = arg;
    const leat_conv *c = f->g.c;
    const int64_t filter = c->in_depth * c->out_depth;
    for (int64_t ch = begin; ch < end; ch++) {
        float *sums = f->sums + ch * c->out_depth;
        for (int64_t part = 1; part < f->parts; part++)
            for (int64_t p = 0; p < POINTS; p++)
                for (int64_t u = 0; u < c->out_depth; u += LANES) {
                    float *to = sums + p * filter + u;
                    store(to, load(to) + load(to + part * POINTS * filter));
                }
        for (int64_t u = 0; u < c->out_depth; u += LANES) {
            vec y[WINDOW][WINDOW];
            inverse(WINDOW, sums + u, filter, y);
            for (int i = 0; i < WINDOW; i++)
                for (int j = 0; j < WINDOW; j++)
                    store(f->dw + ((i * WINDOW + j) * c->in_depth + ch) * c->out_depth + u,
                          y[i][j]);
        }
    }
}

leat_status leat_conv_minimal_by_filter(leat_kernel *k, const leat_conv *c, const float *x,
                                        const float *dy, float *dw, const leat_loop_stop *stop)
{
    backward f = {.g = grid_of(c), .x = x, .dy = dy, .dw = dw, .stop = stop};
    const int64_t filter = c->in_depth * c->out_depth;
    f.blocks = blocks_of(&f.g);
    f.parts = f.blocks < PARTS ? f.blocks : PARTS;
    float *none;
    LEAT_TRY(memory_for(k, &f.g, f.parts * POINTS * filter, &none, &f.sums));
    f.none = none;
    leat_kernel_for(k, f.parts, 2.0 * (double)(f.g.tiles / f.parts * filter), sum_part, &f);
    leat_kernel_for(k, c->in_depth, 20.0 * (double)(f.parts * c->out_depth), finish_part, &f);
    return memory_status(k, &f.failed);
}

bool leat_conv_minimal_fits(const leat_conv *c, leat_dtype t)
{
    return t == LEAT_FLOAT && leat_conv_suits_minimal(c);
}
