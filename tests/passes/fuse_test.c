/* fuse_test.c -- what is fused, what must not be, and that the values are the same. */
#include "mlp.h"
#include "passes.h"

typedef struct layer {
    leat_graph *g;
    leat_out x, w, b;
    leat_tensor *fed;
} layer;

static void open_layer(layer *l, int64_t in, int64_t out)
{
    l->g = leat_graph_new();
    l->x = leat_placeholder(l->g, LEAT_FLOAT, leat_shape(-1, in));
    leat_tensor *w = mlp_tensor(leat_shape(in, out), 1), *b = mlp_tensor(leat_shape(out), 1);
    l->w = leat_const(l->g, w);
    l->b = leat_const(l->g, b);
    l->fed = mlp_tensor(leat_shape(7, in), 1);
    leat_tensor_unref(w);
    leat_tensor_unref(b);
}

static void close_layer(layer *l)
{
    leat_tensor_unref(l->fed);
    leat_graph_free(l->g);
}

static int fused_nodes(const layer *l, const leat_out *y, int n, const char *op)
{
    compiled k;
    COMPILE(&k, l->g, &((leat_request){.feeds = &l->x, .n_feeds = 1, .fetches = y, .n_fetches = n}),
            leat_pass_fuse, leat_pass_sweep);
    int count = count_op(&k, op);
    compiled_free(&k);
    for (int i = 0; i < n; i++)
        check_same(l->g, LEAT_FEED({l->x, l->fed}), y[i]);
    return count;
}

static void fused(void)
{
    static const int sizes[][2] = {{784, 100}, {100, 10}, {3, 1}, {17, 33}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        layer l;
        open_layer(&l, sizes[i][0], sizes[i][1]);
        leat_out m = leat_matmul(l.x, l.w);
        leat_out ys[] = {leat_xw_plus_b(l.x, l.w, l.b),
                         leat_relu(leat_xw_plus_b(l.x, l.w, l.b)),
                         leat_relu6(leat_xw_plus_b(l.x, l.w, l.b)),
                         leat_relu(leat_add(l.b, m)),
                         leat_sigmoid(leat_xw_plus_b(l.x, l.w, l.b)),
                         leat_tanh(leat_xw_plus_b(l.x, l.w, l.b)),
                         leat_elu(leat_xw_plus_b(l.x, l.w, l.b))};
        for (int y = 0; y < 7; y++) {
            CHECK_INT(fused_nodes(&l, &ys[y], 1, "_FusedMatMul"), 1);
            CHECK_INT(fused_nodes(&l, &ys[y], 1, NULL), 5); /* fed, w, b, this, fetched */
        }
        close_layer(&l);
    }
}

static void not_fused(void)
{
    layer l;
    open_layer(&l, 5, 4);
    leat_out m = leat_matmul(l.x, l.w), z = leat_bias_add(m, l.b), r = leat_relu(z);
    CHECK_INT(fused_nodes(&l, (leat_out[]){r, m}, 2, "_FusedMatMul"), 0);
    CHECK_INT(fused_nodes(&l, (leat_out[]){r, z}, 2, "Relu"), 1);
    CHECK_INT(fused_nodes(&l, (leat_out[]){r, z}, 2, "_FusedMatMul"), 1);
    leat_out column = leat_add(leat_matmul(l.x, l.w), leat_scalar(l.g, LEAT_FLOAT, 2));
    CHECK_INT(fused_nodes(&l, &column, 1, "_FusedMatMul"), 0);
    close_layer(&l);
}

static void bad_bias(void)
{
    layer l;
    open_layer(&l, 5, 4);
    leat_out b = leat_placeholder(l.g, LEAT_FLOAT, leat_shape(-1));
    leat_out y = leat_relu(leat_xw_plus_b(l.x, l.w, b));
    leat_tensor *three = mlp_tensor(leat_shape(3), 1), *t;
    leat_session *s;
    CHECK_OK(leat_session_open(l.g, &s));
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({l.x, l.fed}, {b, three}), LEAT_FETCH({y, &t}),
                                 LEAT_NO_TARGET),
                INVALID_ARGUMENT, "Must provide as many biases as the last dimension");
    leat_session_close(s);
    leat_tensor_unref(three);
    close_layer(&l);
}

/* Images x, (2, 6, 5, 3), or with channels first (2, 3, 6, 5), convolved with a filter. */
static leat_out convolved(const layer *l, leat_out x, leat_out w, const char *format)
{
    static const int64_t strides[] = {1, 1, 1, 1};
    return LEAT_OP2("Conv2D", x, w, leat_attr_ints("strides", strides, 4),
                    leat_attr_string("padding", "SAME"), leat_attr_string("data_format", format));
}

static int fused_images(layer *l, leat_shape s, leat_out x, const leat_out *y, int n)
{
    leat_tensor *fed = l->fed;
    leat_out was = l->x;
    l->fed = mlp_tensor(s, 1);
    l->x = x;
    const int count = fused_nodes(l, y, n, "_FusedConv2D");
    leat_tensor_unref(l->fed);
    l->fed = fed;
    l->x = was;
    return count;
}

static void convolutions(void)
{
    layer l;
    open_layer(&l, 3, 17);
    leat_graph *g = l.g;
    const leat_shape last = leat_shape(2, 6, 5, 3), first = leat_shape(2, 3, 6, 5);
    leat_tensor *filter = mlp_tensor(leat_shape(5, 5, 3, 17), 1);
    leat_out w = leat_const(g, filter), x = leat_placeholder(g, LEAT_FLOAT, last);
    leat_out sum = leat_bias_add(convolved(&l, x, w, "NHWC"), l.b);
    leat_out ys[] = {sum, leat_relu(sum), leat_relu6(sum), leat_tanh(sum), leat_elu(sum)};
    for (int i = 0; i < 5; i++)
        CHECK_INT(fused_images(&l, last, x, &ys[i], 1), 1);
    /* The sum is wanted, too: the activation stays. The convolution is wanted: nothing is fused. */
    CHECK_INT(fused_images(&l, last, x, (leat_out[]){ys[1], sum}, 2), 1);
    leat_out product = convolved(&l, x, w, "NHWC"), y = leat_relu(leat_bias_add(product, l.b));
    CHECK_INT(fused_images(&l, last, x, (leat_out[]){y, product}, 2), 0);
    /* Where channels come first, the last dimension is not the one that has biases. */
    leat_out z = leat_placeholder(g, LEAT_FLOAT, first), v = convolved(&l, z, w, "NCHW");
    leat_out by_channel = LEAT_OP2("BiasAdd", v, l.b, leat_attr_string("data_format", "NCHW"));
    CHECK_INT(fused_images(&l, first, z, &by_channel, 1), 0);
    leat_tensor *five = mlp_tensor(leat_shape(5), 1);
    leat_out by_column = leat_relu(leat_bias_add(v, leat_const(g, five)));
    CHECK_INT(fused_images(&l, first, z, &by_column, 1), 0);
    leat_tensor_unref(five);
    leat_tensor_unref(filter);
    close_layer(&l);
}

/* Windows that lie over padding alone: the bias and the activation are all that there is. */
static void convolution_of_nothing(void)
{
    layer l;
    open_layer(&l, 3, 4);
    static const int64_t strides[] = {1, 1, 1, 1}, pads[] = {0, 0, 2, 2, 2, 2, 0, 0};
    const leat_shape none = leat_shape(2, 0, 0, 3);
    leat_tensor *filter = mlp_tensor(leat_shape(3, 3, 3, 4), 1);
    leat_out x = leat_placeholder(l.g, LEAT_FLOAT, leat_shape(2, -1, -1, 3));
    leat_out y = LEAT_OP2(
        "Conv2D", x, leat_const(l.g, filter), leat_attr_ints("strides", strides, 4),
        leat_attr_string("padding", "EXPLICIT"), leat_attr_ints("explicit_paddings", pads, 8));
    y = leat_relu(leat_bias_add(y, l.b));
    CHECK_INT(fused_images(&l, none, x, &y, 1), 1);
    leat_tensor_unref(filter);
    close_layer(&l);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"fused", fused}, {"not_fused", not_fused}, {"bad_bias", bad_bias},
               {"convolutions", convolutions}, {"convolution_of_nothing", convolution_of_nothing});
}
