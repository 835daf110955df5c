/* cifar10_towers.c -- the net of TensorFlow's CIFAR-10 tutorial, trained by towers: every device
 * has a replica of the net and a batch of its own; variables live on one CPU, where the towers'
 * gradients are averaged and applied once. Devices are CPU devices or GPUs of this machine, or with
 * --target those of the tasks of a cluster, which this program drives alone. Images are distorted
 * by a dataset in the graph. With --train_dir there are checkpoints, from which the next run goes
 * on, and summaries; cifar10_eval tests them. A step whose losses or gradients are not finite
 * updates nothing; the program ends with the op that made the first NaN or infinity. */
#include <leat/leat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common_cifar10.h"
#include "common_flags.h"
#include "common_progress.h"
#include "common_records.h"
#include "common_towers.h"

static const char *data_dir, *train_dir, *records_dir, *target = "";
static towers_flags devices_wanted = {.num_devices = 1};
static towers_devices devices;
static int64_t max_steps = 1000000, batch_size = 128, threads, seed = 1;
static int64_t log_frequency = 10, save_steps = 1000, summary_steps = 100;
static double learning_rate = 0.1, decay_factor = 0.1, epochs_per_decay = 350;
static double average_decay = 0.9999;
static bool log_placement, fused_average;

static const flag flags[] = {
    {"data_dir", FLAG_STRING, &data_dir, 0, "where CIFAR-10's files are"},
    {"train_dir", FLAG_STRING, &train_dir, 0,
     "for checkpoints and summaries; none: nothing is written"},
    {"records_dir", FLAG_STRING, &records_dir, 0,
     "of CIFAR-10 as TFRecords, written if missing; default: data_dir, or the cache"},
    {"max_steps", FLAG_INT, &max_steps, 0, "steps to train for"},
    {"batch_size", FLAG_INT, &batch_size, 1, "images in a step of a tower"},
    TOWERS_FLAGS(devices_wanted),
    {"target", FLAG_STRING, &target, 0, "a server, grpc://host:port, that runs the session"},
    {"fused_average", FLAG_BOOL, &fused_average, 0,
     "average all gradients by one reduction: one tensor from each tower"},
    {"learning_rate", FLAG_FLOAT, &learning_rate, 0, "at the beginning"},
    {"learning_rate_decay_factor", FLAG_FLOAT, &decay_factor, 0, "what the rate is multiplied by"},
    {"num_epochs_per_decay", FLAG_FLOAT, &epochs_per_decay, 0, "epochs after which it is"},
    {"moving_average_decay", FLAG_FLOAT, &average_decay, 0, "of the averages of variables"},
    {"log_frequency", FLAG_INT, &log_frequency, 1, "steps between lines"},
    {"save_steps", FLAG_INT, &save_steps, 1, "steps between checkpoints"},
    {"summary_steps", FLAG_INT, &summary_steps, 1, "steps between summaries"},
    {"threads", FLAG_INT, &threads, 0, "that a kernel may use on a device; 0: all its cores"},
    {"seed", FLAG_INT, &seed, 0, "of weights, shuffling and distortions"},
    {"log_device_placement", FLAG_BOOL, &log_placement, 0, "print the device of each node"},
    {0},
};

typedef struct model {
    leat_graph *g;
    leat_out loss; /* of the last tower */
    leat_out rate;
    leat_out train, step; /* step: the global step after the training */
    /* Losses and gradients of the towers, and the node that checks all that they need. */
    leat_out *results, checks;
    int n_results;
} model;

/* ---- The model ---- */

/* The name of a node of a tower without the tower's name, which summaries get from their scope. */
static const char *without_tower(const char *name)
{
    return strncmp(name, "tower_", 6) == 0 && strchr(name, '/') ? strchr(name, '/') + 1 : name;
}

/* Summaries of the losses and of their moving averages, which are kept beside each step. */
static leat_out averaged_losses(leat_graph *g, leat_out total, leat_out *parts, int n)
{
    leat_moving_average *ema = leat_moving_average_new(.decay = 0.9, .name = "avg");
    leat_out all[CIFAR10_MOST_VARS + 1] = {total}, update = {0};
    int count = 1;
    for (int i = 0; i < n && count <= CIFAR10_MOST_VARS; i++)
        all[count++] = parts[i];
    leat_with_device(g, devices.home) update = leat_moving_average_apply(ema, all, count);
    for (int i = 0; i < count; i++) {
        char raw[256];
        const char *name = without_tower(leat_node_name(all[i].node));
        snprintf(raw, sizeof(raw), "%s_raw", name);
        leat_scalar_summary(raw, all[i]);
        leat_scalar_summary(name, leat_moving_average_of(ema, all[i]));
    }
    leat_moving_average_free(ema);
    return update;
}

/* Summaries of what the layers of a tower give: a histogram, and the part of it that is zero. */
static void activation_summaries(leat_graph *g)
{
    int n;
    leat_out *all = leat_collection(g, CIFAR10_ACTIVATIONS, leat_name_scope(g), &n);
    for (int i = 0; i < n; i++) {
        char tag[256];
        const char *name = without_tower(leat_node_name(all[i].node));
        leat_out zero = leat_equal(all[i], leat_scalar(g, LEAT_FLOAT, 0));
        snprintf(tag, sizeof(tag), "%s/activations", name);
        leat_histogram_summary(tag, all[i]);
        snprintf(tag, sizeof(tag), "%s/sparsity", name);
        leat_scalar_summary(tag, leat_reduce_mean(leat_cast(zero, LEAT_FLOAT)));
    }
    free(all);
}

/* The loss of the tower, and the averages that are updated with it. */
static leat_out tower(leat_graph *g, leat_out iterator, leat_out *averaged)
{
    leat_out batch[2], *parts;
    int n;
    leat_with_device(g, devices.home) leat_iterator_next(iterator, batch, 2);
    leat_out loss =
        cifar10_loss(g, cifar10_logits(g, devices.home, batch[0]), batch[1], &parts, &n);
    if (!averaged->node) { /* as in TensorFlow's program, whose summaries are of one tower */
        *averaged = averaged_losses(g, loss, parts, n);
        activation_summaries(g);
    }
    free(parts);
    return loss;
}

/* Adds the loss and the gradients of a tower to m->results. */
static void add_results(model *m, const leat_var_grad *grads, int n)
{
    m->results = realloc(m->results, sizeof(*m->results) * (size_t)(m->n_results + n + 1));
    m->results[m->n_results++] = m->loss;
    for (int i = 0; i < n; i++)
        m->results[m->n_results++] = grads[i].grad.value;
}

static void build_towers(model *m, leat_out iterator, leat_optimizer *opt, leat_var_grad **grads,
                         int *n_vars, leat_out *averaged)
{
    for (int i = 0; i < devices.n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "tower_%d", i);
        leat_with_device(m->g, devices.name[i]) leat_with_name(m->g, name)
        {
            m->loss = tower(m->g, iterator, averaged);
            grads[i] = leat_compute_gradients(opt, m->loss, n_vars);
        }
        add_results(m, grads[i], *n_vars);
    }
}

/* A node that fails unless all losses and gradients are finite. */
static leat_out all_finite(model *m)
{
    leat_out *all = malloc(sizeof(*all) * (size_t)m->n_results);
    for (int i = 0; i < m->n_results; i++)
        leat_with_colocate(m->g, m->results[i]) all[i] =
            leat_check_numerics(m->results[i], leat_node_name(m->results[i].node));
    leat_out y = leat_group_at(LEAT_AT, m->g, all, m->n_results, "finite");
    free(all);
    return y;
}

static leat_out train_op(model *m, leat_optimizer *opt, leat_var_grad **towers, int n_vars,
                         leat_out step, leat_out averaged_losses_op)
{
    leat_graph *g = m->g;
    leat_moving_average *ema = leat_moving_average_new(.decay = average_decay, .num_updates = step);
    leat_var_grad *grads =
        leat_average_gradients(towers, devices.n, n_vars, .fused = fused_average);
    leat_out applied = {0}, averaged = {0}, all = {0};
    int n;
    leat_with_control(g, all_finite(m)) applied =
        leat_apply_gradients(opt, grads, n_vars, .global_step = step);
    leat_out *vars = leat_trainable_variables(g, &n);
    leat_with_control(g, applied) averaged = leat_moving_average_apply(ema, vars, n);
    leat_with_control(g, averaged, averaged_losses_op) all = leat_no_op(g);
    for (int i = 0; i < n; i++)
        leat_histogram_summary(leat_node_name(vars[i].node), vars[i]);
    for (int i = 0; i < n_vars; i++) {
        char name[256];
        snprintf(name, sizeof(name), "%s/gradients", leat_node_name(grads[i].var.node));
        leat_histogram_summary(name, grads[i].grad.value);
    }
    free(vars);
    free(grads);
    leat_moving_average_free(ema);
    return all;
}

static model build(int64_t n_train, char *records)
{
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, seed);
    model m = {.g = g};
    leat_var_grad *towers[TOWERS_MOST] = {0};
    int n_vars = 0;
    leat_out averaged = {0};
    leat_device_enter(g, devices.home);
    leat_out step = leat_global_step(g);
    const double steps_of_epoch = (double)n_train / (double)(batch_size * devices.n);
    m.rate =
        leat_exponential_decay(step, .learning_rate = learning_rate,
                               .decay_steps = (double)(int64_t)(steps_of_epoch * epochs_per_decay),
                               .decay_rate = decay_factor, .staircase = true);
    leat_scalar_summary("learning_rate", m.rate);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate_tensor = m.rate);
    cifar10_input input = {records, batch_size, seed, 2 * devices.n};
    build_towers(&m, leat_one_shot_iterator(g, cifar10_batches, &input), opt, towers, &n_vars,
                 &averaged);
    m.train = train_op(&m, opt, towers, n_vars, step, averaged);
    m.step = leat_identity(step, leat_after(leat_done(m.train)));
    m.checks = leat_add_check_numerics(m.results, m.n_results);
    leat_device_leave(g);
    for (int i = 0; i < devices.n; i++)
        free(towers[i]);
    leat_optimizer_free(opt);
    return m;
}

/* ---- Training ---- */

/* "2026-05-01 12:00:00: step 10, loss = 4.32 (5120.3 examples/sec; 0.025 sec/batch)" */
static void line(int64_t step, double loss, int64_t steps, double seconds)
{
    char now[64];
    const time_t t = time(NULL);
    const double images = (double)(steps * batch_size * devices.n);
    strftime(now, sizeof(now), "%Y-%m-%d %H:%M:%S", localtime(&t));
    printf("%s: step %lld, loss = %.2f (%.1f examples/sec; %.3f sec/batch)\n", now, (long long)step,
           loss, images / seconds, seconds / (double)(steps * devices.n));
}

/* Whether s is the error of a check of the losses and gradients, or of a summary of them. */
static bool not_finite(leat_status s)
{
    return leat_status_code(s) == LEAT_INVALID_ARGUMENT &&
           (strstr(leat_status_message(s), " : Tensor had ") ||
            strstr(leat_status_message(s), " in summary histogram for: "));
}

/* If s says that a loss or gradient is not finite, which left all variables as they were: another
 * step, in which every op is checked, tells the first op that gave such a value. Takes s. */
static leat_status name_op(leat_monitored *ms, const model *m, leat_status s)
{
    if (!not_finite(s))
        return s;
    s = leat_status_prefix(s, "Model diverged: ");
    leat_status found = leat_session_run(leat_monitored_session(ms), LEAT_NO_FEED, LEAT_NO_FETCH,
                                         LEAT_TARGET(m->checks));
    s = leat_status_suffix(s, "\nThe first op: %s",
                           found ? leat_status_message(found)
                                 : "none in the step after it, so the images of that step made it");
    leat_status_free(found);
    return s;
}

static leat_status train(leat_monitored *ms, const model *m)
{
    int64_t counted = 0;
    double since = progress_clock();
    while (!leat_monitored_should_stop(ms)) {
        leat_tensor *loss = NULL, *step = NULL;
        leat_status s =
            leat_monitored_run(ms, LEAT_NO_FEED, LEAT_FETCH({m->step, &step}, {m->loss, &loss}),
                               LEAT_TARGET(m->train));
        if (s)
            return name_op(ms, m, s);
        const int64_t now = (int64_t)leat_tensor_at(step, 0) - 1;
        const double value = leat_tensor_at(loss, 0);
        leat_tensor_unref(step);
        leat_tensor_unref(loss);
        counted++;
        if (now % log_frequency == 0) {
            line(now, value, counted, progress_clock() - since);
            counted = 0;
            since = progress_clock();
        }
    }
    return NULL;
}

static leat_status run(const model *m)
{
    const leat_session_options config = {.cpu_devices = devices.cpus,
                                         .intra_op_threads = (int)threads,
                                         .allow_soft_placement = true,
                                         .log_device_placement = log_placement};
    leat_monitored *ms;
    leat_save_input(m->g); /* A run that is started again reads the rest of its epoch. */
    LEAT_TRY(leat_graph_status(m->g));
    LEAT_TRY(leat_monitored_open(m->g, &ms, .master = target, .is_chief = true,
                                 .checkpoint_dir = train_dir, .save_checkpoint_steps = save_steps,
                                 .save_summaries_steps = train_dir ? summary_steps : 0,
                                 .last_step = max_steps, .config = &config));
    leat_status s = max_steps > 0 ? train(ms, m) : NULL;
    return leat_status_first(s, leat_monitored_close(ms));
}

static leat_status work(void)
{
    leat_cifar10 *data;
    char *records;
    LEAT_TRY(leat_cifar10_open(data_dir, &data));
    printf("%s\n", leat_cifar10_source(data));
    const int64_t n = leat_cifar10_count(data, LEAT_CIFAR10_TRAIN);
    leat_status s = records_of_cifar10(data, records_dir, data_dir, &records);
    leat_cifar10_close(data);
    if (s)
        return s;
    model m = build(n, records);
    s = run(&m);
    free(m.results);
    leat_graph_free(m.g);
    free(records);
    return s;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* output appears line by line, also in a pipe */
    int done = flags_parse(argc, argv, "trains a net on CIFAR-10, one tower a device", flags);
    if (done >= 0)
        return done;
    leat_status s = towers_choose(&devices_wanted, &devices);
    if (s) {
        fprintf(stderr, "cifar10_towers: %s\n", leat_status_message(s));
        leat_status_free(s);
        return 2;
    }
    LEAT_DIE_ON_ERROR(work());
    return 0;
}
