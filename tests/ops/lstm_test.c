/* lstm_test.c -- recurrent cells: what the vectors do not have. BlockLSTMV2's gradient, which
 * TensorFlow 1.15 gets wrong, is BlockLSTM's with the gates in another order; empty batches and
 * sequences give empty or zero tensors; lengths and sizes that do not fit are errors. */
#include "test.h"

#include <leat/leat.h>

enum { TIME = 3, BATCH = 2, INPUTS = 3, UNITS = 2, GATES = 4 * UNITS };

/* Values that differ from element to element. */
static leat_out some(leat_graph *g, leat_shape s, int seed)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, s, &t));
    float *v = leat_tensor_mutable(t);
    for (int64_t i = 0; i < leat_shape_count(&s); i++)
        v[i] = (float)((i * 7 + seed * 5) % 11 - 5) / 9.0f;
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

/* Exchanges the second and the third quarter of the last dimension. */
static leat_out exchange(leat_out x)
{
    leat_graph *g = leat_node_graph(x.node);
    leat_out axis = leat_scalar(g, LEAT_INT32, leat_out_shape(x).rank - 1);
    leat_out part = LEAT_OP2("Split", axis, x, leat_attr_int("num_split", 4));
    leat_out parts[] = {part, leat_output(part, 2), leat_output(part, 1), leat_output(part, 3)};
    return leat_concat(parts, 4, axis);
}

typedef struct block {
    leat_out in[9];
    leat_out cs, h;
} block;

/* The inputs of a block of `time` steps over `batch` rows. */
static block block_inputs(leat_graph *g, leat_out length, int64_t time, int64_t batch)
{
    return (block){{length, some(g, leat_shape(time, batch, INPUTS), 1),
                    some(g, leat_shape(batch, UNITS), 2), some(g, leat_shape(batch, UNITS), 3),
                    some(g, leat_shape(INPUTS + UNITS, GATES), 4), some(g, leat_shape(UNITS), 5),
                    some(g, leat_shape(UNITS), 6), some(g, leat_shape(UNITS), 7),
                    some(g, leat_shape(GATES), 8)}};
}

static void add_block(block *b, const char *op, bool peephole)
{
    leat_out out = leat_op_of(
        LEAT_AT, op, b->in, 9,
        LEAT_ARGS(leat_attr_bool("use_peephole", peephole), leat_attr_float("cell_clip", 0),
                  strcmp(op, "BlockLSTM") == 0 ? leat_attr_float("forget_bias", 0)
                                               : leat_arg_new(LEAT_ARG_SKIP, NULL)));
    b->cs = leat_output(out, 1);
    b->h = leat_output(out, 6);
}

static void check_same(leat_session *s, leat_out a, leat_out b)
{
    leat_tensor *x, *y;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({a, &x}, {b, &y}), LEAT_NO_TARGET));
    CHECK(leat_tensor_count(x) == leat_tensor_count(y) && leat_tensor_count(x) > 0);
    for (int64_t i = 0; i < leat_tensor_count(x); i++)
        CHECK_NEAR(leat_tensor_at(x, i), leat_tensor_at(y, i), 1e-5);
    leat_tensor_unref(x);
    leat_tensor_unref(y);
}

static void v2(bool peephole)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out length = leat_scalar(g, LEAT_INT64, 2);
    block one = block_inputs(g, length, TIME, BATCH), two = one;
    two.in[4] = exchange(one.in[4]);
    two.in[8] = exchange(one.in[8]);
    add_block(&one, "BlockLSTM", peephole);
    add_block(&two, "BlockLSTMV2", peephole);
    leat_grad_value d_one[8], d_two[8];
    leat_out ys_one[] = {leat_square(one.h), one.cs}, ys_two[] = {leat_square(two.h), two.cs};
    CHECK_OK(leat_gradients(ys_one, 2, one.in + 1, 8, d_one));
    CHECK_OK(leat_gradients(ys_two, 2, two.in + 1, 8, d_two));
    CHECK_OK(leat_session_open(g, &s));
    check_same(s, one.h, two.h);
    check_same(s, one.cs, two.cs);
    for (int i = 0; i < 8; i++) {
        const bool gates = i == 3 || i == 7;
        if (!peephole && i >= 4 && i <= 6)
            continue; /* zeros */
        check_same(s, gates ? exchange(d_one[i].value) : d_one[i].value, d_two[i].value);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

static void v2_plain(void)
{
    v2(false);
}

static void v2_peephole(void)
{
    v2(true);
}

/* No rows, and no steps: the gradients of the weights are zeros. */
static void empty(void)
{
    for (int i = 0; i < 2; i++) {
        leat_graph *g = leat_graph_new();
        leat_session *s;
        leat_tensor *h, *dw, *dx;
        block b = block_inputs(g, leat_scalar(g, LEAT_INT64, 0), i ? TIME : 0, i ? 0 : BATCH);
        add_block(&b, "BlockLSTM", true);
        leat_grad_value d[8];
        CHECK_OK(leat_gradients(&b.h, 1, b.in + 1, 8, d));
        CHECK_OK(leat_session_open(g, &s));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED,
                                  LEAT_FETCH({b.h, &h}, {d[0].value, &dx}, {d[3].value, &dw}),
                                  LEAT_NO_TARGET));
        CHECK(leat_tensor_count(h) == 0 && leat_tensor_count(dx) == 0);
        CHECK(leat_tensor_count(dw) == (INPUTS + UNITS) * GATES);
        for (int64_t e = 0; e < leat_tensor_count(dw); e++)
            CHECK(leat_tensor_at(dw, e) == 0);
        leat_tensor_unref(h);
        leat_tensor_unref(dx);
        leat_tensor_unref(dw);
        leat_session_close(s);
        leat_graph_free(g);
    }
}

/* After the end of the sequence everything is zero. */
static void short_sequence(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *h, *dx;
    block b = block_inputs(g, leat_scalar(g, LEAT_INT64, 1), TIME, BATCH);
    add_block(&b, "BlockLSTM", true);
    leat_grad_value d[8];
    CHECK_OK(leat_gradients(&b.h, 1, b.in + 1, 8, d));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({b.h, &h}, {d[0].value, &dx}),
                              LEAT_NO_TARGET));
    CHECK(leat_tensor_at(h, 0) != 0 && leat_tensor_at(dx, 0) != 0);
    for (int64_t e = BATCH * UNITS; e < TIME * BATCH * UNITS; e++)
        CHECK(leat_tensor_at(h, e) == 0);
    for (int64_t e = BATCH * INPUTS; e < TIME * BATCH * INPUTS; e++)
        CHECK(leat_tensor_at(dx, e) == 0);
    leat_tensor_unref(h);
    leat_tensor_unref(dx);
    leat_session_close(s);
    leat_graph_free(g);
}

static leat_status run_length(leat_tensor *value)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out length = leat_placeholder(g, LEAT_INT64, leat_shape_unknown());
    block b = block_inputs(g, length, TIME, BATCH);
    add_block(&b, "BlockLSTMV2", false);
    leat_tensor *h = NULL;
    CHECK_OK(leat_session_open(g, &s));
    leat_status bad =
        leat_session_run(s, LEAT_FEED({length, value}), LEAT_FETCH({b.h, &h}), LEAT_NO_TARGET);
    leat_tensor_unref(h);
    leat_session_close(s);
    leat_graph_free(g);
    leat_tensor_unref(value);
    return bad;
}

static void lengths(void)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(), (int64_t[]){TIME + 1}, &t));
    CHECK_ERROR(run_length(t), INVALID_ARGUMENT,
                "seq_len_max must be in [0, 3], the number of steps of x, but is 4");
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(), (int64_t[]){-1}, &t));
    CHECK_ERROR(run_length(t), INVALID_ARGUMENT,
                "seq_len_max must be in [0, 3], the number of steps of x, but is -1");
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(2), (int64_t[]){1, 1}, &t));
    CHECK_ERROR(run_length(t), INVALID_ARGUMENT, "seq_len_max must be a scalar, but has shape [2]");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"v2_plain", v2_plain}, {"v2_peephole", v2_peephole}, {"empty", empty},
               {"short_sequence", short_sequence}, {"lengths", lengths});
}
