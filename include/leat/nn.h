/* nn.h -- constructors of neural network ops, and layers: ops with variables of their own. */
#ifndef LEAT_NN_H
#define LEAT_NN_H

#include <leat/variable.h>

#define leat_relu(x, ...) LEAT_OP1("Relu", x, ##__VA_ARGS__)
#define leat_relu_grad(dy, x, ...) LEAT_OP2("ReluGrad", dy, x, ##__VA_ARGS__)
#define leat_relu6(x, ...) LEAT_OP1("Relu6", x, ##__VA_ARGS__)
#define leat_relu6_grad(dy, x, ...) LEAT_OP2("Relu6Grad", dy, x, ##__VA_ARGS__)
#define leat_elu(x, ...) LEAT_OP1("Elu", x, ##__VA_ARGS__)
#define leat_selu(x, ...) LEAT_OP1("Selu", x, ##__VA_ARGS__)
#define leat_leaky_relu(x, ...) LEAT_OP1("LeakyRelu", x, ##__VA_ARGS__)
#define leat_leaky_relu_grad(dy, x, alpha, ...)                                                    \
    LEAT_OP2("LeakyReluGrad", dy, x, leat_attr_float("alpha", alpha), ##__VA_ARGS__)
#define leat_softplus(x, ...) LEAT_OP1("Softplus", x, ##__VA_ARGS__)
#define leat_softplus_grad(dy, x, ...) LEAT_OP2("SoftplusGrad", dy, x, ##__VA_ARGS__)
#define leat_softsign(x, ...) LEAT_OP1("Softsign", x, ##__VA_ARGS__)
#define leat_softsign_grad(dy, x, ...) LEAT_OP2("SoftsignGrad", dy, x, ##__VA_ARGS__)
#define leat_sigmoid(x, ...) LEAT_OP1("Sigmoid", x, ##__VA_ARGS__)
#define leat_tanh(x, ...) LEAT_OP1("Tanh", x, ##__VA_ARGS__)
#define leat_softmax(x, ...) LEAT_OP1("Softmax", x, ##__VA_ARGS__)
#define leat_log_softmax(x, ...) LEAT_OP1("LogSoftmax", x, ##__VA_ARGS__)
#define leat_bias_add(x, b, ...) LEAT_OP2("BiasAdd", x, b, ##__VA_ARGS__)
#define leat_bias_add_grad(dy, ...) LEAT_OP1("BiasAddGrad", dy, ##__VA_ARGS__)
/* x*w + b, x is (batch, in), w is (in, out), b is (out) */
#define leat_xw_plus_b(x, w, b) leat_bias_add(leat_matmul(x, w), b)
/* Convolution of images x (batch, height, width, in) with a filter (height, width, in, out), with a
 * step of `rows` and `columns` between windows; padding is "SAME" or "VALID". Images of another
 * layout, EXPLICIT padding and dilations: LEAT_OP2("Conv2D", ...). */
#define leat_conv2d(x, filter, rows, columns, padding_, ...)                                       \
    LEAT_OP2("Conv2D", x, filter,                                                                  \
             leat_attr_ints("strides", (const int64_t[]){1, rows, columns, 1}, 4),                 \
             leat_attr_string("padding", padding_), ##__VA_ARGS__)
/* Each channel is convolved with filters of its own: the filter is (height, width, in, multiplier),
 * the result has in * multiplier channels. */
#define leat_depthwise_conv2d(x, filter, rows, columns, padding_, ...)                             \
    LEAT_OP2("DepthwiseConv2dNative", x, filter,                                                   \
             leat_attr_ints("strides", (const int64_t[]){1, rows, columns, 1}, 4),                 \
             leat_attr_string("padding", padding_), ##__VA_ARGS__)
/* The transposed convolution: what leat_conv2d with this filter makes of images of shape `sizes`,
 * an int32 vector, is y; the result has that shape. */
#define leat_conv2d_transpose(y, filter, sizes, rows, columns, padding_, ...)                      \
    LEAT_OP3("Conv2DBackpropInput", sizes, filter, y,                                              \
             leat_attr_ints("strides", (const int64_t[]){1, rows, columns, 1}, 4),                 \
             leat_attr_string("padding", padding_), ##__VA_ARGS__)
/* The loss of each example (batch); output 1 is its gradient by logits (batch, classes). */
#define leat_softmax_cross_entropy(logits, labels, ...)                                            \
    LEAT_OP2("SoftmaxCrossEntropyWithLogits", logits, labels, ##__VA_ARGS__)
#define leat_sparse_softmax_cross_entropy(logits, labels, ...)                                     \
    LEAT_OP2("SparseSoftmaxCrossEntropyWithLogits", logits, labels, ##__VA_ARGS__)
#define leat_in_top_k(predictions, targets, k, ...)                                                \
    LEAT_OP2("InTopK", predictions, targets, leat_attr_int("k", k), ##__VA_ARGS__)
/* The k largest elements of each row; output 1 has their indices (int32). k is an int32 scalar. */
#define leat_top_k(x, k, ...) LEAT_OP2("TopKV2", x, k, ##__VA_ARGS__)

/* The largest element, or the mean, of windows of height by width pixels of images x (batch,
 * height, width, channels), with a step of `rows` and `columns`; padding is "SAME" or "VALID". */
#define leat_max_pool(x, height, width, rows, columns, padding_, ...)                              \
    LEAT_OP1("MaxPool", x, LEAT_POOL_ATTRS(height, width, rows, columns, padding_), ##__VA_ARGS__)
#define leat_avg_pool(x, height, width, rows, columns, padding_, ...)                              \
    LEAT_OP1("AvgPool", x, LEAT_POOL_ATTRS(height, width, rows, columns, padding_), ##__VA_ARGS__)
#define LEAT_POOL_ATTRS(height, width, rows, columns, padding_)                                    \
    leat_attr_ints("ksize", (const int64_t[]){1, height, width, 1}, 4),                            \
        leat_attr_ints("strides", (const int64_t[]){1, rows, columns, 1}, 4),                      \
        leat_attr_string("padding", padding_)
/* x / (bias + alpha * s)^beta, where s is the sum of the squares of the channels that are at most
 * `radius` away. */
#define leat_lrn(x, radius, bias_, alpha_, beta_, ...)                                             \
    LEAT_OP1("LRN", x, leat_attr_int("depth_radius", radius), leat_attr_float("bias", bias_),      \
             leat_attr_float("alpha", alpha_), leat_attr_float("beta", beta_), ##__VA_ARGS__)

/* ---- Layers. Their variables are named by a variable scope: "dense/kernel", "dense/bias". ---- */
typedef struct leat_dense_options {
    const char *name;       /* of the scope; not set: "dense", made unique */
    const char *activation; /* an op of one input, "Relu"; not set: none */
    bool no_bias;
    /* Defaults: for the kernel the scope's initializer or Glorot, for the bias zeros. */
    leat_initializer kernel_initializer, bias_initializer;
    leat_regularizer kernel_regularizer;
    leat_reuse reuse; /* only with a name */
    bool not_trainable;
} leat_dense_options;
/* x*kernel + bias; x is (..., in), the result (..., units). */
#define leat_dense(x, units, ...)                                                                  \
    leat_dense_at(LEAT_AT, x, units, LEAT_OPTIONS(leat_dense_options, __VA_ARGS__))
LEAT_API leat_out leat_dense_at(leat_loc at, leat_out x, int64_t units,
                                const leat_dense_options *o);
typedef struct leat_conv2d_options {
    leat_given given;       /* set by the macro */
    const char *name;       /* of the scope; not set: "conv2d", made unique */
    const char *activation; /* an op of one input, "Relu"; not set: none */
    bool no_bias;
    bool same;            /* SAME padding; not set: VALID */
    int64_t strides[2];   /* of rows and columns; default 1, 1 */
    int64_t dilations[2]; /* of rows and columns; default 1, 1 */
    bool channels_first;  /* x is (batch, in, height, width) */
    /* Defaults: for the kernel the scope's initializer or Glorot, for the bias zeros. */
    leat_initializer kernel_initializer, bias_initializer;
    leat_regularizer kernel_regularizer;
    leat_reuse reuse; /* only with a name */
    bool not_trainable;
} leat_conv2d_options;
/* Convolution of images x (batch, height, width, in) with a kernel of (height, width, in, filters),
 * plus a bias: the result is (batch, height, width, filters). The variables are "conv2d/kernel" and
 * "conv2d/bias". */
#define leat_conv2d_layer(x, filters, height, width, ...)                                          \
    leat_conv2d_layer_at(LEAT_AT, x, filters, height, width,                                       \
                         LEAT_GIVEN_OPTIONS(leat_conv2d_options, __VA_ARGS__))
LEAT_API leat_out leat_conv2d_layer_at(leat_loc at, leat_out x, int64_t filters, int64_t height,
                                       int64_t width, const leat_conv2d_options *o);
typedef struct leat_pool_options {
    leat_given given;    /* set by the macro */
    const char *name;    /* of the scope; not set: "max_pooling2d" or "average_pooling2d", unique */
    bool same;           /* SAME padding; not set: VALID */
    int64_t strides[2];  /* of rows and columns; default: the window's height and width */
    bool channels_first; /* x is (batch, channels, height, width) */
} leat_pool_options;
/* The largest element, or the mean, of windows of height by width pixels of images x (batch,
 * rows, columns, channels). */
#define leat_max_pool_layer(x, height, width, ...)                                                 \
    leat_max_pool_layer_at(LEAT_AT, x, height, width,                                              \
                           LEAT_GIVEN_OPTIONS(leat_pool_options, __VA_ARGS__))
#define leat_avg_pool_layer(x, height, width, ...)                                                 \
    leat_avg_pool_layer_at(LEAT_AT, x, height, width,                                              \
                           LEAT_GIVEN_OPTIONS(leat_pool_options, __VA_ARGS__))
LEAT_API leat_out leat_max_pool_layer_at(leat_loc at, leat_out x, int64_t height, int64_t width,
                                         const leat_pool_options *o);
LEAT_API leat_out leat_avg_pool_layer_at(leat_loc at, leat_out x, int64_t height, int64_t width,
                                         const leat_pool_options *o);
typedef struct leat_batch_norm_options {
    leat_given given;    /* set by the macro */
    const char *name;    /* of the scope; not set: "batch_normalization", made unique */
    bool training;       /* normalise by the batch, and let the averages follow it */
    bool channels_first; /* x is (batch, channels, height, width) */
    double momentum;     /* of the moving averages; default 0.99 */
    double epsilon;      /* added to the variance; default 0.001 */
    bool no_center, no_scale;
    leat_initializer gamma_initializer, beta_initializer; /* defaults: ones, zeros */
    leat_regularizer gamma_regularizer, beta_regularizer;
    leat_reuse reuse; /* only with a name */
    bool not_trainable;
} leat_batch_norm_options;
/* Batch normalisation of images (batch, height, width, channels) or of rows (batch, features):
 * gamma * (x - mean) / sqrt(variance + epsilon) + beta, for each channel. Variables: "gamma",
 * "beta", and "moving_mean" and "moving_variance", which are not trained and are used unless
 * .training. The nodes that update them are in the collection LEAT_UPDATE_OPS; the training step
 * runs them:
 *     leat_out *updates = leat_collection(g, LEAT_UPDATE_OPS, NULL, &n); */
#define leat_batch_norm_layer(x, ...)                                                              \
    leat_batch_norm_layer_at(LEAT_AT, x, LEAT_GIVEN_OPTIONS(leat_batch_norm_options, __VA_ARGS__))
LEAT_API leat_out leat_batch_norm_layer_at(leat_loc at, leat_out x,
                                           const leat_batch_norm_options *o);
typedef struct leat_embedding_options {
    leat_given given; /* set by the macro */
    /* True if each part has consecutive rows, as in the parts that leat_variable_parts gives. */
    bool in_blocks;
    double max_norm; /* rows of a larger norm are scaled down to it; default: none is */
} leat_embedding_options;
/* Looks up rows of params by ids; the result's shape is that of ids followed by that of a row. If
 * params has n > 1 parts, row i is row i / n of part i % n, unless in_blocks. The gradient of
 * params is rows (IndexedSlices). */
#define leat_embedding_lookup(params, n, ids, ...)                                                 \
    leat_embedding_lookup_at(LEAT_AT, params, n, ids,                                              \
                             LEAT_GIVEN_OPTIONS(leat_embedding_options, __VA_ARGS__))
LEAT_API leat_out leat_embedding_lookup_at(leat_loc at, const leat_out *params, int n, leat_out ids,
                                           const leat_embedding_options *o);
/* Each element is 0 with probability `rate`, else scaled by 1 / (1 - rate). */
#define leat_dropout(x, rate, ...)                                                                 \
    leat_dropout_at(LEAT_AT, x, rate, LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
LEAT_API leat_out leat_dropout_at(leat_loc at, leat_out x, double rate,
                                  const leat_random_options *o); /* only seed is used */
/* Reshapes (batch, ...) to (batch, product of the other dimensions). */
#define leat_flatten(x) leat_flatten_at(LEAT_AT, x)
LEAT_API leat_out leat_flatten_at(leat_loc at, leat_out x);

#endif
