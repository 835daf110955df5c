/* common_mnist.c -- see common_mnist.h. */
#include "common_mnist.h"

#include <math.h>

enum { AT_ONCE = 1000, MOST = 4 };

leat_out mnist_net(leat_graph *g, leat_out x, int64_t hidden)
{
    leat_out hid_w = leat_variable(
        g, "hid_w", leat_truncated_normal(g, leat_shape(784, hidden), .stddev = 1.0 / 28));
    leat_out hid_b = leat_variable(g, "hid_b", leat_zeros(g, LEAT_FLOAT, leat_shape(hidden)));
    leat_out sm_w = leat_variable(
        g, "sm_w",
        leat_truncated_normal(g, leat_shape(hidden, 10), .stddev = 1 / sqrt((double)hidden)));
    leat_out sm_b = leat_variable(g, "sm_b", leat_zeros(g, LEAT_FLOAT, leat_shape(10)));
    leat_out hid = leat_relu(leat_xw_plus_b(x, hid_w, hid_b));
    return leat_softmax(leat_xw_plus_b(hid, sm_w, sm_b));
}

leat_out mnist_cross_entropy(leat_out y, leat_out y_)
{
    return leat_neg(leat_reduce_sum(leat_mul(y_, leat_log(leat_clip_by_value(y, 1e-10, 1.0)))));
}

leat_out mnist_accuracy(leat_graph *g, leat_out y, leat_out y_)
{
    leat_out axis = leat_scalar(g, LEAT_INT32, 1);
    leat_out right = leat_equal(leat_arg_max(y, axis), leat_arg_max(y_, axis));
    return leat_reduce_mean(leat_cast(right, LEAT_FLOAT));
}

leat_status mnist_test_means(leat_session *s, leat_mnist *data, leat_out x, leat_out y_,
                             const leat_out *values, int n, double *means_out)
{
    int64_t rows = leat_mnist_count(data, LEAT_MNIST_TEST);
    double sums[MOST] = {0};
    for (int64_t i = 0; i < rows; i += AT_ONCE) {
        int64_t end = i + AT_ONCE < rows ? i + AT_ONCE : rows;
        leat_tensor *images, *labels, *t[MOST] = {NULL};
        leat_fetch fetches[MOST];
        for (int v = 0; v < n; v++)
            fetches[v] = (leat_fetch){values[v], &t[v]};
        LEAT_TRY(leat_mnist_rows(data, LEAT_MNIST_TEST, i, end, &images, &labels));
        leat_status status = leat_session_run(s, LEAT_FEED({x, images}, {y_, labels}),
                                              (leat_fetches){fetches, n}, LEAT_NO_TARGET);
        leat_tensor_unref(images);
        leat_tensor_unref(labels);
        if (status)
            return status;
        for (int v = 0; v < n; v++) {
            sums[v] += leat_tensor_at(t[v], 0) * (double)(end - i);
            leat_tensor_unref(t[v]);
        }
    }
    for (int v = 0; v < n; v++)
        means_out[v] = sums[v] / (double)rows;
    return NULL;
}
