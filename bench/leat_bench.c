/* leat_bench.c -- Leat's side of the benchmarks: one figure a run, as "name value". bench/run calls
 * this and the peers' scripts in turn.
 *
 *     leat_bench mnist SECONDS      steps/s of the 784-100-10 net, batch 100, Adam, batches fed
 *     leat_bench scalar SECONDS     us of one run that feeds a scalar, adds, fetches
 *     leat_bench chain SECONDS      ns an op of 1,000 scalar adds in a chain
 *     leat_bench first              runs one step of the net and ends (the caller takes the time)
 *     leat_bench towers N SECONDS   examples/s of N towers of the net on N CPU devices
 */
#include <leat/leat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BATCH = 100, BATCHES = 100 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static float uniform(void)
{
    static uint32_t x = 123456789;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return (float)(x >> 8) / 16777216.0f;
}

/* Batches of noise: what the net learns does not matter here. */
static void make_batch(leat_tensor **images, leat_tensor **labels)
{
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape(BATCH, 784), images));
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape(BATCH, 10), labels));
    float *x = leat_tensor_mutable(*images), *y = leat_tensor_mutable(*labels);
    for (int i = 0; i < BATCH * 784; i++)
        x[i] = uniform();
    for (int i = 0; i < BATCH; i++)
        y[i * 10 + (int)(uniform() * 10)] = 1;
}

static leat_out net(leat_graph *g, leat_out x, leat_out y_, leat_out *v)
{
    leat_out h = leat_relu(leat_xw_plus_b(x, v[0], v[1]));
    leat_out y = leat_softmax(leat_xw_plus_b(h, v[2], v[3]));
    return leat_neg(leat_reduce_sum(leat_mul(y_, leat_log(leat_clip_by_value(y, 1e-10, 1.0)))));
}

static void variables(leat_graph *g, leat_out *v)
{
    v[0] = leat_variable(g, "hid_w",
                         leat_truncated_normal(g, leat_shape(784, 100), .stddev = 1.0 / 28));
    v[1] = leat_variable(g, "hid_b", leat_zeros(g, LEAT_FLOAT, leat_shape(100)));
    v[2] = leat_variable(g, "sm_w", leat_truncated_normal(g, leat_shape(100, 10), .stddev = 0.1));
    v[3] = leat_variable(g, "sm_b", leat_zeros(g, LEAT_FLOAT, leat_shape(10)));
}

static void mnist(double seconds)
{
    leat_graph *g = leat_graph_new();
    leat_out v[4], x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784)),
                   y_ = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10));
    variables(g, v);
    leat_out loss = net(g, x, y_, v);
    leat_optimizer *opt = leat_adam(.learning_rate = 0.01);
    leat_out train = leat_minimize(opt, loss);
    leat_out init = leat_global_variables_initializer(g);
    leat_session *s;
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s));
    LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    leat_tensor *images[BATCHES], *labels[BATCHES], *value = NULL;
    int n = seconds > 0 ? BATCHES : 1, steps = 0;
    for (int i = 0; i < n; i++)
        make_batch(&images[i], &labels[i]);
    double start = 0;
    for (int warm = seconds > 0 ? 200 : 1;; steps++) {
        if (steps == warm)
            start = now();
        if (steps >= warm && (steps - warm) % 20 == 0 && now() - start >= seconds) {
            if (seconds > 0)
                printf("steps_per_s %.1f\n", (steps - warm) / (now() - start));
            break;
        }
        LEAT_DIE_ON_ERROR(
            leat_session_run(s, LEAT_FEED({x, images[steps % n]}, {y_, labels[steps % n]}),
                             LEAT_FETCH({loss, &value}), LEAT_TARGET(train)));
        leat_tensor_unref(value);
    }
    for (int i = 0; i < n; i++) {
        leat_tensor_unref(images[i]);
        leat_tensor_unref(labels[i]);
    }
    leat_session_close(s);
    leat_optimizer_free(opt);
    leat_graph_free(g);
}

static double time_runs(leat_session *s, leat_out x, leat_out one, leat_out y, double seconds)
{
    leat_tensor *a = leat_scalar_float(0), *b = leat_scalar_float(1), *t = NULL;
    double start = now();
    int runs = 0;
    for (; runs % 64 || now() - start < seconds; runs++) {
        LEAT_DIE_ON_ERROR(
            leat_session_run(s, LEAT_FEED({x, a}, {one, b}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
        leat_tensor_unref(t);
    }
    double took = now() - start;
    leat_tensor_unref(a);
    leat_tensor_unref(b);
    return took / runs;
}

static void scalars(int ops, double seconds)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_out one = leat_placeholder(g, LEAT_FLOAT, leat_shape()), y = x;
    for (int i = 0; i < ops; i++)
        y = leat_add(y, one);
    leat_session *s;
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s));
    time_runs(s, x, one, y, 0.1);
    double took = time_runs(s, x, one, y, seconds);
    if (ops == 1)
        printf("run_us %.3f\n", took * 1e6);
    else
        printf("op_ns %.2f\n", took / ops * 1e9);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Every tower has a batch of its own; gradients are averaged on cpu:0 and applied there. */
static void towers(int n, double seconds)
{
    enum { MOST = 8 };
    leat_graph *g = leat_graph_new();
    leat_out v[4], x[MOST], y_[MOST], averaged[4];
    leat_grad_value grads[MOST][4];
    leat_with_device(g, "/cpu:0") variables(g, v);
    for (int t = 0; t < n; t++) {
        char device[16];
        snprintf(device, sizeof(device), "/cpu:%d", t);
        leat_with_device(g, device)
        {
            x[t] = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784));
            y_[t] = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10));
            leat_out loss = net(g, x[t], y_[t], v);
            LEAT_DIE_ON_ERROR(leat_gradients(&loss, 1, v, 4, grads[t], .colocate = false));
        }
    }
    leat_out train[4];
    leat_with_device(g, "/cpu:0")
    {
        for (int i = 0; i < 4; i++) {
            leat_out each[MOST];
            for (int t = 0; t < n; t++)
                each[t] = leat_grad_dense(grads[t][i]);
            averaged[i] = n == 1
                              ? each[0]
                              : leat_mul(leat_add_n(each, n), leat_scalar(g, LEAT_FLOAT, 1.0 / n));
            train[i] = leat_op(g, "ApplyGradientDescent", leat_in(leat_variable_ref(v[i])),
                               leat_in(leat_scalar(g, LEAT_FLOAT, 0.001)), leat_in(averaged[i]));
        }
    }
    leat_out init = leat_global_variables_initializer(g);
    leat_session *s;
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s, .cpu_devices = n, .inter_op_threads = n));
    LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    leat_feed feeds[2 * MOST];
    for (int t = 0; t < n; t++) {
        leat_tensor *images, *labels;
        make_batch(&images, &labels);
        feeds[2 * t] = (leat_feed){x[t], images};
        feeds[2 * t + 1] = (leat_feed){y_[t], labels};
    }
    double start = 0;
    int steps = 0;
    for (;; steps++) {
        if (steps == 200)
            start = now();
        if (steps >= 200 && steps % 20 == 0 && now() - start >= seconds)
            break;
        LEAT_DIE_ON_ERROR(leat_session_run(s, (leat_feeds){feeds, 2 * n}, LEAT_NO_FETCH,
                                           (leat_targets){train, 4}));
    }
    printf("examples_per_s %.0f\n", (steps - 200) * (double)n * BATCH / (now() - start));
    for (int i = 0; i < 2 * n; i++)
        leat_tensor_unref((leat_tensor *)feeds[i].value);
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? atof(argv[argc - 1]) : 2;
    if (strcmp(what, "mnist") == 0)
        mnist(seconds);
    else if (strcmp(what, "first") == 0)
        mnist(0);
    else if (strcmp(what, "scalar") == 0)
        scalars(1, seconds);
    else if (strcmp(what, "chain") == 0)
        scalars(1000, seconds);
    else if (strcmp(what, "towers") == 0 && argc == 4)
        towers(atoi(argv[2]), seconds);
    else
        return fprintf(stderr, "usage: leat_bench mnist|scalar|chain|first|towers N [SECONDS]\n"),
               2;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("peak_mb %.1f\n", (double)u.ru_maxrss / 1024);
    return 0;
}
