/* mnist_replica.c -- distributed MNIST: the variables of a 784-100-10 net on parameter servers, a
 * replica of the model on every worker, updates as they come or (--sync_replicas) averaged. Flags
 * and printed lines are those of TensorFlow's dist_test/mnist_replica.py. By hand, a terminal each:
 *
 *     mnist_replica --job_name=ps --task_index=0
 *     mnist_replica --job_name=worker --task_index=0
 *     mnist_replica --job_name=worker --task_index=1
 *
 * or all at once: leat launch --ps 1 --workers 2 -- mnist_replica
 */
#include <leat/leat.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common_flags.h"
#include "common_mnist.h"
#include "common_progress.h"

static const char *data_dir, *log_dir, *ps_hosts, *worker_hosts, *job_name;
static int64_t task_index = -1, num_gpus = 0, replicas_to_aggregate = 0, hidden_units = 100;
static int64_t train_steps = 200, batch_size = 100, log_every = 0, seed = 1;
static double learning_rate = 0.01;
static bool sync_replicas, existing_servers;

static const flag flags[] = {
    {"job_name", FLAG_STRING, &job_name, 0, "ps or worker; also from TF_CONFIG or Slurm"},
    {"task_index", FLAG_INT, &task_index, 0, "which task of the job; worker 0 is the chief"},
    {"task_id", FLAG_INT, &task_index, 0, "the same"},
    {"ps_hosts", FLAG_STRING, &ps_hosts, 0, "host:port,... of the parameter servers"},
    {"worker_hosts", FLAG_STRING, &worker_hosts, 0, "host:port,... of the workers"},
    {"sync_replicas", FLAG_BOOL, &sync_replicas, 0, "average gradients, then apply them once"},
    {"replicas_to_aggregate", FLAG_INT, &replicas_to_aggregate, 0, "0: as many as workers"},
    {"existing_servers", FLAG_BOOL, &existing_servers, 0, "the tasks' servers run already"},
    {"num_gpus", FLAG_INT, &num_gpus, 0, "of each machine; where there is none, the CPU is used"},
    {"hidden_units", FLAG_INT, &hidden_units, 1, "units of the hidden layer"},
    {"train_steps", FLAG_INT, &train_steps, 1, "global steps to train for"},
    {"batch_size", FLAG_INT, &batch_size, 1, "examples in a step of a worker"},
    {"learning_rate", FLAG_FLOAT, &learning_rate, 0, "Adam's learning rate"},
    {"data_dir", FLAG_STRING, &data_dir, 0, "where MNIST's files are"},
    {"log_dir", FLAG_STRING, &log_dir, 0, "checkpoints; a run that finds some there goes on"},
    {"log_every", FLAG_INT, &log_every, 0, "local steps between lines; 0: about a second"},
    {"seed", FLAG_INT, &seed, 0, "of weights and shuffling"},
    {0},
};

typedef struct task { /* which one this process is */
    leat_cluster *cluster;
    char job[64];
    int index, workers; /* workers: a chief counts as one */
    bool is_chief;
} task;

typedef struct model {
    leat_graph *g;
    leat_out x, y_, loss, accuracy, step, train;
} model;

/* ---- Who we are ---- */

static leat_status hosts(leat_cluster *c)
{
    LEAT_TRY(leat_cluster_add(c, "ps", ps_hosts ? ps_hosts : "localhost:2222"));
    return leat_cluster_add(c, "worker",
                            worker_hosts ? worker_hosts : "localhost:2223,localhost:2224");
}

/* From the flags, else from the environment, else the flags' published defaults. */
static leat_status find_cluster(task *t)
{
    leat_status s = NULL;
    t->index = -1;
    if (!ps_hosts && !worker_hosts)
        s = leat_cluster_from_env(&t->cluster, t->job, &t->index);
    if (leat_status_code(s) == LEAT_NOT_FOUND) {
        leat_status_free(s);
        s = NULL;
    }
    if (!s && !t->cluster) {
        t->cluster = leat_cluster_new();
        s = hosts(t->cluster);
    }
    if (s)
        return s;
    if (job_name) {
        LEAT_REQUIRE(strlen(job_name) < sizeof(t->job), INVALID_ARGUMENT, "--job_name is too long");
        strcpy(t->job, job_name);
    }
    if (task_index >= 0)
        t->index = task_index > 1 << 30 ? 1 << 30 : (int)task_index;
    LEAT_REQUIRE(t->job[0], INVALID_ARGUMENT, "Must specify an explicit `job_name`");
    LEAT_REQUIRE(t->index >= 0, INVALID_ARGUMENT, "Must specify an explicit `task_index`");
    LEAT_REQUIRE(leat_cluster_address(t->cluster, t->job, t->index), INVALID_ARGUMENT,
                 "The cluster has no task %d of job \"%s\"", t->index, t->job);
    int chiefs = leat_cluster_tasks(t->cluster, "chief") + leat_cluster_tasks(t->cluster, "master");
    t->workers = leat_cluster_tasks(t->cluster, "worker") + chiefs;
    t->is_chief = strcmp(t->job, "worker") != 0 || (!chiefs && t->index == 0);
    return NULL;
}

/* ---- The model ---- */

/* x is (batch, 784); the result is the classes' probabilities, (batch, 10). */
static leat_out net(leat_graph *g, leat_out x, int64_t hidden)
{
    leat_out hid_w = leat_variable(
        g, "hid_w", leat_truncated_normal(g, leat_shape(784, hidden), .stddev = 1.0 / 28));
    leat_out hid_b = leat_variable(g, "hid_b", leat_zeros(g, LEAT_FLOAT, leat_shape(hidden)));
    leat_out sm_w = leat_variable(
        g, "sm_w",
        leat_truncated_normal(g, leat_shape(hidden, 10), .stddev = 1 / sqrt((double)hidden)));
    leat_out sm_b = leat_variable(g, "sm_b", leat_zeros(g, LEAT_FLOAT, leat_shape(10)));
    leat_out hid = leat_relu(leat_xw_plus_b(x, hid_w, hid_b));
    return leat_softmax(leat_xw_plus_b(hid, sm_w, sm_b));
}

static void build(model *m, const task *t)
{
    leat_graph *g = m->g = leat_graph_new();
    leat_graph_set_seed(g, seed);
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
        leat_out y = net(g, m->x, hidden_units);
        leat_out log_y = leat_log(leat_clip_by_value(y, 1e-10, 1.0));
        m->loss = leat_neg(leat_reduce_sum(leat_mul(m->y_, log_y)));
        leat_scalar_summary("cross_entropy", m->loss);
        leat_optimizer *opt = leat_adam(.learning_rate = learning_rate);
        if (sync_replicas) {
            int n = replicas_to_aggregate ? (int)replicas_to_aggregate : t->workers;
            opt =
                leat_sync_replicas(opt, .replicas_to_aggregate = n,
                                   .total_num_replicas = t->workers, .name = "mnist_sync_replicas");
        }
        m->train = leat_minimize(opt, m->loss, .global_step = m->step);
        leat_optimizer_free(opt);
        m->accuracy = mnist_accuracy(g, y, m->y_);
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
    LEAT_TRY(leat_mnist_next_batch(data, LEAT_MNIST_TRAIN, batch_size, &images, &labels));
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

static leat_status train(leat_monitored *ms, const task *t, const model *m, leat_mnist *data)
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
           (long long)batch_size, (double)local / (end - begin));
    return NULL;
}

static leat_status validate(leat_session *s, const model *m, leat_mnist *data)
{
    int64_t n = leat_mnist_count(data, LEAT_MNIST_TEST), at_once = 1000;
    double right = 0, entropy = 0;
    for (int64_t i = 0; i < n; i += at_once) {
        int64_t end = i + at_once < n ? i + at_once : n;
        leat_tensor *images, *labels, *loss = NULL, *accuracy = NULL;
        LEAT_TRY(leat_mnist_rows(data, LEAT_MNIST_TEST, i, end, &images, &labels));
        leat_status status = leat_session_run(
            s, LEAT_FEED({m->x, images}, {m->y_, labels}),
            LEAT_FETCH({m->loss, &loss}, {m->accuracy, &accuracy}), LEAT_NO_TARGET);
        leat_tensor_unref(images);
        leat_tensor_unref(labels);
        if (status)
            return status;
        entropy += leat_tensor_at(loss, 0);
        right += leat_tensor_at(accuracy, 0) * (double)(end - i);
        leat_tensor_unref(loss);
        leat_tensor_unref(accuracy);
    }
    printf("After %lld training step(s), validation cross entropy = %g\n", (long long)train_steps,
           entropy);
    printf("test accuracy %.2f %%\n", 100 * right / (double)n);
    return NULL;
}

/* master: "grpc://host:port" of this task's server. */
static leat_status work(const task *t, const char *master)
{
    model m;
    leat_mnist *data = NULL;
    leat_monitored *ms = NULL;
    char self[128]; /* workers have no business with each other */
    snprintf(self, sizeof(self), "/job:%s/task:%d", t->job, t->index);
    const char *const filters[] = {"/job:ps", self, NULL};
    leat_session_options config = {.allow_soft_placement = true, .device_filters = filters};
    build(&m, t);
    leat_status s = leat_graph_status(m.g);
    if (!s)
        s = leat_mnist_open(data_dir, (uint64_t)(seed + t->index), &data);
    if (!s) {
        printf("%s\n", leat_mnist_source(data));
        printf(t->is_chief ? "Worker %d: Initializing session...\n"
                           : "Worker %d: Waiting for session to be initialized...\n",
               t->index);
        s = leat_monitored_open(m.g, &ms, .master = master, .is_chief = t->is_chief,
                                .checkpoint_dir = log_dir, .last_step = train_steps,
                                .config = &config);
    }
    if (!s) {
        printf("Worker %d: Session initialization complete.\n", t->index);
        s = train(ms, t, &m, data);
    }
    if (!s)
        s = validate(leat_monitored_session(ms), &m, data);
    s = leat_status_first(s, leat_monitored_close(ms));
    leat_mnist_close(data);
    leat_graph_free(m.g);
    return s;
}

static leat_status run(const task *t)
{
    if (existing_servers) {
        char target[320];
        snprintf(target, sizeof(target), "grpc://%s",
                 leat_cluster_address(t->cluster, t->job, t->index));
        printf("Using existing server at: %s\n", target);
        return work(t, target);
    }
    leat_server *server;
    LEAT_TRY(leat_server_start(t->cluster, t->job, t->index, NULL, &server));
    leat_status s =
        strcmp(t->job, "ps") == 0 ? leat_server_join(server) : work(t, leat_server_target(server));
    leat_server_free(server);
    return s;
}

/* Who is waited for, what is not guarded: worth a line even to those who set no log level. */
static void warn(void *arg, leat_log_level level, const char *file, int line, const char *message)
{
    fprintf(stderr, "mnist_replica: %s\n", message);
}

int main(int argc, char **argv)
{
    if (!getenv("TF_CPP_MIN_LOG_LEVEL"))
        leat_log_set_sink(warn, NULL, LEAT_LOG_WARNING);
    setvbuf(stdout, NULL, _IOLBF, 0); /* lines when they are printed, also into a pipe */
    int done = flags_parse(argc, argv, "trains MNIST on parameter servers and workers", flags);
    if (done >= 0)
        return done;
    task t = {0};
    leat_status s = find_cluster(&t);
    if (s) {
        fprintf(stderr, "mnist_replica: %s (--help lists the flags)\n", leat_status_message(s));
        leat_status_free(s);
        leat_cluster_free(t.cluster);
        return 2;
    }
    printf("job name = %s\ntask index = %d\n", t.job, t.index);
    LEAT_DIE_ON_ERROR(run(&t));
    leat_cluster_free(t.cluster);
    return 0;
}
