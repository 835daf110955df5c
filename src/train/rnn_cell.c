/* rnn_cell.c -- cells of recurrent nets: their states, when their variables are made, one step. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/object.h"
#include "train/rnn_cell.h"

/* ---- Making a cell ---- */

static const void *kept(leat_graph *g, const void *p, size_t bytes)
{
    return p ? memcpy(leat_arena_alloc(&g->arena, bytes), p, bytes) : NULL;
}

leat_cell *leat_cell_broken(leat_loc at, leat_graph *g, int n_states, leat_status s)
{
    leat_graph_fail(g, at, s);
    leat_cell *c = leat_arena_new(&g->arena, leat_cell);
    *c = (leat_cell){.g = g, .def = {.n_states = n_states}};
    return c;
}

leat_cell *leat_cell_make(leat_loc at, leat_graph *g, const leat_cell_def *def, int wrapped)
{
    const size_t n = (size_t)def->n_states;
    if (wrapped > LEAT_MOST_WRAPPED)
        return leat_cell_broken(at, g, def->n_states,
                                leat_error(INVALID_ARGUMENT,
                                           "More than %d cells are inside each other",
                                           LEAT_MOST_WRAPPED));
    leat_cell *c = leat_arena_new(&g->arena, leat_cell);
    *c = (leat_cell){.g = g, .def = *def, .wrapped = wrapped};
    c->def.name = def->name ? leat_arena_strdup(&g->arena, def->name) : NULL;
    c->def.state_sizes = kept(g, def->state_sizes, n * sizeof(*def->state_sizes));
    c->def.keep_state = kept(g, def->keep_state, n * sizeof(*def->keep_state));
    return c;
}

leat_status leat_cell_check_size(const char *what, int64_t size)
{
    LEAT_REQUIRE(size > 0, INVALID_ARGUMENT, "%s of a cell must be positive, got %" PRId64, what,
                 size);
    LEAT_REQUIRE(size <= INT32_MAX, INVALID_ARGUMENT,
                 "%s of a cell must be at most %d, got %" PRId64, what, INT32_MAX, size);
    return NULL;
}

static leat_status check_def(const leat_cell_def *d)
{
    LEAT_REQUIRE(d, INVALID_ARGUMENT, "leat_cell_new: the definition of the cell is NULL");
    LEAT_REQUIRE(d->step, INVALID_ARGUMENT, "leat_cell_new: a cell needs a function for its step");
    LEAT_REQUIRE(d->n_states >= 0 && d->n_states <= LEAT_MOST_STATES, INVALID_ARGUMENT,
                 "A cell has 0 to %d states, not %d", LEAT_MOST_STATES, d->n_states);
    LEAT_TRY(leat_cell_check_size("The number of units", d->output_size));
    LEAT_REQUIRE(d->state_sizes || !d->n_states, INVALID_ARGUMENT,
                 "leat_cell_new: the sizes of the cell's %d states are missing", d->n_states);
    for (int i = 0; i < d->n_states; i++) {
        char what[40];
        snprintf(what, sizeof(what), "The size of state %d", i);
        LEAT_TRY(leat_cell_check_size(what, d->state_sizes[i]));
    }
    return NULL;
}

leat_cell *leat_cell_new_at(leat_loc at, leat_graph *g, const leat_cell_def *def)
{
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    leat_status s = check_def(def);
    if (s)
        return leat_cell_broken(at, g, def && def->n_states > 0 ? def->n_states : 0, s);
    return leat_cell_make(at, g, def, 1);
}

leat_out leat_cell_missing(leat_loc at, leat_out x, const char *function)
{
    if (!leat_out_ok(x))
        return x;
    return leat_graph_fail(leat_graph_of(x), at,
                           leat_error(INVALID_ARGUMENT, "%s: the cell is NULL", function));
}

void leat_cell_of_another(leat_loc at, leat_graph *g)
{
    leat_graph_fail(
        g, at,
        leat_error(INVALID_ARGUMENT, "The cells of both directions are of different graphs"));
}

bool leat_cell_usable(const leat_cell *c)
{
    return c && !c->g->status;
}

int leat_cell_states(const leat_cell *c)
{
    return c ? c->def.n_states : 0;
}

int64_t leat_cell_state_size(const leat_cell *c, int i)
{
    return c && i >= 0 && i < c->def.n_states && c->def.state_sizes ? c->def.state_sizes[i] : 0;
}

int64_t leat_cell_output_size(const leat_cell *c)
{
    return c ? c->def.output_size : 0;
}

/* ---- Zeros ---- */

leat_out leat_rnn_zeros(leat_graph *g, leat_dtype t, int64_t batch, leat_out batch_size,
                        int64_t size)
{
    if (batch >= 0)
        return leat_zeros(g, t, leat_shape(batch, size));
    const leat_out dims[2] = {batch_size, leat_scalar(g, LEAT_INT32, (double)size)};
    leat_out y = leat_fill(leat_pack(dims, 2, 0), leat_scalar(g, t, 0));
    if (leat_out_ok(y) && y.node->out_shapes[0].rank < 0)
        y.node->out_shapes[0] = leat_shape(-1, size);
    return y;
}

leat_out leat_rnn_element(leat_out vector, int64_t i)
{
    leat_graph *g = leat_graph_of(vector);
    return leat_strided_slice(vector, leat_ints(g, i), leat_ints(g, i + 1), leat_ints(g, 1),
                              leat_attr_int("shrink_axis_mask", 1));
}

void leat_cell_zero_state_at(leat_loc at, const leat_cell *c, int64_t batch_size, leat_out like,
                             leat_dtype t, leat_out *state_out)
{
    if (!c) {
        leat_cell_missing(at, like, "leat_cell_zero_state");
        return;
    }
    leat_graph *g = c->g;
    leat_out n = {0};
    leat_loc outer = leat_at_enter(g, at);
    if (!state_out)
        leat_graph_fail(g, (leat_loc){0},
                        leat_error(INVALID_ARGUMENT, "leat_cell_zero_state: state_out is NULL"));
    if (batch_size < 0 && like.node && leat_out_ok(like)) {
        const leat_shape s = leat_out_shape(like);
        t = leat_dtype_base(leat_out_dtype(like));
        batch_size = s.rank > 0 ? s.dim[0] : -1;
        if (batch_size < 0)
            n = leat_rnn_element(leat_shape_of(like), 0);
    } else if (batch_size < 0) {
        leat_graph_fail(g, (leat_loc){0},
                        leat_error(INVALID_ARGUMENT, "The batch size of a state is %" PRId64,
                                   batch_size));
    }
    leat_with_name(g, "ZeroState") for (int i = 0; state_out && i < c->def.n_states; i++)
        state_out[i] = g->status ? (leat_out){g->poison, 0}
                                 : leat_rnn_zeros(g, t, batch_size, n, c->def.state_sizes[i]);
    leat_at_leave(g, outer);
}

/* ---- Variables ---- */

static leat_status check_built(const leat_cell *c, int64_t input_size, leat_dtype t)
{
    LEAT_REQUIRE(c->input_size == input_size, INVALID_ARGUMENT,
                 "The cell %s was made for inputs of %" PRId64 " columns, but x has %" PRId64,
                 c->def.name ? c->def.name : "", c->input_size, input_size);
    LEAT_REQUIRE(c->dtype == t, INVALID_ARGUMENT, "The cell %s was made for %s, but x is %s",
                 c->def.name ? c->def.name : "", leat_dtype_name(c->dtype), leat_dtype_name(t));
    return NULL;
}

void leat_cell_build(leat_cell *c, int64_t input_size, leat_dtype t)
{
    leat_graph *g = c->g;
    if (g->status)
        return;
    if (c->built) {
        leat_status s = check_built(c, input_size, t);
        if (s)
            leat_graph_fail(g, (leat_loc){0}, s);
        return;
    }
    leat_status s = leat_cell_check_size("The number of columns of the input", input_size);
    if (s) {
        leat_graph_fail(g, (leat_loc){0}, s);
        return;
    }
    c->built = true;
    c->input_size = input_size;
    c->dtype = t;
    if (c->def.name)
        leat_with_variable_scope(g, NULL, .default_name = c->def.name)
        {
            c->name_scope = leat_name_scope(g);
            if (c->def.build)
                c->def.build(g, c->def.arg, input_size, t);
        }
    else if (c->def.build)
        c->def.build(g, c->def.arg, input_size, t);
}

/* ---- A step ---- */

static leat_status check_step(const leat_cell *c, leat_out x, const leat_out *state)
{
    LEAT_REQUIRE(leat_out_ok(x) && leat_graph_of(x) == c->g, INVALID_ARGUMENT,
                 "leat_cell_step: x is no tensor of the cell's graph");
    const leat_shape s = leat_out_shape(x);
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    LEAT_REQUIRE(leat_types_has(LEAT_TYPES_FLOATING, t), INVALID_ARGUMENT,
                 "A cell wants inputs of a floating type, got %s", leat_dtype_name(t));
    LEAT_REQUIRE(s.rank == 2 && s.dim[1] > 0, INVALID_ARGUMENT,
                 "A cell wants inputs (batch, depth) whose depth is known, got %s",
                 leat_shape_show(&s).s);
    for (int i = 0; i < c->def.n_states; i++) {
        LEAT_REQUIRE(state && state[i].node, INVALID_ARGUMENT, "State %d of %d of a cell is missing",
                     i, c->def.n_states);
        const leat_shape is = leat_out_shape(state[i]),
                         want = leat_shape(s.dim[0], c->def.state_sizes[i]);
        LEAT_REQUIRE(leat_shape_compatible(&is, &want), INVALID_ARGUMENT,
                     "State %d of a cell has shape %s, but must have %s", i, leat_shape_show(&is).s,
                     leat_shape_show(&want).s);
    }
    return NULL;
}

/* What the cell's function has given: y and the next states. */
static leat_status check_given(const leat_cell *c, leat_out y, const leat_out *next)
{
    LEAT_REQUIRE(y.node, INVALID_ARGUMENT, "The step of the cell %s has given no output",
                 c->def.name ? c->def.name : "");
    for (int i = 0; i < c->def.n_states; i++)
        LEAT_REQUIRE(next[i].node, INVALID_ARGUMENT,
                     "The step of the cell %s has not written state %d of %d",
                     c->def.name ? c->def.name : "", i, c->def.n_states);
    return NULL;
}

leat_out leat_cell_step_at(leat_loc at, leat_cell *c, leat_out x, const leat_out *state,
                           leat_out *state_out)
{
    if (!c)
        return leat_cell_missing(at, x, "leat_cell_step");
    leat_graph *g = c->g;
    const leat_out poison = {g->poison, 0};
    leat_out next[LEAT_MOST_STATES], y = poison;
    leat_loc outer = leat_at_enter(g, at);
    leat_status s = g->status ? NULL : check_step(c, x, state);
    if (!s && !state_out && c->def.n_states)
        s = leat_error(INVALID_ARGUMENT, "leat_cell_step: state_out is NULL");
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    if (!g->status)
        leat_cell_build(c, leat_out_shape(x).dim[1], leat_dtype_base(leat_out_dtype(x)));
    if (!g->status) {
        memset(next, 0, sizeof(*next) * (size_t)c->def.n_states);
        if (c->name_scope)
            leat_name_scope_enter(g, c->name_scope);
        y = c->def.step(g, c->def.arg, x, state, next);
        if (c->name_scope)
            leat_name_scope_leave(g);
        s = g->status ? NULL : check_given(c, y, next);
        if (s)
            leat_graph_fail(g, (leat_loc){0}, s);
    }
    for (int i = 0; state_out && i < c->def.n_states; i++)
        state_out[i] = g->status ? poison : next[i];
    leat_at_leave(g, outer);
    return g->status ? poison : y;
}

/* ---- What cells share ---- */

const leat_cell_options *leat_cell_options_keep(leat_graph *g, const leat_cell_options *o)
{
    leat_cell_options *kept = leat_arena_new(&g->arena, leat_cell_options);
    *kept = *o;
    if (o->activation)
        kept->activation = leat_arena_strdup(&g->arena, o->activation);
    return kept;
}

leat_out leat_cell_activate(const leat_cell_options *o, leat_out y)
{
    return LEAT_OP1(o->activation ? o->activation : "Tanh", y);
}

leat_out leat_cell_variable(leat_graph *g, const char *name, leat_shape s, leat_dtype t,
                            leat_initializer init)
{
    return leat_get_variable(g, name, s, .dtype = t, .initializer = init);
}

leat_out leat_cell_concat(leat_out x, leat_out h)
{
    return leat_concat(((const leat_out[]){x, h}), 2, leat_scalar(leat_graph_of(x), LEAT_INT32, 1));
}

leat_out leat_cell_linear(leat_out x, leat_out h, leat_out kernel, leat_out bias)
{
    return leat_bias_add(leat_matmul(leat_cell_concat(x, h), kernel), bias);
}

void leat_cell_split(leat_out x, int n, leat_out *pieces)
{
    leat_out y = leat_split(leat_scalar(leat_graph_of(x), LEAT_INT32, 1), x, n);
    for (int i = 0; i < n; i++)
        pieces[i] = leat_output(y, i);
}
