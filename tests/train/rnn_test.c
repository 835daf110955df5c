/* rnn_test.c -- recurrent nets against TensorFlow 1.15: names and shapes of variables, outputs,
 * states and gradients. make_rnn.py has written data/rnn.txt by the same nets. Mistakes and their
 * messages. */
#include <leat/leat.h>

#include "train/values.h"

enum { BATCH = 2, TIME = 4, DEPTH = 3, UNITS = 3 };

typedef struct net {
    leat_graph *g;
    leat_dtype t;
    leat_out x; /* (BATCH, TIME, DEPTH) */
    leat_out outputs, states[8];
    int n_states;
} net;
typedef void (*build_fn)(net *n);

/* The lines "NAME.variable VARIABLE SHAPE" are the graph's trainable variables, in order. */
static void check_variables(const char *name, const leat_out *vars, int n)
{
    char line[1 << 16], want[256], got[256];
    FILE *f = fopen(LEAT_SOURCE_DIR "/tests/train/data/rnn.txt", "r");
    int i = 0;
    CHECK(f != NULL);
    while (f && fgets(line, sizeof(line), f)) {
        snprintf(want, sizeof(want), "%s.variable ", name);
        if (strncmp(line, want, strlen(want)) != 0)
            continue;
        CHECK(i < n);
        if (i >= n)
            break;
        const leat_shape s = leat_out_shape(vars[i]);
        int at = snprintf(got, sizeof(got), "%s%s ", want, leat_variable_name(vars[i]));
        for (int d = 0; d < s.rank; d++)
            at += snprintf(got + at, sizeof(got) - (size_t)at, d ? ",%lld" : "%lld",
                           (long long)s.dim[d]);
        snprintf(got + at, sizeof(got) - (size_t)at, "\n");
        CHECK_STR(got, line);
        i++;
    }
    CHECK_INT(i, n);
    if (f)
        fclose(f);
}

static void compare(const char *name, const char *part, leat_tensor *const *got, int n,
                    double tolerance)
{
    char line[128];
    snprintf(line, sizeof(line), "%s.%s", name, part);
    check_sequence("rnn.txt", line, got, n, tolerance);
}

/* The sum of the outputs and the states, weighted. */
static leat_out loss_of(net *n)
{
    leat_out sum = leat_reduce_sum(
        leat_mul(n->outputs, constant(n->g, n->t, leat_out_shape(n->outputs), 50)));
    for (int i = 0; i < n->n_states; i++) {
        leat_out w = constant(n->g, n->t, leat_out_shape(n->states[i]), 60 + i);
        sum = leat_add(sum, leat_reduce_sum(leat_mul(n->states[i], w)));
    }
    return sum;
}

static void check_net(const char *name, leat_dtype t, bool with_grads, build_fn build)
{
    net n = {.g = leat_graph_new(), .t = t};
    leat_session *s = NULL;
    leat_tensor *got[32] = {0}, *x = tensor(t, leat_shape(BATCH, TIME, DEPTH), 40);
    leat_out xs[32] = {{0}}, set[32];
    leat_fetch fetch[32];
    leat_grad_value grads[32];
    int n_vars;
    leat_graph_set_seed(n.g, 7);
    n.x = xs[0] = leat_placeholder(n.g, t, leat_shape(BATCH, TIME, DEPTH));
    build(&n);
    CHECK_OK(leat_graph_status(n.g));
    leat_out *vars = leat_trainable_variables(n.g, &n_vars);
    if (with_grads)
        check_variables(name, vars, n_vars);
    for (int i = 0; i < n_vars; i++) {
        xs[1 + i] = vars[i];
        set[i] = leat_variable_assign(vars[i], constant(n.g, t, leat_out_shape(vars[i]), i));
    }
    CHECK_OK(leat_session_open(n.g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, (leat_targets){set, n_vars}));
    const double tolerance = t == LEAT_DOUBLE ? 1e-6 : 2e-5;
    CHECK_OK(leat_session_run(s, LEAT_FEED({n.x, x}), LEAT_FETCH({n.outputs, &got[0]}),
                              LEAT_NO_TARGET));
    compare(name, "outputs", got, 1, tolerance);
    if (with_grads) {
        leat_out loss = loss_of(&n);
        CHECK_OK(leat_gradients(&loss, 1, xs, 1 + n_vars, grads));
        for (int i = 0; i < n.n_states; i++)
            fetch[i] = (leat_fetch){n.states[i], &got[i]};
        CHECK_OK(leat_session_run(s, LEAT_FEED({n.x, x}), (leat_fetches){fetch, n.n_states},
                                  LEAT_NO_TARGET));
        compare(name, "states", got, n.n_states, tolerance);
        for (int i = 0; i <= n_vars; i++)
            fetch[i] = (leat_fetch){leat_grad_dense(grads[i]), &got[i]};
        CHECK_OK(leat_session_run(s, LEAT_FEED({n.x, x}), (leat_fetches){fetch, 1 + n_vars},
                                  LEAT_NO_TARGET));
        compare(name, "grads", got, 1 + n_vars, 5 * tolerance);
    }
    free(vars);
    leat_tensor_unref(x);
    leat_session_close(s);
    leat_graph_free(n.g);
}

/* ---- The nets of make_rnn.py ---- */

static void unstacked(const net *n, leat_out *x)
{
    leat_out all = leat_unpack(n->x, TIME, 1);
    for (int i = 0; i < TIME; i++)
        x[i] = leat_output(all, i);
}

static void unroll_with(net *n, leat_cell *c, leat_out lengths)
{
    leat_out x[TIME], y[TIME];
    unstacked(n, x);
    leat_static_rnn(c, x, TIME, y, n->states, .sequence_length = lengths);
    n->n_states = leat_cell_states(c);
    n->outputs = leat_pack(y, TIME, 1);
}

static void unroll(net *n, leat_cell *c)
{
    unroll_with(n, c, (leat_out){0});
}

static leat_out lengths_of(leat_graph *g)
{
    return leat_ints(g, 3, 1);
}

#define STATIC(name, ...)                                                                          \
    static void build_##name(net *n)                                                               \
    {                                                                                              \
        leat_graph *g = n->g;                                                                      \
        unroll(n, __VA_ARGS__);                                                                    \
    }
STATIC(basic_rnn, leat_basic_rnn_cell(g, UNITS))
STATIC(basic_lstm, leat_basic_lstm_cell(g, UNITS))
STATIC(basic_lstm_options, leat_basic_lstm_cell(g, UNITS, .forget_bias = 0, .activation = "Relu"))
STATIC(lstm, leat_lstm_cell(g, UNITS))
STATIC(lstm_full, leat_lstm_cell(g, UNITS, .use_peepholes = true, .cell_clip = 0.2, .num_proj = 2,
                                 .proj_clip = 0.1))
STATIC(lstm_peepholes,
       leat_lstm_cell(g, UNITS, .use_peepholes = true, .num_proj = 2, .forget_bias = 0.5))
STATIC(lstm_slices, leat_lstm_cell(g, UNITS, .num_unit_shards = 2))
STATIC(gru, leat_gru_cell(g, UNITS))
STATIC(layer_norm, leat_layer_norm_lstm_cell(g, UNITS, .norm_gain = 0.9, .norm_shift = 0.1))
STATIC(no_layer_norm, leat_layer_norm_lstm_cell(g, UNITS, .no_layer_norm = true))
STATIC(multi, leat_multi_cell(g,
                              (leat_cell *[]){leat_basic_lstm_cell(g, UNITS), leat_gru_cell(g, 2)},
                              2))
STATIC(residual,
       leat_multi_cell(
           g, (leat_cell *[]){leat_residual_cell(leat_basic_lstm_cell(g, UNITS))}, 1))
STATIC(block_lstm_cell, leat_block_lstm_cell(g, UNITS, .forget_bias = 0))
STATIC(block_lstm_cell_peepholes,
       leat_block_lstm_cell(g, UNITS, .use_peepholes = true, .cell_clip = 0.2))
STATIC(block_gru_cell, leat_block_gru_cell(g, UNITS))
#define DROPPED .input_keep_prob = 0.7, .output_keep_prob = 0.5, .state_keep_prob = 0.6, .seed = 5
STATIC(dropout, leat_dropout_cell(leat_basic_lstm_cell(g, UNITS), DROPPED))
STATIC(variational, leat_dropout_cell(leat_basic_lstm_cell(g, UNITS), DROPPED, .variational = true,
                                      .input_size = DEPTH))

static void build_static_lengths(net *n)
{
    unroll_with(n, leat_basic_lstm_cell(n->g, UNITS), lengths_of(n->g));
}

#define DYNAMIC(name, cell, ...)                                                                   \
    static void build_##name(net *n)                                                               \
    {                                                                                              \
        leat_graph *g = n->g;                                                                      \
        leat_cell *c = cell;                                                                       \
        n->outputs = leat_dynamic_rnn(c, n->x, n->states, ##__VA_ARGS__);                          \
        n->n_states = leat_cell_states(c);                                                         \
    }
static leat_cell *two_lstms(leat_graph *g)
{
    leat_cell *cells[2] = {leat_basic_lstm_cell(g, UNITS), leat_basic_lstm_cell(g, 2)};
    return leat_multi_cell(g, cells, 2);
}
DYNAMIC(dynamic, two_lstms(g))
DYNAMIC(dynamic_lengths, leat_basic_lstm_cell(g, UNITS), .sequence_length = lengths_of(g))
DYNAMIC(dynamic_odd_lengths, leat_gru_cell(g, UNITS), .sequence_length = leat_ints(g, 9, -2))
DYNAMIC(dynamic_swapped, leat_gru_cell(g, UNITS), .swap_memory = true, .parallel_iterations = 1)

static void bidirectional(net *n, leat_out lengths)
{
    leat_out y[2];
    leat_cell *fw = leat_basic_lstm_cell(n->g, UNITS), *bw = leat_gru_cell(n->g, UNITS);
    leat_bidirectional_dynamic_rnn(fw, bw, n->x, y, n->states, n->states + 2,
                                   .sequence_length = lengths);
    n->n_states = 3;
    n->outputs = leat_concat(y, 2, leat_scalar(n->g, LEAT_INT32, 2));
}

static void static_bidirectional(net *n, leat_out lengths)
{
    leat_out x[TIME], y[TIME];
    leat_cell *fw = leat_basic_lstm_cell(n->g, UNITS), *bw = leat_gru_cell(n->g, UNITS);
    unstacked(n, x);
    leat_static_bidirectional_rnn(fw, bw, x, TIME, y, n->states, n->states + 2,
                                  .sequence_length = lengths);
    n->n_states = 3;
    n->outputs = leat_pack(y, TIME, 1);
}

static void build_bidirectional(net *n)
{
    bidirectional(n, (leat_out){0});
}

static void build_bidirectional_lengths(net *n)
{
    bidirectional(n, lengths_of(n->g));
}

static void build_static_bidirectional(net *n)
{
    static_bidirectional(n, (leat_out){0});
}

static void build_static_bidirectional_lengths(net *n)
{
    static_bidirectional(n, lengths_of(n->g));
}

/* Sequence b ends after its length; what is emitted is the output's double, and a count of the
 * steps is passed from call to call. */
static void raw_step(leat_graph *g, void *arg, leat_raw_step *s)
{
    const net *n = arg;
    leat_out last = leat_minimum(s->time, leat_scalar(g, LEAT_INT32, TIME - 1));
    s->finished = leat_greater_equal(s->time, lengths_of(g));
    s->input = leat_gather(n->x, last, leat_scalar(g, LEAT_INT32, 1));
    if (!s->output.node) {
        s->next_state[0] = leat_zeros(g, n->t, leat_shape(BATCH, UNITS));
        s->emit = leat_zeros(g, n->t, leat_shape(UNITS));
        s->pass[0] = leat_scalar(g, LEAT_INT32, 10);
        return;
    }
    s->emit = leat_mul(s->emit, leat_scalar(g, n->t, 2));
    s->pass[0] = leat_add(s->passed[0], leat_scalar(g, LEAT_INT32, 1));
}

static void build_raw(net *n)
{
    leat_out count;
    n->outputs = leat_raw_rnn(leat_gru_cell(n->g, UNITS), raw_step, n, n->states, .n_passed = 1,
                              .passed_out = &count);
    n->outputs = leat_reshape(n->outputs, leat_ints(n->g, 3, BATCH, UNITS));
    n->states[1] = leat_reshape(leat_cast(count, n->t), leat_ints(n->g, 1, 1));
    n->n_states = 2;
}

static void fused(net *n, const leat_rnn_options *o, bool peepholes)
{
    leat_out perm = leat_ints(n->g, 1, 0, 2);
    leat_out y = leat_block_lstm(leat_transpose(n->x, perm), UNITS, n->states, o,
                                 .use_peepholes = peepholes);
    n->outputs = leat_transpose(y, perm);
    n->n_states = 2;
}

static void build_block_lstm(net *n)
{
    fused(n, NULL, false);
}

static void build_block_lstm_lengths(net *n)
{
    fused(n, &(leat_rnn_options){.sequence_length = lengths_of(n->g)}, true);
}

#define CASE(name, t, with_grads)                                                                  \
    static void name(void)                                                                         \
    {                                                                                              \
        check_net(#name, t, with_grads, build_##name);                                             \
    }
CASE(basic_rnn, LEAT_DOUBLE, true)
CASE(basic_lstm, LEAT_DOUBLE, true)
CASE(basic_lstm_options, LEAT_DOUBLE, true)
CASE(lstm, LEAT_DOUBLE, true)
CASE(lstm_full, LEAT_DOUBLE, true)
CASE(lstm_peepholes, LEAT_DOUBLE, true)
CASE(lstm_slices, LEAT_DOUBLE, true)
CASE(gru, LEAT_DOUBLE, true)
CASE(layer_norm, LEAT_DOUBLE, true)
CASE(no_layer_norm, LEAT_DOUBLE, true)
CASE(multi, LEAT_DOUBLE, true)
CASE(residual, LEAT_DOUBLE, true)
CASE(static_lengths, LEAT_DOUBLE, true)
CASE(dynamic, LEAT_DOUBLE, true)
CASE(dynamic_lengths, LEAT_DOUBLE, true)
CASE(dynamic_odd_lengths, LEAT_DOUBLE, true)
CASE(dynamic_swapped, LEAT_DOUBLE, true)
static void both_ways(void)
{
    check_net("bidirectional", LEAT_DOUBLE, true, build_bidirectional);
    check_net("bidirectional_lengths", LEAT_DOUBLE, true, build_bidirectional_lengths);
    check_net("static_bidirectional", LEAT_DOUBLE, true, build_static_bidirectional);
    check_net("static_bidirectional_lengths", LEAT_DOUBLE, true,
              build_static_bidirectional_lengths);
}
CASE(raw, LEAT_DOUBLE, true)
CASE(block_lstm_cell, LEAT_FLOAT, true)
CASE(block_lstm_cell_peepholes, LEAT_FLOAT, true)
CASE(block_gru_cell, LEAT_FLOAT, true)
CASE(block_lstm, LEAT_FLOAT, true)
CASE(block_lstm_lengths, LEAT_FLOAT, true)
CASE(dropout, LEAT_FLOAT, false)
CASE(variational, LEAT_FLOAT, false)

/* ---- Sharing, sizes that are known late, cells of one's own ---- */

static int64_t many_times(leat_session *s, leat_out x, leat_out y, int64_t batch, int64_t time)
{
    leat_tensor *in = tensor(LEAT_FLOAT, leat_shape(batch, time, DEPTH), 1), *out = NULL;
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
    const int64_t count = out ? leat_tensor_count(out) : -1;
    leat_tensor_unref(in);
    leat_tensor_unref(out);
    return count;
}

/* One graph runs batches and sequences of any size, the empty ones among them. */
static void any_size(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, -1, DEPTH)), state[2];
    leat_out y = leat_dynamic_rnn(leat_basic_lstm_cell(g, UNITS), x, state);
    CHECK_INT(leat_out_shape(y).dim[2], UNITS);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_INT(many_times(s, x, y, 2, 5), 2 * 5 * UNITS);
    CHECK_INT(many_times(s, x, y, 1, 300), 300 * UNITS);
    CHECK_INT(many_times(s, x, y, 0, 4), 0);
    CHECK_INT(many_times(s, x, state[0], 3, 0), 3 * UNITS);
    leat_session_close(s);
    leat_graph_free(g);
}

/* A cell that is used twice has one set of variables; reuse shares them between cells. */
static void shared(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_zeros(g, LEAT_FLOAT, leat_shape(BATCH, DEPTH)), state[2];
    int n;
    leat_cell *c = leat_basic_lstm_cell(g, UNITS);
    leat_cell_zero_state_like(c, x, state);
    leat_with_variable_scope(g, "model") leat_cell_step(c, x, state, state);
    leat_cell_step(c, x, state, state);
    leat_with_variable_scope(g, "model", .reuse = LEAT_REUSE)
        leat_cell_step(leat_basic_lstm_cell(g, UNITS), x, state, state);
    leat_out *vars = leat_trainable_variables(g, &n);
    CHECK_OK(leat_graph_status(g));
    CHECK_INT(n, 2);
    CHECK_STR(leat_variable_name(vars[0]), "model/basic_lstm_cell/kernel");
    free(vars);
    leat_graph_free(g);
}

/* A cell that adds its inputs up. */
static leat_out add_step(leat_graph *g, void *arg, leat_out x, const leat_out *state, leat_out *next)
{
    return next[0] = leat_add(state[0], x);
}

static void own(void)
{
    leat_graph *g = leat_graph_new();
    const int64_t size = DEPTH;
    leat_tensor *v = NULL;
    leat_session *s = NULL;
    leat_cell *c = leat_cell_new(g, &(leat_cell_def){.n_states = 1,
                                                     .state_sizes = &size,
                                                     .output_size = DEPTH,
                                                     .step = add_step});
    leat_out y = leat_dynamic_rnn(c, leat_ones(g, LEAT_FLOAT, leat_shape(1, 7, DEPTH)), NULL);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &v}), LEAT_NO_TARGET));
    for (int i = 0; v && i < 7 * DEPTH; i++)
        CHECK_NEAR(leat_tensor_at(v, i), 1 + i / DEPTH, 0);
    leat_tensor_unref(v);
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- Mistakes ---- */

typedef void (*wrong_fn)(leat_graph *g, leat_out x);

static void refuse(wrong_fn fn, const char *words)
{
    leat_graph *g = leat_graph_new();
    fn(g, leat_placeholder(g, LEAT_FLOAT, leat_shape(BATCH, TIME, DEPTH)));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, words);
    leat_graph_free(g);
}

#define WRONG(name, ...)                                                                           \
    static void name(leat_graph *g, leat_out x)                                                    \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
WRONG(no_units, leat_dynamic_rnn(leat_gru_cell(g, 0), x, NULL))
WRONG(no_cells, leat_dynamic_rnn(leat_multi_cell(g, NULL, 0), x, NULL))
WRONG(float_lengths, leat_dynamic_rnn(leat_gru_cell(g, 2), x, NULL,
                                      .sequence_length = leat_zeros(g, LEAT_FLOAT, leat_shape(2))))
WRONG(many_lengths, leat_dynamic_rnn(leat_gru_cell(g, 2), x, NULL,
                                     .sequence_length = leat_ints(g, 1, 2, 3)))
WRONG(flat_input, leat_dynamic_rnn(leat_gru_cell(g, 2), leat_zeros(g, LEAT_FLOAT, leat_shape(2, 3)),
                                   NULL))
WRONG(unknown_depth,
      leat_dynamic_rnn(leat_gru_cell(g, 2),
                       leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3, -1)), NULL))
WRONG(int_input, leat_dynamic_rnn(leat_gru_cell(g, 2), leat_cast(x, LEAT_INT32), NULL))
WRONG(wrong_state,
      leat_out state = leat_zeros(g, LEAT_FLOAT, leat_shape(BATCH, 5));
      leat_dynamic_rnn(leat_gru_cell(g, 2), x, NULL, .initial_state = &state))
WRONG(no_inputs, leat_static_rnn(leat_gru_cell(g, 2), NULL, 0, NULL, NULL))
WRONG(much_kept, leat_dropout_cell(leat_gru_cell(g, 2), .output_keep_prob = 1.5))
WRONG(no_input_size,
      leat_dropout_cell(leat_gru_cell(g, 2), .variational = true, .input_keep_prob = 0.5))
WRONG(uneven_residual, leat_dynamic_rnn(leat_residual_cell(leat_gru_cell(g, 2)), x, NULL))
WRONG(two_depths, leat_cell *c = leat_gru_cell(g, 2); leat_out state;
      leat_cell_zero_state(c, BATCH, LEAT_FLOAT, &state);
      leat_cell_step(c, leat_zeros(g, LEAT_FLOAT, leat_shape(BATCH, 3)), &state, &state);
      leat_cell_step(c, leat_zeros(g, LEAT_FLOAT, leat_shape(BATCH, 4)), &state, &state))

WRONG(no_definition, leat_cell_new(g, NULL))
WRONG(no_sizes,
      leat_cell_new(g, &(leat_cell_def){.n_states = 1, .output_size = 2, .step = add_step}))
WRONG(few_units, leat_basic_lstm_cell(g, -4))
WRONG(many_units, leat_dynamic_rnn(leat_basic_lstm_cell(g, INT64_C(1) << 62), x, NULL))
WRONG(many_columns,
      leat_dynamic_rnn(leat_gru_cell(g, 2),
                       leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3, INT64_MAX)), NULL))
WRONG(null_cell, leat_dynamic_rnn(NULL, x, NULL))
WRONG(null_layers, leat_multi_cell(g, NULL, 2))
WRONG(null_layer, leat_cell *c = NULL; leat_multi_cell(g, &c, 1))
WRONG(null_outputs, leat_out in = leat_zeros(g, LEAT_FLOAT, leat_shape(2, 3));
      leat_static_rnn(leat_gru_cell(g, 2), &in, 1, NULL, NULL))
WRONG(null_inputs, leat_out y[2]; leat_static_rnn(leat_gru_cell(g, 2), NULL, 2, y, NULL))
WRONG(null_state, leat_cell *c = leat_gru_cell(g, 2); leat_out state;
      leat_cell_zero_state(c, 2, LEAT_FLOAT, &state);
      leat_cell_step(c, leat_zeros(g, LEAT_FLOAT, leat_shape(2, 3)), &state, NULL))
WRONG(null_zeros, leat_cell_zero_state(leat_gru_cell(g, 2), 2, LEAT_FLOAT, NULL))
WRONG(few_projected, leat_lstm_cell(g, 2, .num_proj = -3))
WRONG(few_slices, leat_lstm_cell(g, 2, .num_unit_shards = -1))
WRONG(deep, leat_cell *c = leat_gru_cell(g, DEPTH);
      for (int i = 0; i < 100; i++) c = leat_residual_cell(c); leat_dynamic_rnn(c, x, NULL))
WRONG(deep_layers, leat_cell *c = leat_gru_cell(g, DEPTH);
      for (int i = 0; i < 100; i++) c = leat_multi_cell(g, &c, 1); leat_dynamic_rnn(c, x, NULL))

static leat_out no_output(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                          leat_out *next)
{
    next[0] = x;
    return (leat_out){0};
}
static leat_out no_next(leat_graph *g, void *arg, leat_out x, const leat_out *state, leat_out *next)
{
    return x;
}
static void run_step(leat_graph *g, leat_out x,
                     leat_out (*step)(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                                      leat_out *next))
{
    const int64_t size = DEPTH;
    leat_dynamic_rnn(leat_cell_new(g, &(leat_cell_def){.name = "mine",
                                                       .n_states = 1,
                                                       .state_sizes = &size,
                                                       .output_size = DEPTH,
                                                       .step = step}),
                     x, NULL);
}
WRONG(outputless, run_step(g, x, no_output))
WRONG(stateless, run_step(g, x, no_next))

static void two_graphs(leat_graph *g, leat_out x)
{
    leat_graph *other = leat_graph_new();
    leat_out y[2], in[2];
    in[0] = in[1] = leat_zeros(g, LEAT_FLOAT, leat_shape(2, 3));
    leat_bidirectional_dynamic_rnn(leat_gru_cell(g, 2), leat_gru_cell(other, 2), x, y, NULL, NULL);
    leat_static_bidirectional_rnn(leat_gru_cell(g, 2), leat_gru_cell(other, 2), in, 2, y, NULL,
                                  NULL);
    leat_graph_free(other);
}

/* What a function writes after a mistake can be used: it is the result of a mistake, too. */
static void after_a_mistake(void)
{
    leat_graph *g = leat_graph_new();
    leat_out in[2], y[2], state[4], axis = leat_scalar(g, LEAT_INT32, 0);
    in[0] = in[1] = leat_zeros(g, LEAT_FLOAT, leat_shape(2, 3));
    leat_cell *c = leat_basic_lstm_cell(g, -4), *both[2] = {c, c};
    leat_cell *layers = leat_multi_cell(g, both, 2);
    CHECK_INT(leat_cell_states(c), 2);
    CHECK_INT(leat_cell_states(layers), 4);
    CHECK_INT(leat_cell_state_size(layers, 3), 0);
#define USE(statement, out, n)                                                                     \
    memset(out, 0x5a, sizeof(out));                                                                \
    statement;                                                                                     \
    leat_concat(out, n, axis)
    USE(leat_cell_zero_state(layers, 2, LEAT_FLOAT, state), state, 4);
    USE(leat_cell_step(layers, in[0], state, state), state, 4);
    USE(leat_static_rnn(c, in, 2, y, NULL), y, 2);
    USE(leat_static_rnn(layers, in, 2, y, state), state, 4);
    USE(leat_static_bidirectional_rnn(c, c, in, 2, y, state, state + 2), state, 4);
    USE(leat_dynamic_rnn(layers, in[0], state), state, 4);
    USE(leat_bidirectional_dynamic_rnn(c, c, in[0], y, state, state + 2), state, 4);
    USE(leat_block_lstm(y[0], 4, state, NULL), state, 2);
    USE(leat_raw_rnn(c, raw_step, NULL, state, .n_passed = 2, .passed_out = y), y, 2);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT,
                "The number of units of a cell must be positive, got -4 (at " __FILE__);
    leat_graph_free(g);
    g = leat_graph_new();
    in[0] = in[1] = leat_zeros(g, LEAT_FLOAT, leat_shape(2, 3));
    USE(leat_static_rnn(NULL, in, 2, y, NULL), y, 2);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "leat_static_rnn: the cell is NULL");
    leat_graph_free(g);
    g = leat_graph_new();
    in[0] = leat_zeros(g, LEAT_FLOAT, leat_shape(2, 3, 4));
    USE(leat_bidirectional_dynamic_rnn(NULL, NULL, in[0], y, NULL, NULL), y, 2);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "the cell is NULL");
    leat_graph_free(g);
#undef USE
}

static void mistakes(void)
{
    refuse(no_definition, "leat_cell_new: the definition of the cell is NULL (at " __FILE__);
    refuse(no_sizes, "the sizes of the cell's 1 states are missing");
    refuse(few_units, "The number of units of a cell must be positive, got -4");
    refuse(many_units, "The number of units of a cell must be at most 2147483647, got 4611");
    refuse(many_columns, "The number of columns of the input of a cell must be at most 2147483647");
    refuse(null_cell, "leat_dynamic_rnn: the cell is NULL");
    refuse(null_layers, "Must specify at least one cell for leat_multi_cell");
    refuse(null_layer, "leat_multi_cell: cell 0 is no cell of this graph");
    refuse(null_outputs, "leat_static_rnn: y is NULL");
    refuse(null_inputs, "leat_static_rnn: x is NULL");
    refuse(null_state, "leat_cell_step: state_out is NULL");
    refuse(null_zeros, "leat_cell_zero_state: state_out is NULL");
    refuse(few_projected, "num_proj of a cell must be from 1 to 2147483647, got -3");
    refuse(few_slices, "num_unit_shards and num_proj_shards of a cell must be positive, got -1");
    refuse(deep, "More than 64 cells are inside each other");
    refuse(deep_layers, "More than 64 cells are inside each other");
    refuse(outputless, "The step of the cell mine has given no output");
    refuse(stateless, "The step of the cell mine has not written state 0 of 1");
    refuse(two_graphs, "The cells of both directions are of different graphs");
    refuse(no_units, "The number of units of a cell must be positive, got 0");
    refuse(no_cells, "Must specify at least one cell for leat_multi_cell");
    refuse(float_lengths, "sequence_length must be int32 or int64, got float (zeros)");
    refuse(many_lengths, "sequence_length must be a vector of length batch_size [2], but saw "
                         "shape: [3]");
    refuse(flat_input, "wants x with the dimensions batch, time and depth, got shape [2,3]");
    refuse(unknown_depth, "Input size (depth of inputs) must be accessible via shape inference, "
                          "but x has shape [2,3,?]");
    refuse(int_input, "A cell wants inputs of a floating type, got int32");
    refuse(wrong_state, "State 0 of a cell has shape [2,5], but must have [2,2]");
    refuse(no_inputs, "leat_static_rnn: inputs must not be empty");
    refuse(much_kept, "Parameter output_keep_prob must be between 0 and 1: 1.5");
    refuse(no_input_size, "input_size must be provided");
    refuse(uneven_residual, "as many columns as its output has: 3 and 2");
    refuse(two_depths, "The cell gru_cell was made for inputs of 3 columns, but x has 4");
}

/* Lengths whose number is wrong are found when the graph runs. */
static void late_lengths(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, -1, DEPTH));
    leat_out lengths = leat_placeholder(g, LEAT_INT64, leat_shape(-1));
    leat_out y = leat_dynamic_rnn(leat_gru_cell(g, 2), x, NULL, .sequence_length = lengths);
    leat_tensor *in = tensor(LEAT_FLOAT, leat_shape(BATCH, TIME, DEPTH), 1), *n = NULL, *out = NULL;
    CHECK_OK(leat_tensor_new(LEAT_INT64, leat_shape(3), &n));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, in}, {lengths, n}), LEAT_FETCH({y, &out}),
                                 LEAT_NO_TARGET),
                INVALID_ARGUMENT, "sequence_length must be a vector of length batch_size");
    leat_tensor_unref(in);
    leat_tensor_unref(n);
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"basic_rnn", basic_rnn}, {"basic_lstm", basic_lstm},
               {"basic_lstm_options", basic_lstm_options}, {"lstm", lstm}, {"lstm_full", lstm_full},
               {"lstm_peepholes", lstm_peepholes}, {"lstm_slices", lstm_slices}, {"gru", gru},
               {"layer_norm", layer_norm}, {"no_layer_norm", no_layer_norm}, {"multi", multi},
               {"residual", residual}, {"static_lengths", static_lengths}, {"dynamic", dynamic},
               {"dynamic_lengths", dynamic_lengths}, {"dynamic_odd_lengths", dynamic_odd_lengths},
               {"dynamic_swapped", dynamic_swapped}, {"both_ways", both_ways}, {"raw", raw},
               {"block_lstm_cell", block_lstm_cell},
               {"block_lstm_cell_peepholes", block_lstm_cell_peepholes},
               {"block_gru_cell", block_gru_cell}, {"block_lstm", block_lstm},
               {"block_lstm_lengths", block_lstm_lengths}, {"dropout", dropout},
               {"variational", variational}, {"any_size", any_size}, {"shared", shared},
               {"own", own}, {"mistakes", mistakes}, {"after_a_mistake", after_a_mistake},
               {"late_lengths", late_lengths});
}
