/* leat_bench.c -- the benchmarks of one process, for Leat: each run prints one figure, as "name
 * value". bench/run calls this program and the scripts of other frameworks (bench/peers) in turn.
 *
 *     leat_bench mnist SECONDS      steps/s of the 784-100-10 net, batch 100, Adam, batches fed
 *     leat_bench scalar SECONDS     us of one run that feeds a scalar, adds, fetches
 *     leat_bench chain SECONDS      ns an op of 1,000 scalar adds in a chain
 *     leat_bench first              runs one step of the net and ends (the caller takes the time)
 *     leat_bench tower UNITS SECONDS    examples/s of one tower of a net with UNITS hidden units
 *     leat_bench towers UNITS SECONDS   the same, in turn with two towers on two CPU devices
 */
#include <leat/leat.h>
#include <math.h>
#include <stdbool.h>
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

/* Batches of random numbers: what the net learns does not matter here. */
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

static void variables(leat_graph *g, int units, leat_out *v)
{
    v[0] = leat_variable(g, "hid_w",
                         leat_truncated_normal(g, leat_shape(784, units), .stddev = 1.0 / 28));
    v[1] = leat_variable(g, "hid_b", leat_zeros(g, LEAT_FLOAT, leat_shape(units)));
    v[2] = leat_variable(g, "sm_w", leat_truncated_normal(g, leat_shape(units, 10), .stddev = 0.1));
    v[3] = leat_variable(g, "sm_b", leat_zeros(g, LEAT_FLOAT, leat_shape(10)));
}

static void mnist(double seconds)
{
    leat_graph *g = leat_graph_new();
    leat_out v[4], x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784)),
                   y_ = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10));
    variables(g, 100, v);
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

enum { MOST_TOWERS = 2 };
typedef struct tower_set {
    int n;
    leat_graph *g;
    leat_session *s;
    leat_out train[4];
    leat_feed feeds[2 * MOST_TOWERS];
} tower_set;

/* Every tower has a batch of its own; gradients are averaged on cpu:0 and applied there. */
static void towers_build(tower_set *t, int units)
{
    leat_graph *g = t->g = leat_graph_new();
    leat_out v[4];
    leat_grad_value grads[MOST_TOWERS][4];
    leat_with_device(g, "/cpu:0") variables(g, units, v);
    for (int i = 0; i < t->n; i++) {
        char device[16];
        snprintf(device, sizeof(device), "/cpu:%d", i);
        leat_with_device(g, device)
        {
            leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784));
            leat_out y_ = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10));
            leat_out loss = net(g, x, y_, v);
            LEAT_DIE_ON_ERROR(leat_gradients(&loss, 1, v, 4, grads[i], .colocate = false));
            leat_tensor *images, *labels;
            make_batch(&images, &labels);
            t->feeds[2 * i] = (leat_feed){x, images};
            t->feeds[2 * i + 1] = (leat_feed){y_, labels};
        }
    }
    leat_with_device(g, "/cpu:0") for (int i = 0; i < 4; i++)
    {
        leat_out each[MOST_TOWERS], mean;
        for (int j = 0; j < t->n; j++)
            each[j] = leat_grad_dense(grads[j][i]);
        mean = t->n == 1 ? each[0]
                         : leat_mul(leat_add_n(each, t->n), leat_scalar(g, LEAT_FLOAT, 1.0 / t->n));
        t->train[i] = leat_op(g, "ApplyGradientDescent", leat_in(leat_variable_ref(v[i])),
                              leat_in(leat_scalar(g, LEAT_FLOAT, 0.001)), leat_in(mean));
    }
}

static tower_set towers_open(int n, int units)
{
    tower_set t = {.n = n};
    towers_build(&t, units);
    leat_out init = leat_global_variables_initializer(t.g);
    LEAT_DIE_ON_ERROR(leat_session_open(t.g, &t.s, .cpu_devices = n, .inter_op_threads = n,
                                        .intra_op_threads = n));
    LEAT_DIE_ON_ERROR(leat_session_run(t.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    return t;
}

static void towers_close(tower_set *t)
{
    for (int i = 0; i < 2 * t->n; i++)
        leat_tensor_unref((leat_tensor *)t->feeds[i].value);
    leat_session_close(t->s);
    leat_graph_free(t->g);
}

static void towers_step(tower_set *t)
{
    LEAT_DIE_ON_ERROR(leat_session_run(t->s, (leat_feeds){t->feeds, 2 * t->n}, LEAT_NO_FETCH,
                                       (leat_targets){t->train, 4}));
}

/* Examples per second, after some steps that are not measured. */
static double towers_run(tower_set *t, double seconds)
{
    for (int i = 0; i < 10; i++)
        towers_step(t);
    double start = now(), took = 0;
    int64_t steps = 0;
    for (; took < seconds; took = now() - start, steps++)
        towers_step(t);
    return (double)steps * t->n * BATCH / took;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), ascending);
    return v[n / 2];
}

/* One and two towers alternately, for short times, because the load of the machine changes. Results
 * are medians over these times; the ratio is the median over pairs. */
static void towers(int units, bool two_as_well, double seconds)
{
    enum { MOST = 1000 };
    const double slice = 0.05;
    static double ones[MOST], twos[MOST], ratios[MOST];
    int n = 0;
    tower_set one = towers_open(1, units), two = {0};
    if (two_as_well)
        two = towers_open(2, units);
    for (double end = now() + seconds; n < MOST && (n == 0 || now() < end); n++) {
        ones[n] = towers_run(&one, slice);
        twos[n] = two_as_well ? towers_run(&two, slice) : 0;
        ratios[n] = twos[n] / ones[n];
    }
    towers_close(&one);
    printf("one_examples_per_s %.0f\n", median(ones, n));
    if (two_as_well) {
        towers_close(&two);
        printf("two_examples_per_s %.0f\ntwo_to_one %.3f\n", median(twos, n), median(ratios, n));
    }
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
    else if ((strcmp(what, "tower") == 0 || strcmp(what, "towers") == 0) && argc == 4)
        towers(atoi(argv[2]), strcmp(what, "towers") == 0, seconds);
    else
        return fprintf(stderr, "usage: leat_bench mnist|scalar|chain|first [SECONDS]\n"
                               "       leat_bench tower|towers UNITS SECONDS\n"),
               2;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("peak_mb %.1f\n", (double)u.ru_maxrss / 1024);
    return 0;
}
