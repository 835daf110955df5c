/* common_cifar10.c -- see common_cifar10.h. */
#include "common_cifar10.h"

#include <stdlib.h>

#include "common_records.h"

enum { SHUFFLED = 20000 };

/* ---- Images ---- */

leat_out cifar10_distorted(leat_out image)
{
    leat_out x = leat_image_random_crop(leat_cast(image, LEAT_FLOAT),
                                        leat_shape(CIFAR10_SIDE, CIFAR10_SIDE, 3));
    x = leat_image_random_brightness(leat_image_random_flip_left_right(x), 63);
    return leat_image_standardize(leat_image_random_contrast(x, 0.2, 1.8));
}

leat_out cifar10_middle(leat_out images)
{
    return leat_image_standardize(
        leat_image_crop_or_pad(leat_cast(images, LEAT_FLOAT), CIFAR10_SIDE, CIFAR10_SIDE));
}

static void distort(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = cifar10_distorted(in[0]);
    out[1] = in[1];
}

void cifar10_batches(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    const cifar10_input *from = arg;
    leat_out d = leat_record_dataset(leat_string_const(body, from->records), "");
    leat_shape shape = leat_shape(32, 32, 3);
    d = leat_shuffle_dataset(d, SHUFFLED, .seed = from->seed);
    d = leat_map_dataset(leat_repeat_dataset(d, -1), records_parse, &shape, 2,
                         .parallel_calls = -1);
    d = leat_map_dataset(d, distort, NULL, 2, .parallel_calls = -1);
    d = leat_batch_dataset(d, from->batch, .drop_remainder = true);
    out[0] = leat_prefetch_dataset(d, from->ready);
}

/* ---- The net ---- */

/* Where the variables are. */
typedef struct place {
    leat_graph *g;
    const char *home;
} place;

/* A variable that all towers share; the first tower makes it. */
static leat_out shared(place at, const char *name, leat_shape s, leat_initializer init)
{
    leat_out v = {0};
    leat_with_device(at.g, at.home) v = leat_get_variable(at.g, name, s, .initializer = init);
    return v;
}

static leat_out weights(place at, leat_shape s, double deviation, double decay)
{
    leat_out w = shared(at, "weights", s, leat_truncated_normal_initializer(0, deviation));
    if (decay > 0)
        leat_collect(at.g, "losses",
                     leat_mul(leat_l2_loss(w), leat_scalar(at.g, LEAT_FLOAT, decay)));
    return w;
}

static leat_out biases(place at, int64_t n, double value)
{
    return shared(at, "biases", leat_shape(n), leat_constant_initializer(value));
}

/* 64 filters of 5 x 5, and the rectified sum with biases. */
static leat_out convolution(place at, const char *scope, leat_out x, int64_t depth, double bias)
{
    leat_out y = {0};
    leat_with_variable_scope(at.g, scope, .reuse = LEAT_AUTO_REUSE)
    {
        leat_out w = weights(at, leat_shape(5, 5, depth, 64), 0.05, 0);
        y = leat_relu(leat_bias_add(leat_conv2d(x, w, 1, 1, "SAME"), biases(at, 64, bias)));
    }
    leat_collect(at.g, CIFAR10_ACTIVATIONS, y);
    return y;
}

static leat_out fully_connected(place at, const char *scope, leat_out x, int64_t in, int64_t out)
{
    leat_out y = {0};
    leat_with_variable_scope(at.g, scope, .reuse = LEAT_AUTO_REUSE) y = leat_relu(
        leat_xw_plus_b(x, weights(at, leat_shape(in, out), 0.04, 0.004), biases(at, out, 0.1)));
    leat_collect(at.g, CIFAR10_ACTIVATIONS, y);
    return y;
}

static leat_out pooled(leat_out x)
{
    return leat_max_pool(x, 3, 3, 2, 2, "SAME");
}

static leat_out normalised(leat_out x)
{
    return leat_lrn(x, 4, 1, 0.001 / 9, 0.75);
}

leat_out cifar10_logits(leat_graph *g, const char *home, leat_out images)
{
    const place at = {g, home};
    enum { FLAT = CIFAR10_SIDE / 4 * (CIFAR10_SIDE / 4) * 64, LOCAL3 = 384, LOCAL4 = 192 };
    leat_out x = normalised(pooled(convolution(at, "conv1", images, 3, 0)));
    x = pooled(normalised(convolution(at, "conv2", x, 64, 0.1)));
    x = fully_connected(at, "local3", leat_reshape_to(x, leat_shape(-1, FLAT)), FLAT, LOCAL3);
    x = fully_connected(at, "local4", x, LOCAL3, LOCAL4);
    leat_out y = {0};
    leat_with_variable_scope(g, "softmax_linear", .reuse = LEAT_AUTO_REUSE) y =
        leat_xw_plus_b(x, weights(at, leat_shape(LOCAL4, CIFAR10_CLASSES), 1.0 / LOCAL4, 0),
                       biases(at, CIFAR10_CLASSES, 0));
    leat_collect(g, CIFAR10_ACTIVATIONS, y);
    return y;
}

leat_out cifar10_loss(leat_graph *g, leat_out logits, leat_out labels, leat_out **parts_out,
                      int *n_out)
{
    leat_collect(g, "losses", leat_reduce_mean(leat_sparse_softmax_cross_entropy(logits, labels)));
    *parts_out = leat_collection(g, "losses", leat_name_scope(g), n_out);
    return leat_add_n(*parts_out, *n_out);
}
