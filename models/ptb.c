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

#include "common_flags.h"
#include "common_lm.h"
#include "common_progress.h"
#include "common_task.h"
#include "common_towers.h"

/* ---- Configurations and flags ---- */

typedef struct config {
    const char *name;
    double init_scale, learning_rate, max_grad_norm, lr_decay;
    int64_t max_epoch, max_max_epoch; /* epochs before the learning rate decays; epochs in all */
    lm_config lm;
} config;

#define NET(hidden, layers, steps, keep)                                                           \
    {                                                                                              \
        .hidden_size = (hidden), .num_layers = (layers), .num_steps = (steps),                     \
        .keep_prob = (keep), .batch_size = 20, .rnn_mode = "block"                                 \
    }
static const config configs[] = {
    {"small", 0.1, 1, 5, 0.5, 4, 13, NET(200, 2, 20, 1)},
    {"medium", 0.05, 1, 5, 0.8, 6, 39, NET(650, 2, 35, 0.5)},
    {"large", 0.04, 1, 10, 1 / 1.15, 14, 55, NET(1500, 2, 35, 0.35)},
    {"test", 0.1, 1, 1, 0.5, 1, 1, NET(2, 1, 2, 1)},
};

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
    config c;
    task *t; /* NULL: there is no cluster */
    leat_ptb *data;
    leat_graph *g;
    lm_model train[TOWERS_MOST], valid, test;
    leat_out cost, lr, new_lr, lr_update, train_op, step, summary, checks;
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

/* ---- The graph ---- */

static const char *beside_home(void *tower, const leat_node *n)
{
    const char *op = leat_node_op(n);
    return strncmp(op, "Variable", 8) == 0 || strcmp(op, "VarHandleOp") == 0 ? devices.home : tower;
}

#define IN_MODEL(p, reuse_)                                                                        \
    leat_with_variable_scope(                                                                      \
        (p)->g, "Model", .reuse = (reuse_),                                                        \
        .initializer = leat_random_uniform_initializer(-(p)->c.init_scale, (p)->c.init_scale))

static void build_tower(program *p, int i, leat_optimizer *opt, leat_var_grad **grads_out, int *n)
{
    IN_MODEL(p, i ? LEAT_REUSE : LEAT_REUSE_INHERIT)
    {
        lm_build(p->g, &p->c.lm, true, &p->train[i]);
        *grads_out = leat_compute_gradients(opt, p->train[i].cost, n);
    }
}

/* Clips and applies gradients, unless the loss or one of them is not finite. */
static void apply(program *p, leat_optimizer *opt, leat_var_grad *grads, int n)
{
    leat_grad_value *values = malloc(sizeof(*values) * (size_t)n);
    for (int i = 0; i < n; i++)
        values[i] = grads[i].grad;
    leat_out norm = leat_clip_by_global_norm(values, n, p->c.max_grad_norm);
    for (int i = 0; i < n; i++)
        grads[i].grad = values[i];
    free(values);
    leat_out finite = leat_group(p->g, leat_check_numerics(p->cost, "cost"),
                                 leat_check_numerics(norm, "global norm of the gradients"));
    leat_with_control(p->g, finite) p->train_op =
        leat_apply_gradients(opt, grads, n, .global_step = p->step);
}

/* What lm_name_op runs: checks of all that losses and gradients need. */
static void build_checks(program *p, leat_var_grad *const *grads, int n)
{
    leat_out *all = malloc(sizeof(*all) * (size_t)(devices.n * (n + 1)));
    int count = 0;
    for (int i = 0; i < devices.n; i++) {
        all[count++] = p->train[i].cost;
        for (int k = 0; k < n; k++)
            all[count++] = grads[i][k].grad.value;
    }
    p->checks = leat_add_check_numerics(all, count);
    free(all);
}

static void build_training(program *p)
{
    leat_var_grad *towers[TOWERS_MOST] = {0};
    leat_out costs[TOWERS_MOST];
    static const char *const collections[] = {LEAT_GLOBAL_VARIABLES, LEAT_GLOBAL_STEP, NULL};
    int n = 0;
    IN_MODEL(p, LEAT_REUSE_INHERIT)
    {
        p->lr = leat_variable(p->g, "Variable", leat_scalar(p->g, LEAT_FLOAT, 0),
                              .not_trainable = true);
        p->step = leat_get_variable(p->g, "global_step", leat_shape(), .dtype = LEAT_INT64,
                                    .initializer = leat_zeros_initializer(), .not_trainable = true,
                                    .collections = collections);
    }
    leat_optimizer *opt = leat_gradient_descent(.learning_rate_tensor = p->lr);
    for (int i = 0; i < devices.n; i++) {
        if (p->t)
            build_tower(p, i, opt, &towers[i], &n);
        else
            leat_with_device_fn(p->g, beside_home, devices.name[i])
                build_tower(p, i, opt, &towers[i], &n);
        costs[i] = p->train[i].cost;
    }
    p->cost = devices.n == 1 ? costs[0]
                             : leat_div(leat_add_n(costs, devices.n),
                                        leat_scalar(p->g, LEAT_FLOAT, devices.n));
    leat_var_grad *grads =
        devices.n == 1 ? towers[0] : leat_average_gradients(towers, devices.n, n);
    build_checks(p, towers, n);
    apply(p, opt, grads, n);
    p->new_lr = leat_placeholder(p->g, LEAT_FLOAT, leat_shape(), leat_name("new_learning_rate"));
    p->lr_update = leat_variable_assign(p->lr, p->new_lr);
    const leat_out summaries[] = {leat_scalar_summary("Training_Loss", p->cost),
                                  leat_scalar_summary("Learning_Rate", p->lr)};
    p->summary = leat_merge_summaries(p->g, summaries, 2);
    for (int i = 0; i < devices.n; i++)
        free(towers[i]);
    if (devices.n > 1)
        free(grads);
    leat_optimizer_free(opt);
}

static void build_all(program *p)
{
    lm_config one = p->c.lm;
    one.batch_size = one.num_steps = 1;
    leat_with_name(p->g, "Train") build_training(p);
    if (!is_chief(p))
        return;
    leat_with_name(p->g, "Valid") IN_MODEL(p, LEAT_REUSE)
        lm_build(p->g, &p->c.lm, false, &p->valid);
    leat_with_name(p->g, "Test") IN_MODEL(p, LEAT_REUSE) lm_build(p->g, &one, false, &p->test);
}

static void build(program *p)
{
    p->g = leat_graph_new();
    if (seed)
        leat_graph_set_seed(p->g, seed);
    if (!p->t) {
        p->c.lm.home = devices.home;
        leat_with_device(p->g, devices.home) build_all(p);
        return;
    }
    char device[256];
    snprintf(device, sizeof(device), "/job:%s/task:%d%s", p->t->job, p->t->index, devices.name[0]);
    p->c.lm.slices = leat_cluster_tasks(p->t->cluster, "ps");
    leat_with_device_setter(
        p->g, leat_replica_device_setter(p->t->cluster, p->t->index, .worker_device = device,
                                         .ps_device = "/job:ps/cpu:0")) build_all(p);
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
        fetches[n_fetches++] = (leat_fetch){e->p->summary, summary};
    const leat_feeds fed = {feeds, n_feeds};
    leat_status s = run_again(e->p, fed, (leat_fetches){fetches, n_fetches},
                              (leat_targets){&e->train_op, e->train_op.node ? 1 : 0});
    if (!lm_diverged(s))
        return s;
    return lm_name_op(e->p->session, fed, e->p->checks, s);
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

static leat_status assign_lr(program *p, int64_t i)
{
    const int64_t decays = i + 1 > p->c.max_epoch ? i + 1 - p->c.max_epoch : 0;
    leat_tensor *value =
        leat_scalar_float((float)(p->c.learning_rate * pow(p->c.lr_decay, (double)decays)));
    leat_status s = is_chief(p) ? run_again(p, LEAT_FEED({p->new_lr, value}), LEAT_NO_FETCH,
                                            LEAT_TARGET(p->lr_update))
                                : NULL;
    printf("Epoch: %lld Learning rate: %.3f\n", (long long)i + 1, leat_tensor_at(value, 0));
    leat_tensor_unref(value);
    return s;
}

static leat_status train_epoch(program *p, int64_t i, int64_t size, int64_t from)
{
    double perplexity;
    epoch e = {.p = p,
               .models = p->train,
               .n_models = devices.n,
               .set = LEAT_PTB_TRAIN,
               .parts = devices.n * workers(p),
               .first = p->t ? devices.n * p->t->index : 0,
               .cost = p->cost,
               .train_op = p->train_op,
               .size = size,
               .from = from};
    LEAT_TRY(assign_lr(p, i));
    LEAT_TRY(run_epoch(&e, &perplexity));
    if (is_stopped(p))
        return NULL;
    printf("Epoch: %lld Train Perplexity: %.3f\n", (long long)i + 1, perplexity);
    if (!is_chief(p))
        return NULL;
    LEAT_TRY(measure(p, &p->valid, LEAT_PTB_VALID, &perplexity));
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
    LEAT_TRY(measure(p, &p->test, LEAT_PTB_TEST, &perplexity));
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
    LEAT_TRY(leat_graph_status(p->g));
    LEAT_TRY(leat_supervisor_open(p->g, &p->sv, .is_chief = is_chief(p),
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
    p->g = leat_graph_new();
    leat_graph_set_seed(p->g, seed);
    IN_MODEL(p, LEAT_REUSE_INHERIT) lm_sampler_build(p->g, &p->c.lm, &d);
    leat_saver *saver = leat_saver_new(p->g);
    leat_status s = leat_graph_status(p->g);
    if (!s)
        s = leat_session_open(p->g, &p->session);
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

static leat_status choose_config(config *c)
{
    const int n = (int)(sizeof(configs) / sizeof(*configs));
    int i = 0;
    while (i < n && strcmp(configs[i].name, model_name) != 0)
        i++;
    LEAT_REQUIRE(i < n, INVALID_ARGUMENT, "--model is small, medium, large or test, not %s",
                 model_name);
    *c = configs[i];
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
    leat_graph_free(p->g);
    return s;
}

static leat_status run_task(program *p)
{
    LEAT_TRY(task_start(p->t, false));
    return strcmp(p->t->job, "ps") == 0 ? leat_server_join(p->t->server) : work(p);
}

static leat_status prepare(program *p, task *t)
{
    LEAT_REQUIRE(data_path, INVALID_ARGUMENT, "Must set --data_path to PTB data directory");
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
