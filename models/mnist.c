/* mnist.c -- trains the 784-100-10 net of TensorFlow's distributed MNIST example in one process:
 * relu, softmax, cross entropy, Adam. */
#include <leat/leat.h>

#include <stdio.h>

#include "common_flags.h"
#include "common_mnist.h"
#include "common_progress.h"

static mnist_flags f = {.batch_size = 100, .hidden_units = 100, .seed = 1, .learning_rate = 0.002};
static int64_t epochs = 10, threads = 0;

static const flag flags[] = {
    MNIST_FLAGS(f, 0),
    {"epochs", FLAG_INT, &epochs, 0, "times to go through the training set, if not --train_steps"},
    {"threads", FLAG_INT, &threads, 0, "that a kernel may use; 0: all cores"},
    {0},
};

typedef struct model {
    leat_graph *g;
    leat_out x, y_, loss, accuracy, train, init;
} model;

static model build(void)
{
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, f.seed);
    model m = {.g = g};
    leat_out step = leat_global_step(g);
    m.x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784));
    m.y_ = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10));
    leat_out y = mnist_net(g, m.x, f.hidden_units);
    m.loss = mnist_cross_entropy(y, m.y_);
    leat_optimizer *opt = leat_adam(.learning_rate = f.learning_rate);
    m.train = leat_minimize(opt, m.loss, .global_step = step);
    leat_optimizer_free(opt);
    m.accuracy = mnist_accuracy(g, y, m.y_);
    m.init = leat_global_variables_initializer(g);
    return m;
}

static leat_status train(leat_session *s, const model *m, leat_mnist *data)
{
    int64_t n = leat_mnist_count(data, LEAT_MNIST_TRAIN);
    int64_t steps = f.train_steps ? f.train_steps : (epochs * n + f.batch_size - 1) / f.batch_size;
    progress p;
    bool due = false;
    progress_begin(&p);
    p.steps = steps;
    for (int64_t step = 1; step <= steps; step++) {
        leat_tensor *images, *labels, *loss = NULL;
        LEAT_TRY(leat_mnist_next_batch(data, LEAT_MNIST_TRAIN, f.batch_size, &images, &labels));
        leat_fetches wanted = due ? LEAT_FETCH({m->loss, &loss}) : LEAT_NO_FETCH;
        leat_status status = leat_session_run(s, LEAT_FEED({m->x, images}, {m->y_, labels}), wanted,
                                              LEAT_TARGET(m->train));
        leat_tensor_unref(images);
        leat_tensor_unref(labels);
        if (status)
            return status;
        due = progress_add(&p, f.batch_size) && !loss;
        if (loss)
            progress_line(&p, step, (double)p.examples / (double)n,
                          leat_tensor_at(loss, 0) / (double)f.batch_size);
        leat_tensor_unref(loss);
    }
    double seconds = progress_end(&p);
    printf("trained %lld steps of %lld in %.1f s, %.0f steps/s, %.0f examples/s\n",
           (long long)steps, (long long)f.batch_size, seconds, (double)steps / seconds,
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
    LEAT_DIE_ON_ERROR(leat_mnist_open(f.data_dir, (uint64_t)f.seed, &data));
    printf("%s\n", leat_mnist_source(data));
    fflush(stdout);
    model m = build();
    LEAT_DIE_ON_ERROR(run(&m, data));
    leat_graph_free(m.g);
    leat_mnist_close(data);
    return 0;
}
