/* model_parallel.c -- a net whose layers are on several devices, trained on MNIST in three ways:
 *     --device_list /cpu:0,/cpu:1               model parallelism: layers in turn
 *     ... --micro_batches 4                     a pipeline: devices work at several micro-batches
 *     ... --towers 2                            hybrid: towers of such nets, gradients averaged
 * Each trains the same net on the same batches, so the losses that they print are the same but for
 * rounding. */
#include <leat/leat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common_flags.h"
#include "common_mnist.h"
#include "common_progress.h"

enum { MOST = 32, CLASSES = 10, PIXELS = 784 };

static mnist_flags f = {
    .train_steps = 1000, .batch_size = 128, .hidden_units = 256, .seed = 1, .learning_rate = 0.1};
static int64_t layers = 4, micro_batches = 1, in_flight, towers = 1, threads = 1;
static const char *device_list = "/cpu:0,/cpu:1", *devices, *graph_out;
static bool log_placement, soft = true;

static const flag flags[] = {
    MNIST_FLAGS(f, 1),
    {"device_list", FLAG_STRING, &device_list, 0,
     "devices that share the layers of a tower, in order; the second tower begins one further"},
    {"devices", FLAG_STRING, &devices, 0,
     "how many of each kind there are, as cpu:4,gpu:2; default: the CPU devices of the list"},
    {"layers", FLAG_INT, &layers, 1, "hidden layers"},
    {"micro_batches", FLAG_INT, &micro_batches, 1, "parts that a batch is cut into"},
    {"in_flight", FLAG_INT, &in_flight, 0, "most micro-batches at work; 0: one a device"},
    {"towers", FLAG_INT, &towers, 1, "copies of the net, each with its part of the batch"},
    {"threads", FLAG_INT, &threads, 0, "that a kernel may use; 0: all cores"},
    {"allow_soft_placement", FLAG_BOOL, &soft, 0,
     "take another device where one cannot run a node"},
    {"graph_out", FLAG_STRING, &graph_out, 0,
     "only write the graph, a GraphDef, to this file: nodes x, y, loss, train, init"},
    {"log_device_placement", FLAG_BOOL, &log_placement, 0, "write the device of each node"},
    {0},
};

/* The layers of one stage, from `begin` to end - 1; the layer of number `layers` is the last. */
typedef struct part {
    int64_t begin, end;
} part;

typedef struct model {
    leat_graph *g;
    leat_out x, y_, loss, accuracy, train, init;
    char names[MOST][64]; /* the devices of the list */
    int n_names, cpus;
    part parts[MOST];
    int n_parts;
} model;

/* ---- The net, by stages ---- */

static leat_out layer(leat_graph *g, int64_t i, leat_out x)
{
    const int64_t in = i ? f.hidden_units : PIXELS, out = i < layers ? f.hidden_units : CLASSES;
    char name[32];
    leat_out y = {0};
    snprintf(name, sizeof(name), "layer%lld", (long long)i);
    leat_with_variable_scope(g, name)
    {
        leat_out w =
            leat_get_variable(g, "weights", leat_shape(in, out),
                              .initializer = leat_glorot_uniform_initializer(.seed = i + 1));
        leat_out b = leat_get_variable(g, "biases", leat_shape(out),
                                       .initializer = leat_zeros_initializer());
        y = leat_xw_plus_b(x, w, b);
    }
    return i < layers ? leat_relu(y) : y;
}

static leat_out layers_of(leat_graph *g, const part *p, leat_out x)
{
    for (int64_t i = p->begin; i < p->end; i++)
        x = layer(g, i, x);
    return x;
}

static void build_stage(leat_graph *g, void *arg, const leat_out *batch, const leat_out *in,
                        leat_out *out)
{
    const part *p = arg;
    leat_out y = layers_of(g, p, p->begin ? in[0] : batch[0]);
    out[0] = p->end <= layers ? y : leat_reduce_mean(leat_softmax_cross_entropy(y, batch[1]));
}

/* ---- Devices ---- */

static leat_status read_devices(model *m)
{
    for (const char *at = device_list; *at;) {
        size_t n = strcspn(at, ",");
        LEAT_REQUIRE(m->n_names < MOST && n && n < sizeof(m->names[0]), INVALID_ARGUMENT,
                     "--device_list %s: wants at most %d devices, as /cpu:0,/cpu:1", device_list,
                     MOST);
        memcpy(m->names[m->n_names++], at, n);
        at += n + (at[n] == ',');
    }
    LEAT_REQUIRE(m->n_names, INVALID_ARGUMENT, "--device_list names no device");
    m->n_parts = m->n_names <= layers + 1 ? m->n_names : (int)layers + 1;
    for (int i = 0; i < m->n_names; i++) {
        const char *cpu = strstr(m->names[i], "cpu:");
        if (cpu && atoi(cpu + 4) >= m->cpus)
            m->cpus = atoi(cpu + 4) + 1;
    }
    LEAT_REQUIRE(m->cpus <= 64, INVALID_ARGUMENT, "--device_list %s: at most 64 CPU devices",
                 device_list);
    for (int i = 0; i < m->n_parts; i++)
        m->parts[i] = (part){i * (layers + 1) / m->n_parts, (i + 1) * (layers + 1) / m->n_parts};
    return NULL;
}

/* ---- Towers ---- */

static leat_var_grad *tower(model *m, int t, const leat_out *batch, leat_out *loss, int *n_out)
{
    leat_stage stages[MOST] = {{0}};
    leat_var_grad *grads = NULL;
    char name[32];
    for (int i = 0; i < m->n_parts; i++)
        stages[i] = (leat_stage){
            .device = m->names[(t + i) % m->n_names], .build = build_stage, .arg = &m->parts[i]};
    snprintf(name, sizeof(name), "tower_%d", t);
    leat_with_name(m->g, name) grads =
        leat_pipeline_gradients(stages, m->n_parts, batch, 2, loss, n_out,
                                .micro_batches = (int)micro_batches, .in_flight = (int)in_flight);
    return grads;
}

static void build_train(model *m, leat_optimizer *opt)
{
    leat_graph *g = m->g;
    leat_var_grad *grads[MOST], *all;
    leat_out losses[MOST], batch[2], axis = leat_scalar(g, LEAT_INT32, 0);
    leat_out images = leat_split(axis, m->x, towers), labels = leat_split(axis, m->y_, towers);
    int n = 0;
    for (int t = 0; t < towers; t++) {
        batch[0] = leat_output(images, t);
        batch[1] = leat_output(labels, t);
        grads[t] = tower(m, t, batch, &losses[t], &n);
    }
    all = leat_average_gradients(grads, (int)towers, n);
    m->train =
        leat_apply_gradients(opt, all, n, .global_step = leat_global_step(g), .name = "train");
    leat_out part = leat_scalar(g, LEAT_FLOAT, 1.0 / (double)towers);
    m->loss = leat_mul(leat_add_n(losses, (int)towers), part, leat_name("loss"));
    for (int t = 0; t < towers; t++)
        free(grads[t]);
    free(all);
}

static leat_status build(model *m)
{
    leat_graph *g = m->g;
    const part whole = {0, layers + 1};
    leat_graph_set_seed(g, f.seed);
    m->x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, PIXELS), leat_name("x"));
    m->y_ = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, CLASSES), leat_name("y"));
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = f.learning_rate);
    build_train(m, opt);
    leat_optimizer_free(opt);
    leat_with_variable_scope(g, leat_variable_scope_name(g), .reuse = LEAT_REUSE) m->accuracy =
        mnist_accuracy(g, layers_of(g, &whole, m->x), m->y_);
    m->init = leat_global_variables_initializer(g);
    return leat_graph_status(g);
}

/* ---- Training ---- */

static leat_status train(leat_session *s, const model *m, leat_mnist *data)
{
    const double began = progress_clock();
    for (int64_t step = 1; step <= f.train_steps; step++) {
        leat_tensor *images, *labels, *loss = NULL;
        LEAT_TRY(leat_mnist_next_batch(data, LEAT_MNIST_TRAIN, f.batch_size, &images, &labels));
        leat_status status = leat_session_run(s, LEAT_FEED({m->x, images}, {m->y_, labels}),
                                              LEAT_FETCH({m->loss, &loss}), LEAT_TARGET(m->train));
        leat_tensor_unref(images);
        leat_tensor_unref(labels);
        if (status)
            return status;
        if (step == f.train_steps || step % 100 == 0)
            printf("step %lld, loss = %.5f (%.1f examples/sec)\n", (long long)step,
                   leat_tensor_at(loss, 0),
                   (double)(step * f.batch_size) / (progress_clock() - began));
        leat_tensor_unref(loss);
    }
    return NULL;
}

static leat_status run(const model *m, leat_mnist *data)
{
    const leat_session_options o = {.devices = devices,
                                    .cpu_devices = m->cpus,
                                    .intra_op_threads = (int)threads,
                                    .allow_soft_placement = soft,
                                    .log_device_placement = log_placement};
    leat_session *s;
    double accuracy;
    LEAT_TRY(leat_session_open_with(m->g, &o, &s));
    leat_status status = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m->init));
    if (!status)
        status = train(s, m, data);
    if (!status)
        status = mnist_test_means(s, data, m->x, m->y_, &m->accuracy, 1, &accuracy);
    if (!status)
        printf("test accuracy %.2f %%\n", 100 * accuracy);
    leat_session_close(s);
    return status;
}

static leat_status write_graph(const leat_graph *g)
{
    void *bytes;
    size_t n;
    LEAT_TRY(leat_graph_to_binary(g, &bytes, &n));
    FILE *to = fopen(graph_out, "wb");
    bool ok = to && fwrite(bytes, 1, n, to) == n;
    ok &= to && fclose(to) == 0;
    free(bytes);
    LEAT_REQUIRE(ok, UNKNOWN, "%s cannot be written", graph_out);
    return NULL;
}

static leat_status work(model *m)
{
    leat_mnist *data;
    LEAT_REQUIRE(towers <= MOST && layers < 1000 && micro_batches <= 1024, INVALID_ARGUMENT,
                 "at most %d towers, 999 layers and 1024 micro-batches", MOST);
    LEAT_REQUIRE(f.batch_size % (towers * micro_batches) == 0, INVALID_ARGUMENT,
                 "--batch_size %lld: %lld towers of %lld micro-batches do not divide it",
                 (long long)f.batch_size, (long long)towers, (long long)micro_batches);
    LEAT_TRY(read_devices(m));
    LEAT_TRY(build(m));
    if (graph_out)
        return write_graph(m->g);
    LEAT_TRY(leat_mnist_open(f.data_dir, (uint64_t)f.seed, &data));
    printf("%s\n", leat_mnist_source(data));
    leat_status s = run(m, data);
    leat_mnist_close(data);
    return s;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    int done = flags_parse(argc, argv, "trains a net whose layers are on several devices", flags);
    if (done >= 0)
        return done;
    model m = {.g = leat_graph_new()};
    leat_status s = work(&m);
    leat_graph_free(m.g);
    LEAT_DIE_ON_ERROR(s);
    return 0;
}
