/* layers_conv.c -- the layer of a convolution, its kernel and its bias. */
#include <leat/nn.h>

#include <inttypes.h>

#include "graph/given.h"
#include "train/train_int.h"

static leat_out fail(leat_graph *g, leat_status s)
{
    return leat_graph_fail(g, (leat_loc){0}, s);
}

leat_status leat_layer_steps(const leat_given *o, const char *layer, const char *name,
                             const int64_t given[2], const int64_t otherwise[2],
                             bool channels_first, int64_t out[4])
{
    const bool set = leat_is_given(o, name, given[0] || given[1]);
    for (int i = 0; i < 4; i++)
        out[i] = 1;
    for (int i = 0; i < 2; i++) {
        const int64_t v = set ? given[i] : otherwise[i];
        LEAT_REQUIRE(v > 0, INVALID_ARGUMENT, "%s: %s must be positive, got %" PRId64, layer, name,
                     v);
        out[i + (channels_first ? 2 : 1)] = v;
    }
    return NULL;
}

static leat_out conv2d(leat_graph *g, leat_out x, int64_t filters, int64_t height, int64_t width,
                       const leat_conv2d_options *o)
{
    const leat_shape s = leat_out_shape(x);
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    int64_t strides[4], dilations[4];
    if (filters < 1 || height < 1 || width < 1)
        return fail(g, leat_error(INVALID_ARGUMENT,
                                  "leat_conv2d_layer: filters, height and width must be positive, "
                                  "got %" PRId64 ", %" PRId64 ", %" PRId64,
                                  filters, height, width));
    const int channel = o->channels_first ? 1 : 3;
    if (s.rank != 4 || s.dim[channel] < 0)
        return fail(g, leat_error(INVALID_ARGUMENT,
                                  "The channel dimension of the inputs should be defined, and the "
                                  "inputs should have 4 dimensions. Found shape %s.",
                                  leat_shape_show(&s).s));
    static const int64_t ones[] = {1, 1};
    leat_status bad = leat_layer_steps(&o->given, "leat_conv2d_layer", "strides", o->strides, ones,
                                       o->channels_first, strides);
    if (!bad)
        bad = leat_layer_steps(&o->given, "leat_conv2d_layer", "dilations", o->dilations, ones,
                               o->channels_first, dilations);
    if (bad)
        return fail(g, bad);
    leat_out kernel =
        leat_get_variable(g, "kernel", leat_shape(height, width, s.dim[channel], filters),
                          .dtype = t, .initializer = o->kernel_initializer,
                          .regularizer = o->kernel_regularizer, .not_trainable = o->not_trainable);
    leat_initializer zeros = leat_zeros_initializer();
    const char *format = o->channels_first ? "NCHW" : "NHWC";
    leat_out bias = {0};
    if (!o->no_bias)
        bias = leat_get_variable(
            g, "bias", leat_shape(filters), .dtype = t, .regularizer = leat_no_regularizer(),
            .initializer = o->bias_initializer.make ? o->bias_initializer : zeros,
            .not_trainable = o->not_trainable);
    leat_out y = LEAT_OP2("Conv2D", x, kernel, leat_attr_ints("strides", strides, 4),
                          leat_attr_ints("dilations", dilations, 4),
                          leat_attr_string("padding", o->same ? "SAME" : "VALID"),
                          leat_attr_string("data_format", format));
    if (bias.node)
        y = leat_bias_add(y, bias, leat_attr_string("data_format", format));
    return o->activation ? LEAT_OP1(o->activation, y) : y;
}

leat_out leat_conv2d_layer_at(leat_loc at, leat_out x, int64_t filters, int64_t height,
                              int64_t width, const leat_conv2d_options *o)
{
    if (!x.node || !leat_out_ok(x))
        return x;
    leat_graph *g = leat_graph_of(x);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    leat_with_variable_scope(g, o->name, .default_name = "conv2d", .reuse = o->reuse) y =
        conv2d(g, x, filters, height, width, o);
    leat_at_leave(g, outer);
    return y;
}
