/* char_rnn.c -- a language model of characters that prints text as it learns: layers of LSTM,
 * trained by Adam on pieces of a text, each of which goes on where the last one ended. Without
 * flags it reads Tiny Shakespeare.
 *
 *     char_rnn                                          a minute or two, to readable verses
 *     char_rnn --text my.txt --save_path log/my         another text; a second run goes on
 *     char_rnn --save_path log/my --text my.txt --sample 1000 --prime "Once upon a time"
 *
 * Characters are bytes, so that texts in UTF-8 work, too. */
#include <leat/leat.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common_flags.h"
#include "common_lm.h"
#include "common_progress.h"

enum {
    MOST_TEXT = 1 << 30,
    MOST_VALID_STEPS = 40,
    /* So many steps after another go on where the one before ended; then a step begins with a state
     * of zeros, as a sample does. A net that never learnt to begin prints nonsense. */
    STEPS_IN_A_ROW = 8
};

static const char *data_dir, *text_file, *save_path, *prime;
static lm_config config = {.hidden_size = 256,
                           .num_layers = 1,
                           .num_steps = 64,
                           .batch_size = 32,
                           .keep_prob = 1,
                           .forget_bias = 1,
                           .rnn_mode = "fused"};
static double learning_rate = 0.004, max_grad_norm = 5, temperature = 0.8, sample_secs = 10,
              save_secs = 600;
static int64_t train_steps = 3000, sample, seed = 1, threads;

static const flag flags[] = {
    {"data_dir", FLAG_STRING, &data_dir, 0, "where Tiny Shakespeare's input.txt is"},
    {"text", FLAG_STRING, &text_file, 0, "another text to learn"},
    {"save_path", FLAG_STRING, &save_path, 0,
     "checkpoints and events for TensorBoard; a run that finds checkpoints there goes on"},
    {"sample", FLAG_INT, &sample, 0, "only print so many characters, by the model in save_path"},
    {"temperature", FLAG_FLOAT, &temperature, 1e-3, "of what is drawn: lower is more careful"},
    {"prime", FLAG_STRING, &prime, 0, "text that samples go on from"},
    {"train_steps", FLAG_INT, &train_steps, 0, "steps to train for"},
    {"hidden_size", FLAG_INT, &config.hidden_size, 1, "units of a layer"},
    {"num_layers", FLAG_INT, &config.num_layers, 1, "layers of LSTM"},
    {"num_steps", FLAG_INT, &config.num_steps, 1, "characters of a sequence in a step"},
    {"batch_size", FLAG_INT, &config.batch_size, 1, "sequences in a step"},
    {"keep_prob", FLAG_FLOAT, &config.keep_prob, 0, "1 - dropout of the outputs of layers"},
    {"rnn_mode", FLAG_STRING, &config.rnn_mode, 0, "basic, block or fused"},
    {"learning_rate", FLAG_FLOAT, &learning_rate, 0, "of Adam, at the beginning"},
    {"max_grad_norm", FLAG_FLOAT, &max_grad_norm, 0, "gradients are clipped to this norm"},
    {"sample_secs", FLAG_FLOAT, &sample_secs, 0, "seconds between samples"},
    {"save_secs", FLAG_FLOAT, &save_secs, 0, "seconds between checkpoints"},
    {"seed", FLAG_INT, &seed, 0, "of weights, dropout and samples"},
    {"threads", FLAG_INT, &threads, 0, "that a kernel may use; 0: all cores"},
    {0},
};

/* ---- The text ---- */

typedef struct text {
    leat_tensor *train, *valid; /* ids, int32; valid: the last 5 % */
    int id[256];                /* of a byte; -1: the text does not have it */
    unsigned char byte[256];    /* of an id */
    int vocabulary;
} text;

static leat_status read_file(const char *path, char **bytes_out, size_t *size_out)
{
    FILE *f = fopen(path, "rb");
    LEAT_REQUIRE(f, NOT_FOUND, "--text: %s cannot be opened", path);
    size_t n = 0, cap = 1 << 16;
    char *bytes = malloc(cap);
    for (size_t got; (got = fread(bytes + n, 1, cap - n, f)) > 0;) {
        n += got;
        if (n == cap && cap < MOST_TEXT)
            bytes = realloc(bytes, cap *= 2);
    }
    const bool bad = ferror(f);
    fclose(f);
    *bytes_out = bytes;
    *size_out = n;
    LEAT_REQUIRE(!bad, UNAVAILABLE, "--text: %s cannot be read", path);
    LEAT_REQUIRE(n < MOST_TEXT, INVALID_ARGUMENT, "--text: %s is larger than %d bytes", path,
                 MOST_TEXT);
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "--text: %s is empty", path);
    const char *zero = memchr(bytes, 0, n);
    LEAT_REQUIRE(!zero, INVALID_ARGUMENT, "--text: %s is no text: byte %zu is 0", path,
                 (size_t)(zero - bytes));
    return NULL;
}

/* Ids are in the order of the bytes. */
static leat_status take_text(text *t, const char *bytes, size_t n)
{
    bool there[256] = {0};
    for (size_t i = 0; i < n; i++)
        there[(unsigned char)bytes[i]] = true;
    for (int c = 0; c < 256; c++) {
        t->id[c] = there[c] ? t->vocabulary : -1;
        if (there[c])
            t->byte[t->vocabulary++] = (unsigned char)c;
    }
    leat_tensor *ids;
    LEAT_TRY(leat_tensor_new(LEAT_INT32, leat_shape((int64_t)n), &ids));
    int32_t *to = leat_tensor_mutable(ids);
    for (size_t i = 0; i < n; i++)
        to[i] = t->id[(unsigned char)bytes[i]];
    const int64_t split = (int64_t)(n - n / 20);
    leat_status s = leat_tensor_rows(ids, 0, split, &t->train);
    if (!s)
        s = leat_tensor_rows(ids, split, (int64_t)n, &t->valid);
    leat_tensor_unref(ids);
    return s;
}

static leat_status open_text(text *t)
{
    char *bytes = NULL, *source = NULL;
    size_t n;
    leat_status s = text_file ? read_file(text_file, &bytes, &n)
                              : leat_shakespeare_read(data_dir, &bytes, &n, &source);
    if (!s)
        s = take_text(t, bytes, n);
    if (!s)
        printf("%s: %zu characters, %d different ones\n", source ? source : text_file, n,
               t->vocabulary);
    free(bytes);
    free(source);
    return s;
}

/* Steps of an epoch: the text is cut into batch_size pieces of equal length. */
static int64_t epoch_size(const leat_tensor *ids)
{
    const int64_t length = leat_tensor_count(ids) / config.batch_size;
    return length > 0 ? (length - 1) / config.num_steps : 0;
}

static leat_status make_batch(const leat_tensor *ids, int64_t i, leat_tensor **x, leat_tensor **y)
{
    const int64_t n = config.num_steps, length = leat_tensor_count(ids) / config.batch_size;
    const leat_shape s = leat_shape(config.batch_size, n);
    LEAT_TRY(leat_tensor_new(LEAT_INT32, s, x));
    LEAT_TRY(leat_tensor_new(LEAT_INT32, s, y));
    for (int64_t row = 0; row < config.batch_size; row++) {
        const int32_t *from = (const int32_t *)leat_tensor_data(ids) + row * length + i * n;
        memcpy((int32_t *)leat_tensor_mutable(*x) + row * n, from, sizeof(*from) * (size_t)n);
        memcpy((int32_t *)leat_tensor_mutable(*y) + row * n, from + 1, sizeof(*from) * (size_t)n);
    }
    return NULL;
}

/* ---- The model ---- */

typedef struct program {
    text text;
    leat_graph *g;
    lm_model train, valid;
    lm_sampler sampler;
    leat_out loss, valid_loss, train_op, step, summary, checks;
    leat_supervisor *sv;
    leat_session *session;
} program;

/* Per character. */
static leat_out loss_of(const lm_model *m)
{
    return leat_div(m->cost, leat_scalar_like(m->cost, (double)config.num_steps));
}

/* Adam on gradients that are clipped, unless the loss or one of them is not finite. */
static void build_training(program *p)
{
    int n;
    leat_out rate = leat_polynomial_decay(p->step, .learning_rate = learning_rate,
                                          .decay_steps = (double)(train_steps ? train_steps : 1),
                                          .end_learning_rate = learning_rate / 20);
    leat_optimizer *opt = leat_adam(.learning_rate_tensor = rate, .beta2 = 0.99);
    leat_var_grad *grads = leat_compute_gradients(opt, p->loss, &n);
    leat_grad_value *values = malloc(sizeof(*values) * (size_t)n);
    leat_out *all = malloc(sizeof(*all) * (size_t)(n + 1));
    all[n] = p->loss;
    for (int i = 0; i < n; i++) {
        values[i] = grads[i].grad;
        all[i] = values[i].value;
    }
    p->checks = leat_add_check_numerics(all, n + 1);
    leat_out norm = leat_clip_by_global_norm(values, n, max_grad_norm);
    for (int i = 0; i < n; i++)
        grads[i].grad = values[i];
    leat_out finite = leat_group(p->g, leat_check_numerics(p->loss, "loss"),
                                 leat_check_numerics(norm, "global norm of the gradients"));
    leat_with_control(p->g, finite) p->train_op =
        leat_apply_gradients(opt, grads, n, .global_step = p->step);
    const leat_out summaries[] = {leat_scalar_summary("loss", p->loss),
                                  leat_scalar_summary("learning_rate", rate)};
    p->summary = leat_merge_summaries(p->g, summaries, 2);
    free(all);
    free(values);
    free(grads);
    leat_optimizer_free(opt);
}

static void build(program *p)
{
    config.vocab_size = p->text.vocabulary;
    p->g = leat_graph_new();
    leat_graph_set_seed(p->g, seed);
    leat_with_variable_scope(p->g, "Model") lm_sampler_build(p->g, &config, &p->sampler);
    if (sample)
        return;
    p->step = leat_global_step(p->g);
    leat_with_variable_scope(p->g, "Model", .reuse = LEAT_REUSE)
    {
        lm_build(p->g, &config, true, &p->train);
        lm_build(p->g, &config, false, &p->valid);
    }
    p->loss = loss_of(&p->train);
    p->valid_loss = loss_of(&p->valid);
    build_training(p);
}

/* ---- Text by the model ---- */

static leat_status draw(program *p, int64_t count)
{
    const text *t = &p->text;
    const char *from = prime ? prime : t->id['\n'] >= 0 ? "\n" : "";
    int id = 0;
    LEAT_TRY(lm_begin(p->session, &p->sampler.m));
    for (const char *c = from; *c; c++) {
        LEAT_REQUIRE(t->id[(unsigned char)*c] >= 0, INVALID_ARGUMENT,
                     "--prime: the text does not have the character \"%c\"", *c);
        if (c > from)
            LEAT_TRY(lm_sampler_next(p->session, &p->sampler, id, temperature, NULL));
        id = t->id[(unsigned char)*c];
        if (prime)
            putchar(*c);
    }
    for (int64_t i = 0; i < count; i++) {
        LEAT_TRY(lm_sampler_next(p->session, &p->sampler, id, temperature, &id));
        putchar(t->byte[id]);
    }
    printf("\n");
    lm_end(&p->sampler.m);
    return NULL;
}

/* ---- Training ---- */

/* A step of a model on a batch of ids. train_op with a NULL node: it is not trained. */
static leat_status run_step(program *p, lm_model *m, const leat_tensor *ids, int64_t i,
                            leat_out loss, leat_out train_op, leat_tensor **summary,
                            double *loss_out)
{
    leat_feed feeds[LM_MOST_FEEDS];
    leat_fetch fetches[LM_MOST_STATES + 2];
    leat_tensor *x = NULL, *y = NULL, *value = NULL;
    leat_status s = make_batch(ids, i, &x, &y);
    const leat_feeds fed = {feeds, lm_feeds(m, x, y, feeds)};
    int n = lm_fetches(m, fetches);
    fetches[n++] = (leat_fetch){loss, &value};
    if (summary)
        fetches[n++] = (leat_fetch){p->summary, summary};
    if (!s)
        s = leat_session_run(p->session, fed, (leat_fetches){fetches, n},
                             (leat_targets){&train_op, train_op.node ? 1 : 0});
    if (lm_diverged(s))
        s = lm_name_op(p->session, fed, p->checks, s);
    if (!s)
        lm_advance(m);
    *loss_out = s ? NAN : leat_tensor_at(value, 0);
    leat_tensor_unref(x);
    leat_tensor_unref(y);
    leat_tensor_unref(value);
    return s;
}

/* The loss on the end of the text, and what the model has learnt to write. */
static leat_status show(program *p, int64_t step)
{
    double sum = 0, loss;
    int64_t n = epoch_size(p->text.valid);
    n = n < MOST_VALID_STEPS ? n : MOST_VALID_STEPS;
    LEAT_TRY(lm_begin(p->session, &p->valid));
    for (int64_t i = 0; i < n; i++) {
        LEAT_TRY(
            run_step(p, &p->valid, p->text.valid, i, p->valid_loss, (leat_out){0}, NULL, &loss));
        sum += loss;
    }
    lm_end(&p->valid);
    printf("\n---- step %lld", (long long)step);
    if (n > 0)
        printf(", loss on text that it has not read: %.3f", sum / (double)n);
    printf(" ----\n");
    LEAT_TRY(draw(p, 300));
    printf("----\n\n");
    return NULL;
}

static leat_status train_step(program *p, int64_t step, int64_t size, double *loss_out)
{
    const bool summarize = save_path && step % 100 == 0;
    leat_tensor *summary = NULL;
    if (step % size == 0 || step % STEPS_IN_A_ROW == 0 || !p->train.state[0])
        LEAT_TRY(lm_begin(p->session, &p->train));
    LEAT_TRY(run_step(p, &p->train, p->text.train, step % size, p->loss, p->train_op,
                      summarize ? &summary : NULL, loss_out));
    leat_status s = summary ? leat_supervisor_summary(p->sv, summary, step) : NULL;
    leat_tensor_unref(summary);
    return s;
}

static leat_status train(program *p)
{
    progress bar;
    int64_t step, shown = -1;
    double loss = 0, mean = 0, shown_at;
    const int64_t size = epoch_size(p->text.train);
    LEAT_TRY(leat_supervisor_step(p->sv, &step));
    if (step > 0)
        printf("going on from step %lld\n", (long long)step);
    progress_begin(&bar);
    bar.steps = train_steps;
    bar.unit = "characters";
    shown_at = progress_clock();
    for (int64_t first = step; step < train_steps; step++) {
        LEAT_TRY(train_step(p, step, size, &loss));
        mean = step == first ? loss : mean + (loss - mean) / 20;
        if (progress_add(&bar, config.batch_size * config.num_steps))
            progress_line(&bar, step + 1, (double)(step + 1) / (double)size, mean);
        if (progress_clock() - shown_at < sample_secs)
            continue;
        LEAT_TRY(show(p, shown = step + 1));
        shown_at = progress_clock();
    }
    progress_end(&bar);
    if (shown != step)
        LEAT_TRY(show(p, step));
    return save_path ? leat_supervisor_save(p->sv, NULL) : NULL;
}

static leat_status train_by_supervisor(program *p)
{
    const leat_session_options options = {.intra_op_threads = (int)threads};
    const int64_t need = config.batch_size * (config.num_steps + 1);
    LEAT_REQUIRE(epoch_size(p->text.train) > 0, INVALID_ARGUMENT,
                 "the text is too short: %lld sequences of %lld characters, each with the "
                 "character that follows, need %lld, and there are %lld; decrease --batch_size or "
                 "--num_steps",
                 (long long)config.batch_size, (long long)config.num_steps, (long long)need,
                 (long long)leat_tensor_count(p->text.train));
    LEAT_TRY(leat_supervisor_open(p->g, &p->sv, .is_chief = true, .logdir = save_path,
                                  .save_model_secs = save_secs, .save_summaries_secs = 0,
                                  .config = &options));
    LEAT_TRY(leat_supervisor_session(p->sv, "", &p->session));
    return train(p);
}

static leat_status draw_from_checkpoint(program *p)
{
    LEAT_REQUIRE(save_path, INVALID_ARGUMENT, "--sample wants --save_path");
    char *newest = leat_latest_checkpoint(save_path);
    LEAT_REQUIRE(newest, NOT_FOUND, "%s has no checkpoint", save_path);
    leat_saver *saver = leat_saver_new(p->g);
    leat_session *session = NULL;
    leat_status s = leat_session_open(p->g, &session);
    if (!s)
        s = leat_saver_restore(saver, session, newest);
    p->session = session;
    if (!s)
        s = draw(p, sample);
    if (session)
        leat_session_close(session);
    leat_saver_free(saver);
    free(newest);
    return s;
}

static leat_status work(program *p)
{
    LEAT_TRY(open_text(&p->text));
    build(p);
    LEAT_TRY(leat_graph_status(p->g));
    return sample ? draw_from_checkpoint(p) : train_by_supervisor(p);
}

int main(int argc, char **argv)
{
    static program p;
    setvbuf(stdout, NULL, _IOLBF, 0); /* output appears line by line, also in a pipe */
    int done = flags_parse(argc, argv, "learns to write the text that it reads", flags);
    if (done >= 0)
        return done;
    config.vocab_size = 1; /* until the text is known */
    leat_status s = lm_check(&config);
    if (s) {
        fprintf(stderr, "char_rnn: %s (--help lists the flags)\n", leat_status_message(s));
        leat_status_free(s);
        return 2;
    }
    s = work(&p);
    lm_end(&p.train);
    lm_end(&p.valid);
    lm_end(&p.sampler.m);
    s = leat_status_first(s, leat_supervisor_close(p.sv));
    leat_graph_free(p.g);
    leat_tensor_unref(p.text.train);
    leat_tensor_unref(p.text.valid);
    LEAT_DIE_ON_ERROR(s);
    return 0;
}
