/* fuse_lstm_test.c -- which steps of LSTM cells become one node, and which must not; values and
 * gradients are equal to those of the nodes that are replaced: to the bit, but for the sums over
 * all steps, which are rounded at other places. */
#include "mlp.h"
#include "passes.h"

enum { BATCH = 4, INPUTS = 5, UNITS = 6, STEPS = 3, MOST = 12 };

static int left(leat_graph *g, leat_out x, const leat_out *y, int n, const char *op)
{
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .fetches = y, .n_fetches = n}),
            leat_pass_fold, leat_pass_simplify, leat_pass_cse, leat_pass_sweep, leat_pass_fuse_lstm,
            leat_pass_fuse_products, leat_pass_transpose_once);
    const int count = count_op(&k, op);
    compiled_free(&k);
    return count;
}

/* The largest difference of a and b; of two that are equal to the bit 0. */
static double difference(const leat_tensor *a, const leat_tensor *b)
{
    double worst = 0;
    CHECK(a && b && leat_shape_equal(&a->shape, &b->shape));
    for (int64_t i = 0; i < a->count; i++)
        worst = fmax(worst, fabs(leat_tensor_at(a, i) - leat_tensor_at(b, i)));
    return same_bytes(a, b) ? 0 : fmax(worst, 1e-30);
}

/* Runs with all passes and with none; checks that all are within `most` of each other. */
static void compare(leat_graph *g, leat_out init, leat_out x, const leat_tensor *fed,
                    const leat_out *y, int n, double most)
{
    leat_tensor *got[2][MOST] = {0};
    for (int i = 0; i < 2; i++) {
        leat_session *s;
        leat_fetch fetches[MOST];
        for (int k = 0; k < n; k++)
            fetches[k] = (leat_fetch){y[k], &got[i][k]};
        CHECK_OK(leat_session_open(g, &s, .no_optimization = i == 0));
        if (init.node)
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
        CHECK_OK(
            leat_session_run(s, LEAT_FEED({x, fed}), (leat_fetches){fetches, n}, LEAT_NO_TARGET));
        leat_session_close(s);
    }
    for (int k = 0; k < n; k++) {
        CHECK(difference(got[0][k], got[1][k]) <= most);
        leat_tensor_unref(got[0][k]);
        leat_tensor_unref(got[1][k]);
    }
}

/* ---- Leat's own cells ---- */

static void leat_cells(void)
{
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, 3);
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(BATCH, INPUTS)), y[STEPS], steps[STEPS];
    leat_out state[4];
    leat_cell *layers[] = {leat_basic_lstm_cell(g, UNITS, .forget_bias = 0),
                           leat_basic_lstm_cell(g, UNITS)};
    leat_cell *cell = leat_multi_cell(g, layers, 2);
    for (int t = 0; t < STEPS; t++)
        steps[t] = leat_mul(x, leat_scalar(g, LEAT_FLOAT, t + 1));
    leat_static_rnn(cell, steps, STEPS, y, state);
    leat_out loss = leat_reduce_sum(leat_square(leat_add_n(y, STEPS)));
    loss = leat_add(loss, leat_reduce_sum(leat_mul(state[0], state[2])));
    int n;
    leat_out *vars = leat_trainable_variables(g, &n), by[MOST] = {x}, all[MOST];
    leat_grad_value grads[MOST] = {0};
    CHECK_INT(n, 4);
    for (int i = 0; i < n; i++)
        by[1 + i] = leat_variable_value(vars[i]);
    CHECK_OK(leat_gradients(&loss, 1, by, 1 + n, grads));
    leat_out init = leat_global_variables_initializer(g);
    leat_tensor *fed = mlp_tensor(leat_shape(BATCH, INPUTS), 1);
    CHECK_INT(left(g, x, y, STEPS, "_LSTMStep"), 2 * STEPS);
    CHECK_INT(left(g, x, y, STEPS, "Sigmoid"), 0);
    CHECK_INT(left(g, x, y, STEPS, "Tanh"), 0);
    compare(g, init, x, fed, y, STEPS, 0);
    CHECK_INT(left(g, x, &grads[0].value, 1, "_LSTMStepGrad"), 2 * STEPS);
    CHECK_INT(left(g, x, &grads[0].value, 1, "SigmoidGrad"), 0);
    CHECK_INT(left(g, x, &grads[0].value, 1, "TanhGrad"), 0);
    compare(g, init, x, fed, &grads[0].value, 1, 0);
    for (int i = 0; i <= n; i++)
        all[i] = grads[i].value;
    CHECK_INT(left(g, x, all, 1 + n, "_SumOfProducts"), 2);
    CHECK_INT(left(g, x, all, 1 + n, "Transpose"), 2);
    compare(g, init, x, fed, all, 1 + n, 1e-5);
    leat_tensor_unref(fed);
    free(vars);
    leat_graph_free(g);
}

/* ---- A graph of TensorFlow's client ---- */

static leat_out find(leat_graph *g, const char *name)
{
    leat_out x = {0};
    CHECK_OK(leat_graph_find_out(g, name, &x));
    return x;
}

static void client_cells(void)
{
    static const char *const names[] = {"dx:0", "dw0:0", "db0:0", "dw1:0", "db1:0"};
    static char bytes[1 << 18];
    leat_graph *g = leat_graph_new();
    FILE *f = fopen(LEAT_SOURCE_DIR "/tests/passes/lstm_graph.pb", "r");
    CHECK(f);
    const size_t size = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
    if (f)
        fclose(f);
    CHECK_OK(leat_graph_from_binary(g, bytes, size, ""));
    leat_out x = find(g, "x:0"), y = find(g, "y:0"), grads[5];
    for (int i = 0; i < 5; i++)
        grads[i] = find(g, names[i]);
    leat_tensor *fed = mlp_tensor(leat_shape(BATCH, STEPS, INPUTS), 1);
    CHECK_INT(left(g, x, &y, 1, "_LSTMStep"), 2 * STEPS);
    CHECK_INT(left(g, x, &y, 1, "Sigmoid"), 0);
    compare(g, (leat_out){0}, x, fed, &y, 1, 0);
    CHECK_INT(left(g, x, grads, 5, "_LSTMStepGrad"), 2 * STEPS);
    CHECK_INT(left(g, x, grads, 5, "SigmoidGrad"), 0);
    CHECK_INT(left(g, x, grads, 5, "_SumOfProducts"), 2);
    compare(g, (leat_out){0}, x, fed, grads, 1, 0);
    compare(g, (leat_out){0}, x, fed, grads, 5, 1e-5);
    leat_tensor_unref(fed);
    leat_graph_free(g);
}

/* ---- Cells made by hand ---- */

typedef struct hand {
    leat_graph *g;
    leat_out x, c_prev, w, b, forget_bias;
    leat_out product, gate[4], i, ci, f, o, in, kept, c, co, h;
} hand;

static leat_out constant(leat_graph *g, leat_shape s, float scale)
{
    leat_tensor *t = mlp_tensor(s, scale);
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

static hand hand_begin(void)
{
    hand k = {.g = leat_graph_new()};
    k.x = leat_placeholder(k.g, LEAT_FLOAT, leat_shape(BATCH, INPUTS));
    k.c_prev = constant(k.g, leat_shape(BATCH, UNITS), 1);
    k.w = constant(k.g, leat_shape(INPUTS, 4 * UNITS), 0.3f);
    k.b = constant(k.g, leat_shape(4 * UNITS), 0.1f);
    k.forget_bias = leat_scalar(k.g, LEAT_FLOAT, 0.7);
    return k;
}

static void hand_gates(hand *k, const char *activation)
{
    k->product = leat_matmul(k->x, k->w);
    leat_out parts =
        leat_split(leat_scalar(k->g, LEAT_INT32, 1), leat_bias_add(k->product, k->b), 4);
    for (int i = 0; i < 4; i++)
        k->gate[i] = leat_output(parts, i);
    k->i = leat_sigmoid(k->gate[0]);
    k->ci = LEAT_OP1(activation, k->gate[1]);
    k->f = leat_sigmoid(leat_add(k->gate[2], k->forget_bias));
    k->o = leat_sigmoid(k->gate[3]);
}

static void hand_state(hand *k, const char *activation)
{
    k->kept = leat_mul(k->f, k->c_prev);
    k->in = leat_mul(k->ci, k->i);
    k->c = leat_add(k->in, k->kept);
    k->co = LEAT_OP1(activation, k->c);
    k->h = leat_mul(k->o, k->co);
}

static void hand_end(hand *k, int steps, const leat_out *y, int n)
{
    leat_tensor *fed = mlp_tensor(leat_shape(BATCH, INPUTS), 1);
    CHECK_OK(leat_graph_status(k->g));
    CHECK_INT(left(k->g, k->x, y, n, "_LSTMStep"), steps);
    compare(k->g, (leat_out){0}, k->x, fed, y, n, 0);
    leat_tensor_unref(fed);
    leat_graph_free(k->g);
}

/* All values may be fetched, the products whose sum is c, too; operands may be exchanged. */
static void values(void)
{
    hand k = hand_begin();
    hand_gates(&k, "Tanh");
    hand_state(&k, "Tanh");
    const leat_out all[] = {k.i, k.ci, k.f, k.o, k.in, k.kept, k.c, k.co, k.h};
    hand_end(&k, 1, all, 9);
}

/* Without a bias of the forget gate. */
static void no_forget_bias(void)
{
    hand k = hand_begin();
    hand_gates(&k, "Tanh");
    k.f = leat_sigmoid(k.gate[2]);
    hand_state(&k, "Tanh");
    hand_end(&k, 1, &k.h, 1);
}

static void other_activations(void)
{
    static const char *const ops[][2] = {
        {"Relu", "Tanh"}, {"Tanh", "Relu"}, {"Sigmoid", "Sigmoid"}};
    for (int i = 0; i < 3; i++) {
        hand k = hand_begin();
        hand_gates(&k, ops[i][0]);
        hand_state(&k, ops[i][1]);
        hand_end(&k, 0, &k.h, 1);
    }
}

/* The bias of the forget gate must be one number that is known. */
static void other_forget_bias(void)
{
    hand k = hand_begin();
    k.forget_bias = constant(k.g, leat_shape(UNITS), 1);
    hand_gates(&k, "Tanh");
    hand_state(&k, "Tanh");
    hand_end(&k, 0, &k.h, 1);
    k = hand_begin();
    k.forget_bias = leat_reduce_sum(k.x);
    hand_gates(&k, "Tanh");
    hand_state(&k, "Tanh");
    hand_end(&k, 0, &k.h, 1);
}

/* The gates before their functions are used elsewhere, or the product is. */
static void used_elsewhere(void)
{
    for (int i = 0; i < 5; i++) {
        hand k = hand_begin();
        hand_gates(&k, "Tanh");
        hand_state(&k, "Tanh");
        const leat_out y[] = {k.h, i < 4 ? leat_neg(k.gate[i]) : k.product};
        hand_end(&k, 0, y, 2);
    }
}

/* The state is repeated for each row, or comes from the gates themselves; the weights are
 * transposed; the gates are in another order. */
static void other_cells(void)
{
    for (int i = 0; i < 4; i++) {
        hand k = hand_begin();
        if (i == 0)
            k.c_prev = constant(k.g, leat_shape(1, UNITS), 1);
        hand_gates(&k, "Tanh");
        if (i == 1)
            k.c_prev = leat_square(k.o);
        if (i == 2) {
            leat_out of = k.f;
            k.f = k.i;
            k.i = of;
        }
        if (i == 3) {
            k.w = constant(k.g, leat_shape(4 * UNITS, INPUTS), 0.3f);
            leat_out y = leat_matmul(k.x, k.w, leat_attr_bool("transpose_b", true));
            y = leat_split(leat_scalar(k.g, LEAT_INT32, 1), leat_bias_add(y, k.b), 4);
            k.i = leat_sigmoid(y), k.ci = leat_tanh(leat_output(y, 1));
            k.f = leat_sigmoid(leat_output(y, 2)), k.o = leat_sigmoid(leat_output(y, 3));
        }
        hand_state(&k, "Tanh");
        hand_end(&k, 0, &k.h, 1);
    }
}

/* Of the gradients that one node computes, those that it does not give may be used, too. */
static void gradients(void)
{
    hand k = hand_begin();
    hand_gates(&k, "Tanh");
    hand_state(&k, "Tanh");
    leat_out more = leat_mul(k.c, constant(k.g, leat_shape(BATCH, UNITS), 1));
    leat_out loss = leat_reduce_sum(leat_add(leat_square(k.h), more));
    leat_out by[] = {k.x, k.c_prev, k.c, k.i, k.b};
    leat_grad_value d[5] = {0};
    CHECK_OK(leat_gradients(&loss, 1, by, 5, d));
    const leat_out y[] = {d[0].value, d[1].value, d[2].value, d[3].value, d[4].value};
    CHECK_INT(left(k.g, k.x, y, 5, "_LSTMStepGrad"), 1);
    hand_end(&k, 1, y, 5);
}

/* Products whose sum has another summand, or that are used elsewhere, stay as they are. */
static void sums(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(3, 4)), p[3], y[4];
    for (int i = 0; i < 3; i++)
        p[i] = leat_matmul(leat_mul(x, leat_scalar(g, LEAT_FLOAT, i + 1)),
                           constant(g, leat_shape(3, 5), 1), leat_attr_bool("transpose_a", true));
    y[0] = leat_add_n(p, 3);
    CHECK_INT(left(g, x, y, 1, "_SumOfProducts"), 1);
    y[1] = p[1];
    CHECK_INT(left(g, x, y, 2, "_SumOfProducts"), 0);
    const leat_out other[] = {p[0], p[2], constant(g, leat_shape(4, 5), 1)}, twice[] = {p[0], p[0]};
    y[2] = leat_add_n(other, 3);
    CHECK_INT(left(g, x, y + 2, 1, "_SumOfProducts"), 0);
    y[3] = leat_add_n(twice, 2);
    CHECK_INT(left(g, x, y + 3, 1, "_SumOfProducts"), 0);
    leat_tensor *fed = mlp_tensor(leat_shape(3, 4), 1);
    compare(g, (leat_out){0}, x, fed, y, 1, 1e-5);
    compare(g, (leat_out){0}, x, fed, y, 4, 0);
    leat_tensor_unref(fed);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"leat_cells", leat_cells}, {"client_cells", client_cells},
               {"values", values}, {"no_forget_bias", no_forget_bias},
               {"other_activations", other_activations}, {"other_forget_bias", other_forget_bias},
               {"used_elsewhere", used_elsewhere}, {"other_cells", other_cells},
               {"gradients", gradients}, {"sums", sums});
}
