/* rnn_block.c -- cells whose step is one op (LSTMBlockCell, GRUBlockCell), and a layer of LSTM that
 * is one (BlockLSTM). */
#include "core/object.h"
#include "graph/given.h"
#include "train/rnn_cell.h"

typedef struct block {
    const leat_cell_options *o;
    int64_t units;
    double forget_bias, clip; /* clip -1: none */
    leat_out kernel, bias, w_i, w_f, w_o, gate_kernel, gate_bias;
} block;

static block *block_new(leat_graph *g, int64_t units, const leat_cell_options *o)
{
    block *b = leat_arena_new(&g->arena, block);
    *b = (block){.o = leat_cell_options_keep(g, o),
                 .units = units,
                 .forget_bias = leat_given_or(&o->given, "forget_bias", o->forget_bias, 1),
                 .clip = leat_given_or(&o->given, "cell_clip", o->cell_clip, -1)};
    return b;
}

/* ---- LSTM ---- */

static void build_lstm(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    block *b = arg;
    const leat_initializer init = b->o->initializer;
    const leat_shape units = leat_shape(b->units);
    b->kernel = leat_cell_variable(g, "kernel", leat_shape(in + b->units, 4 * b->units), t, init);
    b->bias =
        leat_cell_variable(g, "bias", leat_shape(4 * b->units), t, leat_zeros_initializer());
    if (b->o->use_peepholes) {
        b->w_i = leat_cell_variable(g, "w_i_diag", units, t, init);
        b->w_f = leat_cell_variable(g, "w_f_diag", units, t, init);
        b->w_o = leat_cell_variable(g, "w_o_diag", units, t, init);
    } else {
        b->w_i = b->w_f = b->w_o = leat_zeros(g, t, units);
    }
}

static leat_out step_lstm(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                          leat_out *next)
{
    const block *b = arg;
    const leat_out in[] = {x, state[0], state[1], b->kernel, b->w_i, b->w_f, b->w_o, b->bias};
    leat_out y = LEAT_OPN("LSTMBlockCell", in, 8, leat_attr_float("forget_bias", b->forget_bias),
                          leat_attr_float("cell_clip", b->clip),
                          leat_attr_bool("use_peephole", b->o->use_peepholes));
    next[0] = leat_output(y, 1);
    return next[1] = leat_output(y, 6);
}

leat_cell *leat_block_lstm_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o)
{
    static const bool keep[2] = {true, false};
    const int64_t sizes[2] = {units, units};
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    return leat_cell_new_at(o->given.at, g,
                            &(leat_cell_def){.name = o->name ? o->name : "lstm_cell",
                                             .n_states = 2,
                                             .state_sizes = sizes,
                                             .keep_state = keep,
                                             .output_size = units,
                                             .build = build_lstm,
                                             .step = step_lstm,
                                             .arg = block_new(g, units, o)});
}

/* ---- GRU ---- */

static void build_gru(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    block *b = arg;
    const int64_t n = b->units;
    const leat_initializer init = b->o->initializer;
    b->gate_kernel = leat_cell_variable(g, "gates/kernel", leat_shape(in + n, 2 * n), t, init);
    b->gate_bias =
        leat_cell_variable(g, "gates/bias", leat_shape(2 * n), t, leat_constant_initializer(1));
    b->kernel = leat_cell_variable(g, "candidate/kernel", leat_shape(in + n, n), t, init);
    b->bias = leat_cell_variable(g, "candidate/bias", leat_shape(n), t, leat_zeros_initializer());
}

static leat_out step_gru(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                         leat_out *next)
{
    const block *b = arg;
    const leat_out in[] = {x, state[0], b->gate_kernel, b->kernel, b->gate_bias, b->bias};
    return *next = leat_output(LEAT_OPN("GRUBlockCell", in, 6), 3);
}

leat_cell *leat_block_gru_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o)
{
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    return leat_cell_new_at(o->given.at, g,
                            &(leat_cell_def){.name = o->name ? o->name : "gru_cell",
                                             .n_states = 1,
                                             .state_sizes = &units,
                                             .output_size = units,
                                             .build = build_gru,
                                             .step = step_gru,
                                             .arg = block_new(g, units, o)});
}

/* ---- A layer in one op ---- */

/* The rows of the states at the end of each sequence; `all` has the states after each step, behind
 * the first state. */
static leat_out ends_of(leat_graph *g, leat_out first, leat_out all, leat_out lengths, leat_out n)
{
    leat_out axis = leat_scalar(g, LEAT_INT32, 0);
    const leat_out both[2] = {leat_expand_dims(first, axis), all};
    const leat_out at[2] = {lengths, leat_range(leat_scalar(g, LEAT_INT32, 0), n,
                                                leat_scalar(g, LEAT_INT32, 1))};
    return leat_gather_nd(leat_concat(both, 2, axis), leat_pack(at, 2, 1));
}

/* Outputs beyond the end of a sequence are 0. */
static leat_out masked(leat_graph *g, leat_out h, leat_out steps, leat_out lengths)
{
    leat_out times = leat_expand_dims(
        leat_range(leat_scalar(g, LEAT_INT32, 0), steps, leat_scalar(g, LEAT_INT32, 1)),
        leat_scalar(g, LEAT_INT32, 1));
    leat_out mask = leat_cast(leat_less(times, lengths), leat_dtype_base(leat_out_dtype(h)));
    return leat_mul(h, leat_expand_dims(mask, leat_scalar(g, LEAT_INT32, 2)));
}

static leat_out layer(leat_graph *g, leat_out x, block *b, leat_out *state,
                      const leat_rnn_options *o)
{
    const leat_shape s = leat_out_shape(x);
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    leat_out shape = leat_shape_of(x), n = leat_rnn_element(shape, 1),
             steps = leat_rnn_element(shape, 0);
    leat_out first[2], lengths = leat_rnn_lengths(g, o ? o->sequence_length : (leat_out){0},
                                                  s.dim[1], n);
    build_lstm(g, b, s.dim[2], t);
    for (int i = 0; i < 2; i++)
        first[i] = o && o->initial_state ? o->initial_state[i]
                                         : leat_rnn_zeros(g, t, s.dim[1], n, b->units);
    leat_out most = leat_cast(lengths.node ? leat_minimum(steps, leat_reduce_max(lengths)) : steps,
                              LEAT_INT64);
    const leat_out in[] = {most, x, first[0], first[1], b->kernel, b->w_i, b->w_f, b->w_o, b->bias};
    leat_out y = LEAT_OPN("BlockLSTM", in, 9, leat_attr_float("forget_bias", b->forget_bias),
                          leat_attr_float("cell_clip", b->clip),
                          leat_attr_bool("use_peephole", b->o->use_peepholes));
    leat_out c = leat_output(y, 1), h = leat_output(y, 6);
    if (lengths.node) {
        h = masked(g, h, steps, lengths);
        lengths = leat_minimum(steps, leat_maximum(lengths, leat_scalar(g, LEAT_INT32, 0)));
        state[0] = ends_of(g, first[0], c, lengths, n);
        state[1] = ends_of(g, first[1], h, lengths, n);
    } else {
        state[0] = leat_rnn_element(c, -1);
        state[1] = leat_rnn_element(h, -1);
    }
    return h;
}

static leat_status check_layer(leat_out x, int64_t units)
{
    const leat_shape s = leat_out_shape(x);
    LEAT_REQUIRE(s.rank == 3 && s.dim[2] > 0, INVALID_ARGUMENT,
                 "leat_block_lstm wants x (time, batch, depth) whose depth is known, got %s",
                 leat_shape_show(&s).s);
    LEAT_TRY(leat_cell_check_size("The number of columns of the input", s.dim[2]));
    return leat_cell_check_size("The number of units", units);
}

leat_out leat_block_lstm_at(leat_loc at, leat_out x, int64_t units, leat_out *state_out,
                            const leat_rnn_options *rnn_options, const leat_cell_options *o)
{
    if (!leat_out_ok(x)) {
        for (int i = 0; state_out && i < 2; i++)
            state_out[i] = x;
        return x;
    }
    leat_graph *g = leat_graph_of(x);
    leat_loc outer = leat_at_enter(g, at);
    leat_status s = check_layer(x, units);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    leat_out y = {g->poison, 0}, state[2];
    if (!g->status)
        leat_with_variable_scope(g, NULL, .default_name = o->name ? o->name : "lstm_fused_cell") y =
            layer(g, x, block_new(g, units, o), state, rnn_options);
    for (int i = 0; state_out && i < 2; i++)
        state_out[i] = g->status ? (leat_out){g->poison, 0} : state[i];
    leat_at_leave(g, outer);
    return y;
}
