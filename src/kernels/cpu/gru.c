/* gru.c -- GRUBlockCell and GRUBlockCellGrad. The matrices r_u_bar have the reset gates in the
 * first half of each row, the update gates in the second. */
#include "kernels/cpu/cell_sizes.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/level_rows.h"
#include "kernels/cpu/vmath.h"

enum { X, H_PREV, W_RU, W_C, B_RU, B_C, R, U, C, D_H, INPUTS };

static const leat_cell_dims dims[INPUTS] = {
    {LEAT_OF_BATCH, LEAT_OF_INPUTS},
    {LEAT_OF_BATCH, LEAT_OF_UNITS},
    {LEAT_OF_INPUTS_AND_UNITS, LEAT_OF_TWICE_UNITS},
    {LEAT_OF_INPUTS_AND_UNITS, LEAT_OF_UNITS},
    {LEAT_OF_TWICE_UNITS},
    {LEAT_OF_UNITS},
    {LEAT_OF_BATCH, LEAT_OF_UNITS},
    {LEAT_OF_BATCH, LEAT_OF_UNITS},
    {LEAT_OF_BATCH, LEAT_OF_UNITS},
    {LEAT_OF_BATCH, LEAT_OF_UNITS},
};

typedef struct gru {
    leat_kernel *k;
    leat_cell_sizes z;
    const float *in[INPUTS];
    float *r, *u, *c, *h;
    float *ru_bar;  /* products of both gates; of the gradient: their gradients */
    float *h_reset; /* h_prev * r; of the gradient: its gradient */
    float *d_c_bar, *d_h_prev;
} gru;

static leat_status begin(leat_kernel *k, int inputs, gru *g)
{
    *g = (gru){.k = k};
    LEAT_TRY(leat_cell_sizes_of(k, X, 2, H_PREV, &g->z));
    LEAT_TRY(leat_cell_check(k, 0, inputs, dims, &g->z));
    for (int i = 0; i < inputs; i++)
        g->in[i] = AT(const float, leat_kernel_in(k, i));
    return NULL;
}

static leat_status matrix(gru *g, int out, int64_t cols, float **to)
{
    leat_tensor *t;
    const leat_shape s = leat_shape(g->z.batch, cols);
    LEAT_TRY(out < 0 ? leat_kernel_temp(g->k, LEAT_FLOAT, &s, &t)
                     : leat_kernel_out(g->k, out, &s, &t));
    *to = AT(float, t);
    return NULL;
}

static void multiply(const gru *g, bool tb, int64_t n, int64_t inner, const float *a,
                     const float *b, float *c, const float *bias, bool accumulate)
{
    leat_loop_stop stop;
    const leat_gemm_epilogue e = {
        .bias = bias, .accumulate = accumulate, .stop = leat_kernel_stop(g->k, &stop)};
    leat_gemm_f32(leat_kernel_device(g->k)->intra, LEAT_GEMM_N, (leat_gemm_op)tb, g->z.batch, n,
                  inner, a, inner, b, tb ? inner : n, c, n, &e);
}

/* c = x w_x + h w_h + bias, where w has w_x above w_h. */
static void multiply_both(const gru *g, const float *h, const float *w, int64_t n,
                          const float *bias, float *c)
{
    multiply(g, false, n, g->z.inputs, g->in[X], w, c, NULL, false);
    multiply(g, false, n, g->z.units, h, w + g->z.inputs * n, c, bias, true);
}

/* Runs body for each element e of rows [begin, end), with both gates at bar[u] and bar[units + u],
 * where u counts the elements of a row. */
#define EACH(g, name, ...)                                                                         \
    static void name(void *arg, int64_t begin, int64_t end)                                        \
    {                                                                                              \
        const gru *g = arg;                                                                        \
        const int64_t units = g->z.units;                                                          \
        for (int64_t row = begin; row < end; row++) {                                              \
            float *bar = g->ru_bar + row * 2 * units;                                              \
            LEAT_SIMD                                                                              \
            for (int64_t u = 0; u < units; u++) {                                                  \
                const int64_t e = row * units + u;                                                 \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
    }

EACH(g, gates, {
    const float reset = 1 / (1 + leat_expf(-bar[u]));
    g->u[e] = 1 / (1 + leat_expf(-bar[units + u]));
    g->r[e] = reset;
    g->h_reset[e] = g->in[H_PREV][e] * reset;
})

EACH(g, output, {
    (void)bar;
    const float c = leat_tanhf(g->c[e]);
    g->c[e] = c;
    g->h[e] = g->u[e] * (g->in[H_PREV][e] - c) + c;
})

/* Rows without elements may be very many. */
static void for_rows(const gru *g, double unit_ns,
                     void (*fn)(void *arg, int64_t begin, int64_t end))
{
    if (g->z.units)
        leat_kernel_for(g->k, g->z.batch, unit_ns * (double)g->z.units, fn, (void *)g);
}

static leat_status cell(leat_kernel *k)
{
    gru g;
    LEAT_TRY(begin(k, R, &g));
    const int64_t units = g.z.units;
    LEAT_TRY(matrix(&g, 0, units, &g.r));
    LEAT_TRY(matrix(&g, 1, units, &g.u));
    LEAT_TRY(matrix(&g, 2, units, &g.c));
    LEAT_TRY(matrix(&g, 3, units, &g.h));
    LEAT_TRY(matrix(&g, -1, 2 * units, &g.ru_bar));
    LEAT_TRY(matrix(&g, -1, units, &g.h_reset));
    multiply_both(&g, g.in[H_PREV], g.in[W_RU], 2 * units, g.in[B_RU], g.ru_bar);
    for_rows(&g, 4, gates);
    multiply_both(&g, g.h_reset, g.in[W_C], units, g.in[B_C], g.c);
    for_rows(&g, 2, output);
    return NULL;
}

EACH(g, candidate_grad, {
    const float dh = g->in[D_H][e], update = g->in[U][e], c = g->in[C][e];
    g->d_c_bar[e] = dh * (1 - update) * (1 - c * c);
    bar[units + u] = dh * (g->in[H_PREV][e] - c) * update * (1 - update);
})

EACH(g, reset_grad, {
    const float d = g->h_reset[e], reset = g->in[R][e];
    bar[u] = d * g->in[H_PREV][e] * reset * (1 - reset);
    g->d_h_prev[e] = d * reset + g->in[D_H][e] * g->in[U][e];
})

static leat_status cell_grad(leat_kernel *k)
{
    gru g;
    float *d_x;
    LEAT_TRY(begin(k, INPUTS, &g));
    const int64_t units = g.z.units, inputs = g.z.inputs;
    LEAT_TRY(matrix(&g, 0, inputs, &d_x));
    LEAT_TRY(matrix(&g, 1, units, &g.d_h_prev));
    LEAT_TRY(matrix(&g, 2, units, &g.d_c_bar));
    LEAT_TRY(matrix(&g, 3, 2 * units, &g.ru_bar));
    LEAT_TRY(matrix(&g, -1, units, &g.h_reset));
    const float *w_ru = g.in[W_RU], *w_c = g.in[W_C];
    for_rows(&g, 1, candidate_grad);
    multiply(&g, true, units, units, g.d_c_bar, w_c + inputs * units, g.h_reset, NULL, false);
    for_rows(&g, 1, reset_grad);
    multiply(&g, true, inputs, units, g.d_c_bar, w_c, d_x, NULL, false);
    multiply(&g, true, inputs, 2 * units, g.ru_bar, w_ru, d_x, NULL, true);
    multiply(&g, true, units, 2 * units, g.ru_bar, w_ru + inputs * 2 * units, g.d_h_prev, NULL,
             true);
    return NULL;
}

#define KERNEL(op_, fn)                                                                            \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_T(FLOAT)}}, .run = fn, .flags = LEAT_KERNEL_EXPENSIVE      \
    }

const leat_kernel_def leat_cpu_gru[] = {
    KERNEL("GRUBlockCell", cell),
    KERNEL("GRUBlockCellGrad", cell_grad),
    {0},
};
