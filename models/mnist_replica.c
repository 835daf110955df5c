/* mnist_replica.c -- distributed MNIST: the variables of a 784-100-10 net on parameter servers, a
 * replica of the model on every worker, updates applied asynchronously or (--sync_replicas)
 * averaged. Flags and printed lines are those of TensorFlow's dist_test/mnist_replica.py. By hand,
 * a terminal each:
 *
 *     mnist_replica --job_name=ps --task_index=0
 *     mnist_replica --job_name=worker --task_index=0
 *     mnist_replica --job_name=worker --task_index=1
 *
 * or all at once: leat launch --ps 1 --workers 2 -- mnist_replica
 */
#include <leat/leat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common_flags.h"
#include "common_mnist.h"
#include "common_progress.h"
#include "common_task.h"

static task_flags who = TASK_FLAGS_DEFAULT;
static mnist_flags f = {
    .train_steps = 200, .batch_size = 100, .hidden_units = 100, .seed = 1, .learning_rate = 0.01};
static const char *log_dir, *trace_steps;
static int64_t num_gpus = 0, replicas_to_aggregate = 0, log_every = 0;
static double save_secs = 600;
static bool sync_replicas, existing_servers, discard_live;

static const flag flags[] = {
    TASK_FLAGS(who),
    {"sync_replicas", FLAG_BOOL, &sync_replicas, 0, "average gradients, then apply them once"},
    {"replicas_to_aggregate", FLAG_INT, &replicas_to_aggregate, 0, "0: as many as workers"},
    {"existing_servers", FLAG_BOOL, &existing_servers, 0, "the tasks' servers run already"},
    {"num_gpus", FLAG_INT, &num_gpus, 0, "of each machine; where there is none, the CPU is used"},
    MNIST_FLAGS(f, 1),
    {"log_dir", FLAG_STRING, &log_dir, 0,
     "checkpoints and events for TensorBoard; a run that finds checkpoints there goes on"},
    {"save_secs", FLAG_FLOAT, &save_secs, 0,
     "seconds between checkpoints in log_dir, which a lost ps costs; 0: never saved"},
    {"discard_live", FLAG_BOOL, &discard_live, 0,
     "restore or initialise a model that is on the ps already, which is kept otherwise"},
    {"trace_steps", FLAG_STRING, &trace_steps, 0,
     "global steps, 100,200: Chrome traces of them over all their tasks, in log_dir"},
    {"log_every", FLAG_INT, &log_every, 0, "local steps between lines; 0: about a second"},
    {0},
};

typedef struct model {
    leat_graph *g;
    leat_out x, y_, loss, mean_loss, accuracy, step, train;
} model;

/* What TensorBoard shows of the run. */
static void summarize(const model *m, leat_out y)
{
    leat_scalar_summary("cross_entropy", m->mean_loss);
    leat_scalar_summary("accuracy", m->accuracy);
    leat_image_summary("digits", leat_reshape_to(m->x, leat_shape(-1, 28, 28, 1)), 3);
    leat_histogram_summary("probabilities", y);
    int n;
    leat_out *variables = leat_trainable_variables(m->g, &n);
    leat_with_name(m->g, "variables") for (int i = 0; i < n; i++)
        leat_histogram_summary(leat_variable_name(variables[i]), leat_variable_value(variables[i]));
    free(variables);
}

static void build(model *m, const task *t)
{
    leat_graph *g = m->g = leat_graph_new();
    leat_graph_set_seed(g, f.seed);
    char device[128];
    snprintf(device, sizeof(device), "/job:%s/task:%d/%s:%d", t->job, t->index,
             num_gpus ? "gpu" : "cpu", num_gpus ? (int)(t->index % num_gpus) : 0);
    leat_with_device_setter(g, leat_replica_device_setter(t->cluster, t->index,
                                                          .worker_device = device,
                                                          .ps_device = "/job:ps/cpu:0"))
    {
        m->step = leat_global_step(g);
        m->x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784));
        m->y_ = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10));
        leat_out y = mnist_net(g, m->x, f.hidden_units);
        m->loss = mnist_cross_entropy(y, m->y_);
        leat_optimizer *opt = leat_adam(.learning_rate = f.learning_rate);
        if (sync_replicas) {
            int n = replicas_to_aggregate ? (int)replicas_to_aggregate : t->workers;
            opt =
                leat_sync_replicas(opt, .replicas_to_aggregate = n,
                                   .total_num_replicas = t->workers, .name = "mnist_sync_replicas");
        }
        m->train = leat_minimize(opt, m->loss, .global_step = m->step);
        leat_optimizer_free(opt);
        m->accuracy = mnist_accuracy(g, y, m->y_);
        m->mean_loss = leat_div(m->loss, leat_reduce_sum(m->y_)); /* a one in each row */
        if (log_dir)
            summarize(m, y);
    }
}

/* ---- Training ---- */

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static leat_status one_step(leat_monitored *ms, const model *m, leat_mnist *data, int64_t *step_out)
{
    leat_tensor *images, *labels, *step = NULL;
    LEAT_TRY(leat_mnist_next_batch(data, LEAT_MNIST_TRAIN, f.batch_size, &images, &labels));
    leat_status s = leat_monitored_run(ms, LEAT_FEED({m->x, images}, {m->y_, labels}),
                                       LEAT_FETCH({m->step, &step}), LEAT_TARGET(m->train));
    leat_tensor_unref(images);
    leat_tensor_unref(labels);
    if (s)
        return s;
    *step_out = (int64_t)leat_tensor_at(step, 0);
    leat_tensor_unref(step);
    return NULL;
}

static leat_status train(leat_monitored *ms, task *t, const model *m, leat_mnist *data)
{
    double begin = wall(), said = progress_clock();
    int64_t local = 0, step = 0;
    printf("Training begins @ %f\n", begin);
    while (!leat_monitored_should_stop(ms)) {
        LEAT_TRY(one_step(ms, m, data, &step));
        local++;
        if (log_every ? local % log_every == 0 : progress_clock() - said >= 1) {
            said = progress_clock();
            printf("%f: Worker %d: training step %lld done (global step: %lld)\n", wall(), t->index,
                   (long long)local, (long long)step);
        }
    }
    double end = wall();
    printf("Training ends @ %f\n", end);
    printf("Training elapsed time: %f s\n", end - begin);
    printf("Worker %d: %lld local steps of %lld, %.0f a second\n", t->index, (long long)local,
           (long long)f.batch_size, (double)local / (end - begin));
    return NULL;
}

/* The cross entropy is that of the whole test set, as in TensorFlow's program. */
static leat_status validate(leat_session *s, const model *m, leat_mnist *data)
{
    const leat_out both[2] = {m->mean_loss, m->accuracy};
    double means[2], n = (double)leat_mnist_count(data, LEAT_MNIST_TEST);
    LEAT_TRY(mnist_test_means(s, data, m->x, m->y_, both, 2, means));
    printf("After %lld training step(s), validation cross entropy = %g\n", (long long)f.train_steps,
           n * means[0]);
    printf("test accuracy %.2f %%\n", 100 * means[1]);
    return NULL;
}

/* The hook for --trace_steps, or NULL. */
static leat_status trace_hook(const task *t, leat_hook **hook_out)
{
    enum { MOST = 1000 };
    int64_t steps[MOST];
    int n = 0;
    if (!trace_steps || !t->is_chief)
        return NULL;
    LEAT_REQUIRE(log_dir, INVALID_ARGUMENT, "--trace_steps needs --log_dir");
    for (const char *p = trace_steps; *p; n++) {
        char *end;
        LEAT_REQUIRE(n < MOST, INVALID_ARGUMENT, "--trace_steps: at most %d steps", MOST);
        steps[n] = strtoll(p, &end, 10);
        LEAT_REQUIRE(end != p && (*end == ',' || !*end) && steps[n] > 0, INVALID_ARGUMENT,
                     "--trace_steps wants positive numbers with commas, not \"%s\"", trace_steps);
        p = end + (*end == ',');
    }
    *hook_out = leat_profiler_hook(.steps = steps, .n_steps = n, .output_dir = log_dir);
    return NULL;
}

/* After a signal, an error from a wait for other tasks is not a failure. Takes s. */
static leat_status unless_asked_to_end(const task *t, leat_status s)
{
    leat_code c = leat_status_code(s);
    if (!leat_is_cancelled(t->stop) ||
        (c != LEAT_CANCELLED && c != LEAT_UNAVAILABLE && c != LEAT_ABORTED))
        return s;
    fprintf(stderr, "mnist_replica: %s\n", leat_status_message(s));
    leat_status_free(s);
    return NULL;
}

/* master: "grpc://host:port" of this task's server. */
static leat_status work(task *t, const char *master)
{
    model m;
    leat_mnist *data = NULL;
    leat_monitored *ms = NULL;
    leat_hook *trace = NULL;
    char self[128]; /* a worker needs the ps tasks and itself, not the other workers */
    snprintf(self, sizeof(self), "/job:%s/task:%d", t->job, t->index);
    const char *const filters[] = {"/job:ps", self, NULL};
    leat_session_options config = {
        .allow_soft_placement = true, .device_filters = filters, .security = &t->security};
    build(&m, t);
    leat_status s = leat_graph_status(m.g);
    if (!s)
        s = leat_mnist_open(f.data_dir, (uint64_t)(f.seed + t->index), &data);
    if (!s)
        s = trace_hook(t, &trace);
    if (!s) {
        printf("%s\n", leat_mnist_source(data));
        printf(t->is_chief ? "Worker %d: Initializing session...\n"
                           : "Worker %d: Waiting for session to be initialized...\n",
               t->index);
        s = leat_monitored_open(
            m.g, &ms, .master = master, .is_chief = t->is_chief, .checkpoint_dir = log_dir,
            .save_checkpoint_secs = save_secs, .last_step = f.train_steps, .config = &config,
            .stop = t->stop, .discard_live = discard_live, .hooks = (leat_hook *[]){trace, NULL});
    }
    if (!s) {
        printf("Worker %d: Session initialization complete.\n", t->index);
        s = train(ms, t, &m, data);
    }
    if (!s && !leat_is_cancelled(t->stop))
        s = validate(leat_monitored_session(ms), &m, data);
    s = leat_status_first(unless_asked_to_end(t, s), leat_monitored_close(ms));
    leat_mnist_close(data);
    leat_graph_free(m.g);
    return s;
}

static leat_status run(task *t)
{
    char target[320];
    LEAT_TRY(task_start(t, existing_servers));
    if (!existing_servers && strcmp(t->job, "ps") == 0)
        return leat_server_join(t->server);
    if (!existing_servers)
        return work(t, leat_server_target(t->server));
    snprintf(target, sizeof(target), "grpc://%s",
             leat_cluster_address(t->cluster, t->job, t->index));
    printf("Using existing server at: %s\n", target);
    return work(t, target);
}

/* Which peers are waited for, and that connections are not encrypted: printed even if no log level
 * is set. */
static void warn(void *arg, leat_log_level level, const char *file, int line, const char *message)
{
    fprintf(stderr, "mnist_replica: %s\n", message);
}

int main(int argc, char **argv)
{
    if (!getenv("TF_CPP_MIN_LOG_LEVEL"))
        leat_log_set_sink(warn, NULL, LEAT_LOG_WARNING);
    setvbuf(stdout, NULL, _IOLBF, 0); /* output appears line by line, also in a pipe */
    int done = flags_parse(argc, argv, "trains MNIST on parameter servers and workers", flags);
    if (done >= 0)
        return done;
    static task t;
    leat_status s = task_find("mnist_replica", &who, &t);
    if (s) {
        fprintf(stderr, "mnist_replica: %s (--help lists the flags)\n", leat_status_message(s));
        leat_status_free(s);
        task_release(&t);
        return 2;
    }
    printf("job name = %s\ntask index = %d\n", t.job, t.index);
    s = run(&t);
    task_release(&t);
    LEAT_DIE_ON_ERROR(s);
    return 0;
}
