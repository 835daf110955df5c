/* ptb_bench.c -- how fast the PTB tutorial's language model trains, for Leat, as "name value"
 * lines. The graph is the one that TensorFlow's ptb_word_lm.py builds: an embedding, layers of LSTM
 * unrolled over the steps of a batch, a softmax over the vocabulary, gradients clipped by their
 * global norm. Words are drawn, not read; the states of a batch are fed to the next.
 * bench/peers/tensorflow_ptb.py and bench/peers/pytorch_ptb.py print the same figures for their
 * frameworks.
 *
 *     ptb_bench train MODEL CELL SECONDS     words/s; MODEL: small, medium or large; CELL: basic
 *                                            and block are unrolled, dynamic is a loop
 *     ptb_bench ops MODEL CELL SECONDS FILE  writes a Chrome trace of each step to FILE, and prints
 *                                            the roof: GFLOP/s of a product in cache, GB/s of a sum
 */
#include "common_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 20, VOCABULARY = 10000, LAYERS = 2, STATES = 2 * LAYERS, MOST_STEPS = 35 };

static const struct config {
    const char *name;
    int units, steps;
    double scale, norm, keep;
} configs[] = {
    {"small", 200, 20, 0.1, 5, 1},
    {"medium", 650, 35, 0.05, 5, 0.5},
    {"large", 1500, 35, 0.04, 10, 0.35},
};

typedef struct training {
    const struct config *c;
    const char *cell;
    leat_graph *g;
    leat_session *s;
    leat_out x, y, first[STATES], last[STATES], loss, train;
    leat_tensor *words, *next, *state[STATES];
} training;

static leat_cell *cell_of(const training *t)
{
    leat_cell *layers[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        layers[i] = strcmp(t->cell, "block") == 0
                        ? leat_block_lstm_cell(t->g, t->c->units, .forget_bias = 0)
                        : leat_basic_lstm_cell(t->g, t->c->units, .forget_bias = 0);
        if (t->c->keep < 1)
            layers[i] = leat_dropout_cell(layers[i], .output_keep_prob = t->c->keep);
    }
    return leat_multi_cell(t->g, layers, LAYERS);
}

/* x[:, step, :] */
static leat_out step_of(leat_graph *g, leat_out x, int step)
{
    return leat_strided_slice(x, leat_ints(g, 0, step, 0), leat_ints(g, 0, step + 1, 0),
                              leat_ints(g, 1, 1, 1), leat_attr_int("begin_mask", 5),
                              leat_attr_int("end_mask", 5), leat_attr_int("shrink_axis_mask", 2));
}

/* The outputs of all steps as rows, batch by batch. */
static leat_out outputs_of(training *t, leat_out x)
{
    leat_graph *g = t->g;
    leat_cell *cell = cell_of(t);
    const leat_shape rows = leat_shape(BATCH * t->c->steps, t->c->units);
    leat_out out[MOST_STEPS];
    if (strcmp(t->cell, "dynamic") == 0)
        return leat_reshape_to(
            leat_dynamic_rnn(cell, x, t->last, .initial_state = t->first, .scope = "RNN"), rows);
    memcpy(t->last, t->first, sizeof(t->last));
    leat_with_variable_scope(g, "RNN")
    {
        for (int i = 0; i < t->c->steps; i++)
            out[i] = leat_cell_step(cell, step_of(g, x, i), t->last, t->last);
    }
    return leat_reshape_to(leat_concat(out, t->c->steps, leat_scalar(g, LEAT_INT32, 1)), rows);
}

static leat_out logits_of(training *t)
{
    leat_graph *g = t->g;
    const int units = t->c->units;
    leat_out embedding = leat_get_variable(g, "embedding", leat_shape(VOCABULARY, units));
    leat_out words = leat_embedding_lookup(&embedding, 1, t->x);
    if (t->c->keep < 1)
        words = leat_dropout(words, 1 - t->c->keep);
    leat_out rows = outputs_of(t, words);
    return leat_xw_plus_b(rows, leat_get_variable(g, "softmax_w", leat_shape(units, VOCABULARY)),
                          leat_get_variable(g, "softmax_b", leat_shape(VOCABULARY)));
}

/* What tf.contrib.seq2seq.sequence_loss computes when all weights are ones. */
static leat_out loss_of(leat_graph *g, leat_out logits, leat_out y, int steps)
{
    const leat_shape words = leat_shape(BATCH, steps), all = leat_shape(BATCH * steps);
    leat_out zero = leat_scalar(g, LEAT_INT32, 0), weights = leat_ones(g, LEAT_FLOAT, words);
    leat_out each = leat_sparse_softmax_cross_entropy(logits, leat_reshape_to(y, all));
    each = leat_reshape_to(leat_mul(each, leat_reshape_to(weights, all)), words);
    leat_out total = leat_add(LEAT_OP2("Sum", weights, zero), leat_scalar(g, LEAT_FLOAT, 1e-12));
    return leat_reduce_sum(leat_div(LEAT_OP2("Sum", each, zero), total));
}

static leat_out train_of(leat_graph *g, leat_out loss, double norm)
{
    leat_out rate = leat_variable(g, "lr", leat_scalar(g, LEAT_FLOAT, 1), .not_trainable = true);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate_tensor = rate);
    int n;
    leat_var_grad *v = leat_compute_gradients(opt, loss, &n);
    leat_grad_value *grads = calloc((size_t)n, sizeof(*grads));
    for (int i = 0; i < n; i++)
        grads[i] = v[i].grad;
    leat_clip_by_global_norm(grads, n, norm);
    for (int i = 0; i < n; i++)
        v[i].grad = grads[i];
    leat_out train = leat_apply_gradients(opt, v, n, .global_step = leat_global_step(g));
    free(grads);
    free(v);
    leat_optimizer_free(opt);
    return train;
}

static training begin(const struct config *c, const char *cell)
{
    training t = {.c = c, .cell = cell, .g = leat_graph_new()};
    leat_graph *g = t.g;
    leat_graph_set_seed(g, 1);
    const leat_shape words = leat_shape(BATCH, c->steps), state = leat_shape(BATCH, c->units);
    t.x = leat_placeholder(g, LEAT_INT32, words);
    t.y = leat_placeholder(g, LEAT_INT32, words);
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_INT32, words, &t.words));
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_INT32, words, &t.next));
    for (int i = 0; i < STATES; i++) {
        t.first[i] = leat_placeholder(g, LEAT_FLOAT, state);
        LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_FLOAT, state, &t.state[i]));
    }
    const leat_initializer init = leat_random_uniform_initializer(-c->scale, c->scale);
    leat_with_variable_scope(g, "Model", .initializer = init)
    {
        t.loss = loss_of(g, logits_of(&t), t.y, c->steps);
        t.train = train_of(g, t.loss, c->norm);
    }
    leat_out first = leat_global_variables_initializer(g);
    LEAT_DIE_ON_ERROR(leat_session_open(g, &t.s));
    LEAT_DIE_ON_ERROR(leat_session_run(t.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(first)));
    return t;
}

static void end(training *t)
{
    leat_session_close(t->s);
    leat_graph_free(t->g);
    leat_tensor_unref(t->words);
    leat_tensor_unref(t->next);
    for (int i = 0; i < STATES; i++)
        leat_tensor_unref(t->state[i]);
}

/* Words of a skewed distribution, each followed by the next. */
static void draw_batch(training *t)
{
    int32_t *x = leat_tensor_mutable(t->words), *y = leat_tensor_mutable(t->next);
    const int steps = t->c->steps;
    for (int i = 0; i < BATCH; i++)
        for (int k = 0; k <= steps; k++) {
            const int32_t word = (int32_t)(VOCABULARY * pow(bench_uniform(), 3));
            if (k < steps)
                x[i * steps + k] = word;
            if (k > 0)
                y[i * steps + k - 1] = word;
        }
}

static void feeds_of(const training *t, leat_feed *feeds)
{
    feeds[0] = (leat_feed){t->x, t->words};
    feeds[1] = (leat_feed){t->y, t->next};
    for (int i = 0; i < STATES; i++)
        feeds[2 + i] = (leat_feed){t->first[i], t->state[i]};
}

static double step(training *t)
{
    leat_feed feeds[2 + STATES];
    leat_tensor *loss = NULL, *state[STATES] = {0};
    leat_fetch fetches[1 + STATES] = {{t->loss, &loss}};
    draw_batch(t);
    feeds_of(t, feeds);
    for (int i = 0; i < STATES; i++)
        fetches[1 + i] = (leat_fetch){t->last[i], &state[i]};
    LEAT_DIE_ON_ERROR(leat_session_run(t->s, (leat_feeds){feeds, 2 + STATES},
                                       (leat_fetches){fetches, 1 + STATES}, LEAT_TARGET(t->train)));
    for (int i = 0; i < STATES; i++) {
        leat_tensor_unref(t->state[i]);
        t->state[i] = state[i];
    }
    const double value = leat_tensor_at(loss, 0);
    leat_tensor_unref(loss);
    return value;
}

static void train(const struct config *c, const char *cell, double seconds)
{
    training t = begin(c, cell);
    for (int i = 0; i < 3; i++)
        step(&t);
    const double start = bench_now(), cpu = bench_cpu();
    double took = 0, loss = 0;
    int64_t words = 0;
    for (; took < seconds; took = bench_now() - start, words += (int64_t)BATCH * c->steps)
        loss = step(&t);
    printf("words_per_s %.1f\ncpu_us_per_word %.2f\nloss %.4f\n", (double)words / took,
           (bench_cpu() - cpu) * 1e6 / (double)words, loss);
    end(&t);
}

/* The memory's roof is that of the size of the logits. */
static void ops(const struct config *c, const char *cell, double seconds, const char *path)
{
    leat_feed feeds[2 + STATES];
    training t = begin(c, cell);
    for (int i = 0; i < 3; i++)
        step(&t);
    feeds_of(&t, feeds);
    bench_trace_steps(t.s, (leat_feeds){feeds, 2 + STATES}, t.train, seconds, path);
    end(&t);
    bench_product_roof(seconds / 4);
    bench_memory_roof(seconds / 4, (int64_t)BATCH * c->steps * VOCABULARY);
}

static const struct config *config_of(const char *name)
{
    for (size_t i = 0; i < sizeof(configs) / sizeof(*configs); i++)
        if (strcmp(configs[i].name, name) == 0)
            return &configs[i];
    return NULL;
}

static bool is_cell(const char *name)
{
    return strcmp(name, "basic") == 0 || strcmp(name, "block") == 0 || strcmp(name, "dynamic") == 0;
}

int main(int argc, char **argv)
{
    const struct config *c = argc > 4 && is_cell(argv[3]) ? config_of(argv[2]) : NULL;
    if (c && argc == 5 && strcmp(argv[1], "train") == 0) {
        train(c, argv[3], atof(argv[4]));
    } else if (c && argc == 6 && strcmp(argv[1], "ops") == 0) {
        ops(c, argv[3], atof(argv[4]), argv[5]);
    } else {
        fprintf(stderr,
                "usage: ptb_bench train small|medium|large basic|block|dynamic SECONDS\n"
                "       ptb_bench ops small|medium|large basic|block|dynamic SECONDS FILE\n");
        return 2;
    }
    bench_print_peak();
    return 0;
}
