/* cross_entropy_test.c -- the cross entropy of a label and that of the distribution which has 1 at
 * the label are the same, to the bit, and so are their gradients: of rows that fit into the
 * kernel's scratch memory and of longer ones, with and without a factor of the gradient. */
#include <leat/leat.h>

#include <string.h>

#include "test.h"

enum { ROWS = 5 };

static leat_tensor *drawn(int64_t classes)
{
    leat_tensor *t;
    uint32_t x = 12345;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(ROWS, classes), &t));
    float *to = leat_tensor_mutable(t);
    for (int64_t i = 0; i < ROWS * classes; i++) {
        x = x * 1664525u + 1013904223u;
        to[i] = (float)(x >> 8) / 16777216.0f * 20 - 10;
    }
    return t;
}

/* The labels are the first and the last class, and some in between. */
static leat_tensor *labels_of(int64_t classes)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_INT64, leat_shape(ROWS), &t));
    for (int i = 0; i < ROWS; i++)
        ((int64_t *)leat_tensor_mutable(t))[i] = i * (classes - 1) / (ROWS - 1);
    return t;
}

static bool same_bits(const leat_tensor *a, const leat_tensor *b)
{
    return leat_tensor_count(a) == leat_tensor_count(b) &&
           memcmp(leat_tensor_data(a), leat_tensor_data(b),
                  (size_t)leat_tensor_count(a) * sizeof(float)) == 0;
}

/* mean: the gradient is that of the mean over the rows, whose factor the kernel takes along. */
static void compare(int64_t classes, bool mean)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(ROWS, classes));
    leat_out label = leat_placeholder(g, LEAT_INT64, leat_shape(ROWS));
    leat_out ones = leat_one_hot(label, leat_scalar(g, LEAT_INT32, (double)classes),
                                 leat_scalar(g, LEAT_FLOAT, 1), leat_scalar(g, LEAT_FLOAT, 0));
    leat_out loss[2] = {leat_sparse_softmax_cross_entropy(x, label),
                        leat_softmax_cross_entropy(x, ones)};
    leat_grad_value dx[2];
    for (int i = 0; i < 2; i++) {
        leat_out y = mean ? leat_reduce_mean(loss[i]) : loss[i];
        CHECK_OK(leat_gradients(&y, 1, &x, 1, &dx[i]));
    }
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    leat_tensor *logits = drawn(classes), *labels = labels_of(classes), *y[2], *grad[2];
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, logits}, {label, labels}),
                              LEAT_FETCH({loss[0], &y[0]}, {loss[1], &y[1]},
                                         {dx[0].value, &grad[0]}, {dx[1].value, &grad[1]}),
                              LEAT_NO_TARGET));
    CHECK(same_bits(y[0], y[1]));
    CHECK(same_bits(grad[0], grad[1]));
    double sum = 0; /* of a row of the gradient: that of the probabilities less 1 */
    for (int64_t c = 0; c < classes; c++)
        sum += leat_tensor_at(grad[0], c);
    CHECK(sum > -1e-4 && sum < 1e-4);
    for (int i = 0; i < 2; i++) {
        leat_tensor_unref(y[i]);
        leat_tensor_unref(grad[i]);
    }
    leat_tensor_unref(logits);
    leat_tensor_unref(labels);
    leat_session_close(s);
    leat_graph_free(g);
}

static void short_rows(void)
{
    compare(10, false);
    compare(10, true);
    compare(1024, true);
}

static void long_rows(void)
{
    compare(1025, false);
    compare(3333, false);
    compare(10000, true);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"short_rows", short_rows}, {"long_rows", long_rows});
}
