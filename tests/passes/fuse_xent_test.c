/* fuse_xent_test.c -- the gradient of a cross entropy is scaled where it is made, if what scales it
 * does not come from the loss. */
#include "mlp.h"
#include "passes.h"

static int scaled(leat_graph *g, leat_out x, leat_out dx, const char *op)
{
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .fetches = &dx, .n_fetches = 1}),
            leat_pass_fold, leat_pass_simplify, leat_pass_fuse_xent, leat_pass_sweep);
    int n = count_op(&k, op);
    compiled_free(&k);
    return n;
}

static leat_out gradient(leat_out loss, leat_out x)
{
    leat_grad_value dx = {0};
    CHECK_OK(leat_gradients(&loss, 1, &x, 1, &dx));
    return dx.value;
}

static void each(bool sparse, int64_t batch)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(batch, 7));
    leat_tensor *fed = mlp_tensor(leat_shape(20, 7), 1), *labels = NULL;
    if (sparse) {
        CHECK_OK(leat_tensor_new(LEAT_INT64, leat_shape(20), &labels));
        for (int i = 0; i < 20; i++)
            ((int64_t *)labels->data)[i] = i % 7;
    } else {
        labels = mlp_tensor(leat_shape(20, 7), 2);
    }
    leat_out y = leat_placeholder(g, sparse ? LEAT_INT64 : LEAT_FLOAT,
                                  sparse ? leat_shape(batch) : leat_shape(batch, 7));
    leat_out rows =
        sparse ? leat_sparse_softmax_cross_entropy(x, y) : leat_softmax_cross_entropy(x, y);
    const char *op = sparse ? "_ScaledSparseSoftmaxCrossEntropyWithLogits"
                            : "_ScaledSoftmaxCrossEntropyWithLogits";
    leat_out mean = gradient(leat_reduce_mean(rows), x);
    CHECK_INT(scaled(g, x, mean, op), 1);
    CHECK_INT(scaled(g, x, mean, "Mul"), 0);
    check_same(g, LEAT_FEED({x, fed}, {y, labels}), mean);
    /* The gradient of a square of the loss needs the loss first. */
    leat_out square = gradient(leat_reduce_sum(leat_square(rows)), x);
    CHECK_INT(scaled(g, x, square, op), 0);
    check_same(g, LEAT_FEED({x, fed}, {y, labels}), square);
    leat_tensor_unref(fed);
    leat_tensor_unref(labels);
    leat_graph_free(g);
}

static void dense(void)
{
    each(false, 20);
    each(false, -1);
}

static void sparse(void)
{
    each(true, 20);
    each(true, -1);
}

/* Losses that were reshaped on their way, and rows that are repeated against each other. */
static void on_the_way(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 7)),
             y = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 7)),
             w = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1)),
             all = leat_reshape(leat_scalar(g, LEAT_INT32, -1), leat_ints(g, 1));
    leat_out rows = leat_softmax_cross_entropy(x, y);
    leat_out mean = gradient(leat_reduce_mean(leat_reshape(rows, all)), x),
             weighed = gradient(leat_reduce_sum(leat_mul(rows, w)), x);
    leat_tensor *many = mlp_tensor(leat_shape(5, 7), 1), *one = mlp_tensor(leat_shape(1, 7), 2),
                *five = mlp_tensor(leat_shape(5), 3), *single = mlp_tensor(leat_shape(1), 3);
    CHECK_INT(scaled(g, x, mean, "_ScaledSoftmaxCrossEntropyWithLogits"), 1);
    check_same(g, LEAT_FEED({x, many}, {y, many}), mean);
    check_same(g, LEAT_FEED({x, one}, {y, many}), mean);
    check_same(g, LEAT_FEED({x, one}, {y, one}, {w, five}), weighed);
    check_same(g, LEAT_FEED({x, many}, {y, many}, {w, single}), weighed);
    check_same(g, LEAT_FEED({x, many}, {y, one}, {w, five}), weighed);
    leat_tensor_unref(many);
    leat_tensor_unref(one);
    leat_tensor_unref(five);
    leat_tensor_unref(single);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"dense", dense}, {"sparse", sparse}, {"on_the_way", on_the_way});
}
