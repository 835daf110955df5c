/* lstm_step.c -- _LSTMStep and _LSTMStepGrad: a step of a basic LSTM cell. Both compute what the
 * nodes compute that they replace, in the same order and with the same roundings, so that results
 * are equal to the bit. A row is taken through several loops: in one loop, the compiler would make
 * one multiply-add, which rounds once, of a product and the sum that follows it. */
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/level_rows.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vmath.h"

enum { XH, W, B, C_PREV };
enum { I, CI, F, O, C, CO, H, VALUES };

static leat_status step_init(const leat_node *n, void *state)
{
    *(float *)state = (float)leat_node_float(n, "forget_bias");
    return NULL;
}

/* ---- Forward ---- */
typedef struct forward {
    int64_t units;
    float forget_bias;
    const float *gates, *c_prev;
    float *out[VALUES];
} forward;

/* y may be x. */
static void sigmoids(const float *x, float *y, int64_t n)
{
    LEAT_SIMD
    for (int64_t i = 0; i < n; i++)
        y[i] = 1 / (1 + leat_expf(-x[i]));
}

static void tangents(const float *x, float *y, int64_t n)
{
    LEAT_SIMD
    for (int64_t i = 0; i < n; i++)
        y[i] = leat_tanhf(x[i]);
}

static void forward_rows(void *arg, int64_t begin, int64_t end)
{
    const forward *s = arg;
    const int64_t n = s->units;
    for (int64_t r = begin; r < end; r++) {
        const float *gates = s->gates + r * 4 * n, *c_prev = s->c_prev + r * n;
        float *v[VALUES];
        for (int i = 0; i < VALUES; i++)
            v[i] = s->out[i] + r * n;
        float *restrict f = v[F], *restrict c = v[C], *restrict h = v[H];
        const float *i = v[I], *ci = v[CI], *o = v[O], *co = v[CO];
        sigmoids(gates, v[I], n);
        tangents(gates + n, v[CI], n);
        for (int64_t u = 0; u < n; u++)
            f[u] = gates[2 * n + u] + s->forget_bias;
        sigmoids(f, f, n);
        sigmoids(gates + 3 * n, v[O], n);
        LEAT_SIMD
        for (int64_t u = 0; u < n; u++) {
            c[u] = c_prev[u] * f[u];
            h[u] = i[u] * ci[u];
        }
        LEAT_SIMD
        for (int64_t u = 0; u < n; u++)
            c[u] += h[u];
        tangents(c, v[CO], n);
        LEAT_SIMD
        for (int64_t u = 0; u < n; u++)
            h[u] = co[u] * o[u];
    }
}

static leat_status check_step(leat_kernel *k, int64_t *units)
{
    const leat_shape *xh = &leat_kernel_in(k, XH)->shape, *w = &leat_kernel_in(k, W)->shape;
    const leat_shape *b = &leat_kernel_in(k, B)->shape, *c = &leat_kernel_in(k, C_PREV)->shape;
    LEAT_REQUIRE(xh->rank == 2 && w->rank == 2 && xh->dim[1] == w->dim[0], INVALID_ARGUMENT,
                 "Matrix size-incompatible: In[0]: %s, In[1]: %s", leat_shape_show(xh).s,
                 leat_shape_show(w).s);
    LEAT_REQUIRE(b->rank == 1 && b->dim[0] == w->dim[1], INVALID_ARGUMENT,
                 "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
                 leat_shape_show(b).s, leat_shape_show(w).s);
    LEAT_REQUIRE(c->rank == 2 && c->dim[0] == xh->dim[0] && b->dim[0] % 4 == 0 &&
                     c->dim[1] == b->dim[0] / 4,
                 INVALID_ARGUMENT, "The state must be (%lld, %lld), but is %s",
                 (long long)xh->dim[0], (long long)(b->dim[0] / 4), leat_shape_show(c).s);
    *units = c->dim[1];
    return NULL;
}

static leat_status step(leat_kernel *k)
{
    const float *bias = leat_kernel_state(k);
    const leat_tensor *xh = leat_kernel_in(k, XH), *c_prev = leat_kernel_in(k, C_PREV);
    forward s = {.forget_bias = *bias, .c_prev = c_prev->data};
    LEAT_TRY(check_step(k, &s.units));
    const int64_t rows = xh->shape.dim[0], n = 4 * s.units;
    for (int i = 0; i < VALUES; i++) {
        leat_tensor *t;
        LEAT_TRY(leat_kernel_out(k, i, &c_prev->shape, &t));
        s.out[i] = t->data;
    }
    leat_tensor *gates;
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &(leat_shape){.rank = 2, .dim = {rows, n}}, &gates));
    s.gates = gates->data;
    leat_loop_stop stop;
    const leat_gemm_epilogue e = {.bias = leat_kernel_in(k, B)->data,
                                  .stop = leat_kernel_stop(k, &stop)};
    leat_gemm_f32(leat_kernel_device(k)->intra, LEAT_GEMM_N, LEAT_GEMM_N, rows, n, xh->shape.dim[1],
                  xh->data, xh->shape.dim[1], leat_kernel_in(k, W)->data, n, gates->data, n, &e);
    leat_kernel_for(k, rows, 4.0 * (double)s.units, forward_rows, &s);
    return NULL;
}

/* ---- Backward ---- */
enum { GRAD_I, GRAD_CI, GRAD_F, GRAD_O, GRAD_CO, GRAD_C_PREV, GRAD_DH, GRAD_DC, MOST_DC = 1 };

typedef struct backward {
    int64_t units;
    const float *in[GRAD_DC + MOST_DC]; /* the last is NULL if h alone gives a gradient to c */
    float *gates, *dc_prev;
} backward;

static void backward_rows(void *arg, int64_t begin, int64_t end)
{
    const backward *s = arg;
    const int64_t n = s->units;
    for (int64_t r = begin; r < end; r++) {
        const float *v[GRAD_DC];
        for (int j = 0; j < GRAD_DC; j++)
            v[j] = s->in[j] + r * n;
        const float *i = v[GRAD_I], *ci = v[GRAD_CI], *f = v[GRAD_F], *o = v[GRAD_O];
        const float *co = v[GRAD_CO], *c_prev = v[GRAD_C_PREV], *dh = v[GRAD_DH];
        const float *more = s->in[GRAD_DC] ? s->in[GRAD_DC] + r * n : NULL;
        float *restrict di = s->gates + r * 4 * n, *restrict dci = di + n,
                        *restrict df = di + 2 * n;
        float *restrict d_o = di + 3 * n, *restrict dc = s->dc_prev + r * n;
        LEAT_SIMD
        for (int64_t u = 0; u < n; u++) {
            const float dco = dh[u] * o[u], d_out = dh[u] * co[u];
            d_o[u] = d_out * o[u] * (1 - o[u]);
            dc[u] = dco * (1 - co[u] * co[u]);
        }
        if (more) {
            LEAT_SIMD
            for (int64_t u = 0; u < n; u++)
                dc[u] += more[u];
        }
        LEAT_SIMD
        for (int64_t u = 0; u < n; u++) {
            const float d = dc[u], d_in = d * ci[u], d_cell = d * i[u], d_keep = d * c_prev[u];
            di[u] = d_in * i[u] * (1 - i[u]);
            dci[u] = d_cell * (1 - ci[u] * ci[u]);
            df[u] = d_keep * f[u] * (1 - f[u]);
            dc[u] = d * f[u];
        }
    }
}

static leat_status step_grad(leat_kernel *k)
{
    const leat_shape *shape = &leat_kernel_in(k, 0)->shape;
    const int n = leat_kernel_inputs(k);
    backward s = {.units = shape->dim[1]};
    LEAT_REQUIRE(shape->rank == 2 && n <= GRAD_DC + MOST_DC, INVALID_ARGUMENT,
                 "A step of an LSTM has matrices, but the first is %s; %d gradients of its state, "
                 "but at most %d are taken",
                 leat_shape_show(shape).s, n - GRAD_DC, MOST_DC);
    for (int i = 0; i < n; i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        LEAT_REQUIRE(leat_shape_equal(&t->shape, shape), INVALID_ARGUMENT,
                     "Values of a step of an LSTM must have one shape: input 0 has %s, input %d %s",
                     leat_shape_show(shape).s, i, leat_shape_show(&t->shape).s);
        s.in[i] = t->data;
    }
    const leat_shape gates = leat_shape(shape->dim[0], 4 * shape->dim[1]);
    leat_tensor *out, *dc_prev;
    LEAT_TRY(leat_kernel_out(k, 0, &gates, &out));
    LEAT_TRY(leat_kernel_out(k, 1, shape, &dc_prev));
    s.gates = out->data;
    s.dc_prev = dc_prev->data;
    leat_kernel_for(k, shape->dim[0], 1.5 * (double)s.units, backward_rows, &s);
    return NULL;
}

const leat_kernel_def leat_cpu_lstm_step[] = {
    {.op = "_LSTMStep",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = step,
     .state_size = sizeof(float),
     .init = step_init,
     .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "_LSTMStepGrad", .where = {{"T", LEAT_T(FLOAT)}}, .run = step_grad},
    {0},
};
