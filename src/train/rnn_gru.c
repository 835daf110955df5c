/* rnn_gru.c -- the basic cell and the GRU. */
#include "core/object.h"
#include "train/rnn_cell.h"

typedef struct gru {
    const leat_cell_options *o;
    int64_t units;
    leat_out gate_kernel, gate_bias, kernel, bias;
} gru;

/* ---- act(x, h times kernel + bias) ---- */

static void build_basic(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    gru *c = arg;
    c->kernel =
        leat_cell_variable(g, "kernel", leat_shape(in + c->units, c->units), t, c->o->initializer);
    c->bias = leat_cell_variable(g, "bias", leat_shape(c->units), t, leat_zeros_initializer());
}

static leat_out step_basic(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                           leat_out *next)
{
    const gru *c = arg;
    return *next =
               leat_cell_activate(c->o, leat_cell_linear(x, state[0], c->kernel, c->bias));
}

/* ---- GRU: gates r (reset) and u (update) ---- */

static void build_gru(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    gru *c = arg;
    const int64_t n = c->units;
    const leat_initializer init = c->o->initializer, given = c->o->bias_initializer;
    const leat_initializer ones = leat_constant_initializer(1), zeros = leat_zeros_initializer();
    c->gate_kernel = leat_cell_variable(g, "gates/kernel", leat_shape(in + n, 2 * n), t, init);
    c->gate_bias =
        leat_cell_variable(g, "gates/bias", leat_shape(2 * n), t, given.make ? given : ones);
    c->kernel = leat_cell_variable(g, "candidate/kernel", leat_shape(in + n, n), t, init);
    c->bias =
        leat_cell_variable(g, "candidate/bias", leat_shape(n), t, given.make ? given : zeros);
}

static leat_out step_gru(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                         leat_out *next)
{
    const gru *c = arg;
    leat_out h = state[0], v[2];
    leat_cell_split(leat_sigmoid(leat_cell_linear(x, h, c->gate_kernel, c->gate_bias)), 2, v);
    leat_out r = v[0], u = v[1];
    leat_out new = leat_cell_activate(
        c->o, leat_cell_linear(x, leat_mul(r, h), c->kernel, c->bias));
    return *next = leat_add(leat_mul(u, h), leat_mul(leat_py_left("Sub", "sub", 1, u), new));
}

static leat_cell *gru_new(leat_graph *g, int64_t units, const leat_cell_options *o, bool basic)
{
    gru *c = leat_arena_new(&g->arena, gru);
    *c = (gru){.o = leat_cell_options_keep(g, o), .units = units};
    return leat_cell_new_at(o->given.at, g,
                            &(leat_cell_def){.name = o->name ? o->name
                                                     : basic ? "basic_rnn_cell"
                                                             : "gru_cell",
                                             .n_states = 1,
                                             .state_sizes = &units,
                                             .output_size = units,
                                             .build = basic ? build_basic : build_gru,
                                             .step = basic ? step_basic : step_gru,
                                             .arg = c});
}

leat_cell *leat_basic_rnn_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o)
{
    return LEAT_USABLE(GRAPH, g) ? gru_new(g, units, o, true) : NULL;
}

leat_cell *leat_gru_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o)
{
    return LEAT_USABLE(GRAPH, g) ? gru_new(g, units, o, false) : NULL;
}
