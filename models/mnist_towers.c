/* mnist_towers.c -- a 784-500-10 net with L2 regularisation, trained by towers: every device has a
 * replica of the net and a batch of its own; variables live on /cpu:0, where the towers' gradients
 * are averaged and applied once. Moving averages of the variables are kept and tested, too. */
#include <leat/leat.h>

#include <stdio.h>
#include <stdlib.h>

#include "common_flags.h"
#include "common_mnist.h"
#include "common_progress.h"

enum { MOST_DEVICES = 64 };

static mnist_flags f = {.batch_size = 100, .hidden_units = 500, .seed = 1, .learning_rate = 0.3};
static int64_t epochs = 10, num_devices = 2, threads;
static double decay = 0.97, regularization = 0.0001, average_decay = 0.99;

static const flag flags[] = {
    MNIST_FLAGS(f, 0),
    {"num_devices", FLAG_INT, &num_devices, 1, "towers, each on a CPU device of its own"},
    {"num_gpus", FLAG_INT, &num_devices, 1, "the same, as other programs call it"},
    {"epochs", FLAG_INT, &epochs, 0, "times to go through the training set, if not --train_steps"},
    {"decay", FLAG_FLOAT, &decay, 0, "what the learning rate is multiplied by after each epoch"},
    {"regularization", FLAG_FLOAT, &regularization, 0, "scale of the weights' L2 loss"},
    {"moving_average_decay", FLAG_FLOAT, &average_decay, 0, "of the averages of variables"},
    {"threads", FLAG_INT, &threads, 0, "that a kernel may use on a device; 0: all its cores"},
    {0},
};

typedef struct weights {
    leat_out w1, b1, w2, b2;
} weights;

typedef struct model {
    leat_graph *g;
    leat_out x[MOST_DEVICES], y_[MOST_DEVICES]; /* (batch, 784), (batch, 10) */
    leat_out loss;                              /* the first tower's */
    leat_out accuracy, average_accuracy; /* for the examples that the first tower is fed with */
    leat_out train, init;
} model;

/* A variable on the CPU that all towers share; the first tower makes it. */
static leat_out shared(leat_graph *g, const char *name, leat_shape s, leat_initializer init)
{
    leat_out v = {0};
    leat_with_device(g, "/cpu:0") v = leat_get_variable(g, name, s, .initializer = init);
    return v;
}

static weights get_weights(leat_graph *g)
{
    leat_initializer random = leat_truncated_normal_initializer(0, 0.1);
    leat_initializer zeros = leat_zeros_initializer();
    weights w = {{0}};
    leat_with_variable_scope(g, "layer1", .reuse = LEAT_AUTO_REUSE)
    {
        w.w1 = shared(g, "weights", leat_shape(784, f.hidden_units), random);
        w.b1 = shared(g, "biases", leat_shape(f.hidden_units), zeros);
    }
    leat_with_variable_scope(g, "layer2", .reuse = LEAT_AUTO_REUSE)
    {
        w.w2 = shared(g, "weights", leat_shape(f.hidden_units, 10), random);
        w.b2 = shared(g, "biases", leat_shape(10), zeros);
    }
    return w;
}

static leat_out logits_of(leat_out x, const weights *w)
{
    return leat_xw_plus_b(leat_relu(leat_xw_plus_b(x, w->w1, w->b1)), w->w2, w->b2);
}

/* The loss of a tower: cross entropy and the losses that were collected in its scope. */
static leat_out tower_loss(leat_graph *g, leat_out x, leat_out y_)
{
    weights w = get_weights(g);
    const leat_regularizer l2 = leat_l2_regularizer(regularization);
    if (regularization > 0) {
        leat_collect(g, "losses", l2.make(w.w1, &l2));
        leat_collect(g, "losses", l2.make(w.w2, &l2));
    }
    leat_collect(g, "losses", leat_reduce_mean(leat_softmax_cross_entropy(logits_of(x, &w), y_)));
    int n;
    leat_out *losses = leat_collection(g, "losses", leat_name_scope(g), &n);
    leat_out sum = leat_add_n(losses, n);
    free(losses);
    return sum;
}

static leat_out train_op(leat_graph *g, leat_optimizer *opt, leat_var_grad **towers, int n_vars,
                         leat_out step, leat_moving_average *ema)
{
    leat_var_grad *grads = leat_average_gradients(towers, (int)num_devices, n_vars);
    leat_out applied = leat_apply_gradients(opt, grads, n_vars, .global_step = step),
             averaged = {0};
    int n;
    leat_out *vars = leat_trainable_variables(g, &n);
    leat_with_control(g, applied) averaged = leat_moving_average_apply(ema, vars, n);
    free(vars);
    free(grads);
    return averaged;
}

static void build_towers(model *m, leat_optimizer *opt, leat_var_grad **towers, int *n_vars)
{
    leat_graph *g = m->g;
    for (int i = 0; i < num_devices; i++) {
        char device[32], name[32];
        snprintf(device, sizeof(device), "/cpu:%d", i);
        snprintf(name, sizeof(name), "tower_%d", i);
        leat_with_device(g, device) leat_with_name(g, name)
        {
            m->x[i] = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784), leat_name("x"));
            m->y_[i] = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10), leat_name("y_"));
            leat_out loss = tower_loss(g, m->x[i], m->y_[i]);
            towers[i] = leat_compute_gradients(opt, loss, n_vars);
            if (i == 0)
                m->loss = loss;
        }
    }
}

static model build(int64_t n_train)
{
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, f.seed);
    model m = {.g = g};
    leat_var_grad *towers[MOST_DEVICES] = {0};
    int n_vars = 0;
    leat_device_enter(g, "/cpu:0");
    leat_out step = leat_global_step(g);
    double steps_of_epoch = (double)n_train / (double)(f.batch_size * num_devices);
    leat_out rate = leat_exponential_decay(step, .learning_rate = f.learning_rate,
                                           .decay_steps = steps_of_epoch, .decay_rate = decay,
                                           .staircase = true);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate_tensor = rate);
    leat_moving_average *ema = leat_moving_average_new(.decay = average_decay, .num_updates = step);
    build_towers(&m, opt, towers, &n_vars);
    m.train = train_op(g, opt, towers, n_vars, step, ema);
    weights w = get_weights(g);
    weights means = {leat_moving_average_of(ema, w.w1), leat_moving_average_of(ema, w.b1),
                     leat_moving_average_of(ema, w.w2), leat_moving_average_of(ema, w.b2)};
    m.accuracy = mnist_accuracy(g, logits_of(m.x[0], &w), m.y_[0]);
    m.average_accuracy = mnist_accuracy(g, logits_of(m.x[0], &means), m.y_[0]);
    m.init = leat_global_variables_initializer(g);
    leat_device_leave(g);
    for (int i = 0; i < num_devices; i++)
        free(towers[i]);
    leat_moving_average_free(ema);
    leat_optimizer_free(opt);
    return m;
}

static leat_status one_step(leat_session *s, const model *m, leat_mnist *data, leat_tensor **loss)
{
    leat_tensor *t[2 * MOST_DEVICES] = {0};
    leat_feed feeds[2 * MOST_DEVICES];
    leat_status status = NULL;
    for (int i = 0; i < num_devices && !status; i++) {
        status =
            leat_mnist_next_batch(data, LEAT_MNIST_TRAIN, f.batch_size, &t[2 * i], &t[2 * i + 1]);
        feeds[2 * i] = (leat_feed){m->x[i], t[2 * i]};
        feeds[2 * i + 1] = (leat_feed){m->y_[i], t[2 * i + 1]};
    }
    if (!status)
        status = leat_session_run(s, (leat_feeds){feeds, 2 * (int)num_devices},
                                  loss ? LEAT_FETCH({m->loss, loss}) : LEAT_NO_FETCH,
                                  LEAT_TARGET(m->train));
    for (int i = 0; i < 2 * num_devices; i++)
        leat_tensor_unref(t[i]);
    return status;
}

static leat_status train(leat_session *s, const model *m, leat_mnist *data)
{
    int64_t n = leat_mnist_count(data, LEAT_MNIST_TRAIN), in_step = f.batch_size * num_devices;
    int64_t steps = f.train_steps ? f.train_steps : (epochs * n + in_step - 1) / in_step;
    progress p;
    bool due = false;
    progress_begin(&p);
    p.steps = steps;
    for (int64_t step = 1; step <= steps; step++) {
        leat_tensor *loss = NULL;
        LEAT_TRY(one_step(s, m, data, due ? &loss : NULL));
        due = progress_add(&p, in_step) && !loss;
        if (loss)
            progress_line(&p, step, (double)p.examples / (double)n, leat_tensor_at(loss, 0));
        leat_tensor_unref(loss);
    }
    double seconds = progress_end(&p);
    printf("trained %lld steps of %lld towers in %.1f s, %.0f steps/s, %.0f examples/s\n",
           (long long)steps, (long long)num_devices, seconds, (double)steps / seconds,
           (double)p.examples / seconds);
    return NULL;
}

static leat_status test(leat_session *s, const model *m, leat_mnist *data)
{
    const leat_out both[2] = {m->accuracy, m->average_accuracy};
    double means[2];
    LEAT_TRY(mnist_test_means(s, data, m->x[0], m->y_[0], both, 2, means));
    printf("test accuracy %.2f %%, with averaged variables %.2f %%\n", 100 * means[0],
           100 * means[1]);
    return NULL;
}

static leat_status run(const model *m, leat_mnist *data)
{
    leat_session *s;
    LEAT_TRY(leat_graph_status(m->g));
    LEAT_TRY(leat_session_open(m->g, &s, .cpu_devices = (int)num_devices,
                               .intra_op_threads = (int)threads));
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
    int done = flags_parse(argc, argv, "trains a net on MNIST, one tower a device", flags);
    if (done >= 0)
        return done;
    if (num_devices > MOST_DEVICES) {
        fprintf(stderr, "mnist_towers: --num_devices: at most %d\n", MOST_DEVICES);
        return 2;
    }
    leat_mnist *data;
    LEAT_DIE_ON_ERROR(leat_mnist_open(f.data_dir, (uint64_t)f.seed, &data));
    printf("%s\n", leat_mnist_source(data));
    fflush(stdout);
    model m = build(leat_mnist_count(data, LEAT_MNIST_TRAIN));
    LEAT_DIE_ON_ERROR(run(&m, data));
    leat_graph_free(m.g);
    leat_mnist_close(data);
    return 0;
}
