/* rnn_static.c -- a cell over a list of inputs, unrolled; what loops over steps share with it. */
#include "core/alloc.h"
#include "core/object.h"
#include "train/rnn_cell.h"

#include <stdlib.h>

/* ---- Shared with the loops ---- */

/* The lengths, checked when they are used to be as many as the batch has rows. */
static leat_out checked(leat_graph *g, leat_out lengths, leat_out batch_size)
{
    leat_out want = leat_expand_dims(batch_size, leat_scalar(g, LEAT_INT32, 0));
    leat_out same = leat_reduce_all_at((leat_loc){0}, "All",
                                       leat_equal(leat_shape_of(lengths), want));
    const leat_out told[] = {
        leat_string_const(g, "sequence_length must be a vector of length batch_size "), want,
        leat_string_const(g, ", but saw shape: "), leat_shape_of(lengths)};
    leat_out y = lengths;
    leat_out fine = leat_op(g, "Assert", leat_in(same), leat_ins(told, 4));
    leat_with_control(g, leat_done(fine)) y = leat_identity(lengths, leat_name("CheckSeqLen"));
    return y;
}

leat_out leat_rnn_lengths(leat_graph *g, leat_out lengths, int64_t batch, leat_out batch_size)
{
    if (!lengths.node || !leat_out_ok(lengths))
        return lengths;
    const leat_dtype t = leat_dtype_base(leat_out_dtype(lengths));
    const leat_shape s = leat_out_shape(lengths), want = leat_shape(batch);
    if (t != LEAT_INT32 && t != LEAT_INT64)
        return leat_graph_fail(g, (leat_loc){0},
                               leat_error(INVALID_ARGUMENT,
                                          "sequence_length must be int32 or int64, got %s (%s)",
                                          leat_dtype_name(t), leat_node_name(lengths.node)));
    if (!leat_shape_compatible(&s, &want))
        return leat_graph_fail(g, (leat_loc){0},
                               leat_error(INVALID_ARGUMENT,
                                          "sequence_length must be a vector of length batch_size "
                                          "%s, but saw shape: %s",
                                          leat_shape_show(&want).s, leat_shape_show(&s).s));
    if (t != LEAT_INT32)
        lengths = leat_cast(lengths, LEAT_INT32);
    if (s.rank == 1 && s.dim[0] >= 0 && batch >= 0)
        return lengths;
    return checked(g, lengths, batch >= 0 ? leat_scalar(g, LEAT_INT32, (double)batch) : batch_size);
}

void leat_rnn_initial(const leat_cell *c, const leat_out *given, leat_out x, int64_t batch,
                      leat_dtype t, leat_out batch_size, leat_out *state)
{
    for (int i = 0; i < c->def.n_states; i++) {
        if (given && !given[i].node)
            leat_graph_fail(c->g, (leat_loc){0},
                            leat_error(INVALID_ARGUMENT, "initial_state[%d] is no tensor", i));
        state[i] = given ? given[i]
                         : leat_rnn_zeros(c->g, t, batch, batch_size, c->def.state_sizes[i]);
    }
}

leat_out leat_rnn_choose(leat_out ended, leat_out a, leat_out b)
{
    return leat_select(ended, a, b);
}

/* ---- The unrolled net ---- */

static leat_status check(const leat_cell *c, const leat_out *x, int n, const leat_out *y)
{
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "leat_static_rnn: inputs must not be empty");
    LEAT_REQUIRE(x && y, INVALID_ARGUMENT, "leat_static_rnn: %s is NULL", x ? "y" : "x");
    for (int i = 0; i < n; i++)
        LEAT_REQUIRE(leat_out_ok(x[i]) && leat_graph_of(x[i]) == c->g &&
                         leat_out_shape(x[i]).rank == 2,
                     INVALID_ARGUMENT,
                     "leat_static_rnn: input %d must be (batch, depth), of the cell's graph", i);
    return NULL;
}

static void unroll(leat_cell *c, const leat_out *x, int n, leat_out *y, leat_out *state,
                   const leat_rnn_options *o)
{
    leat_graph *g = c->g;
    const int64_t batch = leat_out_shape(x[0]).dim[0];
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x[0]));
    leat_out size = {0}, zeros = {0}, next[LEAT_MOST_STATES];
    if (batch < 0)
        size = leat_rnn_element(leat_shape_of(x[0]), 0);
    leat_out lengths = leat_rnn_lengths(g, o->sequence_length, batch, size);
    leat_rnn_initial(c, o->initial_state, x[0], batch, t, size, state);
    if (lengths.node)
        zeros = leat_rnn_zeros(g, t, batch, size, c->def.output_size);
    for (int i = 0; i < n && !g->status; i++) {
        leat_out out = leat_cell_step(c, x[i], state, next), ended = {0};
        if (lengths.node)
            ended = leat_greater_equal(leat_scalar(g, LEAT_INT32, i), lengths);
        y[i] = lengths.node ? leat_rnn_choose(ended, zeros, out) : out;
        for (int k = 0; k < c->def.n_states; k++)
            state[k] = lengths.node ? leat_rnn_choose(ended, state[k], next[k]) : next[k];
    }
}

void leat_static_rnn_at(leat_loc at, leat_cell *cell, const leat_out *x, int n, leat_out *y,
                        leat_out *state_out, const leat_rnn_options *o)
{
    if (!cell) {
        leat_out none = n > 0 && x ? leat_cell_missing(at, x[0], "leat_static_rnn") : (leat_out){0};
        for (int i = 0; y && i < n; i++)
            y[i] = none;
        return;
    }
    leat_graph *g = cell->g;
    leat_out state[LEAT_MOST_STATES];
    leat_loc outer = leat_at_enter(g, at);
    leat_status s = g->status ? NULL : check(cell, x, n, y);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    if (!g->status)
        leat_with_variable_scope(g, o->scope ? o->scope : "rnn") unroll(cell, x, n, y, state, o);
    for (int i = 0; g->status && y && i < n; i++)
        y[i] = (leat_out){g->poison, 0};
    for (int i = 0; state_out && i < cell->def.n_states; i++)
        state_out[i] = g->status ? (leat_out){g->poison, 0} : state[i];
    leat_at_leave(g, outer);
}

/* ---- Both directions ---- */

/* The inputs in reverse order; with lengths, each sequence's own steps alone. */
static void reversed(leat_graph *g, const leat_out *x, int n, leat_out lengths, leat_out *out)
{
    if (!lengths.node) {
        for (int i = 0; i < n; i++)
            out[i] = x[n - 1 - i];
        return;
    }
    leat_out all = LEAT_OP2("ReverseSequence", leat_pack(x, n, 0), lengths,
                            leat_attr_int("seq_dim", 0), leat_attr_int("batch_dim", 1));
    all = leat_unpack(all, n, 0);
    for (int i = 0; i < n; i++)
        out[i] = leat_output(all, i);
}

void leat_static_bidirectional_rnn_at(leat_loc at, leat_cell *fw, leat_cell *bw, const leat_out *x,
                                      int n, leat_out *y, leat_out *state_fw_out,
                                      leat_out *state_bw_out, const leat_rnn_options *o)
{
    if (!fw || !bw || fw->g->status || n < 1 || !x ||
        !y) { /* a mistake, which leat_static_rnn tells */
        leat_static_rnn_at(at, fw && bw ? fw : NULL, x, n, y, state_fw_out, o);
        for (int i = 0; fw && bw && state_bw_out && i < bw->def.n_states; i++)
            state_bw_out[i] = (leat_out){bw->g->poison, 0};
        return;
    }
    leat_graph *g = fw->g;
    if (bw->g != g)
        leat_cell_of_another(at, g);
    leat_out *there = leat_new_array(leat_out, n), *back = leat_new_array(leat_out, n);
    leat_rnn_options forth = *o, aft = *o;
    forth.scope = "fw";
    aft.scope = "bw";
    aft.initial_state = o->initial_state_bw;
    leat_loc outer = leat_at_enter(g, at);
    leat_with_variable_scope(g, o->scope ? o->scope : "bidirectional_rnn")
    {
        leat_static_rnn_at(at, fw, x, n, there, state_fw_out, &forth);
        if (!g->status)
            reversed(g, x, n, o->sequence_length, back);
        leat_static_rnn_at(at, bw, back, n, y, state_bw_out, &aft);
    }
    if (!g->status)
        reversed(g, y, n, o->sequence_length, back);
    for (int i = 0; i < n; i++)
        y[i] = g->status ? (leat_out){g->poison, 0} : leat_cell_concat(there[i], back[i]);
    leat_at_leave(g, outer);
    free(there);
    free(back);
}
