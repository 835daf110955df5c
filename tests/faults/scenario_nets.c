/* scenario_nets.c -- convolutional and recurrent nets with their gradients, losses over sequences,
 * candidate samplers; a dataset of strings that are batched where they lie. */
#include "faults/scenarios.h"

#include <leat/data.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_Y = 24 };

/* What a scenario fetches. */
typedef struct wanted {
    leat_graph *g;
    leat_out y[MOST_Y];
    int n;
} wanted;

static void want(wanted *w, leat_out y)
{
    w->y[w->n++] = y;
}

/* The gradients of the sum of y, of which all have to be there. */
static leat_status want_gradients(wanted *w, leat_out y, const leat_out *x, int n)
{
    leat_grad_value d[8];
    leat_out loss = leat_reduce_sum(y);
    LEAT_TRY(leat_gradients(&loss, 1, x, n, d));
    for (int i = 0; i < n; i++) {
        EXPECT(d[i].value.node != NULL);
        want(w, d[i].value);
    }
    return NULL;
}

/* Runs what is wanted twice, and checks that both runs gave the same. */
static leat_status run_twice(const wanted *w, leat_out init)
{
    leat_session *s = NULL;
    leat_fetch fetches[MOST_Y];
    leat_tensor *v[2][MOST_Y] = {{0}};
    leat_status e = leat_graph_status(w->g);
    THEN(e, leat_session_open(w->g, &s));
    if (init.node)
        THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < w->n; i++)
            fetches[i] = (leat_fetch){w->y[i], &v[k][i]};
        THEN(e, leat_session_run(s, LEAT_NO_FEED, (leat_fetches){fetches, w->n}, LEAT_NO_TARGET));
    }
    for (int i = 0; i < w->n; i++) {
        EXPECT(e || (leat_tensor_bytes(v[0][i]) == leat_tensor_bytes(v[1][i]) &&
                     memcmp(leat_tensor_data(v[0][i]), leat_tensor_data(v[1][i]),
                            leat_tensor_bytes(v[0][i])) == 0));
        leat_tensor_unref(v[0][i]);
        leat_tensor_unref(v[1][i]);
    }
    leat_session_close(s);
    return e;
}

/* Numbers from -1 to 1, always the same. */
static leat_out numbers(leat_graph *g, leat_shape shape, int seed)
{
    leat_tensor *t = NULL;
    leat_out y = {0};
    leat_status s = leat_tensor_new(LEAT_FLOAT, shape, &t);
    if (s) {
        y = leat_zeros(g, LEAT_FLOAT, shape);
        leat_status_free(s);
        return y;
    }
    float *v = leat_tensor_mutable(t);
    for (int64_t i = 0; i < leat_tensor_count(t); i++)
        v[i] = (float)((i * 37 + seed * 11) % 101) / 50 - 1;
    y = leat_const(g, t);
    leat_tensor_unref(t);
    return y;
}

leat_status scenario_convolutions(const char *dir)
{
    wanted w = {.g = leat_graph_new()};
    leat_graph *g = w.g;
    leat_out x = numbers(g, leat_shape(2, 18, 18, 5), 1), min = leat_scalar(g, LEAT_FLOAT, -4),
             max = leat_scalar(g, LEAT_FLOAT, 4);
    leat_out filter = numbers(g, leat_shape(5, 5, 5, 9), 2),
             deep = numbers(g, leat_shape(3, 3, 9, 2), 3);
    leat_out y = leat_relu(leat_conv2d(x, filter, 1, 1, "SAME"));
    y = leat_lrn(leat_max_pool(y, 3, 3, 2, 2, "SAME"), 4, 1, 0.1, 0.75);
    y = leat_depthwise_conv2d(y, deep, 2, 2, "VALID");
    y = leat_avg_pool(y, 2, 2, 1, 1, "VALID");
    want(&w, y);
    want(&w, LEAT_OP3("QuantizeV2", y, min, max, leat_attr_type("T", LEAT_QUINT8)));
    want(&w, LEAT_OP2("Dilation2D", x, numbers(g, leat_shape(3, 3, 5), 4),
                      leat_attr_ints("strides", (const int64_t[]){1, 1, 1, 1}, 4),
                      leat_attr_ints("rates", (const int64_t[]){1, 2, 2, 1}, 4),
                      leat_attr_string("padding", "SAME")));
    want(&w,
         LEAT_OP1("MaxPoolWithArgmax", x, leat_attr_ints("ksize", (const int64_t[]){1, 2, 2, 1}, 4),
                  leat_attr_ints("strides", (const int64_t[]){1, 2, 2, 1}, 4),
                  leat_attr_string("padding", "SAME")));
    leat_status e = want_gradients(&w, y, (leat_out[]){x, filter, deep}, 3);
    THEN(e, run_twice(&w, (leat_out){0}));
    leat_graph_free(g);
    return e;
}

static void want_ctc(wanted *w)
{
    leat_graph *g = w->g;
    leat_out x = numbers(g, leat_shape(20, 2, 6), 5), lengths = leat_ints(g, 20, 11);
    leat_out places =
        leat_cast(leat_reshape(leat_ints(g, 0, 0, 0, 1, 1, 0), leat_ints(g, 3, 2)), LEAT_INT64);
    leat_out loss = LEAT_OP4("CTCLoss", x, places, leat_ints(g, 1, 2, 3), lengths);
    want(w, loss);
    want(w, leat_output(loss, 1));
    want(w, leat_output(LEAT_OP2("CTCGreedyDecoder", x, lengths), 1));
    want(w, leat_output(LEAT_OP2("CTCBeamSearchDecoder", x, lengths,
                                 leat_attr_int("beam_width", 30), leat_attr_int("top_paths", 2)),
                        6));
}

/* Samplers go on with each run; that of all classes gives the same. */
static void want_samples(wanted *w)
{
    leat_graph *g = w->g;
    leat_out t = leat_cast(leat_reshape(leat_ints(g, 3, 4), leat_ints(g, 2, 1)), LEAT_INT64);
    const leat_arg one = leat_attr_int("num_true", 1), sampled = leat_attr_int("num_sampled", 50),
                   unique = leat_attr_bool("unique", true), range = leat_attr_int("range_max", 90);
    leat_out all = LEAT_OP1("AllCandidateSampler", t, one, sampled, unique);
    leat_out learned = LEAT_OP1("LearnedUnigramCandidateSampler", t, one, sampled, unique, range);
    leat_out fixed = LEAT_OP1(
        "FixedUnigramCandidateSampler", t, one, leat_attr_int("num_sampled", 2), unique,
        leat_attr_int("range_max", 3), leat_attr_floats("unigrams", (const double[]){1, 2, 3}, 3));
    want(w, all);
    want(w, leat_shape_of(learned));
    want(w, leat_shape_of(fixed));
    want(w, LEAT_OP2("ComputeAccidentalHits", t, all, one));
}

leat_status scenario_sequences(const char *dir)
{
    wanted w = {.g = leat_graph_new()};
    leat_graph *g = w.g;
    leat_out x = numbers(g, leat_shape(3, 7, 4), 6), state[4], fused[2];
    leat_cell *layers[] = {leat_lstm_cell(g, 5, .use_peepholes = true, .num_proj = 3),
                           leat_block_lstm_cell(g, 5)};
    leat_out y = leat_dynamic_rnn(leat_multi_cell(g, layers, 2), x, state,
                                  .sequence_length = leat_ints(g, 7, 3, 5));
    leat_out z = leat_block_lstm(leat_transpose(x, leat_ints(g, 1, 0, 2)), 6, fused, NULL);
    want(&w, y);
    want(&w, z);
    leat_status e = want_gradients(&w, y, &x, 1);
    THEN(e, want_gradients(&w, z, &x, 1));
    want_ctc(&w);
    want_samples(&w);
    want(&w, leat_output(LEAT_OP3("RaggedRange", leat_ints(g, 0, 5), leat_ints(g, 4, 9),
                                  leat_ints(g, 1, 2)),
                         1));
    THEN(e, run_twice(&w, leat_global_variables_initializer(g)));
    leat_graph_free(g);
    return e;
}

/* ---- Strings that are batched where they lie ---- */

enum { RECORDS = 30, BYTES = 700, BATCH = 4 };

static leat_status write_records(const char *path)
{
    leat_record_writer *w = NULL;
    char bytes[BYTES];
    leat_status s = leat_record_writer_open(path, LEAT_RECORD_PLAIN, &w);
    for (int i = 0; i < RECORDS; i++) {
        memset(bytes, 'a' + i, sizeof(bytes));
        THEN(s, leat_record_write(w, bytes, sizeof(bytes)));
    }
    leat_status closed = leat_record_writer_close(w);
    if (s)
        leat_status_free(closed);
    return s ? s : closed;
}

static leat_status read_batches(leat_data_iterator *it)
{
    int left = RECORDS;
    bool seen[RECORDS] = {0};
    for (leat_tensor *t; left > 0;) {
        LEAT_TRY(leat_data_iterator_next(it, &t, 1));
        const leat_string *v = leat_tensor_data(t);
        EXPECT(leat_tensor_count(t) == (left < BATCH ? left : BATCH));
        for (int64_t i = 0; i < leat_tensor_count(t); i++) {
            const int which = v[i].size == BYTES ? v[i].data[BYTES - 1] - 'a' : -1;
            EXPECT(which >= 0 && which < RECORDS && !seen[which] && v[i].data[0] == 'a' + which);
            seen[which < 0 || which >= RECORDS ? 0 : which] = true;
        }
        left -= (int)leat_tensor_count(t);
        leat_tensor_unref(t);
    }
    return NULL;
}

leat_status scenario_packed(const char *dir)
{
    const char *path = scenario_path(dir, "records");
    leat_dataset *d = NULL;
    leat_data_iterator *it = NULL;
    leat_status e = write_records(path);
    THEN(e, leat_dataset_from_records(&path, 1, "", &d));
    if (!e && (e = leat_dataset_shuffle(d, 7, 1, &d)))
        d = NULL; /* taken */
    if (!e && (e = leat_dataset_batch(d, BATCH, false, &d)))
        d = NULL;
    THEN(e, leat_data_iterator_open(d, &it));
    THEN(e, read_batches(it));
    leat_data_iterator_close(it);
    leat_dataset_free(d);
    return e;
}
