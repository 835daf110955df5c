/* rnn_dynamic.c -- a cell over the steps of a tensor, by a loop whose inputs and outputs are in
 * TensorArrays, so that the number of steps is that of the tensor that is fed. */
#include "core/object.h"
#include "graph/given.h"
#include "train/rnn_cell.h"

/* A TensorArray: its handle, and the flow that orders its reads and writes. */
typedef struct array {
    leat_out handle, flow;
} array;

typedef struct loop {
    leat_cell *c;
    array in, out;
    leat_out lengths, bound; /* int32 (batch), or no node; the number of iterations */
    leat_out zeros;          /* the output of a sequence that has ended */
    leat_shape step;         /* of a step's input: (batch, depth) */
    leat_dtype t;
} loop;

static array array_new(leat_graph *g, leat_out size, leat_dtype t, leat_shape element,
                       const char *name)
{
    leat_out a = LEAT_OP1("TensorArrayV3", size, leat_attr_type("dtype", t),
                          leat_attr_shape("element_shape", element),
                          leat_attr_bool("identical_element_shapes", true),
                          leat_attr_string("tensor_array_name", name));
    return (array){a, leat_output(a, 1)};
}

static leat_out steps_of(leat_graph *g, leat_out n)
{
    return leat_range(leat_scalar(g, LEAT_INT32, 0), n, leat_scalar(g, LEAT_INT32, 1));
}

/* The variables of the loop: the time, the flow of the outputs, the states. */
static leat_out another(leat_graph *g, void *arg, const leat_out *vars)
{
    const loop *l = arg;
    return leat_less(vars[0], l->bound);
}

static void body(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    const loop *l = arg;
    leat_out time = vars[0], ended = {0};
    const leat_out *state = vars + 2;
    leat_out x =
        LEAT_OP3("TensorArrayReadV3", l->in.handle, time, l->in.flow, leat_attr_type("dtype", l->t));
    if (!leat_out_ok(x))
        return;
    x.node->out_shapes[0] = l->step;
    leat_out y = leat_cell_step(l->c, x, state, next + 2);
    if (l->lengths.node) {
        ended = leat_greater_equal(time, l->lengths);
        y = leat_rnn_choose(ended, l->zeros, y);
        for (int i = 0; i < l->c->def.n_states; i++)
            next[2 + i] = leat_rnn_choose(ended, state[i], next[2 + i]);
    }
    next[1] = LEAT_OP4("TensorArrayWriteV3", l->out.handle, time, y, vars[1]);
    next[0] = leat_add(time, leat_scalar(g, LEAT_INT32, 1));
}

static leat_out transposed(leat_out x)
{
    return leat_transpose(x, leat_ints(leat_graph_of(x), 1, 0, 2));
}

/* x is (time, batch, depth); gives (time, batch, output size). */
static leat_out run(leat_cell *c, leat_out x, leat_out *state, const leat_rnn_options *o)
{
    leat_graph *g = c->g;
    const leat_shape s = leat_out_shape(x);
    const int64_t batch = s.dim[1], size = c->def.output_size;
    loop l = {.c = c, .t = leat_dtype_base(leat_out_dtype(x)), .step = leat_shape(batch, s.dim[2])};
    leat_out shape = leat_shape_of(x), steps = leat_rnn_element(shape, 0), n = {0};
    leat_out vars[LEAT_MOST_STATES + 2];
    if (batch < 0)
        n = leat_rnn_element(shape, 1);
    l.lengths = leat_rnn_lengths(g, o->sequence_length, batch, n);
    leat_rnn_initial(c, o->initial_state, x, batch, l.t, n, vars + 2);
    l.bound = steps;
    if (l.lengths.node) {
        leat_out longest = leat_reduce_max(l.lengths);
        l.zeros = leat_rnn_zeros(g, l.t, batch, n, size);
        l.bound = leat_minimum(steps, leat_maximum(leat_scalar(g, LEAT_INT32, 1), longest));
    }
    leat_cell_build(c, s.dim[2], l.t); /* outside of the loop */
    if (g->status)
        return (leat_out){g->poison, 0};
    l.in = array_new(g, steps, l.t, l.step, "dynamic_rnn/input_0");
    l.out = array_new(g, steps, l.t, leat_shape(batch, size), "dynamic_rnn/output_0");
    l.in.flow = LEAT_OP4("TensorArrayScatterV3", l.in.handle, steps_of(g, steps), x, l.in.flow);
    vars[0] = leat_scalar(g, LEAT_INT32, 0);
    vars[1] = l.out.flow;
    leat_while_loop(another, body, &l, vars, 2 + c->def.n_states, vars,
                    .swap_memory = o->swap_memory,
                    .parallel_iterations = (int)leat_given_int_or(
                        &o->given, "parallel_iterations", o->parallel_iterations, 32));
    for (int i = 0; i < c->def.n_states; i++)
        state[i] = vars[2 + i];
    leat_out y = LEAT_OP3("TensorArrayGatherV3", l.out.handle, steps_of(g, steps), vars[1],
                          leat_attr_type("dtype", l.t),
                          leat_attr_shape("element_shape", leat_shape(batch, size)));
    if (leat_out_ok(y))
        y.node->out_shapes[0] = leat_shape(s.dim[0], batch, size);
    return y;
}

static leat_status check(const leat_cell *c, leat_out x)
{
    LEAT_REQUIRE(leat_out_ok(x) && leat_graph_of(x) == c->g, INVALID_ARGUMENT,
                 "leat_dynamic_rnn: x is no tensor of the cell's graph");
    const leat_shape s = leat_out_shape(x);
    LEAT_REQUIRE(leat_types_has(LEAT_TYPES_FLOATING, leat_dtype_base(leat_out_dtype(x))),
                 INVALID_ARGUMENT, "A cell wants inputs of a floating type, got %s",
                 leat_dtype_name(leat_out_dtype(x)));
    LEAT_REQUIRE(s.rank == 3, INVALID_ARGUMENT,
                 "leat_dynamic_rnn wants x with the dimensions batch, time and depth, got shape %s",
                 leat_shape_show(&s).s);
    LEAT_REQUIRE(s.dim[2] > 0, INVALID_ARGUMENT,
                 "Input size (depth of inputs) must be accessible via shape inference, but x has "
                 "shape %s",
                 leat_shape_show(&s).s);
    return NULL;
}

leat_out leat_dynamic_rnn_at(leat_loc at, leat_cell *cell, leat_out x, leat_out *state_out,
                             const leat_rnn_options *o)
{
    if (!cell)
        return leat_cell_missing(at, x, "leat_dynamic_rnn");
    leat_graph *g = cell->g;
    leat_out y = {g->poison, 0}, state[LEAT_MOST_STATES];
    leat_loc outer = leat_at_enter(g, at);
    leat_status s = g->status ? NULL : check(cell, x);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    if (!g->status)
        leat_with_variable_scope(g, o->scope ? o->scope : "rnn")
        {
            y = run(cell, o->time_major ? x : transposed(x), state, o);
            y = o->time_major ? y : transposed(y);
        }
    for (int i = 0; state_out && i < cell->def.n_states; i++)
        state_out[i] = g->status ? (leat_out){g->poison, 0} : state[i];
    leat_at_leave(g, outer);
    return y;
}

/* ---- Both directions ---- */

static leat_out reversed(leat_graph *g, leat_out x, leat_out lengths, bool time_major)
{
    const int time = time_major ? 0 : 1;
    if (!lengths.node)
        return leat_reverse(x, leat_ints(g, time));
    return LEAT_OP2("ReverseSequence", x, lengths, leat_attr_int("seq_dim", time),
                    leat_attr_int("batch_dim", 1 - time));
}

void leat_bidirectional_dynamic_rnn_at(leat_loc at, leat_cell *fw, leat_cell *bw, leat_out x,
                                       leat_out *y, leat_out *state_fw_out, leat_out *state_bw_out,
                                       const leat_rnn_options *o)
{
    if (!fw || !bw) {
        leat_out none = leat_cell_missing(at, x, "leat_bidirectional_dynamic_rnn");
        for (int i = 0; y && i < 2; i++)
            y[i] = none;
        return;
    }
    leat_graph *g = fw->g;
    leat_out both[2];
    if (bw->g != g)
        leat_cell_of_another(at, g);
    leat_rnn_options forth = *o, aft = *o;
    forth.scope = "fw";
    aft.scope = "bw";
    aft.initial_state = o->initial_state_bw;
    leat_loc outer = leat_at_enter(g, at);
    leat_with_variable_scope(g, o->scope ? o->scope : "bidirectional_rnn")
    {
        both[0] = leat_dynamic_rnn_at(at, fw, x, state_fw_out, &forth);
        leat_out back = g->status ? x : reversed(g, x, o->sequence_length, o->time_major);
        both[1] = leat_dynamic_rnn_at(at, bw, back, state_bw_out, &aft);
    }
    if (!g->status)
        both[1] = reversed(g, both[1], o->sequence_length, o->time_major);
    if (!y)
        leat_graph_fail(g, (leat_loc){0},
                        leat_error(INVALID_ARGUMENT, "leat_bidirectional_dynamic_rnn: y is NULL"));
    for (int i = 0; y && i < 2; i++)
        y[i] = both[i];
    leat_at_leave(g, outer);
}
