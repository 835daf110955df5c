/* space_test.c -- SpaceToDepth and DepthToSpace of images whose channels come first, which
 * TensorFlow has on GPUs alone, so that no vectors are there: the same as with channels last, moved
 * back and forth; their gradient; and sizes that make no sense. */
#include "test.h"

#include <leat/leat.h>
#include <stdlib.h>
#include <string.h>

static leat_out depth_op(const char *op, leat_out x, const char *format)
{
    return LEAT_OP1(op, x, leat_attr_int("block_size", 2), leat_attr_string("data_format", format));
}

/* x (2, 4 channels, 4, 6) of bytes, each of which is another number. */
static leat_out numbers(leat_graph *g, int64_t channels, int64_t rows, int64_t columns)
{
    int8_t v[2 * 4 * 4 * 6];
    leat_tensor *t;
    for (int i = 0; i < (int)sizeof(v); i++)
        v[i] = (int8_t)(i - 96);
    CHECK_OK(leat_tensor_copy_of(LEAT_INT8, leat_shape(2, channels, rows, columns), v, &t));
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

/* Fetches both and wants the same bytes, of shape `want`. */
static void same(leat_graph *g, leat_out a, leat_out b, leat_shape want)
{
    leat_session *s;
    leat_tensor *x = NULL, *y = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({a, &x}, {b, &y}), LEAT_NO_TARGET));
    if (x && y) {
        leat_shape got = leat_tensor_shape(x);
        CHECK_STR(leat_shape_show(&got).s, leat_shape_show(&want).s);
        CHECK(leat_tensor_bytes(x) == leat_tensor_bytes(y) &&
              !memcmp(leat_tensor_data(x), leat_tensor_data(y), leat_tensor_bytes(x)));
    }
    leat_tensor_unref(x);
    leat_tensor_unref(y);
    leat_session_close(s);
    leat_graph_free(g);
}

static leat_out last(leat_graph *g, leat_out x)
{
    return leat_transpose(x, leat_ints(g, 0, 2, 3, 1));
}

static leat_out first(leat_graph *g, leat_out x)
{
    return leat_transpose(x, leat_ints(g, 0, 3, 1, 2));
}

static void channels_first(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = numbers(g, 4, 4, 6);
    same(g, depth_op("SpaceToDepth", x, "NCHW"),
         first(g, depth_op("SpaceToDepth", last(g, x), "NHWC")), leat_shape(2, 16, 2, 3));
    g = leat_graph_new();
    x = numbers(g, 4, 4, 6);
    same(g, depth_op("DepthToSpace", x, "NCHW"),
         first(g, depth_op("DepthToSpace", last(g, x), "NHWC")), leat_shape(2, 1, 8, 12));
}

/* Four channels lie together: (batch, channels / 4, rows, columns, 4). */
static leat_out packed(leat_graph *g, leat_out x, int64_t channels, int64_t rows, int64_t columns)
{
    leat_out apart = leat_reshape(x, leat_ints(g, 2, channels / 4, 4, rows, columns));
    return leat_transpose(apart, leat_ints(g, 0, 1, 3, 4, 2));
}

static void channels_in_fours(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = numbers(g, 4, 4, 6);
    same(g, depth_op("SpaceToDepth", packed(g, x, 4, 4, 6), "NCHW_VECT_C"),
         packed(g, depth_op("SpaceToDepth", x, "NCHW"), 16, 2, 3), leat_shape(2, 4, 2, 3, 4));
    g = leat_graph_new();
    x = numbers(g, 16, 2, 3);
    same(g, depth_op("DepthToSpace", packed(g, x, 16, 2, 3), "NCHW_VECT_C"),
         packed(g, depth_op("DepthToSpace", x, "NCHW"), 4, 4, 6), leat_shape(2, 1, 4, 6, 4));
}

static void gradient(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *in;
    double v[2 * 4 * 2 * 2], worst = 1;
    for (int i = 0; i < 32; i++)
        v[i] = i * 0.25 - 3;
    leat_out x = leat_placeholder(g, LEAT_DOUBLE, leat_shape(2, 4, 2, 2));
    leat_out y = leat_square(depth_op("DepthToSpace", x, "NCHW"));
    CHECK_OK(leat_tensor_copy_of(LEAT_DOUBLE, leat_shape(2, 4, 2, 2), v, &in));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_check_gradients(s, y, &x, 1, LEAT_FEED({x, in}), &worst));
    CHECK(worst < 1e-6);
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
}

/* What the op says about images of this shape, which the graph does not know. */
static void refused(const char *op, const char *format, leat_dtype t, leat_shape shape,
                    int64_t block, const char *words)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *in, *out = NULL;
    leat_out x = leat_placeholder(g, t, leat_shape_unknown());
    leat_out y = LEAT_OP1(op, x, leat_attr_int("block_size", block),
                          leat_attr_string("data_format", format));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_tensor_new(t, shape, &in));
    memset(leat_tensor_mutable(in), 0, leat_tensor_bytes(in));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, words);
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
}

static void bad(void)
{
    refused("SpaceToDepth", "NCHW", LEAT_FLOAT, leat_shape(1, 1, 4), 2,
            "Input rank should be: 4 instead of: 3");
    refused("SpaceToDepth", "NCHW", LEAT_FLOAT, leat_shape(1, 1, 3, 4), 2,
            "Image width 4 and height 3 should be divisible by block_size: 2");
    refused("DepthToSpace", "NCHW", LEAT_FLOAT, leat_shape(1, 6, 3, 4), 2,
            "Input depth dimension 6 should be divisible by: 4");
    refused("DepthToSpace", "NCHW_VECT_C", LEAT_INT8, leat_shape(1, 4, 3, 4), 2,
            "Input rank should be: 5 instead of: 4");
    refused("DepthToSpace", "NCHW_VECT_C", LEAT_INT8, leat_shape(1, 4, 3, 4, 3), 2,
            "NCHW_VECT_C wants four channels of 8 bits in the last dimension, got int8");
    refused("SpaceToDepth", "NCHW_VECT_C", LEAT_FLOAT, leat_shape(1, 4, 4, 4, 4), 2,
            "NCHW_VECT_C wants four channels of 8 bits in the last dimension, got float");
    refused("DepthToSpace", "NHWC", LEAT_FLOAT, leat_shape(1, INT64_C(1) << 40, 1, 0),
            INT64_C(1) << 30, "dimension 1 times block_size is too large");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"channels_first", channels_first},
               {"channels_in_fours", channels_in_fours}, {"gradient", gradient}, {"bad", bad});
}
