/* mnist.c -- trains the 784-100-10 net of TensorFlow's distributed MNIST example in one process:
 * relu, softmax, cross entropy, Adam. */
#include <leat/leat.h>

#include <math.h>
#include <stdio.h>

#include "common_flags.h"
#include "common_mnist.h"
#include "common_progress.h"

static const char *data_dir;
static int64_t train_steps = 0, epochs = 10, batch_size = 100, hidden_units = 100, seed = 1;
static int64_t threads = 0;
static double learning_rate = 0.002;

static const flag flags[] = {
    {"data_dir", FLAG_STRING, &data_dir, 0, "where MNIST's files are"},
    {"train_steps", FLAG_INT, &train_steps, 0, "steps to train for; 0: by --epochs"},
    {"epochs", FLAG_INT, &epochs, 0, "times to go through the training set"},
    {"batch_size", FLAG_INT, &batch_size, 1, "examples in a step"},
    {"hidden_units", FLAG_INT, &hidden_units, 1, "units of the hidden layer"},
    {"learning_rate", FLAG_FLOAT, &learning_rate, 0, "Adam's learning rate"},
    {"seed", FLAG_INT, &seed, 0, "of weights and shuffling"},
    {"threads", FLAG_INT, &threads, 0, "that a kernel may use; 0: all cores"},
    {0},
};

typedef struct model {
    leat_graph *g;
    leat_out x, y_, loss, accuracy, train, init;
} model;

/* x is (batch, 784), y_ is (batch, 10); the result is the classes' probabilities, (batch, 10). */
static leat_out net(leat_graph *g, leat_out x, int64_t hidden)
{
    leat_out w1 = leat_variable(
        g, "hid_w", leat_truncated_normal(g, leat_shape(784, hidden), .stddev = 1.0 / 28));
    leat_out b1 = leat_variable(g, "hid_b", leat_zeros(g, LEAT_FLOAT, leat_shape(hidden)));
    leat_out w2 = leat_variable(
        g, "sm_w",
        leat_truncated_normal(g, leat_shape(hidden, 10), .stddev = 1 / sqrt((double)hidden)));
    leat_out b2 = leat_variable(g, "sm_b", leat_zeros(g, LEAT_FLOAT, leat_shape(10)));
    leat_out h = leat_relu(leat_xw_plus_b(x, w1, b1));
    return leat_softmax(leat_xw_plus_b(h, w2, b2));
}

static model build(void)
{
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, seed);
    model m = {.g = g};
    leat_out step = leat_global_step(g);
    m.x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784));
    m.y_ = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10));
    leat_out y = net(g, m.x, hidden_units);
    leat_out log_y = leat_log(leat_clip_by_value(y, 1e-10, 1.0));
    m.loss = leat_neg(leat_reduce_sum(leat_mul(m.y_, log_y)));
    leat_optimizer *opt = leat_adam(.learning_rate = learning_rate);
    m.train = leat_minimize(opt, m.loss, .global_step = step);
    leat_optimizer_free(opt);
    m.accuracy = mnist_accuracy(g, y, m.y_);
    m.init = leat_global_variables_initializer(g);
    return m;
}

static leat_status train(leat_session *s, const model *m, leat_mnist *data)
{
    int64_t n = leat_mnist_count(data, LEAT_MNIST_TRAIN);
    int64_t steps = train_steps ? train_steps : (epochs * n + batch_size - 1) / batch_size;
    progress p;
    bool due = false;
    progress_begin(&p);
    for (int64_t step = 1; step <= steps; step++) {
        leat_tensor *images, *labels, *loss = NULL;
        LEAT_TRY(leat_mnist_next_batch(data, LEAT_MNIST_TRAIN, batch_size, &images, &labels));
        leat_fetches wanted = due ? LEAT_FETCH({m->loss, &loss}) : LEAT_NO_FETCH;
        leat_status status = leat_session_run(s, LEAT_FEED({m->x, images}, {m->y_, labels}), wanted,
                                              LEAT_TARGET(m->train));
        leat_tensor_unref(images);
        leat_tensor_unref(labels);
        if (status)
            return status;
        due = progress_add(&p, batch_size) && !loss;
        if (loss)
            progress_line(&p, step, (double)p.examples / (double)n,
                          leat_tensor_at(loss, 0) / (double)batch_size);
        leat_tensor_unref(loss);
    }
    double seconds = progress_end(&p);
    printf("trained %lld steps of %lld in %.1f s, %.0f steps/s, %.0f examples/s\n",
           (long long)steps, (long long)batch_size, seconds, (double)steps / seconds,
           (double)p.examples / seconds);
    return NULL;
}

static leat_status test(leat_session *s, const model *m, leat_mnist *data)
{
    double accuracy;
    LEAT_TRY(mnist_test_means(s, data, m->x, m->y_, &m->accuracy, 1, &accuracy));
    printf("test accuracy %.2f %%\n", 100 * accuracy);
    return NULL;
}

static leat_status run(const model *m, leat_mnist *data)
{
    leat_session *s;
    LEAT_TRY(leat_graph_status(m->g));
    LEAT_TRY(leat_session_open(m->g, &s, .intra_op_threads = (int)threads));
    leat_status status = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m->init));
    if (!status)
        status = train(s, m, data);
    if (!status)
        status = test(s, m, data);
    leat_session_close(s);
    return status;
}

int main(int argc, char **argv)
{
    int done = flags_parse(argc, argv, "trains a net of one hidden layer on MNIST", flags);
    if (done >= 0)
        return done;
    leat_mnist *data;
    LEAT_DIE_ON_ERROR(leat_mnist_open(data_dir, (uint64_t)seed, &data));
    printf("%s\n", leat_mnist_source(data));
    fflush(stdout);
    model m = build();
    LEAT_DIE_ON_ERROR(run(&m, data));
    leat_graph_free(m.g);
    leat_mnist_close(data);
    return 0;
}
