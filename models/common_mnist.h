/* common_mnist.h -- what programs that train on MNIST share. */
#ifndef COMMON_MNIST_H
#define COMMON_MNIST_H

#include <leat/leat.h>

/* The share of rows in which the largest of y (logits or likelihoods) is where that of y_ is. */
leat_out mnist_accuracy(leat_graph *g, leat_out y, leat_out y_);
/* The means over the test set of n scalars (at most 4) that are means over what x and y_ are fed.
 */
leat_status mnist_test_means(leat_session *s, leat_mnist *data, leat_out x, leat_out y_,
                             const leat_out *values, int n, double *means_out) LEAT_MUST_CHECK;

#endif
