/* ptb.c -- the language model of TensorFlow's PTB tutorial (ptb_word_lm.py): LSTMs that predict the
 * next word of the Penn Treebank, or of any three texts of the same names. Configurations, names of
 * variables and printed lines are the tutorial's, so that either program can go on from the other
 * one's checkpoints. In one process, on towers (--num_gpus 2), or on parameter servers and workers:
 *
 *     ptb --data_path DIR --save_path log/ptb
 *     ptb --data_path DIR --save_path log/ptb --sample 100
 *     leat launch --ps 2 --workers 2 -- ptb --data_path DIR
 *
 * Each tower of each worker reads a part of its own of the text. A step whose loss or gradients are
 * not finite updates nothing; the program ends with the op that made the first NaN or infinity. */
#include <leat/leat.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common_flags.h"
#include "common_progress.h"
#include "common_ptb.h"
#include "common_task.h"
#include "common_towers.h"

/* ---- Flags ---- */

static task_flags who = TASK_FLAGS_DEFAULT;
static towers_flags devices_wanted = {.num_devices = 1};
static towers_devices devices;
static const char *model_name = "small", *data_path, *save_path, *rnn_mode, *prime = "<eos>";
static int64_t sample, seed, threads, epochs = -1, batch_size, num_steps, hidden_size;
static int64_t summary_steps = 100;
static double temperature = 1, learning_rate = -1, save_secs = 600;
static bool log_placement;

static const flag flags[] = {
    {"model", FLAG_STRING, &model_name, 0, "small, medium, large or test"},
    {"data_path", FLAG_STRING, &data_path, 0,
     "where ptb.train.txt, ptb.valid.txt and ptb.test.txt are; required"},
    {"save_path", FLAG_STRING, &save_path, 0,
     "checkpoints and events for TensorBoard; a run that finds checkpoints there goes on"},
    {"rnn_mode", FLAG_STRING, &rnn_mode, 0,
     "basic: many ops for a step of a layer; block: one op; fused: one op for all steps (block)"},
    {"sample", FLAG_INT, &sample, 0, "print so many words drawn by the model in save_path"},
    {"temperature", FLAG_FLOAT, &temperature, 1e-3, "of what is drawn: below 1 more likely words"},
    {"prime", FLAG_STRING, &prime, 0, "words that the sample goes on from"},
    TOWERS_FLAGS(devices_wanted),
    {"learning_rate", FLAG_FLOAT, &learning_rate, 0, "at the beginning; default: the model's"},
    {"max_max_epoch", FLAG_INT, &epochs, 0, "epochs; default: the model's"},
    {"batch_size", FLAG_INT, &batch_size, 1,
     "sequences in a step of a tower; default: the model's"},
    {"num_steps", FLAG_INT, &num_steps, 1, "words of a sequence in a step; default: the model's"},
    {"hidden_size", FLAG_INT, &hidden_size, 1, "units of a layer; default: the model's"},
    {"save_secs", FLAG_FLOAT, &save_secs, 0,
     "seconds between checkpoints, beside those after each epoch; 0: no others"},
    {"summary_steps", FLAG_INT, &summary_steps, 1, "steps between summaries"},
    {"seed", FLAG_INT, &seed, 0, "of weights and dropout; 0: random"},
    {"threads", FLAG_INT, &threads, 0, "that a kernel may use on a device; 0: all its cores"},
    {"log_device_placement", FLAG_BOOL, &log_placement, 0, "print the device of each node"},
    TASK_FLAGS(who),
    {0},
};

typedef struct program {
    ptb_config c;
    ptb_graph b;
    task *t; /* NULL: there is no cluster */
    leat_ptb *data;
    leat_supervisor *sv;
    leat_session *session;
} program;

static int workers(const program *p)
{
    return p->t ? p->t->workers : 1;
}

static bool is_chief(const program *p)
{
    return !p->t || p->t->is_chief;
}

static bool is_stopped(const program *p)
{
    return p->t && leat_is_cancelled(p->t->stop);
}

static void build(program *p)
{
    const task *t = p->t;
    p->b.g = leat_graph_new();
    if (seed)
        leat_graph_set_seed(p->b.g, seed);
    if (!t) {
        p->c.lm.home = devices.home;
        ptb_build(&p->b, &p->c, &devices, true);
        return;
    }
    char device[256];
    snprintf(device, sizeof(device), "/job:%s/task:%d%s", t->job, t->index, devices.name[0]);
    p->c.lm.slices = leat_cluster_tasks(t->cluster, "ps");
    leat_with_device_setter(p->b.g, leat_replica_device_setter(t->cluster, t->index,
                                                               .worker_device = device,
                                                               .ps_device = "/job:ps/cpu:0"))
        ptb_build(&p->b, &p->c, NULL, is_chief(p));
}

/* ---- An epoch: a text in order, by batches, each of which goes on where the last one ended ----
 */

typedef struct epoch {
    program *p;
    lm_model *models;
    int n_models;
    leat_ptb_set set;
    int parts, first;        /* of the text: first, first + 1 ... are read by the models */
    leat_out cost, train_op; /* train_op with a NULL node: the models are not trained */
    int64_t size, from;      /* steps; `from` of them were done by an earlier run */
    double costs, started;
    int64_t words, in_all; /* of one sequence, and of all that this process reads */
} epoch;

/* The tensors of a run, which this function's caller frees; rows: two for each model. */
static leat_status make_batch(const epoch *e, int64_t i, leat_tensor **rows)
{
    const int64_t n = e->models->c.batch_size;
    leat_tensor *both[2];
    leat_status s = leat_ptb_batch(e->p->data, e->set, n * e->parts, e->models->c.num_steps, i,
                                   &both[0], &both[1]);
    if (s)
        return s;
    for (int k = 0; k < e->n_models && !s; k++)
        for (int j = 0; j < 2 && !s; j++)
            s = leat_tensor_rows(both[j], (e->first + k) * n, (e->first + k + 1) * n,
                                 &rows[2 * k + j]);
    leat_tensor_unref(both[0]);
    leat_tensor_unref(both[1]);
    return s;
}

/* In a cluster: a run that failed because a task was lost is repeated as soon as the task is back.
 */
static leat_status run_again(program *p, leat_feeds feeds, leat_fetches fetches,
                             leat_targets targets)
{
    for (;;) {
        leat_status s = leat_session_run(p->session, feeds, fetches, targets);
        const leat_code code = leat_status_code(s);
        if (!p->t || is_stopped(p) || (code != LEAT_UNAVAILABLE && code != LEAT_ABORTED))
            return s;
        fprintf(stderr, "ptb: %s\n", leat_status_message(s));
        leat_status_free(s);
        LEAT_TRY(leat_supervisor_session(p->sv, leat_server_target(p->t->server), &p->session));
    }
}

/* Runs a step, and gives its cost and the summary, which may stay NULL. */
static leat_status run_step(epoch *e, leat_tensor *const *rows, leat_tensor **cost,
                            leat_tensor **summary)
{
    leat_feed feeds[TOWERS_MOST * LM_MOST_FEEDS];
    leat_fetch fetches[TOWERS_MOST * LM_MOST_STATES + 2];
    int n_feeds = 0, n_fetches = 0;
    for (int k = 0; k < e->n_models; k++) {
        n_feeds += lm_feeds(&e->models[k], rows[2 * k], rows[2 * k + 1], feeds + n_feeds);
        n_fetches += lm_fetches(&e->models[k], fetches + n_fetches);
    }
    fetches[n_fetches++] = (leat_fetch){e->cost, cost};
    if (summary)
        fetches[n_fetches++] = (leat_fetch){e->p->b.summary, summary};
    const leat_feeds fed = {feeds, n_feeds};
    leat_status s = run_again(e->p, fed, (leat_fetches){fetches, n_fetches},
                              (leat_targets){&e->train_op, e->train_op.node ? 1 : 0});
    if (!lm_diverged(s))
        return s;
    return lm_name_op(e->p->session, fed, e->p->b.checks, s);
}

static leat_status count(epoch *e, int64_t i, const leat_tensor *cost, const leat_tensor *summary)
{
    const double value = leat_tensor_at(cost, 0);
    LEAT_REQUIRE(isfinite(value), INVALID_ARGUMENT, "Model diverged: the cost of batch %lld is %g",
                 (long long)i, value);
    e->costs += value;
    e->words += e->models->c.num_steps;
    e->in_all += e->models->c.num_steps * e->models->c.batch_size * e->n_models;
    return summary ? leat_supervisor_summary(e->p->sv, summary, -1) : NULL;
}

static leat_status one_step(epoch *e, int64_t i)
{
    leat_tensor *rows[2 * TOWERS_MOST] = {0}, *cost = NULL, *summary = NULL;
    const bool summarize =
        e->train_op.node && save_path && is_chief(e->p) && i % summary_steps == 0;
    leat_status s = make_batch(e, i, rows);
    if (!s)
        s = run_step(e, rows, &cost, summarize ? &summary : NULL);
    if (!s)
        s = count(e, i, cost, summary);
    for (int k = 0; k < e->n_models; k++) {
        leat_tensor_unref(rows[2 * k]);
        leat_tensor_unref(rows[2 * k + 1]);
        lm_advance(&e->models[k]);
    }
    leat_tensor_unref(cost);
    leat_tensor_unref(summary);
    return s;
}

/* "0.004 perplexity: 5534.452 speed: 894 wps", ten times in an epoch. */
static void line(const epoch *e, int64_t i)
{
    const int64_t every = e->size >= 10 ? e->size / 10 : 1;
    if (i % every == (every > 10 ? 10 : 0))
        printf("%.3f perplexity: %.3f speed: %.0f wps\n", (double)i / (double)e->size,
               exp(e->costs / (double)e->words),
               (double)e->in_all / (progress_clock() - e->started));
}

/* Gives the perplexity of the steps that were done. */
static leat_status run_epoch(epoch *e, double *perplexity_out)
{
    leat_status s = NULL;
    e->started = progress_clock();
    for (int k = 0; k < e->n_models && !s; k++)
        s = lm_begin(e->p->session, &e->models[k]);
    for (int64_t i = e->from; i < e->size && !s && !is_stopped(e->p); i++) {
        s = one_step(e, i);
        if (!s && e->train_op.node)
            line(e, i);
    }
    for (int k = 0; k < e->n_models; k++)
        lm_end(&e->models[k]);
    *perplexity_out = exp(e->costs / (double)e->words);
    return s;
}

/* ---- Training ---- */

/* The size of an epoch of `parts` parts of a text; an error tells how many words it should have. */
static leat_status size_of(const program *p, leat_ptb_set set, const lm_config *c, int parts,
                           int64_t *size_out)
{
    static const char *const names[] = {"train", "valid", "test"};
    const int64_t rows = c->batch_size * parts;
    leat_tensor *ids;
    *size_out = leat_ptb_epoch_size(p->data, set, rows, c->num_steps);
    if (*size_out > 0)
        return NULL;
    LEAT_TRY(leat_ptb_ids(p->data, set, &ids));
    const int64_t n = leat_tensor_count(ids);
    leat_tensor_unref(ids);
    return leat_error(INVALID_ARGUMENT,
                      "ptb.%s.txt is too short: it has %lld words of the vocabulary, and %lld "
                      "sequences of %lld words, each with the word that follows, need %lld; "
                      "decrease batch_size or num_steps",
                      names[set], (long long)n, (long long)rows, (long long)c->num_steps,
                      (long long)(rows * (c->num_steps + 1)));
}

static leat_status measure(program *p, lm_model *m, leat_ptb_set set, double *perplexity_out)
{
    epoch e = {.p = p, .models = m, .n_models = 1, .set = set, .parts = 1, .cost = m->cost};
    LEAT_TRY(size_of(p, set, &m->c, 1, &e.size));
    return run_epoch(&e, perplexity_out);
}

/* The chief sets the learning rate of epoch i; all workers print the one that there is. */
static leat_status assign_lr(program *p, int64_t i)
{
    const int64_t decays = i + 1 > p->c.max_epoch ? i + 1 - p->c.max_epoch : 0;
    const double rate = p->c.learning_rate * pow(p->c.lr_decay, (double)decays);
    leat_tensor *value = leat_scalar_float((float)rate);
    leat_status s = is_chief(p) ? run_again(p, LEAT_FEED({p->b.new_lr, value}), LEAT_NO_FETCH,
                                            LEAT_TARGET(p->b.lr_update))
                                : NULL;
    leat_tensor_unref(value);
    if (!s)
        s = run_again(p, LEAT_NO_FEED, LEAT_FETCH({p->b.lr, &value}), LEAT_NO_TARGET);
    if (s)
        return s;
    printf("Epoch: %lld Learning rate: %.3f\n", (long long)i + 1, leat_tensor_at(value, 0));
    leat_tensor_unref(value);
    return NULL;
}

static leat_status train_epoch(program *p, int64_t i, int64_t size, int64_t from)
{
    double perplexity;
    epoch e = {.p = p,
               .models = p->b.train,
               .n_models = devices.n,
               .set = LEAT_PTB_TRAIN,
               .parts = devices.n * workers(p),
               .first = p->t ? devices.n * p->t->index : 0,
               .cost = p->b.cost,
               .train_op = p->b.train_op,
               .size = size,
               .from = from};
    LEAT_TRY(assign_lr(p, i));
    LEAT_TRY(run_epoch(&e, &perplexity));
    if (is_stopped(p))
        return NULL;
    printf("Epoch: %lld Train Perplexity: %.3f\n", (long long)i + 1, perplexity);
    if (!is_chief(p))
        return NULL;
    LEAT_TRY(measure(p, &p->b.valid, LEAT_PTB_VALID, &perplexity));
    if (!is_stopped(p))
        printf("Epoch: %lld Valid Perplexity: %.3f\n", (long long)i + 1, perplexity);
    return save_path ? leat_supervisor_save(p->sv, NULL) : NULL;
}

/* The epochs that are left. The global step counts the steps of all workers. */
static leat_status train(program *p)
{
    int64_t size, done;
    double perplexity;
    LEAT_TRY(size_of(p, LEAT_PTB_TRAIN, &p->c.lm, devices.n * workers(p), &size));
    LEAT_TRY(leat_supervisor_step(p->sv, &done));
    const int64_t mine = done / workers(p);
    if (done > 0)
        printf("going on from step %lld\n", (long long)done);
    for (int64_t i = mine / size; i < p->c.max_max_epoch && !is_stopped(p); i++)
        LEAT_TRY(train_epoch(p, i, size, i == mine / size ? mine % size : 0));
    if (!is_chief(p) || is_stopped(p))
        return NULL;
    LEAT_TRY(measure(p, &p->b.test, LEAT_PTB_TEST, &perplexity));
    if (is_stopped(p))
        return NULL;
    printf("Test Perplexity: %.3f\n", perplexity);
    if (!save_path)
        return NULL;
    printf("Saving model to %s.\n", save_path);
    return leat_supervisor_save(p->sv, NULL);
}

/* Texts that are too short are an error before the first epoch, not after it. */
static leat_status check_texts(const program *p)
{
    int64_t size;
    lm_config one = p->c.lm;
    one.batch_size = one.num_steps = 1;
    LEAT_TRY(size_of(p, LEAT_PTB_TRAIN, &p->c.lm, devices.n * workers(p), &size));
    LEAT_TRY(size_of(p, LEAT_PTB_VALID, &p->c.lm, 1, &size));
    return size_of(p, LEAT_PTB_TEST, &one, 1, &size);
}

static leat_status train_by_supervisor(program *p)
{
    char self[128] = "";
    const char *const filters[] = {"/job:ps", self, NULL};
    leat_session_options options = {.cpu_devices = devices.cpus,
                                    .intra_op_threads = (int)threads,
                                    .allow_soft_placement = true,
                                    .log_device_placement = log_placement};
    if (p->t) {
        snprintf(self, sizeof(self), "/job:%s/task:%d", p->t->job, p->t->index);
        options.device_filters = filters;
        options.security = &p->t->security;
    }
    LEAT_TRY(check_texts(p));
    build(p);
    LEAT_TRY(leat_graph_status(p->b.g));
    LEAT_TRY(leat_supervisor_open(p->b.g, &p->sv, .is_chief = is_chief(p),
                                  .logdir = is_chief(p) ? save_path : NULL,
                                  .save_model_secs = save_secs, .save_summaries_secs = 0,
                                  .config = &options, .stop = p->t ? p->t->stop : NULL));
    LEAT_TRY(
        leat_supervisor_session(p->sv, p->t ? leat_server_target(p->t->server) : "", &p->session));
    return train(p);
}

/* ---- Drawing ---- */

/* Reads the prime; gives the last id. */
static leat_status read_prime(program *p, lm_sampler *d, int *last_out)
{
    char word[256];
    int id = leat_ptb_id(p->data, "<eos>"), used;
    for (const char *at = prime; sscanf(at, " %255s%n", word, &used) == 1; at += used) {
        if (id >= 0)
            LEAT_TRY(lm_sampler_next(p->session, d, id, 1, NULL));
        id = leat_ptb_id(p->data, word);
        LEAT_REQUIRE(id >= 0, INVALID_ARGUMENT, "--prime: the training text has no word \"%s\"",
                     word);
        if (strcmp(word, "<eos>") != 0)
            printf("%s ", word);
    }
    *last_out = id < 0 ? 0 : id;
    return NULL;
}

static leat_status draw(program *p, lm_sampler *d)
{
    int id;
    LEAT_TRY(lm_begin(p->session, &d->m));
    LEAT_TRY(read_prime(p, d, &id));
    for (int64_t i = 0; i < sample; i++) {
        LEAT_TRY(lm_sampler_next(p->session, d, id, temperature, &id));
        const char *word = leat_ptb_word(p->data, id);
        printf(strcmp(word, "<eos>") == 0 ? "\n" : "%s ", word);
    }
    printf("\n");
    return NULL;
}

static leat_status draw_from_checkpoint(program *p)
{
    lm_sampler d = {0};
    LEAT_REQUIRE(save_path, INVALID_ARGUMENT, "--sample wants --save_path");
    char *newest = leat_latest_checkpoint(save_path);
    LEAT_REQUIRE(newest, NOT_FOUND, "%s has no checkpoint", save_path);
    p->b.g = leat_graph_new();
    leat_graph_set_seed(p->b.g, seed);
    PTB_MODEL(p->b.g, &p->c, LEAT_REUSE_INHERIT) lm_sampler_build(p->b.g, &p->c.lm, &d);
    leat_saver *saver = leat_saver_new(p->b.g);
    leat_status s = leat_graph_status(p->b.g);
    if (!s)
        s = leat_session_open(p->b.g, &p->session);
    if (!s)
        s = leat_saver_restore(saver, p->session, newest);
    if (!s)
        s = draw(p, &d);
    lm_end(&d.m);
    if (p->session)
        leat_session_close(p->session);
    leat_saver_free(saver);
    free(newest);
    return s;
}

/* ---- The program ---- */

static leat_status choose_config(ptb_config *c)
{
    LEAT_TRY(ptb_config_find(model_name, c));
    c->learning_rate = learning_rate >= 0 ? learning_rate : c->learning_rate;
    c->max_max_epoch = epochs >= 0 ? epochs : c->max_max_epoch;
    c->lm.batch_size = batch_size ? batch_size : c->lm.batch_size;
    c->lm.num_steps = num_steps ? num_steps : c->lm.num_steps;
    c->lm.hidden_size = hidden_size ? hidden_size : c->lm.hidden_size;
    c->lm.rnn_mode = rnn_mode ? rnn_mode : c->lm.rnn_mode;
    c->lm.vocab_size = 1; /* until the text is known */
    return lm_check(&c->lm);
}

/* After a signal, an error from a wait for other tasks is not a failure. Takes s. */
static leat_status unless_asked_to_end(const program *p, leat_status s)
{
    const leat_code c = leat_status_code(s);
    if (!is_stopped(p) || (c != LEAT_CANCELLED && c != LEAT_UNAVAILABLE && c != LEAT_ABORTED))
        return s;
    fprintf(stderr, "ptb: %s\n", leat_status_message(s));
    leat_status_free(s);
    return NULL;
}

static leat_status work(program *p)
{
    LEAT_TRY(leat_ptb_open(data_path, &p->data));
    printf("%s\n", leat_ptb_source(p->data));
    p->c.lm.vocab_size = leat_ptb_vocabulary(p->data);
    leat_status s = sample ? draw_from_checkpoint(p) : train_by_supervisor(p);
    s = leat_status_first(unless_asked_to_end(p, s), leat_supervisor_close(p->sv));
    leat_ptb_close(p->data);
    leat_graph_free(p->b.g);
    return s;
}

/* Other texts than those that the user names are not taken. */
static leat_status check_data_path(void)
{
    static const char *const names[] = {"train", "valid", "test"};
    LEAT_REQUIRE(data_path, INVALID_ARGUMENT, "Must set --data_path to PTB data directory");
    for (int i = 0; i < 3; i++) {
        static const char *const endings[] = {"", ".gz", ".xz"};
        bool there = false;
        for (int k = 0; k < 3 && !there; k++) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/ptb.%s.txt%s", data_path, names[i], endings[k]);
            there = access(path, F_OK) == 0;
        }
        LEAT_REQUIRE(there, NOT_FOUND, "--data_path: %s has no ptb.%s.txt", data_path, names[i]);
    }
    return NULL;
}

static leat_status run_task(program *p)
{
    LEAT_TRY(task_start(p->t, false));
    return strcmp(p->t->job, "ps") == 0 ? leat_server_join(p->t->server) : work(p);
}

static leat_status prepare(program *p, task *t)
{
    LEAT_TRY(check_data_path());
    LEAT_TRY(choose_config(&p->c));
    LEAT_TRY(towers_choose(&devices_wanted, &devices));
    bool clustered;
    LEAT_TRY(task_wanted(&who, &clustered));
    if (!clustered || sample)
        return NULL;
    p->t = t;
    LEAT_REQUIRE(devices.n == 1 && !devices_wanted.device_list, INVALID_ARGUMENT,
                 "a worker of a cluster has one tower; start more workers");
    return task_find("ptb", &who, t);
}

/* Which peers are waited for, and that connections are not encrypted: printed even if no log level
 * is set. */
static void warn(void *arg, leat_log_level level, const char *file, int line_, const char *message)
{
    fprintf(stderr, "ptb: %s\n", message);
}

int main(int argc, char **argv)
{
    static task t;
    static program p;
    if (!getenv("TF_CPP_MIN_LOG_LEVEL"))
        leat_log_set_sink(warn, NULL, LEAT_LOG_WARNING);
    setvbuf(stdout, NULL, _IOLBF, 0); /* output appears line by line, also in a pipe */
    int done = flags_parse(argc, argv, "trains a language model on the words of a text", flags);
    if (done >= 0)
        return done;
    leat_status s = prepare(&p, &t);
    if (s) {
        fprintf(stderr, "ptb: %s (--help lists the flags)\n", leat_status_message(s));
        leat_status_free(s);
        task_release(&t);
        return 2;
    }
    s = p.t ? run_task(&p) : work(&p);
    task_release(&t);
    LEAT_DIE_ON_ERROR(s);
    return 0;
}
