/* lstm.c -- LSTMBlockCell, BlockLSTM, BlockLSTMV2 and the kernels of their gradients. As on the
 * CPU, products that need no earlier step are computed for all steps at once (kernels/cpu/lstm.c).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu/cell_sizes.h"
#include "kernels/opencl/gemm.h"
#include "kernels/opencl/reduce.h"
#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_lstm;
static const leat_cl_text *const texts[] = {&leat_cl_text_lstm, NULL};

typedef struct lstm_state {
    int32_t order[4]; /* of the gates input, cell, forget and output: the struct `order` */
    float forget_bias, clip;
    bool peephole;
} lstm_state;

static leat_status init(const leat_node *n, void *state)
{
    static const int32_t icfo[4] = {0, 1, 2, 3}, ifco[4] = {0, 2, 1, 3};
    lstm_state *s = state;
    const char *op = leat_node_op(n);
    memcpy(s->order, strcmp(op + strlen(op) - 2, "V2") == 0 ? ifco : icfo, sizeof s->order);
    if (leat_node_has(n, "forget_bias"))
        s->forget_bias = (float)leat_node_float(n, "forget_bias");
    if (leat_node_has(n, "cell_clip"))
        s->clip = (float)leat_node_float(n, "cell_clip");
    s->peephole = leat_node_bool(n, "use_peephole");
    return NULL;
}

/* Inputs of the cell, of which the first is `first`, and outputs. */
enum { X, CS_PREV, H_PREV, W, WCI, WCF, WCO, B, INPUTS };
enum { I, CS, F, O, CI, CO, H, OUTPUTS };

static const leat_cell_dims sequence_dims[INPUTS] = {
    {LEAT_OF_TIME, LEAT_OF_BATCH, LEAT_OF_INPUTS},
    {LEAT_OF_BATCH, LEAT_OF_UNITS},
    {LEAT_OF_BATCH, LEAT_OF_UNITS},
    {LEAT_OF_INPUTS_AND_UNITS, LEAT_OF_GATES},
    {LEAT_OF_UNITS},
    {LEAT_OF_UNITS},
    {LEAT_OF_UNITS},
    {LEAT_OF_GATES},
};

/* Checks the inputs from `first` on. */
static leat_status check_cell(leat_kernel *k, int first, int x_rank, leat_cell_sizes *z)
{
    const lstm_state *s = leat_kernel_state(k);
    LEAT_TRY(leat_cell_sizes_of(k, first, x_rank, first + CS_PREV, z));
    LEAT_TRY(leat_cl_countable(z->batch * 4 * z->units));
    if (x_rank == 3)
        return leat_cell_check(k, first, INPUTS, sequence_dims, z);
    /* TensorFlow takes peepholes of any size where they are not used. */
    static const leat_cell_dims any = {LEAT_OF_ANY_SIZE};
    LEAT_TRY(leat_cell_check(k, first + CS_PREV, 3, sequence_dims + CS_PREV, z));
    for (int i = WCI; i <= WCO; i++)
        LEAT_TRY(leat_cell_check(k, first + i, 1, s->peephole ? &sequence_dims[i] : &any, z));
    return leat_cell_check(k, first + B, 1, sequence_dims + B, z);
}

static const float *data(leat_kernel *k, int i)
{
    return leat_kernel_in(k, i)->data;
}

static leat_status temp(leat_kernel *k, int64_t rows, int64_t columns, float **out)
{
    leat_tensor *t;
    const leat_shape s = leat_shape(rows, columns);
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &s, &t));
    *out = t->data;
    return NULL;
}

/* C = op(A) op(B), where A and B have `a_ld` and `b_ld` columns as they are stored. */
static leat_cl_product product_of(bool ta, bool tb, int64_t m, int64_t n, int64_t inner,
                                  const float *a, int64_t a_ld, const float *b, int64_t b_ld,
                                  float *c)
{
    return (leat_cl_product){.m = m,
                             .n = n,
                             .parts = 1,
                             .left = {.rows = leat_cl_digit(ta ? 1 : a_ld),
                                      .parts = leat_cl_digit(0),
                                      .len = (int32_t)inner,
                                      .by = (int32_t)(ta ? a_ld : 1)},
                             .a = a,
                             .b = b,
                             .b_down = tb ? 1 : b_ld,
                             .b_right = tb ? b_ld : 1,
                             .c = c,
                             .ldc = n};
}

static leat_status zero(leat_kernel *k, const leat_tensor *t, int64_t from)
{
    return leat_cl_fill(leat_cl_of(k), (float *)t->data + from, t->count - from, sizeof(float),
                        NULL);
}

static leat_status copy(leat_kernel *k, float *to, const float *from, int64_t n)
{
    return leat_cl_copy(leat_kernel_device(k), LEAT_QUEUE_COMPUTE, LEAT_COPY_WITHIN, to, from,
                        (size_t)n * sizeof(float));
}

static leat_status seq_len_of(leat_kernel *k, const leat_cell_sizes *z, int64_t *out)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT, "seq_len_max must be a scalar, but has shape %s",
                 leat_shape_show(&t->shape).s);
    *out = leat_index_at(t, 0);
    LEAT_REQUIRE(*out >= 0 && *out <= z->time, INVALID_ARGUMENT,
                 "seq_len_max must be in [0, %lld], the number of steps of x, but is %lld",
                 (long long)z->time, (long long)*out);
    return NULL;
}

static void add_peepholes(leat_kernel *k, int first, leat_cl_launch *l)
{
    for (int i = WCI; i <= WCO; i++)
        leat_cl_at(l, data(k, first + i));
}

static leat_cl_launch begin(leat_kernel *k, const char *more, const char *function)
{
    const lstm_state *s = leat_kernel_state(k);
    char options[40];
    snprintf(options, sizeof options, "%s%s", s->peephole ? "-DPEEPHOLE " : "", more);
    return leat_cl_begin(leat_cl_of(k), texts, options, function);
}

static leat_status launch(leat_kernel *k, const leat_cell_sizes *z, leat_cl_launch *l)
{
    return leat_cl_of(k)->listed->on_cpu ? leat_cl_each(l, z->batch, 30 * (double)z->units)
                                         : leat_cl_each(l, z->batch * z->units, 1);
}

/* ---- Forward ---- */

/* A step, whose elements of the outputs begin at `at`. */
static leat_status step(leat_kernel *k, int first, const leat_cell_sizes *z, const float *gates,
                        const float *cs_prev, leat_tensor *const *out, int64_t at)
{
    const lstm_state *s = leat_kernel_state(k);
    leat_cl_launch l = begin(k, "", "forward");
    leat_cl_at(&l, gates);
    leat_cl_at(&l, cs_prev);
    add_peepholes(k, first, &l);
    for (int i = 0; i < OUTPUTS; i++)
        leat_cl_at(&l, (float *)out[i]->data + at);
    leat_cl_int(&l, z->batch);
    leat_cl_int(&l, z->units);
    leat_cl_bytes(&l, s->order, sizeof s->order);
    leat_cl_float(&l, s->forget_bias);
    leat_cl_float(&l, s->clip > 0 ? s->clip : INFINITY);
    return launch(k, z, &l);
}

/* What TensorFlow leaves undefined after seq_len_max is zero here, too. */
static leat_status block_lstm(leat_kernel *k)
{
    leat_cell_sizes z;
    int64_t steps;
    leat_tensor *out[OUTPUTS];
    LEAT_TRY(check_cell(k, 1, 3, &z));
    LEAT_TRY(seq_len_of(k, &z, &steps));
    const leat_shape shape = leat_shape(z.time, z.batch, z.units);
    const int64_t size = z.batch * z.units, n = 4 * z.units;
    for (int i = 0; i < OUTPUTS; i++) {
        LEAT_TRY(leat_kernel_out(k, i, &shape, &out[i]));
        LEAT_TRY(zero(k, out[i], steps * size));
    }
    if (!size || !steps)
        return NULL;
    float *gates;
    const float *w = data(k, 1 + W);
    LEAT_TRY(temp(k, steps * z.batch, n, &gates));
    leat_cl_product x = product_of(false, false, steps * z.batch, n, z.inputs, data(k, 1 + X),
                                   z.inputs, w, n, gates);
    x.end.bias = data(k, 1 + B);
    LEAT_TRY(leat_cl_gemm(k, &x));
    leat_cl_product h = product_of(false, false, z.batch, n, z.units, data(k, 1 + H_PREV), z.units,
                                   w + z.inputs * n, n, gates);
    h.add = true;
    LEAT_TRY(leat_cl_pack(k, &h));
    const float *cs_prev = data(k, 1 + CS_PREV);
    for (int64_t t = 0; t < steps && !leat_kernel_cancelled(k); t++) {
        LEAT_TRY(leat_cl_gemm(k, &h));
        LEAT_TRY(step(k, 1, &z, h.c, cs_prev, out, t * size));
        h.a = (float *)out[H]->data + t * size;
        h.c = (float *)h.c + z.batch * n;
        cs_prev = (float *)out[CS]->data + t * size;
    }
    return NULL;
}

static leat_status cell(leat_kernel *k)
{
    leat_cell_sizes z;
    leat_tensor *out[OUTPUTS];
    float *gates;
    LEAT_TRY(check_cell(k, 0, 2, &z));
    const leat_shape shape = leat_shape(z.batch, z.units);
    const int64_t n = 4 * z.units;
    for (int i = 0; i < OUTPUTS; i++)
        LEAT_TRY(leat_kernel_out(k, i, &shape, &out[i]));
    if (!z.batch || !z.units)
        return NULL;
    LEAT_TRY(temp(k, z.batch, n, &gates));
    const float *w = data(k, W);
    const leat_cl_product x =
        product_of(false, false, z.batch, n, z.inputs, data(k, X), z.inputs, w, n, gates);
    leat_cl_product h = product_of(false, false, z.batch, n, z.units, data(k, H_PREV), z.units,
                                   w + z.inputs * n, n, gates);
    h.add = true;
    h.end.bias = data(k, B);
    LEAT_TRY(leat_cl_gemm(k, &x));
    LEAT_TRY(leat_cl_gemm(k, &h));
    return step(k, 0, &z, gates, data(k, CS_PREV), out, 0);
}

/* ---- Backward ---- */

enum { CS_GRAD = INPUTS + OUTPUTS, H_GRAD };
enum { X_GRAD, CS_PREV_GRAD, H_PREV_GRAD, W_GRAD, WCI_GRAD, WCF_GRAD, WCO_GRAD, B_GRAD };

/* What a step's gradients are computed from, and where they go. cs_more may be NULL. */
typedef struct back {
    const float *cs_prev, *h_grad, *cs_grad, *cs_more;
    float *gates_grad, *cs_prev_grad;
} back;

/* The gradients of a step, whose elements of the forward op's outputs begin at `at`. */
static leat_status step_back(leat_kernel *k, int first, const leat_cell_sizes *z, int64_t at,
                             const back *b)
{
    static const int forward[] = {I, F, O, CI, CO};
    const lstm_state *s = leat_kernel_state(k);
    leat_cl_launch l = begin(k, b->cs_more ? "-DMORE" : "", "backward");
    leat_cl_at(&l, b->cs_prev);
    add_peepholes(k, first, &l);
    for (int i = 0; i < 5; i++)
        leat_cl_at(&l, data(k, first + INPUTS + forward[i]) + at);
    leat_cl_at(&l, b->h_grad);
    leat_cl_at(&l, b->cs_grad);
    leat_cl_at(&l, b->cs_more ? b->cs_more : b->cs_grad);
    leat_cl_at(&l, b->gates_grad);
    leat_cl_at(&l, b->cs_prev_grad);
    leat_cl_int(&l, z->batch);
    leat_cl_int(&l, z->units);
    leat_cl_bytes(&l, s->order, sizeof s->order);
    return launch(k, z, &l);
}

/* Adds what `rows` rows give to the gradients of the peepholes. */
static leat_status sum_peepholes(leat_kernel *k, const leat_cell_sizes *z, const float *gates_grad,
                                 const float *cs_prev, const float *cs, int64_t rows,
                                 leat_tensor *const *out)
{
    const lstm_state *s = leat_kernel_state(k);
    if (!s->peephole || !rows)
        return NULL;
    leat_cl_launch l = begin(k, "", "peepholes");
    leat_cl_at(&l, gates_grad);
    leat_cl_at(&l, cs_prev);
    leat_cl_at(&l, cs);
    for (int i = 0; i < 3; i++)
        leat_cl_tensor(&l, out[i]);
    leat_cl_int(&l, rows);
    leat_cl_int(&l, z->units);
    leat_cl_bytes(&l, s->order, sizeof s->order);
    return leat_cl_each(&l, z->units, 5 * (double)rows);
}

/* The gradients of all gates, from the last step to the first, and those of the state before. */
static leat_status all_gates(leat_kernel *k, const leat_cell_sizes *z, int64_t steps, float *gates,
                             leat_tensor *const *out)
{
    const int64_t size = z->batch * z->units, n = 4 * z->units;
    float *h_grad = out[H_PREV_GRAD]->data, *cs_prev_grad = out[CS_PREV_GRAD]->data;
    /* What the gates of the step that follows give to the gradient of h. */
    leat_cl_product later = product_of(false, true, z->batch, z->units, n, NULL, n,
                                       data(k, 1 + W) + z->inputs * n, n, h_grad);
    LEAT_TRY(leat_cl_pack(k, &later));
    for (int64_t t = steps - 1; t >= 0 && !leat_kernel_cancelled(k); t--) {
        const back b = {
            .cs_prev = t ? data(k, 1 + INPUTS + CS) + (t - 1) * size : data(k, 1 + CS_PREV),
            .h_grad = h_grad,
            .cs_grad = data(k, 1 + CS_GRAD) + t * size,
            .cs_more = later.a ? cs_prev_grad : NULL,
            .gates_grad = gates + t * 4 * size,
            .cs_prev_grad = cs_prev_grad,
        };
        LEAT_TRY(copy(k, h_grad, data(k, 1 + H_GRAD) + t * size, size));
        later.add = true;
        if (later.a)
            LEAT_TRY(leat_cl_gemm(k, &later));
        LEAT_TRY(step_back(k, 1, z, t * size, &b));
        later.a = b.gates_grad;
    }
    later.add = false;
    return later.a ? leat_cl_gemm(k, &later) : NULL;
}

static leat_status check_block_grad(leat_kernel *k, leat_cell_sizes *z, int64_t *steps)
{
    static const leat_cell_dims one = {LEAT_OF_TIME, LEAT_OF_BATCH, LEAT_OF_UNITS};
    LEAT_TRY(check_cell(k, 1, 3, z));
    for (int i = INPUTS; i <= H_GRAD; i++)
        LEAT_TRY(leat_cell_check(k, 1 + i, 1, &one, z));
    return seq_len_of(k, z, steps);
}

static leat_status block_lstm_grad(leat_kernel *k)
{
    leat_cell_sizes z;
    int64_t steps;
    leat_tensor *out[8];
    LEAT_TRY(check_block_grad(k, &z, &steps));
    const int64_t size = z.batch * z.units, n = 4 * z.units, rows = steps * z.batch;
    for (int i = X_GRAD; i <= B_GRAD; i++) {
        LEAT_TRY(leat_kernel_out(k, i, &leat_kernel_in(k, 1 + i)->shape, &out[i]));
        LEAT_TRY(zero(k, out[i], i == X_GRAD && size ? rows * z.inputs : 0));
    }
    if (!size || !steps)
        return NULL;
    float *gates, *w_grad = out[W_GRAD]->data, *h_rows = w_grad + z.inputs * n;
    LEAT_TRY(temp(k, rows, n, &gates));
    LEAT_TRY(all_gates(k, &z, steps, gates, out));
    leat_cl_product p[] = {
        product_of(false, true, rows, z.inputs, n, gates, n, data(k, 1 + W), n, out[X_GRAD]->data),
        product_of(true, false, z.inputs, n, rows, data(k, 1 + X), z.inputs, gates, n, w_grad),
        product_of(true, false, z.units, n, z.batch, data(k, 1 + H_PREV), z.units, gates, n,
                   h_rows),
        product_of(true, false, z.units, n, rows - z.batch, data(k, 1 + INPUTS + H), z.units,
                   gates + 4 * size, n, h_rows),
    };
    p[3].add = true;
    for (int i = 0; i < 4; i++)
        if (i < 3 || steps > 1)
            LEAT_TRY(leat_cl_gemm(k, &p[i]));
    LEAT_TRY(leat_cl_reduce(k, "sum", LEAT_FLOAT, gates, 1, rows, n, 1, out[B_GRAD]->data));
    const float *cs = data(k, 1 + INPUTS + CS);
    LEAT_TRY(sum_peepholes(k, &z, gates, data(k, 1 + CS_PREV), cs, z.batch, &out[WCI_GRAD]));
    return sum_peepholes(k, &z, gates + 4 * size, cs, cs + size, rows - z.batch, &out[WCI_GRAD]);
}

static leat_status cell_grad(leat_kernel *k)
{
    static const leat_cell_dims one = {LEAT_OF_BATCH, LEAT_OF_UNITS};
    leat_cell_sizes z;
    leat_tensor *out[5];
    LEAT_TRY(check_cell(k, 0, 2, &z));
    for (int i = INPUTS; i <= H_GRAD; i++)
        if (i != INPUTS + H)
            LEAT_TRY(leat_cell_check(k, i - (i > INPUTS + H), 1, &one, &z));
    const leat_shape state = leat_shape(z.batch, z.units);
    const leat_shape gates = leat_shape(z.batch, 4 * z.units);
    LEAT_TRY(leat_kernel_out(k, 0, &state, &out[0]));
    LEAT_TRY(leat_kernel_out(k, 1, &gates, &out[1]));
    for (int i = 2; i < 5; i++) {
        LEAT_TRY(leat_kernel_out(k, i, &leat_kernel_in(k, WCI + i - 2)->shape, &out[i]));
        LEAT_TRY(zero(k, out[i], 0));
    }
    if (!z.batch || !z.units)
        return NULL;
    const back b = {.cs_prev = data(k, CS_PREV),
                    .h_grad = data(k, H_GRAD - 1),
                    .cs_grad = data(k, CS_GRAD - 1),
                    .gates_grad = out[1]->data,
                    .cs_prev_grad = out[0]->data};
    LEAT_TRY(step_back(k, 0, &z, 0, &b));
    return sum_peepholes(k, &z, out[1]->data, b.cs_prev, data(k, INPUTS + CS), z.batch, &out[2]);
}

#define ROW(op_, fn, host_)                                                                        \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_T(FLOAT)}}, .run = fn, .state_size = sizeof(lstm_state),   \
        .init = init, .host = host_                                                                \
    }

const leat_kernel_def leat_opencl_lstm[] = {
    ROW("LSTMBlockCell", cell, NULL),
    ROW("LSTMBlockCellGrad", cell_grad, NULL),
    ROW("BlockLSTM", block_lstm, "seq_len_max"),
    ROW("BlockLSTMV2", block_lstm, "seq_len_max"),
    ROW("BlockLSTMGrad", block_lstm_grad, "seq_len_max"),
    ROW("BlockLSTMGradV2", block_lstm_grad, "seq_len_max"),
    {0},
};
