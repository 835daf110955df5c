/* rnn_lstm.c -- LSTM cells: the basic one, and the one with peepholes, clipping and projection.
 * Gates are in the order i (input), j (new input), f (forget), o (output). */
#include "core/object.h"
#include "graph/given.h"
#include "train/rnn_cell.h"

typedef struct lstm {
    const leat_cell_options *o;
    int64_t units;
    double forget_bias;
    bool basic;
    bool clips, clips_proj; /* whether the options cell_clip and proj_clip were given */
    leat_out kernel, bias, w_f, w_i, w_o, projection;
} lstm;

/* ---- The basic cell, in the nodes that TensorFlow's makes ---- */

static void build_basic(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    lstm *c = arg;
    c->kernel = leat_cell_variable(g, "kernel", leat_shape(in + c->units, 4 * c->units), t,
                                   c->o->initializer);
    c->bias =
        leat_cell_variable(g, "bias", leat_shape(4 * c->units), t, leat_zeros_initializer());
}

static leat_out step_basic(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                           leat_out *next)
{
    const lstm *l = arg;
    leat_out v[4], c = state[0];
    leat_cell_split(leat_cell_linear(x, state[1], l->kernel, l->bias), 4, v);
    leat_out forget = leat_sigmoid(leat_add(v[2], leat_scalar_like(v[2], l->forget_bias)));
    next[0] = leat_add(leat_mul(c, forget),
                       leat_mul(leat_sigmoid(v[0]), leat_cell_activate(l->o, v[1])));
    return next[1] = leat_mul(leat_cell_activate(l->o, next[0]), leat_sigmoid(v[3]));
}

/* ---- The full cell ---- */

static leat_out sliced(leat_graph *g, const char *name, leat_shape s, leat_dtype t,
                       leat_initializer init, int shards)
{
    if (shards > 0)
        return leat_get_variable(g, name, s, .dtype = t, .initializer = init,
                                 .partitioner = leat_fixed_size_partitioner(shards));
    return leat_cell_variable(g, name, s, t, init);
}

static void build_full(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    lstm *c = arg;
    const leat_initializer init = c->o->initializer;
    const int64_t out = c->o->num_proj > 0 ? c->o->num_proj : c->units;
    c->kernel = sliced(g, "kernel", leat_shape(in + out, 4 * c->units), t, init,
                       c->o->num_unit_shards);
    c->bias =
        leat_cell_variable(g, "bias", leat_shape(4 * c->units), t, leat_zeros_initializer());
    if (c->o->use_peepholes) {
        c->w_f = leat_cell_variable(g, "w_f_diag", leat_shape(c->units), t, init);
        c->w_i = leat_cell_variable(g, "w_i_diag", leat_shape(c->units), t, init);
        c->w_o = leat_cell_variable(g, "w_o_diag", leat_shape(c->units), t, init);
    }
    if (c->o->num_proj > 0)
        c->projection = sliced(g, "projection/kernel", leat_shape(c->units, out), t, init,
                               c->o->num_proj_shards);
}

/* x, or x plus w times c where there are peepholes. */
static leat_out peeped(const lstm *l, leat_out x, leat_out w, leat_out c)
{
    return l->o->use_peepholes ? leat_add(x, leat_mul(w, c)) : x;
}

static leat_out step_full(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                          leat_out *next)
{
    const lstm *l = arg;
    leat_out v[4], before = state[0];
    leat_cell_split(leat_cell_linear(x, state[1], l->kernel, l->bias), 4, v);
    leat_out forget = leat_add(v[2], leat_scalar_like(v[2], l->forget_bias));
    leat_out c = leat_add(leat_mul(leat_sigmoid(peeped(l, forget, l->w_f, before)), before),
                          leat_mul(leat_sigmoid(peeped(l, v[0], l->w_i, before)),
                                   leat_cell_activate(l->o, v[1])));
    if (l->clips)
        c = leat_clip_by_value(c, -l->o->cell_clip, l->o->cell_clip);
    leat_out m = leat_mul(leat_sigmoid(peeped(l, v[3], l->w_o, c)), leat_cell_activate(l->o, c));
    if (l->projection.node) {
        m = leat_matmul(m, l->projection);
        if (l->clips_proj)
            m = leat_clip_by_value(m, -l->o->proj_clip, l->o->proj_clip);
    }
    next[0] = c;
    return next[1] = m;
}

static leat_status check_options(const leat_cell_options *o)
{
    LEAT_REQUIRE(o->num_proj >= 0 && o->num_proj <= INT32_MAX, INVALID_ARGUMENT,
                 "num_proj of a cell must be from 1 to %d, got %lld", INT32_MAX,
                 (long long)o->num_proj);
    LEAT_REQUIRE(o->num_unit_shards >= 0 && o->num_proj_shards >= 0, INVALID_ARGUMENT,
                 "num_unit_shards and num_proj_shards of a cell must be positive, got %d and %d",
                 o->num_unit_shards, o->num_proj_shards);
    return NULL;
}

static leat_cell *lstm_new(leat_graph *g, int64_t units, const leat_cell_options *o, bool basic)
{
    static const bool keep[2] = {true, false};
    const int64_t sizes[2] = {units, !basic && o->num_proj > 0 ? o->num_proj : units};
    leat_status bad = check_options(o);
    if (bad)
        return leat_cell_broken(o->given.at, g, 2, bad);
    lstm *l = leat_arena_new(&g->arena, lstm);
    *l = (lstm){.o = leat_cell_options_keep(g, o), .units = units, .basic = basic};
    l->forget_bias = leat_given_or(&o->given, "forget_bias", o->forget_bias, 1);
    l->clips = leat_is_given(&o->given, "cell_clip", o->cell_clip);
    l->clips_proj = leat_is_given(&o->given, "proj_clip", o->proj_clip);
    return leat_cell_new_at(o->given.at, g,
                            &(leat_cell_def){.name = o->name ? o->name
                                                     : basic ? "basic_lstm_cell"
                                                             : "lstm_cell",
                                             .n_states = 2,
                                             .state_sizes = sizes,
                                             .keep_state = keep,
                                             .output_size = sizes[1],
                                             .build = basic ? build_basic : build_full,
                                             .step = basic ? step_basic : step_full,
                                             .arg = l});
}

leat_cell *leat_basic_lstm_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o)
{
    return LEAT_USABLE(GRAPH, g) ? lstm_new(g, units, o, true) : NULL;
}

leat_cell *leat_lstm_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o)
{
    return LEAT_USABLE(GRAPH, g) ? lstm_new(g, units, o, false) : NULL;
}
