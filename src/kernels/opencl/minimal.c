/* minimal.c -- convolutions of 5 by 5 by minimal filtering (minimal.h), in chunks of tiles: their
 * transforms, a product of matrices for each of the 64 points, and the way back. A chunk is small
 * enough for what it is transformed to to stay in a cache, where the device is a CPU, or not to
 * need much memory. */
#include "kernels/opencl/minimal.h"

#include <stdio.h>

#include "kernels/opencl/tune.h"
#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_minimal, leat_cl_text_expressions;
static const leat_cl_text *const texts[] = {&leat_cl_text_expressions, &leat_cl_text_minimal, NULL};

enum {
    OUT = LEAT_CONV_MINIMAL_TILE,
    POINTS = 64,
    PAD = 16,            /* elements between slots, so that no caches' lines collide */
    CPU_CHUNK = 3 << 20, /* bytes */
    GPU_CHUNK = 64 << 20,
};

/* The struct `grid` of minimal.cl. */
typedef struct grid {
    int32_t down, across, rows, columns, depth, before[2], first, tiles, slot, width;
} grid;

typedef struct plan {
    const leat_conv *c;
    int64_t down, across, tiles, chunk;
    const leat_cl_tiles *tile; /* of the products */
    int64_t wide;              /* the columns of all panels */
} plan;

static leat_status plan_of(leat_opencl *d, const leat_conv *c, plan *p)
{
    *p = (plan){.c = c};
    p->down = (c->out[1] + OUT - 1) / OUT;
    p->across = (c->out[2] + OUT - 1) / OUT;
    p->tiles = c->batch * p->down * p->across;
    LEAT_TRY(leat_cl_tiles_for(d, c->out_depth, &p->tile));
    const int64_t width = p->tile->width;
    p->wide = (c->out_depth + width - 1) / width * width;
    p->chunk = (d->listed->on_cpu ? CPU_CHUNK : GPU_CHUNK) /
               (POINTS * (int64_t)sizeof(float) * (c->in_depth + p->wide));
    p->chunk -= p->chunk % 12;
    if (p->chunk < 12)
        p->chunk = 12;
    if (p->chunk > p->tiles)
        p->chunk = p->tiles;
    return leat_cl_countable(p->tiles);
}

/* Memory for `points` slots of n elements and PAD. */
static leat_status slots(leat_kernel *k, int64_t n, float **out)
{
    leat_tensor *t;
    LEAT_TRY(leat_cl_countable(n + PAD));
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &(leat_shape){2, {POINTS, n + PAD}}, &t));
    *out = t->data;
    return NULL;
}

/* How `tiles` tiles from `first` on lie on images of `size`, transformed to slots of n elements. */
static grid grid_of(const plan *p, const int64_t *size, int64_t depth, const int64_t *before,
                    int64_t first, int64_t tiles, int64_t n, int64_t width)
{
    return (grid){(int32_t)p->down, (int32_t)p->across, (int32_t)size[1],
                  (int32_t)size[2], (int32_t)depth,     {(int32_t)before[1], (int32_t)before[2]},
                  (int32_t)first,   (int32_t)tiles,     (int32_t)(n + PAD),
                  (int32_t)width};
}

static const int64_t no_padding[LEAT_CONV_SPACE];

/* Runs one of the functions from images to slots, or back. */
static leat_status transform(leat_kernel *k, const char *function, const void *from, void *to,
                             const grid *g, const leat_cl_end *end)
{
    char options[80] = "";
    if (end && end->bias)
        snprintf(options, sizeof options, "-DACT=%s%s", end->op ? "EXPR_" : "",
                 end->op ? end->op : "");
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, options, function);
    leat_cl_at(&l, from);
    leat_cl_at(&l, to);
    leat_cl_bytes(&l, g, sizeof *g);
    if (end && end->bias)
        leat_cl_at(&l, end->bias);
    const bool on_cpu = leat_cl_of(k)->listed->on_cpu;
    return leat_cl_each(&l, (int64_t)g->tiles * g->depth / (on_cpu ? 16 : 1), 300);
}

/* The panels of the transformed filter. */
static leat_status transform_filter(leat_kernel *k, const plan *p, const float *w, float *to)
{
    const leat_conv *c = p->c;
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", "filter");
    leat_cl_at(&l, w);
    leat_cl_at(&l, to);
    leat_cl_int(&l, c->in_depth);
    leat_cl_int(&l, c->out_depth);
    leat_cl_int(&l, c->in_depth * p->wide + PAD);
    leat_cl_int(&l, p->tile->width);
    const bool on_cpu = leat_cl_of(k)->listed->on_cpu;
    return leat_cl_each(&l, c->in_depth * c->out_depth / (on_cpu ? 16 : 1), 300);
}

leat_status leat_cl_minimal(leat_kernel *k, const leat_conv *c, const float *x, const float *w,
                            float *y, const leat_cl_end *end)
{
    plan p;
    float *filter, *from, *to;
    LEAT_TRY(plan_of(leat_cl_of(k), c, &p));
    const int64_t n_filter = c->in_depth * p.wide, n_from = p.chunk * c->in_depth,
                  n_to = p.chunk * c->out_depth;
    LEAT_TRY(slots(k, n_filter, &filter));
    LEAT_TRY(slots(k, n_from, &from));
    LEAT_TRY(slots(k, n_to, &to));
    LEAT_TRY(transform_filter(k, &p, w, filter));
    leat_cl_product product = {.n = c->out_depth,
                               .parts = 1,
                               .left = {.rows = leat_cl_digit(c->in_depth),
                                        .parts = leat_cl_digit(0),
                                        .len = (int32_t)c->in_depth,
                                        .by = 1},
                               .a = from,
                               .panels = filter,
                               .c = to,
                               .ldc = c->out_depth,
                               .batch = POINTS,
                               .a_step = n_from + PAD,
                               .b_step = n_filter + PAD,
                               .c_step = n_to + PAD};
    for (int64_t t = 0; t < p.tiles; t += p.chunk) {
        product.m = p.tiles - t < p.chunk ? p.tiles - t : p.chunk;
        const grid in =
            grid_of(&p, c->in, c->in_depth, c->before, t, product.m, n_from, c->in_depth);
        const grid out =
            grid_of(&p, c->out, c->out_depth, no_padding, t, product.m, n_to, c->out_depth);
        LEAT_TRY(transform(k, "tiles_x", x, from, &in, NULL));
        LEAT_TRY(leat_cl_gemm(k, &product));
        LEAT_TRY(transform(k, "untile", to, y, &out, end));
    }
    return NULL;
}

leat_status leat_cl_minimal_by_filter(leat_kernel *k, const leat_conv *c, const float *x,
                                      const float *dy, float *dw)
{
    plan p;
    float *left, *right, *sums;
    LEAT_TRY(plan_of(leat_cl_of(k), c, &p));
    const int64_t n_left = p.chunk * c->in_depth, n_right = p.chunk * p.wide,
                  n_sums = c->in_depth * c->out_depth;
    LEAT_TRY(slots(k, n_left, &left));
    LEAT_TRY(slots(k, n_right, &right));
    LEAT_TRY(slots(k, n_sums, &sums));
    leat_cl_product product = {
        .m = c->in_depth,
        .n = c->out_depth,
        .parts = 1,
        .left = {.rows = leat_cl_digit(1), .parts = leat_cl_digit(0), .by = (int32_t)c->in_depth},
        .a = left,
        .panels = right,
        .c = sums,
        .ldc = c->out_depth,
        .batch = POINTS,
        .a_step = n_left + PAD,
        .b_step = n_right + PAD,
        .c_step = n_sums + PAD};
    for (int64_t t = 0; t < p.tiles; t += p.chunk) {
        const int64_t tiles = p.tiles - t < p.chunk ? p.tiles - t : p.chunk;
        const grid in = grid_of(&p, c->in, c->in_depth, c->before, t, tiles, n_left, c->in_depth);
        const grid out =
            grid_of(&p, c->out, c->out_depth, no_padding, t, tiles, n_right, p.tile->width);
        product.left.len = (int32_t)tiles;
        product.add = t > 0;
        LEAT_TRY(transform(k, "tiles_x", x, left, &in, NULL));
        LEAT_TRY(transform(k, "tiles_dy", dy, right, &out, NULL));
        LEAT_TRY(leat_cl_gemm(k, &product));
    }
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", "unfilter");
    leat_cl_at(&l, sums);
    leat_cl_at(&l, dw);
    leat_cl_int(&l, c->in_depth);
    leat_cl_int(&l, c->out_depth);
    leat_cl_int(&l, n_sums + PAD);
    const bool on_cpu = leat_cl_of(k)->listed->on_cpu;
    return leat_cl_each(&l, n_sums / (on_cpu ? 16 : 1), 300);
}
