/* mnist_towers.c -- a 784-500-10 net with L2 regularisation, trained by towers: every device has a
 * replica of the net and a batch of its own; variables live on /cpu:0, where the towers' gradients
 * are averaged and applied once. Moving averages of the variables are kept and tested, too. Batches
 * come from TFRecord files by a dataset in the graph. With --log_dir there are checkpoints, from
 * which the next run goes on, and summaries. */
#include <leat/leat.h>

#include <stdio.h>
#include <stdlib.h>

#include "common_flags.h"
#include "common_layers.h"
#include "common_mnist.h"
#include "common_progress.h"
#include "common_records.h"

enum { MOST_DEVICES = 64, SHUFFLED = 10000 };

static mnist_flags f = {.batch_size = 100, .hidden_units = 500, .seed = 1, .learning_rate = 0.3};
static int64_t epochs = 10, num_devices = 2, threads;
static int64_t save_steps = 1000, summary_steps = 10;
static const char *log_dir, *records_dir;
static double decay = 0.97, regularization = 0.0001, average_decay = 0.99;

static const flag flags[] = {
    MNIST_FLAGS(f, 0),
    {"num_devices", FLAG_INT, &num_devices, 1, "towers, each on a CPU device of its own"},
    {"num_gpus", FLAG_INT, &num_devices, 1, "the same, as other programs call it"},
    {"epochs", FLAG_INT, &epochs, 0, "times to go through the training set, if not --train_steps"},
    {"decay", FLAG_FLOAT, &decay, 0, "what the learning rate is multiplied by after each epoch"},
    {"regularization", FLAG_FLOAT, &regularization, 0, "scale of the weights' L2 loss"},
    {"moving_average_decay", FLAG_FLOAT, &average_decay, 0, "of the averages of variables"},
    {"log_dir", FLAG_STRING, &log_dir, 0,
     "for checkpoints and summaries; none: nothing is written"},
    {"save_steps", FLAG_INT, &save_steps, 1, "steps between checkpoints"},
    {"summary_steps", FLAG_INT, &summary_steps, 1, "steps between summaries"},
    {"records_dir", FLAG_STRING, &records_dir, 0,
     "of MNIST as TFRecords, written if missing; default: data_dir, or the cache"},
    {"threads", FLAG_INT, &threads, 0, "that a kernel may use on a device; 0: all its cores"},
    {0},
};

typedef struct model {
    leat_graph *g;
    leat_out x, y_;                      /* placeholders for tests: (batch, 784), (batch, 10) */
    leat_out loss;                       /* the first tower's */
    leat_out accuracy, average_accuracy; /* for the examples that x and y_ are fed with */
    leat_out train, step;                /* step: the global step after the training */
} model;

/* ---- Input: records of MNIST, parsed, shuffled, repeated and batched by nodes ---- */

static void input(leat_graph *body, void *path, const leat_out *in, leat_out *out)
{
    leat_out d = leat_record_dataset(leat_string_const(body, path), "");
    leat_shape shape = leat_shape(784);
    d = leat_map_dataset(d, records_parse, &shape, 2, .parallel_calls = -1);
    d = leat_shuffle_dataset(d, SHUFFLED, .seed = f.seed);
    d = leat_batch_dataset(leat_repeat_dataset(d, -1), f.batch_size, .drop_remainder = true);
    out[0] = leat_prefetch_dataset(d, 2 * num_devices);
}

/* The next batch of a tower: images (batch, 784) from 0 to 1, and labels (batch, 10). */
static void next_batch(leat_graph *g, leat_out iterator, leat_out *x, leat_out *y_)
{
    leat_out batch[2];
    leat_with_device(g, "/cpu:0") leat_iterator_next(iterator, batch, 2);
    *x = leat_mul(leat_cast(batch[0], LEAT_FLOAT), leat_scalar(g, LEAT_FLOAT, 1.0 / 255));
    *y_ = leat_one_hot(batch[1], leat_scalar(g, LEAT_INT32, 10), leat_scalar(g, LEAT_FLOAT, 1),
                       leat_scalar(g, LEAT_FLOAT, 0));
}

/* ---- The model ---- */

/* The loss of a tower: cross entropy and the losses that were collected in its scope. */
static leat_out tower_loss(leat_graph *g, leat_out x, leat_out y_)
{
    layers w = layers_get(g, f.hidden_units);
    const leat_regularizer l2 = leat_l2_regularizer(regularization);
    if (regularization > 0) {
        leat_collect(g, "losses", l2.make(w.w1, &l2));
        leat_collect(g, "losses", l2.make(w.w2, &l2));
    }
    leat_collect(g, "losses",
                 leat_reduce_mean(leat_softmax_cross_entropy(layers_logits(x, &w), y_)));
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

static void build_towers(model *m, leat_out iterator, leat_optimizer *opt, leat_var_grad **towers,
                         int *n_vars)
{
    leat_graph *g = m->g;
    for (int i = 0; i < num_devices; i++) {
        char device[32], name[32];
        snprintf(device, sizeof(device), "/cpu:%d", i);
        snprintf(name, sizeof(name), "tower_%d", i);
        leat_with_device(g, device) leat_with_name(g, name)
        {
            leat_out x, y_;
            next_batch(g, iterator, &x, &y_);
            leat_out loss = tower_loss(g, x, y_);
            towers[i] = leat_compute_gradients(opt, loss, n_vars);
            if (i == 0)
                m->loss = loss;
        }
    }
}

static void add_summaries(const model *m, leat_out rate)
{
    int n;
    leat_out *vars = leat_trainable_variables(m->g, &n);
    leat_scalar_summary("total_loss", m->loss);
    leat_scalar_summary("learning_rate", rate);
    for (int i = 0; i < n; i++)
        leat_histogram_summary(leat_node_name(vars[i].node), vars[i]);
    free(vars);
}

static model build(int64_t n_train, char *records)
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
    build_towers(&m, leat_one_shot_iterator(g, input, records), opt, towers, &n_vars);
    m.train = train_op(g, opt, towers, n_vars, step, ema);
    m.step = leat_identity(step, leat_after(leat_done(m.train)));
    layers w = layers_get(g, f.hidden_units);
    layers means = {leat_moving_average_of(ema, w.w1), leat_moving_average_of(ema, w.b1),
                    leat_moving_average_of(ema, w.w2), leat_moving_average_of(ema, w.b2)};
    m.x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784));
    m.y_ = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10));
    m.accuracy = mnist_accuracy(g, layers_logits(m.x, &w), m.y_);
    m.average_accuracy = mnist_accuracy(g, layers_logits(m.x, &means), m.y_);
    add_summaries(&m, rate);
    leat_device_leave(g);
    for (int i = 0; i < num_devices; i++)
        free(towers[i]);
    leat_moving_average_free(ema);
    leat_optimizer_free(opt);
    return m;
}

/* ---- Training ---- */

/* To step number `steps`; the set has n examples. */
static leat_status train(leat_monitored *ms, const model *m, int64_t steps, int64_t n)
{
    const int64_t in_step = f.batch_size * num_devices;
    int64_t first = -1, last = 0;
    progress p;
    bool due = false;
    progress_begin(&p);
    p.steps = steps;
    while (!leat_monitored_should_stop(ms)) {
        leat_tensor *loss = NULL, *step = NULL;
        const leat_fetches fetches =
            due ? LEAT_FETCH({m->step, &step}, {m->loss, &loss}) : LEAT_FETCH({m->step, &step});
        LEAT_TRY(leat_monitored_run(ms, LEAT_NO_FEED, fetches, LEAT_TARGET(m->train)));
        last = (int64_t)leat_tensor_at(step, 0);
        if (first < 0 && last > 1)
            printf("going on from step %lld\n", (long long)last - 1);
        first = first < 0 ? last - 1 : first;
        due = progress_add(&p, in_step) && !loss;
        if (loss)
            progress_line(&p, last, (double)(last * in_step) / (double)n, leat_tensor_at(loss, 0));
        leat_tensor_unref(step);
        leat_tensor_unref(loss);
    }
    double seconds = progress_end(&p);
    printf("trained %lld steps of %lld towers in %.1f s, %.0f steps/s, %.0f examples/s\n",
           (long long)(last - first), (long long)num_devices, seconds,
           (double)(last - first) / seconds, (double)p.examples / seconds);
    return NULL;
}

static leat_status test(leat_session *s, const model *m, leat_mnist *data)
{
    const leat_out both[2] = {m->accuracy, m->average_accuracy};
    double means[2];
    LEAT_TRY(mnist_test_means(s, data, m->x, m->y_, both, 2, means));
    printf("test accuracy %.2f %%, with averaged variables %.2f %%\n", 100 * means[0],
           100 * means[1]);
    return NULL;
}

static leat_status run(const model *m, leat_mnist *data)
{
    const int64_t n = leat_mnist_count(data, LEAT_MNIST_TRAIN),
                  in_step = f.batch_size * num_devices;
    const int64_t steps = f.train_steps ? f.train_steps : (epochs * n + in_step - 1) / in_step;
    const leat_session_options config = {.cpu_devices = (int)num_devices,
                                         .intra_op_threads = (int)threads};
    leat_monitored *ms;
    leat_save_input(m->g); /* A run that is started again reads the rest of its epoch. */
    LEAT_TRY(leat_graph_status(m->g));
    LEAT_TRY(leat_monitored_open(m->g, &ms, .is_chief = true, .checkpoint_dir = log_dir,
                                 .save_checkpoint_steps = save_steps,
                                 .save_summaries_steps = log_dir ? summary_steps : 0,
                                 .last_step = steps, .config = &config));
    leat_status s = steps > 0 ? train(ms, m, steps, n) : NULL;
    if (!s)
        s = test(leat_monitored_session(ms), m, data);
    return leat_status_first(s, leat_monitored_close(ms));
}

static leat_status work(void)
{
    leat_mnist *data;
    char *records;
    LEAT_TRY(leat_mnist_open(f.data_dir, (uint64_t)f.seed, &data));
    printf("%s\n", leat_mnist_source(data));
    leat_status s = records_of_mnist(data, LEAT_MNIST_TRAIN, records_dir, f.data_dir, &records);
    if (!s) {
        model m = build(leat_mnist_count(data, LEAT_MNIST_TRAIN), records);
        s = run(&m, data);
        leat_graph_free(m.g);
        free(records);
    }
    leat_mnist_close(data);
    return s;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* output appears line by line, also in a pipe */
    int done = flags_parse(argc, argv, "trains a net on MNIST, one tower a device", flags);
    if (done >= 0)
        return done;
    if (num_devices > MOST_DEVICES) {
        fprintf(stderr, "mnist_towers: --num_devices: at most %d\n", MOST_DEVICES);
        return 2;
    }
    LEAT_DIE_ON_ERROR(work());
    return 0;
}
