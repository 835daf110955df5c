/* rnn_layer_norm.c -- the LSTM whose gates and new state are normalised over their columns
 * (tf.contrib.rnn.LayerNormBasicLSTMCell): gamma * (x - mean) / sqrt(variance) + beta. */
#include "core/object.h"
#include "graph/given.h"
#include "train/rnn_cell.h"

enum { INPUT, TRANSFORM, FORGET, OUTPUT, STATE, NORMS };
static const char *const scopes[NORMS] = {"input", "transform", "forget", "output", "state"};
#define EPSILON 1e-12 /* of tf.contrib.layers.layer_norm, for floats */
#define EPSILON_HALF 1e-3

typedef struct norm_lstm {
    const leat_cell_options *o;
    int64_t units;
    double forget_bias, keep_prob, gain, shift;
    leat_out kernel, bias, gamma[NORMS], beta[NORMS];
} norm_lstm;

static void build(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    norm_lstm *l = arg;
    const leat_initializer none = {0};
    const leat_shape units = leat_shape(l->units);
    l->kernel = leat_cell_variable(g, "kernel", leat_shape(in + l->units, 4 * l->units), t,
                                   l->o->initializer);
    if (l->o->no_layer_norm)
        l->bias = leat_cell_variable(g, "bias", leat_shape(4 * l->units), t, none);
    for (int i = 0; i < NORMS && !l->o->no_layer_norm; i++)
        leat_with_variable_scope(g, scopes[i])
        {
            l->gamma[i] =
                leat_cell_variable(g, "gamma", units, t, leat_constant_initializer(l->gain));
            l->beta[i] =
                leat_cell_variable(g, "beta", units, t, leat_constant_initializer(l->shift));
        }
}

static leat_out mean_of(leat_out x)
{
    return leat_mean(x, leat_ints(leat_graph_of(x), 1), leat_attr_bool("keep_dims", true));
}

static leat_out normalized(const norm_lstm *l, leat_out x, int which)
{
    if (l->o->no_layer_norm)
        return x;
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    const double epsilon = t == LEAT_HALF ? EPSILON_HALF : EPSILON;
    leat_graph *g = leat_graph_of(x);
    leat_out y = {0};
    leat_with_name(g, scopes[which])
    {
        leat_out mean = mean_of(x);
        leat_out variance =
            mean_of(LEAT_OP2("SquaredDifference", x, leat_stop_gradient(mean)));
        leat_out scale = leat_mul(LEAT_OP1("Rsqrt", leat_add(variance, leat_scalar_like(x, epsilon))),
                                  l->gamma[which]);
        y = leat_add(leat_mul(x, scale), leat_sub(l->beta[which], leat_mul(mean, scale)));
    }
    return y;
}

static leat_out step(leat_graph *g, void *arg, leat_out x, const leat_out *state, leat_out *next)
{
    const norm_lstm *l = arg;
    leat_out v[4];
    leat_out all = leat_matmul(leat_cell_concat(x, state[1]), l->kernel);
    leat_cell_split(l->bias.node ? leat_bias_add(all, l->bias) : all, 4, v);
    for (int i = 0; i < 4; i++)
        v[i] = normalized(l, v[i], i);
    leat_out new = leat_cell_activate(l->o, v[TRANSFORM]);
    if (l->keep_prob < 1) {
        const bool seeded = leat_is_given(&l->o->given, "seed", (double)l->o->seed);
        new = seeded ? leat_dropout(new, 1 - l->keep_prob, .seed = l->o->seed)
                     : leat_dropout(new, 1 - l->keep_prob);
    }
    leat_out forget = leat_add(v[FORGET], leat_scalar_like(x, l->forget_bias));
    leat_out c = leat_add(leat_mul(state[0], leat_sigmoid(forget)),
                          leat_mul(leat_sigmoid(v[INPUT]), new));
    next[0] = normalized(l, c, STATE);
    return next[1] = leat_mul(leat_cell_activate(l->o, next[0]), leat_sigmoid(v[OUTPUT]));
}

leat_cell *leat_layer_norm_lstm_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o)
{
    static const bool keep[2] = {true, false};
    const int64_t sizes[2] = {units, units};
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    norm_lstm *l = leat_arena_new(&g->arena, norm_lstm);
    *l = (norm_lstm){.o = leat_cell_options_keep(g, o),
                     .units = units,
                     .forget_bias = leat_given_or(&o->given, "forget_bias", o->forget_bias, 1),
                     .keep_prob = leat_given_or(&o->given, "keep_prob", o->keep_prob, 1),
                     .gain = leat_given_or(&o->given, "norm_gain", o->norm_gain, 1),
                     .shift = o->norm_shift};
    return leat_cell_new_at(
        o->given.at, g,
        &(leat_cell_def){.name = o->name ? o->name : "layer_norm_basic_lstm_cell",
                         .n_states = 2,
                         .state_sizes = sizes,
                         .keep_state = keep,
                         .output_size = units,
                         .build = build,
                         .step = step,
                         .arg = l});
}
