/* sequence_test.c -- losses of sequences, CTC and its decoders, edit distances: the functions of
 * sequence.h against TensorFlow 1.15, by data/embedding.txt, which make_embedding.py has written;
 * and sequences that cannot be. */
#include "train/values.h"

static leat_out of_ints(leat_graph *g, leat_dtype t, leat_shape s, const int64_t *v)
{
    leat_out flat = leat_int_vector_at(LEAT_AT, g, t, v, (int)leat_shape_count(&s));
    return leat_reshape_to(flat, s);
}

static leat_sparse_value sparse(leat_graph *g, leat_dtype t, int n, const int64_t (*at)[2],
                                const int64_t *values, int64_t rows, int64_t columns)
{
    return (leat_sparse_value){of_ints(g, LEAT_INT64, leat_shape(n, 2), &at[0][0]),
                               of_ints(g, t, leat_shape(n), values),
                               of_ints(g, LEAT_INT64, leat_shape(2), (int64_t[]){rows, columns})};
}

/* y is the line NAME.values, the gradient of its weighted sum by x NAME.grads. */
static void check_loss(leat_graph *g, const char *name, leat_out y, leat_out x)
{
    char line[64];
    leat_session *s;
    leat_tensor *got[2] = {0};
    leat_grad_value grad;
    leat_out weights = constant(g, LEAT_FLOAT, leat_out_shape(y), 50);
    leat_out loss = leat_reduce_sum(leat_mul(y, weights));
    CHECK_OK(leat_gradients(&loss, 1, &x, 1, &grad));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got[0]}, {grad.value, &got[1]}),
                              LEAT_NO_TARGET));
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof(line), "%s.%s", name, i ? "grads" : "values");
        check_sequence("embedding.txt", line, &got[i], 1, 2e-6);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- Losses ---- */

static const int64_t targets[] = {0, 4, 2, 2, 1, 1, 3, 0};
static const float weights[] = {1, 1, 1, 0, 0.5f, 2, 0, 0};

typedef struct inputs {
    leat_graph *g;
    leat_out x, targets, weights;
} inputs;

static inputs begin(void)
{
    inputs in = {.g = leat_graph_new()};
    leat_tensor *w;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2, 4), weights, &w));
    in.x = constant(in.g, LEAT_FLOAT, leat_shape(2, 4, 5), 0);
    in.targets = of_ints(in.g, LEAT_INT32, leat_shape(2, 4), targets);
    in.weights = leat_const(in.g, w);
    leat_tensor_unref(w);
    return in;
}

/* The loss that is used by default. */
static leat_out own_loss(void *arg, leat_out labels, leat_out logits)
{
    ++*(int *)arg;
    return leat_sparse_softmax_cross_entropy(logits, labels);
}

/* A loss of each step of each example, whose shape is known when it runs. */
static leat_out known(leat_out y)
{
    return leat_out_shape(y).rank == 2 ? leat_reshape_to(y, leat_shape(2, 4)) : y;
}

static void losses(void)
{
    int calls = 0;
#define LOSS(name, ...)                                                                            \
    do {                                                                                           \
        inputs in = begin();                                                                       \
        check_loss(in.g, "sequence_" name,                                                         \
                   known(leat_sequence_loss(in.x, in.targets, in.weights, ##__VA_ARGS__)), in.x);  \
    } while (0)
    LOSS("both");
    LOSS("both", .loss = own_loss, .arg = &calls);
    LOSS("time", .average_across_batch = false);
    LOSS("batch", .average_across_timesteps = false);
    LOSS("none", .average_across_batch = false, .average_across_timesteps = false);
    LOSS("sum", .average_across_batch = false, .average_across_timesteps = false,
         .sum_over_batch = true, .sum_over_timesteps = true);
    LOSS("sum_time", .average_across_batch = false, .average_across_timesteps = false,
         .sum_over_timesteps = true);
    LOSS("sum_batch", .average_across_batch = false, .average_across_timesteps = false,
         .sum_over_batch = true);
    LOSS("mixed", .average_across_batch = false, .sum_over_batch = true);
    CHECK_INT(calls, 1);
}

static void losses_refused(void)
{
    inputs in = begin();
    leat_sequence_loss(in.x, in.targets, in.weights, .sum_over_batch = true);
    CHECK_ERROR(leat_graph_status(in.g), INVALID_ARGUMENT,
                "average_across_batch and sum_over_batch cannot be set to True at same time.");
    leat_graph_free(in.g);
    in = begin();
    leat_sequence_loss(in.x, in.targets, in.weights, .sum_over_timesteps = true);
    CHECK_ERROR(leat_graph_status(in.g), INVALID_ARGUMENT,
                "average_across_timesteps and sum_over_timesteps cannot be set to True");
    leat_graph_free(in.g);
    in = begin();
    leat_sequence_loss(in.weights, in.targets, in.weights);
    CHECK_ERROR(leat_graph_status(in.g), INVALID_ARGUMENT,
                "Logits must be a [batch_size x sequence_length x logits] tensor");
    leat_graph_free(in.g);
    in = begin();
    leat_sequence_loss(in.x, in.x, in.weights);
    CHECK_ERROR(leat_graph_status(in.g), INVALID_ARGUMENT, "Targets must be a [batch_size x");
    leat_graph_free(in.g);
    in = begin();
    leat_sequence_loss(in.x, in.targets, in.x);
    CHECK_ERROR(leat_graph_status(in.g), INVALID_ARGUMENT, "Weights must be a [batch_size x");
    leat_graph_free(in.g);
}

/* ---- Connectionist temporal classification ---- */

static leat_sparse_value labels_of(leat_graph *g)
{
    static const int64_t at[5][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}};
    static const int64_t values[] = {0, 2, 1, 1, 0};
    return sparse(g, LEAT_INT32, 5, at, values, 2, 3);
}

static void ctc(void)
{
    static const leat_shape time_major = {3, {6, 2, 4}}, batch_major = {3, {2, 6, 4}};
#define CTC(name, shape, second, ...)                                                              \
    do {                                                                                           \
        leat_graph *g = leat_graph_new();                                                          \
        leat_out x = constant(g, LEAT_FLOAT, shape, 0);                                            \
        check_loss(g, "ctc_" name,                                                                 \
                   leat_ctc_loss(labels_of(g), x, leat_ints(g, 6, second), ##__VA_ARGS__), x);     \
    } while (0)
    CTC("plain", time_major, 5);
    CTC("collapsed", time_major, 5, .preprocess_collapse_repeated = true,
        .ctc_merge_repeated = false);
    CTC("batch_major", batch_major, 5, .batch_major = true);
    CTC("longer", time_major, 2, .ignore_longer_outputs_than_inputs = true);
}

/* All that a decoder gives is the line. */
static void check_decoded(leat_graph *g, const char *line, const leat_sparse_value *v, int n,
                          leat_out scores)
{
    leat_session *s;
    leat_tensor *got[10] = {0};
    leat_fetch fetch[10];
    for (int i = 0; i < n; i++) {
        fetch[3 * i] = (leat_fetch){v[i].indices, &got[3 * i]};
        fetch[3 * i + 1] = (leat_fetch){v[i].values, &got[3 * i + 1]};
        fetch[3 * i + 2] = (leat_fetch){v[i].dense_shape, &got[3 * i + 2]};
    }
    fetch[3 * n] = (leat_fetch){scores, &got[3 * n]};
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, (leat_fetches){fetch, 3 * n + 1}, LEAT_NO_TARGET));
    check_sequence("embedding.txt", line, got, 3 * n + 1, 2e-6);
    leat_session_close(s);
    leat_graph_free(g);
}

static leat_out logits_of(leat_graph *g)
{
    leat_out x = constant(g, LEAT_FLOAT, leat_shape(6, 2, 4), 3);
    return leat_mul(x, leat_scalar_like(x, 4));
}

static void decoders(void)
{
    leat_sparse_value v[3];
    leat_graph *g = leat_graph_new();
    leat_out y = leat_ctc_greedy_decoder(logits_of(g), leat_ints(g, 6, 4), v);
    check_decoded(g, "greedy", v, 1, y);
    g = leat_graph_new();
    y = leat_ctc_greedy_decoder(logits_of(g), leat_ints(g, 6, 4), v, .merge_repeated = false);
    check_decoded(g, "greedy_kept", v, 1, y);
    g = leat_graph_new();
    y = leat_ctc_beam_search_decoder(logits_of(g), leat_ints(g, 6, 4), v);
    check_decoded(g, "beam", v, 1, y);
    g = leat_graph_new();
    y = leat_ctc_beam_search_decoder(logits_of(g), leat_ints(g, 6, 4), v, .beam_width = 20,
                                     .top_paths = 3, .merge_repeated = false);
    check_decoded(g, "beam_many", v, 3, y);
}

static void edit_distances(void)
{
    static const int64_t a[5][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}};
    static const int64_t b[4][2] = {{0, 0}, {1, 0}, {1, 1}, {2, 0}};
    for (int counted = 0; counted < 2; counted++) {
        leat_graph *g = leat_graph_new();
        leat_session *s;
        leat_tensor *got = NULL;
        leat_sparse_value x = sparse(g, LEAT_INT64, 5, a, (const int64_t[]){1, 2, 1, 2, 3}, 3, 3);
        leat_sparse_value truth = sparse(g, LEAT_INT64, 4, b, (const int64_t[]){1, 3, 2, 5}, 3, 2);
        leat_out y = leat_edit_distance(x, truth, .not_normalized = counted);
        CHECK_OK(leat_session_open(g, &s));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got}), LEAT_NO_TARGET));
        check_sequence("embedding.txt", counted ? "edit_counted" : "edit", &got, 1, 1e-6);
        leat_session_close(s);
        leat_graph_free(g);
    }
}

/* ---- Sequences that cannot be ---- */

static void ctc_refused(void)
{
    static const int64_t at[1][2] = {{0, 0}};
    static const struct {
        int64_t label;
        int32_t length;
        const char *words;
    } rows[] = {
        {7, 4, "Saw a non-null label (index >= num_classes - 1)"},
        {-2, 4, "All labels must be nonnegative integers, batch: 0"},
        {0, 5, "sequence_length(0) <= 4"},
        {0, -1, "sequence_length(0)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        leat_graph *g = leat_graph_new();
        leat_session *s;
        leat_tensor *y = NULL, *n;
        leat_out lengths = leat_placeholder(g, LEAT_INT32, leat_shape(1));
        /* Labels beyond the blank are padding: nothing may follow them. */
        static const int64_t two[2][2] = {{0, 0}, {0, 1}};
        leat_sparse_value labels =
            rows[i].label > 3 ? sparse(g, LEAT_INT32, 2, two, (int64_t[]){rows[i].label, 0}, 1, 2)
                              : sparse(g, LEAT_INT32, 1, at, &rows[i].label, 1, 1);
        leat_out x = constant(g, LEAT_FLOAT, leat_shape(4, 1, 4), 0);
        leat_out loss = leat_ctc_loss(labels, x, lengths);
        CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(1), &rows[i].length, &n));
        CHECK_OK(leat_session_open(g, &s));
        leat_status e =
            leat_session_run(s, LEAT_FEED({lengths, n}), LEAT_FETCH({loss, &y}), LEAT_NO_TARGET);
        CHECK(e && strstr(leat_status_message(e), "{{node CTCLoss"));
        CHECK_ERROR(e, INVALID_ARGUMENT, rows[i].words);
        leat_tensor_unref(n);
        leat_session_close(s);
        leat_graph_free(g);
    }
    leat_graph *g = leat_graph_new();
    leat_ctc_loss(labels_of(g), constant(g, LEAT_FLOAT, leat_shape(6, 2, 4), 0),
                  leat_zeros(g, LEAT_INT64, leat_shape(2)));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "sequence_length");
    leat_graph_free(g);
    g = leat_graph_new();
    leat_ctc_loss((leat_sparse_value){0}, constant(g, LEAT_FLOAT, leat_shape(6, 2, 4), 0),
                  leat_ints(g, 6, 5));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "");
    leat_graph_free(g);
}

/* No sequences at all are no mistake; CTC's loss alone refuses them, which end TensorFlow's
 * process. */
static void empty_batch(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *y = NULL;
    leat_sparse_value v;
    leat_out x = leat_zeros(g, LEAT_FLOAT, leat_shape(4, 0, 3));
    leat_out score = leat_ctc_greedy_decoder(x, leat_zeros(g, LEAT_INT32, leat_shape(0)), &v);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({score, &y}), LEAT_NO_TARGET));
    CHECK_INT(y ? leat_tensor_count(y) : -1, 0);
    leat_tensor_unref(y);
    leat_sparse_value none =
        sparse(g, LEAT_INT32, 0, (const int64_t[1][2]){{0}}, (int64_t[]){0}, 0, 0);
    leat_out aligned = leat_ctc_loss(none, x, leat_zeros(g, LEAT_INT32, leat_shape(0)));
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({aligned, &y}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "batch_size must not be 0");
    leat_out loss = leat_sequence_loss(leat_zeros(g, LEAT_FLOAT, leat_shape(0, 4, 5)),
                                       leat_zeros(g, LEAT_INT32, leat_shape(0, 4)),
                                       leat_zeros(g, LEAT_FLOAT, leat_shape(0, 4)));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({loss, &y}), LEAT_NO_TARGET));
    CHECK_NEAR(y ? leat_tensor_at(y, 0) : -1, 0, 0);
    leat_tensor_unref(y);
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"losses", losses}, {"losses_refused", losses_refused}, {"ctc", ctc},
               {"decoders", decoders}, {"edit_distances", edit_distances},
               {"ctc_refused", ctc_refused}, {"empty_batch", empty_batch});
}
