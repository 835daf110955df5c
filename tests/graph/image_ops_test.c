/* image_ops_test.c -- the constructors of image_ops.h: shapes, values, and what they refuse. */
#include "test.h"

#include <leat/leat.h>
#include <math.h>

static float image[2 * 4 * 6 * 3];

static leat_tensor *floats(leat_shape s)
{
    leat_tensor *t;
    for (size_t i = 0; i < sizeof(image) / sizeof(*image); i++)
        image[i] = (float)(i * 7 % 11) / 10;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, s, image, &t));
    return t;
}

/* y, computed for x fed with an image. */
static leat_tensor *run(leat_out x, leat_shape s, leat_out y)
{
    leat_session *session;
    leat_tensor *in = floats(s), *out = NULL;
    CHECK_OK(leat_graph_status(leat_node_graph(x.node)));
    CHECK_OK(leat_session_open(leat_node_graph(x.node), &session));
    CHECK_OK(leat_session_run(session, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
    leat_session_close(session);
    leat_tensor_unref(in);
    return out;
}

static void shape_is(leat_tensor *t, leat_shape want)
{
    const leat_shape got = leat_tensor_shape(t);
    CHECK(leat_shape_equal(&got, &want));
    leat_tensor_unref(t);
}

static void sizes(void)
{
    const leat_shape known = leat_shape(4, 6, 3);
    for (int later = 0; later < 2; later++) { /* sizes that are known only while a step runs */
        leat_graph *g = leat_graph_new();
        leat_out x = leat_placeholder(g, LEAT_FLOAT, later ? leat_shape(-1, -1, 3) : known);
        shape_is(run(x, known, leat_image_resize(x, 8, 5)), leat_shape(8, 5, 3));
        shape_is(run(x, known, leat_image_resize(x, 2, 3, .method = LEAT_RESIZE_AREA)),
                 leat_shape(2, 3, 3));
        shape_is(run(x, known, leat_image_crop(x, 1, 2, 3, 4)), leat_shape(3, 4, 3));
        shape_is(run(x, known, leat_image_pad(x, 1, 2, 9, 10)), leat_shape(9, 10, 3));
        shape_is(run(x, known, leat_image_crop_or_pad(x, 7, 5)), leat_shape(7, 5, 3));
        shape_is(run(x, known, leat_image_crop_or_pad(x, 2, 9)), leat_shape(2, 9, 3));
        shape_is(run(x, known, leat_image_central_crop(x, 0.5)), leat_shape(2, 4, 3));
        shape_is(run(x, known, leat_image_random_crop(x, leat_shape(2, 2, 3), .seed = 3)),
                 leat_shape(2, 2, 3));
        shape_is(run(x, known, leat_image_rot90(x, 1)), leat_shape(6, 4, 3));
        shape_is(run(x, known, leat_image_rgb_to_gray(x)), leat_shape(4, 6, 1));
        shape_is(run(x, known, leat_image_rgb_to_yuv(x)), leat_shape(4, 6, 3));
        leat_graph_free(g);
    }
}

/* What is done and undone gives the image again. */
static void there_and_back(void)
{
    const leat_shape known = leat_shape(2, 4, 6, 3);
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, known);
    const leat_out same[] = {
        leat_image_flip_left_right(leat_image_flip_left_right(x)),
        leat_image_flip_up_down(leat_image_flip_up_down(x)),
        leat_image_transpose(leat_image_transpose(x)),
        leat_image_rot90(leat_image_rot90(x, 3), 1),
        leat_image_rot90(leat_image_rot90(x, 2), -2),
        leat_image_crop(leat_image_pad(x, 2, 1, 9, 9), 2, 1, 4, 6),
        leat_image_hsv_to_rgb(leat_image_rgb_to_hsv(x)),
        leat_image_yiq_to_rgb(leat_image_rgb_to_yiq(x)),
        leat_image_yuv_to_rgb(leat_image_rgb_to_yuv(x)),
        leat_image_adjust_hue(leat_image_adjust_hue(x, leat_scalar(g, LEAT_FLOAT, 0.25)),
                              leat_scalar(g, LEAT_FLOAT, -0.25)),
        leat_image_adjust_contrast(x, leat_scalar(g, LEAT_FLOAT, 1)),
        leat_image_adjust_gamma(leat_image_adjust_gamma(x, 2, 1), 0.5, 1),
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
        leat_tensor *y = run(x, known, same[i]);
        for (size_t e = 0; e < sizeof(image) / sizeof(*image); e++)
            CHECK_NEAR(((const float *)leat_tensor_data(y))[e], image[e], 1e-4);
        leat_tensor_unref(y);
    }
    leat_graph_free(g);
}

static void standardized(void)
{
    const leat_shape known = leat_shape(4, 6, 3);
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, known);
    leat_out bytes = leat_mul(x, leat_scalar(g, LEAT_FLOAT, 100));
    leat_out light = leat_image_random_contrast(leat_image_random_brightness(bytes, 63), 0.2, 1.8);
    leat_tensor *y = run(x, known, leat_image_standardize(light));
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 72; i++) {
        const double v = ((const float *)leat_tensor_data(y))[i];
        sum += v;
        squares += v * v;
    }
    CHECK_NEAR(sum / 72, 0, 1e-3);
    CHECK_NEAR(squares / 72, 1, 1e-3);
    leat_tensor_unref(y);
    leat_graph_free(g);
}

/* A flip leaves an image as it is or turns it around, each about every second time. */
static void random_flips(void)
{
    const leat_shape known = leat_shape(4, 6, 3);
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *in = floats(known);
    leat_out x = leat_placeholder(g, LEAT_FLOAT, known);
    leat_out y = leat_image_random_flip_left_right(x, .seed = 7);
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    int flips = 0;
    for (int i = 0; i < 100; i++) {
        leat_tensor *out = NULL;
        CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
        const float *v = leat_tensor_data(out);
        const bool same = memcmp(v, image, 72 * sizeof(float)) == 0;
        CHECK(same || memcmp(v, image + 15, 3 * sizeof(float)) == 0);
        flips += !same;
        leat_tensor_unref(out);
    }
    CHECK(flips > 30 && flips < 70);
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
}

static void dtypes(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    const uint8_t bytes[] = {0, 128, 255};
    leat_tensor *in, *out[3] = {0};
    CHECK_OK(leat_tensor_copy_of(LEAT_UINT8, leat_shape(1, 1, 3), bytes, &in));
    leat_out x = leat_const(g, in), f = leat_image_convert(x, LEAT_FLOAT);
    leat_out back = leat_image_convert(f, LEAT_UINT8, .saturate = true);
    leat_out brighter = leat_image_adjust_brightness(x, leat_scalar(g, LEAT_FLOAT, 0.5));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED,
                              LEAT_FETCH({f, &out[0]}, {back, &out[1]}, {brighter, &out[2]}),
                              LEAT_NO_TARGET));
    CHECK_NEAR(((const float *)leat_tensor_data(out[0]))[1], 128.0 / 255, 1e-6);
    CHECK(memcmp(leat_tensor_data(out[1]), bytes, 3) == 0);
    CHECK(((const uint8_t *)leat_tensor_data(out[2]))[2] == 255); /* not wrapped */
    for (int i = 0; i < 3; i++)
        leat_tensor_unref(out[i]);
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
}

static void boxes(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    const float box[] = {0, 0, 1, 1, 0, 0, 0.9f, 1, 0, 0.5f, 0.2f, 1}, score[] = {.5f, .9f, .3f};
    leat_tensor *b, *p, *out[3] = {0};
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3, 4), box, &b));
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3), score, &p));
    leat_out kept = leat_non_max_suppression(leat_const(g, b), leat_const(g, p), 10);
    leat_out all = leat_non_max_suppression(leat_const(g, b), leat_const(g, p), 10,
                                            .iou_threshold = 1, .score_threshold = 0.4);
    leat_out one = leat_reshape(leat_const(g, b), leat_ints(g, 1, 3, 4));
    leat_out begin = leat_sample_distorted_box(leat_ints(g, 40, 30, 3), one, .seed = 4,
                                               .min_object_covered = 0.2);
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(
        s, LEAT_NO_FEED,
        LEAT_FETCH({kept, &out[0]}, {all, &out[1]}, {leat_output(begin, 1), &out[2]}),
        LEAT_NO_TARGET));
    CHECK(leat_tensor_count(out[0]) == 2);
    CHECK(((const int32_t *)leat_tensor_data(out[0]))[0] == 1);
    CHECK(((const int32_t *)leat_tensor_data(out[0]))[1] == 2);
    CHECK(leat_tensor_count(out[1]) == 2); /* the third has too low a score */
    const int32_t *size = leat_tensor_data(out[2]);
    CHECK(size[0] > 0 && size[0] <= 40 && size[1] > 0 && size[1] <= 30 && size[2] == -1);
    for (int i = 0; i < 3; i++)
        leat_tensor_unref(out[i]);
    leat_tensor_unref(b);
    leat_tensor_unref(p);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Hues of many turns, of no number and of colors that hardly differ: the loops end. */
static void ends(void)
{
    const leat_shape known = leat_shape(4, 6, 3);
    const double by[] = {1e30, -1e30, INFINITY, NAN, 99.5};
    for (size_t i = 0; i < sizeof(by) / sizeof(*by); i++) {
        leat_graph *g = leat_graph_new();
        leat_out x = leat_placeholder(g, LEAT_FLOAT, known), v = leat_scalar(g, LEAT_FLOAT, by[i]);
        leat_out tiny = leat_mul(x, leat_scalar(g, LEAT_FLOAT, 1e-38));
        leat_tensor_unref(run(x, known, leat_image_adjust_hue(x, v)));
        leat_tensor_unref(run(x, known, leat_image_adjust_saturation(tiny, v)));
        leat_graph_free(g);
    }
}

#define REFUSED(shape, expression, words)                                                          \
    do {                                                                                           \
        leat_graph *g = leat_graph_new();                                                          \
        leat_out x = leat_placeholder(g, LEAT_FLOAT, shape);                                       \
        (void)(expression);                                                                        \
        CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, words);                                \
        leat_graph_free(g);                                                                        \
    } while (0)

static void refused(void)
{
    const leat_shape s = leat_shape(4, 6, 3);
    REFUSED(leat_shape(4, 6), leat_image_resize(x, 2, 2),
            "leat_image_resize: an image has 3 or 4 dimensions, not [4,6]");
    REFUSED(s, leat_image_resize(x, 2, 2, .method = 9), "there is no method 9");
    REFUSED(s, leat_image_crop(x, 2, 0, 3, 3),
            "3 pixels from pixel 2 do not fit into a height of 4");
    REFUSED(s, leat_image_crop(x, -1, 0, 3, 3), "the offset of the height is negative: -1");
    REFUSED(s, leat_image_pad(x, 0, 0, 9, 5), "6 pixels from pixel 0 do not fit into a width of 5");
    REFUSED(s, leat_image_crop_or_pad(x, 0, 5), "height and width must be above 0, not 0, 5");
    REFUSED(s, leat_image_central_crop(x, 1.5), "the fraction must be in (0, 1], not 1.5");
    REFUSED(s, leat_image_random_crop(x, leat_shape(2, -1, 3)), "is not fully known");
    REFUSED(s, leat_image_random_contrast(x, 2, 1), "0 <= low < high must hold, not 2, 1");
    REFUSED(s, leat_image_random_brightness(x, -1), "the limit must not be negative: -1");
    REFUSED(s, leat_image_random_hue(x, 0.7), "the limit must be at most 0.5: 0.7");
    REFUSED(s, leat_image_adjust_gamma(x, -1, 1), "gamma must not be negative: -1");
    REFUSED(s, leat_image_gray_to_rgb(x), "the last dimension must be 1: [4,6,3]");
    REFUSED(s, leat_image_convert(x, LEAT_STRING),
            "the dtype must be of integers or floats, not string");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"sizes", sizes}, {"there_and_back", there_and_back},
               {"standardized", standardized}, {"random_flips", random_flips}, {"dtypes", dtypes},
               {"boxes", boxes}, {"ends", ends}, {"refused", refused});
}
