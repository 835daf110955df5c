/* common_mnist.h -- shared by programs that train on MNIST. */
#ifndef COMMON_MNIST_H
#define COMMON_MNIST_H

#include <leat/leat.h>

#include "common_flags.h"

typedef struct mnist_flags {
    const char *data_dir;
    int64_t train_steps, batch_size, hidden_units, seed;
    double learning_rate;
} mnist_flags;

/* Rows for a table of flags; f is a static mnist_flags, --train_steps is at least least_steps. */
#define MNIST_FLAGS(f, least_steps)                                                                \
    {"data_dir", FLAG_STRING, &(f).data_dir, 0, "where MNIST's files are"},                        \
        {"train_steps", FLAG_INT, &(f).train_steps, least_steps,                                   \
         "steps to train for, of all workers"},                                                    \
        {"batch_size", FLAG_INT, &(f).batch_size, 1, "examples in a step of a worker or tower"},   \
        {"hidden_units", FLAG_INT, &(f).hidden_units, 1, "units of the hidden layer"},             \
        {"learning_rate", FLAG_FLOAT, &(f).learning_rate, 0, "of the optimizer"},                  \
    {                                                                                              \
        "seed", FLAG_INT, &(f).seed, 0, "of weights and shuffling"                                 \
    }

/* The net of one hidden layer: x is (batch, 784), the result is the classes' probabilities, (batch,
 * 10); and its loss, the cross entropy, summed over the batch. */
leat_out mnist_net(leat_graph *g, leat_out x, int64_t hidden);
leat_out mnist_cross_entropy(leat_out y, leat_out y_);
/* The fraction of rows in which the largest element of y (logits or probabilities) is at the index
 * of the largest of y_. */
leat_out mnist_accuracy(leat_graph *g, leat_out y, leat_out y_);
/* The means over the test set of n scalars (at most 4), each of which is a mean over the examples
 * that x and y_ are fed with. */
leat_status mnist_test_means(leat_session *s, leat_mnist *data, leat_out x, leat_out y_,
                             const leat_out *values, int n, double *means_out) LEAT_MUST_CHECK;

#endif
