/* lstm.c -- LSTMBlockCell, BlockLSTM, BlockLSTMV2 and the kernels of their gradients.
 *
 * w has the weights of the inputs above those of the outputs h. Over a whole sequence the products
 * that need no earlier step are computed for all steps at once: the gates' part that comes from x,
 * and, once the gradients of all gates are there, those of x and w. What remains in a step is a
 * product by the rows of w for h, or by their transpose; these are copied once into blocks of
 * BLOCK units, each of which a thread multiplies and then takes through the gates' arithmetic while
 * it is in its cache. */
#include "kernels/cpu/cell_sizes.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/level_rows.h"
#include "kernels/cpu/lstm_gates.h"

enum { BLOCK = 16 }; /* units */

/* Attributes. */
typedef struct lstm_state {
    leat_lstm_order order;
    float forget_bias, clip;
    bool peephole;
} lstm_state;

static leat_status lstm_init(const leat_node *n, void *state)
{
    lstm_state *s = state;
    const char *op = leat_node_op(n);
    const bool v2 = strcmp(op + strlen(op) - 2, "V2") == 0;
    s->order = v2 ? LEAT_LSTM_IFCO : LEAT_LSTM_ICFO;
    if (leat_node_has(n, "forget_bias"))
        s->forget_bias = (float)leat_node_float(n, "forget_bias");
    if (leat_node_has(n, "cell_clip"))
        s->clip = (float)leat_node_float(n, "cell_clip");
    s->peephole = leat_node_bool(n, "use_peephole");
    return NULL;
}

/* Inputs of the cell, of which the first is `first`. */
enum { X, CS_PREV, H_PREV, W, WCI, WCF, WCO, B, INPUTS };
enum { I, CS, F, O, CI, CO, H, OUTPUTS };

static const leat_cell_dims block_inputs[INPUTS] = {
    {LEAT_OF_TIME, LEAT_OF_BATCH, LEAT_OF_INPUTS},
    {LEAT_OF_BATCH, LEAT_OF_UNITS},
    {LEAT_OF_BATCH, LEAT_OF_UNITS},
    {LEAT_OF_INPUTS_AND_UNITS, LEAT_OF_GATES},
    {LEAT_OF_UNITS},
    {LEAT_OF_UNITS},
    {LEAT_OF_UNITS},
    {LEAT_OF_GATES},
};

static const float *data(leat_kernel *k, int i)
{
    return AT(const float, leat_kernel_in(k, i));
}

/* Checks the inputs from `first` on; gives their sizes and the cell. */
static leat_status check_cell(leat_kernel *k, int first, int x_rank, leat_cell_sizes *z,
                              leat_lstm_cell *cell)
{
    const lstm_state *s = leat_kernel_state(k);
    LEAT_TRY(leat_cell_sizes_of(k, first, x_rank, first + CS_PREV, z));
    if (x_rank == 3) {
        LEAT_TRY(leat_cell_check(k, first, INPUTS, block_inputs, z));
    } else {
        /* TensorFlow takes peepholes of any size where they are not used. */
        static const leat_cell_dims any = {LEAT_OF_ANY_SIZE};
        LEAT_TRY(leat_cell_check(k, first + CS_PREV, 3, block_inputs + CS_PREV, z));
        for (int i = WCI; i <= WCO; i++)
            LEAT_TRY(leat_cell_check(k, first + i, 1, s->peephole ? &block_inputs[i] : &any, z));
        LEAT_TRY(leat_cell_check(k, first + B, 1, block_inputs + B, z));
    }
    *cell = (leat_lstm_cell){
        .units = z->units, .order = s->order, .forget_bias = s->forget_bias, .clip = s->clip};
    if (s->peephole) {
        cell->wci = data(k, first + WCI);
        cell->wcf = data(k, first + WCF);
        cell->wco = data(k, first + WCO);
    }
    return NULL;
}

static leat_status temp(leat_kernel *k, int64_t rows, int64_t cols, float **out)
{
    leat_tensor *t;
    const leat_shape s = leat_shape(rows, cols);
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &s, &t));
    *out = t->data;
    return NULL;
}

/* c = op(a) op(b) by all threads. */
static void multiply(leat_kernel *k, bool ta, bool tb, int64_t m, int64_t n, int64_t inner,
                     const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
                     const float *bias, bool accumulate)
{
    leat_loop_stop stop;
    const leat_gemm_epilogue e = {
        .bias = bias, .accumulate = accumulate, .stop = leat_kernel_stop(k, &stop)};
    leat_gemm_f32(leat_kernel_device(k)->intra, (leat_gemm_op)ta, (leat_gemm_op)tb, m, n, inner, a,
                  lda, b, ldb, c, n, &e);
}

/* ---- Forward ---- */
typedef struct forward {
    leat_lstm_cell cell;
    leat_cell_sizes z;
    const float *w_h, *h_prev; /* the rows of w for h; the output of the step before */
    float *blocks; /* w_h in blocks (units, 4 gates, BLOCK); a last one is filled up by zeros */
    leat_lstm_step step;
} forward;

/* Copies blocks [begin, end) of w_h. */
static void copy_blocks(void *arg, int64_t begin, int64_t end)
{
    const forward *f = arg;
    const int64_t units = f->z.units;
    for (int64_t b = begin; b < end; b++) {
        const int64_t u0 = b * BLOCK, n = units - u0 < BLOCK ? units - u0 : BLOCK;
        float *to = f->blocks + b * units * 4 * BLOCK;
        for (int64_t r = 0; r < units; r++)
            for (int64_t g = 0; g < 4; g++, to += BLOCK) {
                memcpy(to, f->w_h + (r * 4 + g) * units + u0, (size_t)n * sizeof(*to));
                memset(to + n, 0, (size_t)(BLOCK - n) * sizeof(*to));
            }
    }
}

/* Computes blocks [begin, end) of a step, for rows that fit into the local memory at a time. */
static void forward_blocks(void *arg, int64_t begin, int64_t end)
{
    enum { ROWS = 32 };
    const forward *f = arg;
    const int64_t units = f->z.units;
    float gates[ROWS * 4 * BLOCK] __attribute__((aligned(64)));
    for (int64_t b = begin; b < end; b++) {
        const int64_t u0 = b * BLOCK, u1 = units - u0 < BLOCK ? units : u0 + BLOCK;
        for (int64_t r = 0; r < f->z.batch; r += ROWS) {
            const int64_t rows = f->z.batch - r < ROWS ? f->z.batch - r : ROWS, at = r * units;
            leat_lstm_step s = f->step;
            leat_gemm_f32(NULL, LEAT_GEMM_N, LEAT_GEMM_N, rows, 4 * BLOCK, units, f->h_prev + at,
                          units, f->blocks + b * units * 4 * BLOCK, 4 * BLOCK, gates, 4 * BLOCK,
                          NULL);
            s.more = (leat_lstm_product){gates, 4 * BLOCK, BLOCK};
            s.first = u0;
            s.product.gates += r * s.product.ld;
            s.cs_prev += at, s.i += at, s.cs += at, s.f += at, s.o += at, s.ci += at, s.co += at;
            s.h += at;
            leat_lstm_forward(&f->cell, &s, rows, u0, u1);
        }
    }
}

static double block_ns(const leat_cell_sizes *z)
{
    return (double)z->batch * BLOCK * (0.08 * (double)z->units + 6);
}

static int64_t blocks_of(const leat_cell_sizes *z)
{
    return (z->units + BLOCK - 1) / BLOCK;
}

static leat_status seq_len_of(leat_kernel *k, const leat_cell_sizes *z, int64_t *out)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT, "seq_len_max must be a scalar, but has shape %s",
                 leat_shape_show(&t->shape).s);
    *out = AT(int64_t, t)[0];
    LEAT_REQUIRE(*out >= 0 && *out <= z->time, INVALID_ARGUMENT,
                 "seq_len_max must be in [0, %lld], the number of steps of x, but is %lld",
                 (long long)z->time, (long long)*out);
    return NULL;
}

static void zero(leat_tensor *t, int64_t from)
{
    memset(AT(float, t) + from, 0, (size_t)(t->count - from) * sizeof(float));
}

static void place_step(leat_lstm_step *s, leat_tensor *const *out, int64_t at)
{
    s->i = AT(float, out[I]) + at;
    s->cs = AT(float, out[CS]) + at;
    s->f = AT(float, out[F]) + at;
    s->o = AT(float, out[O]) + at;
    s->ci = AT(float, out[CI]) + at;
    s->co = AT(float, out[CO]) + at;
    s->h = AT(float, out[H]) + at;
}

/* What TensorFlow leaves undefined after seq_len_max is zero here, too. */
static leat_status block_lstm(leat_kernel *k)
{
    forward f = {0};
    leat_cell_sizes *z = &f.z;
    int64_t steps;
    LEAT_TRY(check_cell(k, 1, 3, z, &f.cell));
    LEAT_TRY(seq_len_of(k, z, &steps));
    leat_tensor *out[OUTPUTS];
    const leat_shape shape = leat_shape(z->time, z->batch, z->units);
    for (int i = 0; i < OUTPUTS; i++)
        LEAT_TRY(leat_kernel_out(k, i, &shape, &out[i]));
    const int64_t size = z->batch * z->units;
    for (int i = 0; i < OUTPUTS; i++)
        zero(out[i], steps * size);
    if (!size || !steps)
        return NULL;
    float *gates;
    const float *w = data(k, 1 + W);
    LEAT_TRY(temp(k, steps * z->batch, 4 * z->units, &gates));
    LEAT_TRY(temp(k, blocks_of(z) * z->units, 4 * BLOCK, &f.blocks));
    multiply(k, false, false, steps * z->batch, 4 * z->units, z->inputs, data(k, 1 + X), z->inputs,
             w, 4 * z->units, gates, data(k, 1 + B), false);
    f.w_h = w + z->inputs * 4 * z->units;
    leat_kernel_for(k, blocks_of(z), (double)z->units * BLOCK, copy_blocks, &f);
    for (int64_t t = 0; t < steps && !leat_kernel_cancelled(k); t++) {
        f.h_prev = t ? AT(float, out[H]) + (t - 1) * size : data(k, 1 + H_PREV);
        f.step.cs_prev = t ? AT(float, out[CS]) + (t - 1) * size : data(k, 1 + CS_PREV);
        f.step.product = (leat_lstm_product){gates + t * 4 * size, 4 * z->units, z->units};
        place_step(&f.step, out, t * size);
        leat_kernel_for(k, blocks_of(z), block_ns(z), forward_blocks, &f);
    }
    return NULL;
}

static void one_step(void *arg, int64_t begin, int64_t end)
{
    const forward *f = arg;
    leat_lstm_forward(&f->cell, &f->step, f->z.batch, begin, end);
}

static leat_status cell(leat_kernel *k)
{
    forward f = {0};
    leat_cell_sizes *z = &f.z;
    LEAT_TRY(check_cell(k, 0, 2, z, &f.cell));
    leat_tensor *out[OUTPUTS];
    const leat_shape shape = leat_shape(z->batch, z->units);
    for (int i = 0; i < OUTPUTS; i++)
        LEAT_TRY(leat_kernel_out(k, i, &shape, &out[i]));
    float *gates;
    const float *w = data(k, W);
    const int64_t n = 4 * z->units;
    LEAT_TRY(temp(k, z->batch, n, &gates));
    multiply(k, false, false, z->batch, n, z->inputs, data(k, X), z->inputs, w, n, gates, NULL,
             false);
    multiply(k, false, false, z->batch, n, z->units, data(k, H_PREV), z->units, w + z->inputs * n,
             n, gates, data(k, B), true);
    f.step.cs_prev = data(k, CS_PREV);
    f.step.product = (leat_lstm_product){gates, n, z->units};
    place_step(&f.step, out, 0);
    leat_kernel_for(k, z->units, 6.0 * (double)z->batch, one_step, &f);
    return NULL;
}

/* ---- Backward ---- */
typedef struct backward {
    leat_lstm_cell cell;
    leat_cell_sizes z;
    const float *w_h;
    float *blocks; /* the transpose of w_h in blocks (4 * units, BLOCK), filled up by zeros */
    const float *later_gates; /* gradient of the gates of the step that follows; NULL: none */
    float *h_grad;            /* of this step: given, to which the part from later gates is added */
    leat_lstm_back step;      /* step.i is NULL before the first step */
    /* For the sums over all rows: */
    int64_t steps;
    const float *gates, *cs_prev, *cs; /* gates: their gradients, (steps, batch, 4 * units) */
    float *b_grad;                     /* NULL: not wanted */
    float *wci_grad, *wcf_grad, *wco_grad;
} backward;

static void transpose_blocks(void *arg, int64_t begin, int64_t end)
{
    const backward *g = arg;
    const int64_t units = g->z.units, n = 4 * units;
    for (int64_t b = begin; b < end; b++) {
        float *to = g->blocks + b * n * BLOCK;
        for (int64_t u = 0; u < BLOCK; u++) {
            const bool real = b * BLOCK + u < units;
            const float *from = g->w_h + (real ? b * BLOCK + u : 0) * n;
            for (int64_t i = 0; i < n; i++)
                to[i * BLOCK + u] = real ? from[i] : 0;
        }
    }
}

static void backward_blocks(void *arg, int64_t begin, int64_t end)
{
    enum { ROWS = 32 };
    const backward *g = arg;
    const int64_t units = g->z.units, n = 4 * units;
    float part[ROWS * BLOCK] __attribute__((aligned(64)));
    for (int64_t b = begin; b < end; b++) {
        const int64_t u0 = b * BLOCK, u1 = units - u0 < BLOCK ? units : u0 + BLOCK;
        for (int64_t r = 0; r < g->z.batch && g->later_gates; r += ROWS) {
            const int64_t rows = g->z.batch - r < ROWS ? g->z.batch - r : ROWS;
            leat_gemm_f32(NULL, LEAT_GEMM_N, LEAT_GEMM_N, rows, BLOCK, n, g->later_gates + r * n, n,
                          g->blocks + b * n * BLOCK, BLOCK, part, BLOCK, NULL);
            for (int64_t i = 0; i < rows; i++) {
                LEAT_SIMD
                for (int64_t u = 0; u < u1 - u0; u++)
                    g->h_grad[(r + i) * units + u0 + u] += part[i * BLOCK + u];
            }
        }
        if (g->step.i)
            leat_lstm_backward(&g->cell, &g->step, g->z.batch, u0, u1);
    }
}

/* Sums over all steps and rows, for units [begin, end). */
static void sum_units(void *arg, int64_t begin, int64_t end)
{
    const backward *g = arg;
    const int64_t units = g->z.units, rows = g->z.batch;
    for (int gate = 0; gate < 4 && g->b_grad; gate++) {
        float *restrict to = g->b_grad + gate * units;
        const float *from = g->gates + gate * units;
        for (int64_t r = 0; r < g->steps * rows; r++, from += 4 * units) {
            LEAT_SIMD
            for (int64_t u = begin; u < end; u++)
                to[u] += from[u];
        }
    }
    if (!g->cell.wci || !g->steps)
        return;
    leat_lstm_sums s = {.gates_grad = g->gates, .cs_prev = g->cs_prev, .cs = g->cs};
    s.wci_grad = g->wci_grad, s.wcf_grad = g->wcf_grad, s.wco_grad = g->wco_grad;
    leat_lstm_add_peepholes(&g->cell, &s, rows, begin, end);
    s.gates_grad += rows * 4 * units, s.cs_prev = g->cs, s.cs += rows * units;
    leat_lstm_add_peepholes(&g->cell, &s, (g->steps - 1) * rows, begin, end);
}

enum { CS_GRAD = INPUTS + OUTPUTS, H_GRAD };
enum { X_GRAD, CS_PREV_GRAD, H_PREV_GRAD, W_GRAD, WCI_GRAD, WCF_GRAD, WCO_GRAD, B_GRAD };

static void place_back(leat_kernel *k, int first, leat_lstm_back *b, int64_t at)
{
    b->i = data(k, first + INPUTS + I) + at;
    b->cs = data(k, first + INPUTS + CS) + at;
    b->f = data(k, first + INPUTS + F) + at;
    b->o = data(k, first + INPUTS + O) + at;
    b->ci = data(k, first + INPUTS + CI) + at;
    b->co = data(k, first + INPUTS + CO) + at;
}

/* The gradients of all gates, from the last step to the first, and those of the state before. */
static leat_status all_gates(leat_kernel *k, backward *g, float *gates, leat_tensor *const *out)
{
    const leat_cell_sizes *z = &g->z;
    const int64_t size = z->batch * z->units;
    float *h_grad = AT(float, out[H_PREV_GRAD]);
    LEAT_TRY(temp(k, blocks_of(z) * 4 * z->units, BLOCK, &g->blocks));
    leat_kernel_for(k, blocks_of(z), 4.0 * (double)z->units * BLOCK, transpose_blocks, g);
    g->h_grad = h_grad;
    g->step.h_grad = h_grad;
    g->step.cs_prev_grad = AT(float, out[CS_PREV_GRAD]);
    for (int64_t t = g->steps - 1; t >= 0 && !leat_kernel_cancelled(k); t--) {
        place_back(k, 1, &g->step, t * size);
        g->step.cs_prev = t ? data(k, 1 + INPUTS + CS) + (t - 1) * size : data(k, 1 + CS_PREV);
        g->step.cs_grad = data(k, 1 + CS_GRAD) + t * size;
        g->step.cs_more = g->later_gates ? g->step.cs_prev_grad : NULL;
        g->step.gates_grad = gates + t * 4 * size;
        memcpy(h_grad, data(k, 1 + H_GRAD) + t * size, (size_t)size * sizeof(float));
        leat_kernel_for(k, blocks_of(z), 4 * block_ns(z), backward_blocks, g);
        g->later_gates = g->step.gates_grad;
    }
    memset(h_grad, 0, (size_t)size * sizeof(float));
    g->step.i = NULL; /* The product alone is left. */
    leat_kernel_for(k, blocks_of(z), 4 * block_ns(z), backward_blocks, g);
    return NULL;
}

static leat_status check_block_grad(leat_kernel *k, backward *g)
{
    static const leat_cell_dims step = {LEAT_OF_TIME, LEAT_OF_BATCH, LEAT_OF_UNITS};
    LEAT_TRY(check_cell(k, 1, 3, &g->z, &g->cell));
    for (int i = INPUTS; i <= H_GRAD; i++)
        LEAT_TRY(leat_cell_check(k, 1 + i, 1, &step, &g->z));
    return seq_len_of(k, &g->z, &g->steps);
}

static leat_status block_lstm_grad(leat_kernel *k)
{
    backward g = {0};
    LEAT_TRY(check_block_grad(k, &g));
    const leat_cell_sizes *z = &g.z;
    leat_tensor *out[8];
    for (int i = X_GRAD; i <= B_GRAD; i++) {
        LEAT_TRY(leat_kernel_out(k, i, &leat_kernel_in(k, 1 + i)->shape, &out[i]));
        zero(out[i], i == X_GRAD ? g.steps * z->batch * z->inputs : 0);
    }
    const int64_t size = z->batch * z->units, n = 4 * z->units, rows = g.steps * z->batch;
    if (!size || !g.steps) {
        zero(out[X_GRAD], 0);
        return NULL;
    }
    float *gates, *w_grad = AT(float, out[W_GRAD]);
    const float *w = data(k, 1 + W), *w_h = w + z->inputs * n, *h = data(k, 1 + INPUTS + H);
    float *h_rows = w_grad + z->inputs * n; /* the part of w's gradient that belongs to h */
    LEAT_TRY(temp(k, rows, n, &gates));
    g.w_h = w_h;
    LEAT_TRY(all_gates(k, &g, gates, out));
    multiply(k, false, true, rows, z->inputs, n, gates, n, w, n, AT(float, out[X_GRAD]), NULL,
             false);
    multiply(k, true, false, z->inputs, n, rows, data(k, 1 + X), z->inputs, gates, n, w_grad, NULL,
             false);
    multiply(k, true, false, z->units, n, z->batch, data(k, 1 + H_PREV), z->units, gates, n, h_rows,
             NULL, false);
    multiply(k, true, false, z->units, n, rows - z->batch, h, z->units, gates + 4 * size, n, h_rows,
             NULL, true);
    g.gates = gates, g.cs_prev = data(k, 1 + CS_PREV), g.cs = data(k, 1 + INPUTS + CS);
    g.b_grad = AT(float, out[B_GRAD]);
    g.wci_grad = AT(float, out[WCI_GRAD]);
    g.wcf_grad = AT(float, out[WCF_GRAD]);
    g.wco_grad = AT(float, out[WCO_GRAD]);
    leat_kernel_for(k, z->units, 0.5 * (double)rows, sum_units, &g);
    return NULL;
}

static void one_step_back(void *arg, int64_t begin, int64_t end)
{
    const backward *g = arg;
    leat_lstm_backward(&g->cell, &g->step, g->z.batch, begin, end);
    sum_units(arg, begin, end);
}

static leat_status cell_grad(leat_kernel *k)
{
    static const leat_cell_dims step = {LEAT_OF_BATCH, LEAT_OF_UNITS};
    backward g = {.steps = 1};
    const leat_cell_sizes *z = &g.z;
    LEAT_TRY(check_cell(k, 0, 2, &g.z, &g.cell));
    for (int i = INPUTS; i <= H_GRAD; i++)
        if (i != INPUTS + H)
            LEAT_TRY(leat_cell_check(k, i - (i > INPUTS + H), 1, &step, z));
    const leat_shape state = leat_shape(z->batch, z->units);
    const leat_shape gates = leat_shape(z->batch, 4 * z->units);
    leat_tensor *cs_prev_grad, *gates_grad, *peepholes[3];
    LEAT_TRY(leat_kernel_out_over(k, 0, CS_GRAD - 1, &state, &cs_prev_grad));
    LEAT_TRY(leat_kernel_out(k, 1, &gates, &gates_grad));
    for (int i = 0; i < 3; i++) {
        LEAT_TRY(leat_kernel_out(k, 2 + i, &leat_kernel_in(k, WCI + i)->shape, &peepholes[i]));
        zero(peepholes[i], 0);
    }
    place_back(k, 0, &g.step, 0);
    g.step.cs_prev = g.cs_prev = data(k, CS_PREV);
    g.cs = g.step.cs;
    g.step.cs_grad = data(k, CS_GRAD - 1);
    g.step.h_grad = data(k, H_GRAD - 1);
    g.step.gates_grad = AT(float, gates_grad);
    g.gates = g.step.gates_grad;
    g.step.cs_prev_grad = AT(float, cs_prev_grad);
    g.wci_grad = AT(float, peepholes[0]);
    g.wcf_grad = AT(float, peepholes[1]);
    g.wco_grad = AT(float, peepholes[2]);
    leat_kernel_for(k, z->units, 2.0 * (double)z->batch, one_step_back, &g);
    return NULL;
}

#define KERNEL(op_, fn)                                                                            \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_T(FLOAT)}}, .run = fn, .state_size = sizeof(lstm_state),   \
        .init = lstm_init, .flags = LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_EXPENSIVE                  \
    }

const leat_kernel_def leat_cpu_lstm[] = {
    KERNEL("LSTMBlockCell", cell),
    KERNEL("LSTMBlockCellGrad", cell_grad),
    KERNEL("BlockLSTM", block_lstm),
    KERNEL("BlockLSTMV2", block_lstm),
    KERNEL("BlockLSTMGrad", block_lstm_grad),
    KERNEL("BlockLSTMGradV2", block_lstm_grad),
    {0},
};
