/* rnn_raw.c -- the loop of a cell whose inputs, states and ends a function of the user's
 * determines. */
#include "core/object.h"
#include "graph/given.h"
#include "train/rnn_cell.h"

enum { TIME, FINISHED, INPUT, FLOW, STATES }; /* the variables of the loop; `passed` are last */

typedef struct raw {
    leat_cell *c;
    leat_raw_rnn_fn fn;
    void *arg;
    int n_passed;
    leat_loc at, outer; /* of the call; of nodes that fn makes, if it is set */
    leat_out emits, zero_emit; /* the array of what is emitted; zeros of a step's shape */
} raw;

static leat_status check_written(const leat_raw_step *s)
{
    LEAT_REQUIRE(s->finished.node && leat_dtype_base(leat_out_dtype(s->finished)) == LEAT_BOOL,
                 INVALID_ARGUMENT, "leat_raw_rnn: the function must set `finished`, bool (batch)");
    LEAT_REQUIRE(s->input.node && leat_out_shape(s->input).rank == 2, INVALID_ARGUMENT,
                 "leat_raw_rnn: the function must set `input`, (batch, depth)");
    return NULL;
}

static void ask(leat_graph *g, const raw *r, leat_raw_step *s)
{
    leat_at_leave(g, r->outer);
    r->fn(g, r->arg, s);
    leat_at_enter(g, r->at);
    leat_status bad = g->status ? NULL : check_written(s);
    if (bad)
        leat_graph_fail(g, (leat_loc){0}, bad);
}

static leat_out all_finished(leat_graph *g, void *arg, const leat_out *vars)
{
    leat_out all = leat_all(vars[FINISHED], leat_ints(g, 0));
    return LEAT_OP1("LogicalNot", all);
}

/* What has no batch, a scalar, is replaced in any case. */
static leat_out chosen(leat_out finished, leat_out old, leat_out new)
{
    return leat_out_shape(old).rank == 0 ? new : leat_rnn_choose(finished, old, new);
}

static void body(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    const raw *r = arg;
    const int n = r->c->def.n_states;
    leat_out after[LEAT_MOST_STATES], goes_on[LEAT_MOST_STATES];
    leat_out y = leat_cell_step(r->c, vars[INPUT], vars + STATES, after);
    leat_out passed[LEAT_MOST_STATES];
    for (int i = 0; i < n; i++)
        goes_on[i] = after[i];
    for (int i = 0; i < r->n_passed; i++)
        passed[i] = vars[STATES + n + i];
    leat_raw_step s = {.time = leat_add(vars[TIME], leat_scalar(g, LEAT_INT32, 1)),
                       .output = y,
                       .state = after,
                       .passed = vars + STATES + n,
                       .next_state = goes_on,
                       .emit = y,
                       .pass = passed};
    ask(g, r, &s);
    if (g->status)
        return;
    leat_out emit = chosen(vars[FINISHED], r->zero_emit, s.emit);
    next[TIME] = s.time;
    next[FINISHED] = leat_logical_or(vars[FINISHED], s.finished);
    next[INPUT] = s.input;
    next[FLOW] = LEAT_OP4("TensorArrayWriteV3", r->emits, vars[TIME], emit, vars[FLOW]);
    for (int i = 0; i < n; i++)
        next[STATES + i] = chosen(vars[FINISHED], vars[STATES + i], goes_on[i]);
    for (int i = 0; i < r->n_passed; i++)
        next[STATES + n + i] = passed[i];
}

/* Zeros of a step's shape: (batch) and then the shape of `part`, or the output's. */
static leat_out zero_emit(leat_graph *g, const leat_cell *c, leat_out part, int64_t batch,
                          leat_out size, leat_dtype t)
{
    if (!part.node)
        return leat_rnn_zeros(g, t, batch, size, c->def.output_size);
    leat_out first = leat_expand_dims(batch < 0 ? size : leat_scalar(g, LEAT_INT32, (double)batch),
                                      leat_scalar(g, LEAT_INT32, 0));
    leat_shape shape = leat_shape(batch);
    const leat_shape rest = leat_out_shape(part);
    leat_out dims = leat_concat(((const leat_out[]){first, leat_shape_of(part)}), 2,
                                leat_scalar(g, LEAT_INT32, 0));
    leat_out y = leat_fill(dims, leat_scalar_like(part, 0));
    if (rest.rank >= 0 && rest.rank < LEAT_MAX_RANK && leat_out_ok(y)) {
        shape.rank = 1 + rest.rank;
        for (int i = 0; i < rest.rank; i++)
            shape.dim[1 + i] = rest.dim[i];
        y.node->out_shapes[0] = shape;
    }
    return y;
}

static leat_out run(raw *r, leat_out *state_out, const leat_raw_rnn_options *o)
{
    leat_graph *g = r->c->g;
    const int n = r->c->def.n_states;
    leat_out vars[STATES + 2 * LEAT_MOST_STATES] = {{0}}, size = {0};
    leat_raw_step s = {.time = leat_scalar(g, LEAT_INT32, 0),
                       .next_state = vars + STATES,
                       .pass = vars + STATES + n};
    ask(g, r, &s);
    leat_status bad = NULL;
    for (int i = 0; i < n + r->n_passed && !bad && !g->status; i++)
        if (!vars[STATES + i].node)
            bad = leat_error(INVALID_ARGUMENT,
                             "leat_raw_rnn: the function's first call must set %s[%d]",
                             i < n ? "next_state" : "pass", i < n ? i : i - n);
    if (bad)
        leat_graph_fail(g, (leat_loc){0}, bad);
    if (g->status)
        return (leat_out){g->poison, 0};
    const leat_shape in = leat_out_shape(s.input);
    const leat_dtype t = leat_dtype_base(leat_out_dtype(n ? vars[STATES] : s.input));
    if (in.dim[0] < 0)
        size = leat_rnn_element(leat_shape_of(s.input), 0);
    r->zero_emit = zero_emit(g, r->c, s.emit, in.dim[0], size, t);
    leat_cell_build(r->c, in.dim[1], leat_dtype_base(leat_out_dtype(s.input)));
    if (g->status)
        return (leat_out){g->poison, 0};
    const leat_dtype emitted = leat_dtype_base(leat_out_dtype(r->zero_emit));
    const leat_shape part = leat_out_shape(r->zero_emit);
    r->emits = LEAT_OP1("TensorArrayV3", leat_scalar(g, LEAT_INT32, 0),
                        leat_attr_type("dtype", emitted), leat_attr_shape("element_shape", part),
                        leat_attr_bool("dynamic_size", true),
                        leat_attr_bool("identical_element_shapes", true),
                        leat_attr_string("tensor_array_name", "rnn_output_0"));
    vars[TIME] = s.time;
    vars[FINISHED] = s.finished;
    vars[INPUT] = s.input;
    vars[FLOW] = leat_output(r->emits, 1);
    leat_while_loop(all_finished, body, r, vars, STATES + n + r->n_passed, vars,
                    .swap_memory = o->swap_memory,
                    .parallel_iterations = (int)leat_given_int_or(
                        &o->given, "parallel_iterations", o->parallel_iterations, 32));
    for (int i = 0; state_out && i < n; i++)
        state_out[i] = vars[STATES + i];
    for (int i = 0; o->passed_out && i < r->n_passed; i++)
        o->passed_out[i] = vars[STATES + n + i];
    leat_out steps = leat_range(leat_scalar(g, LEAT_INT32, 0),
                                LEAT_OP2("TensorArraySizeV3", r->emits, vars[FLOW]),
                                leat_scalar(g, LEAT_INT32, 1));
    return LEAT_OP3("TensorArrayGatherV3", r->emits, steps, vars[FLOW],
                    leat_attr_type("dtype", emitted), leat_attr_shape("element_shape", part));
}

leat_out leat_raw_rnn_at(leat_loc at, leat_cell *cell, leat_raw_rnn_fn fn, void *arg,
                         leat_out *state_out, const leat_raw_rnn_options *o)
{
    if (!cell)
        return (leat_out){0};
    leat_graph *g = cell->g;
    leat_out y = {g->poison, 0};
    raw r = {.c = cell, .fn = fn, .arg = arg, .n_passed = o->n_passed, .at = at};
    leat_loc outer = r.outer = leat_at_enter(g, at);
    leat_status s = NULL;
    if (!fn)
        s = leat_error(INVALID_ARGUMENT, "leat_raw_rnn: fn must be a function");
    else if (o->n_passed < 0 || o->n_passed > LEAT_MOST_STATES)
        s = leat_error(INVALID_ARGUMENT, "leat_raw_rnn: n_passed must be from 0 to %d, got %d",
                       LEAT_MOST_STATES, o->n_passed);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    if (!g->status)
        leat_with_variable_scope(g, o->scope ? o->scope : "rnn") y = run(&r, state_out, o);
    for (int i = 0; g->status && state_out && i < cell->def.n_states; i++)
        state_out[i] = (leat_out){g->poison, 0};
    for (int i = 0; g->status && o->passed_out && i < o->n_passed; i++)
        o->passed_out[i] = (leat_out){g->poison, 0};
    leat_at_leave(g, outer);
    return g->status ? (leat_out){g->poison, 0} : y;
}
