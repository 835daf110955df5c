/* cifar_bench.c -- how fast towers of the CIFAR-10 net train (models/common_cifar10.c), for Leat,
 * as "name value" lines. Images are drawn once and fed, 128 to a tower.
 * bench/peers/tensorflow_cifar.py and bench/peers/pytorch_cifar.py print the same figures for their
 * frameworks.
 *
 *     cifar_bench towers N SECONDS [gpu]   examples/s and processor time of N towers, each on a CPU
 *                                          device of its own, which share the threads
 *                                          (LEAT_NUM_THREADS; all cores); gpu: each on a GPU, as
 *                                          all else that has a kernel there
 *     cifar_bench records N SECONDS FILE   the same of CPU devices, with images of a TFRecord file
 *                                          that a dataset shuffles, distorts and batches
 *     cifar_bench ops SECONDS FILE [gpu]   writes a Chrome trace of a step of one tower to FILE,
 *                                          and prints the roof: GFLOP/s of a product in cache,
 *                                          GB/s of a copy
 */
#include "../models/common_cifar10.h"
#include "common_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 128,
    MOST_TOWERS = 8,
    STEPS_OF_EPOCH = 50000 / BATCH,
    WARM_UP = 12 /* steps; after some, devices compile functions for trees of element-wise ops */
};

typedef struct training {
    int towers;
    const char *kind;  /* "cpu" or "gpu": where the towers are */
    char *records;     /* the file that images come from; NULL: they are fed */
    leat_out iterator; /* over the records */
    leat_graph *g;
    leat_session *s;
    leat_out train, loss;
    leat_feed feeds[2 * MOST_TOWERS];
} training;

static void draw_batch(leat_tensor **images, leat_tensor **labels)
{
    LEAT_DIE_ON_ERROR(
        leat_tensor_new(LEAT_FLOAT, leat_shape(BATCH, CIFAR10_SIDE, CIFAR10_SIDE, 3), images));
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_INT64, leat_shape(BATCH), labels));
    float *x = leat_tensor_mutable(*images);
    int64_t *y = leat_tensor_mutable(*labels);
    for (int64_t i = 0; i < leat_tensor_count(*images); i++)
        x[i] = (float)(bench_uniform() * 2 - 1);
    for (int i = 0; i < BATCH; i++)
        y[i] = (int64_t)(bench_uniform() * CIFAR10_CLASSES);
}

/* A batch of images and labels, x[0] and x[1], for tower i. */
static void batch(training *t, int i, leat_out x[2])
{
    leat_tensor *images, *labels;
    if (t->records) {
        leat_with_device(t->g, "/cpu:0") leat_iterator_next(t->iterator, x, 2);
        return;
    }
    x[0] = leat_placeholder(t->g, LEAT_FLOAT, leat_shape(BATCH, CIFAR10_SIDE, CIFAR10_SIDE, 3));
    x[1] = leat_placeholder(t->g, LEAT_INT64, leat_shape(BATCH));
    draw_batch(&images, &labels);
    t->feeds[2 * i] = (leat_feed){x[0], images};
    t->feeds[2 * i + 1] = (leat_feed){x[1], labels};
}

/* One tower: images, the loss, and its gradients. */
static leat_var_grad *tower(training *t, int i, leat_optimizer *opt, int *n_vars)
{
    leat_graph *g = t->g;
    leat_out x[2], *parts;
    int n;
    batch(t, i, x);
    t->loss = cifar10_loss(g, cifar10_logits(g, "/cpu:0", x[0]), x[1], &parts, &n);
    free(parts);
    return leat_compute_gradients(opt, t->loss, n_vars);
}

/* As models/cifar10_towers.c trains, without summaries and averages of the losses. */
static void build(training *t)
{
    leat_graph *g = t->g = leat_graph_new();
    leat_var_grad *towers[MOST_TOWERS];
    int n_vars = 0, n;
    leat_graph_set_seed(g, 1);
    leat_device_enter(g, "/cpu:0");
    leat_out step = leat_global_step(g);
    leat_out rate =
        leat_exponential_decay(step, .learning_rate = 0.01, .decay_steps = STEPS_OF_EPOCH * 350.0,
                               .decay_rate = 0.1, .staircase = true);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate_tensor = rate);
    cifar10_input input = {t->records, BATCH, 1, 2 * t->towers};
    if (t->records)
        t->iterator = leat_one_shot_iterator(g, cifar10_batches, &input);
    for (int i = 0; i < t->towers; i++) {
        char device[32], name[32];
        snprintf(device, sizeof(device), "/%s:%d", t->kind, i);
        snprintf(name, sizeof(name), "tower_%d", i);
        leat_with_device(g, device) leat_with_name(g, name) towers[i] = tower(t, i, opt, &n_vars);
    }
    leat_moving_average *ema = leat_moving_average_new(.decay = 0.9999, .num_updates = step);
    leat_var_grad *grads = leat_average_gradients(towers, t->towers, n_vars);
    leat_out applied = leat_apply_gradients(opt, grads, n_vars, .global_step = step);
    leat_out *vars = leat_trainable_variables(g, &n);
    leat_with_control(g, applied) t->train = leat_moving_average_apply(ema, vars, n);
    leat_device_leave(g);
    free(vars);
    free(grads);
    for (int i = 0; i < t->towers; i++)
        free(towers[i]);
    leat_moving_average_free(ema);
    leat_optimizer_free(opt);
}

static training begin(int towers, const char *kind, char *records)
{
    training t = {.towers = towers, .kind = kind, .records = records};
    build(&t);
    leat_out init = leat_global_variables_initializer(t.g);
    LEAT_DIE_ON_ERROR(leat_session_open(t.g, &t.s,
                                        .cpu_devices = strcmp(kind, "cpu") == 0 ? towers : 1,
                                        .allow_soft_placement = true));
    LEAT_DIE_ON_ERROR(leat_session_run(t.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    return t;
}

static leat_feeds feeds_of(const training *t)
{
    return (leat_feeds){t->feeds, t->records ? 0 : 2 * t->towers};
}

static void end(training *t)
{
    for (int i = 0; i < feeds_of(t).n; i++)
        leat_tensor_unref((leat_tensor *)t->feeds[i].value);
    leat_session_close(t->s);
    leat_graph_free(t->g);
}

static double step(training *t)
{
    leat_tensor *loss = NULL;
    LEAT_DIE_ON_ERROR(
        leat_session_run(t->s, feeds_of(t), LEAT_FETCH({t->loss, &loss}), LEAT_TARGET(t->train)));
    const double value = leat_tensor_at(loss, 0);
    leat_tensor_unref(loss);
    return value;
}

static void towers(int n, double seconds, const char *kind, char *records)
{
    training t = begin(n, kind, records);
    for (int i = 0; i < WARM_UP; i++)
        step(&t);
    const double start = bench_now(), cpu_start = bench_cpu();
    double took = 0, loss = 0;
    int64_t steps = 0;
    for (; took < seconds; took = bench_now() - start, steps++)
        loss = step(&t);
    const double examples = (double)(steps * n * BATCH);
    printf("examples_per_s %.1f\nloss %.4f\n", examples / took, loss);
    printf("cpu_us_per_example %.1f\n", (bench_cpu() - cpu_start) / examples * 1e6);
    end(&t);
}

/* Where the time of a step goes, and the roof; the memory's is that of the size of an activation of
 * the first layer. */
static void ops(double seconds, const char *path, const char *kind)
{
    training t = begin(1, kind, NULL);
    for (int i = 0; i < WARM_UP; i++)
        step(&t);
    bench_trace_steps(t.s, (leat_feeds){t.feeds, 2}, t.train, seconds, path);
    end(&t);
    bench_product_roof(seconds / 4);
    bench_memory_roof(seconds / 4, (int64_t)BATCH * CIFAR10_SIDE * CIFAR10_SIDE * 64);
}

int main(int argc, char **argv)
{
    const char *what = argc == 4 || argc == 5 ? argv[1] : "";
    const char *kind = argc == 5 ? argv[4] : "cpu";
    if (strcmp(what, "records") != 0 && strcmp(kind, "cpu") != 0 && strcmp(kind, "gpu") != 0)
        what = "";
    const int n = *what ? atoi(argv[2]) : 0;
    const bool counted = n > 0 && n <= MOST_TOWERS;
    if (strcmp(what, "towers") == 0 && counted) {
        towers(n, atof(argv[3]), kind, NULL);
    } else if (strcmp(what, "records") == 0 && counted && argc == 5) {
        towers(n, atof(argv[3]), "cpu", argv[4]);
    } else if (strcmp(what, "ops") == 0) {
        ops(atof(argv[2]), argv[3], kind);
    } else {
        fprintf(stderr, "usage: cifar_bench towers N SECONDS [gpu]\n"
                        "       cifar_bench records N SECONDS FILE\n"
                        "       cifar_bench ops SECONDS FILE [gpu]\n");
        return 2;
    }
    bench_print_peak();
    return 0;
}
