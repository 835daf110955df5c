/* image_ops.h -- images changed as tf.image changes them: sizes, parts, colors, boxes, and all of
 * these at random.
 *
 *     leat_out crop = leat_image_random_crop(image, leat_shape(24, 24, 3));
 *     leat_out flip = leat_image_random_flip_left_right(crop);
 *     leat_out light = leat_image_random_contrast(leat_image_random_brightness(flip, 63),
 * 0.2, 1.8); leat_out input = leat_image_standardize(light);
 *
 * An image is (height, width, channels), or (batch, height, width, channels). Its rank must be
 * known. Where floats are made of integers, they are scaled to [0, 1], and back. Random functions
 * take .seed; the same seeds give the same images as in TensorFlow.
 */
#ifndef LEAT_IMAGE_OPS_H
#define LEAT_IMAGE_OPS_H

#include <leat/ops.h>

/* ---- Sizes ---- */
typedef enum leat_resize_method {
    LEAT_RESIZE_BILINEAR,
    LEAT_RESIZE_NEAREST,
    LEAT_RESIZE_BICUBIC,
    LEAT_RESIZE_AREA
} leat_resize_method;
typedef struct leat_image_resize_options {
    leat_resize_method method;
    bool align_corners;      /* the centers of the pixels in the corners stay where they are */
    bool half_pixel_centers; /* as in TensorFlow 2; not for LEAT_RESIZE_AREA */
} leat_image_resize_options;
/* The result is float, but for the nearest neighbor, which keeps the dtype. */
#define leat_image_resize(x, height, width, ...)                                                   \
    leat_image_resize_at(LEAT_AT, x, height, width,                                                \
                         LEAT_OPTIONS(leat_image_resize_options, __VA_ARGS__))
LEAT_API leat_out leat_image_resize_at(leat_loc at, leat_out x, int64_t height, int64_t width,
                                       const leat_image_resize_options *o);

/* The part that begins at (top, left); zeros around an image. */
#define leat_image_crop(x, top, left, height, width)                                               \
    leat_image_crop_at(LEAT_AT, x, top, left, height, width)
LEAT_API leat_out leat_image_crop_at(leat_loc at, leat_out x, int64_t top, int64_t left,
                                     int64_t height, int64_t width);
#define leat_image_pad(x, top, left, height, width)                                                \
    leat_image_pad_at(LEAT_AT, x, top, left, height, width)
LEAT_API leat_out leat_image_pad_at(leat_loc at, leat_out x, int64_t top, int64_t left,
                                    int64_t height, int64_t width);
/* Each dimension is cropped if it is too large, and padded if it is too small. */
#define leat_image_crop_or_pad(x, height, width)                                                   \
    leat_image_crop_or_pad_at(LEAT_AT, x, height, width)
LEAT_API leat_out leat_image_crop_or_pad_at(leat_loc at, leat_out x, int64_t height, int64_t width);
/* This fraction, in (0, 1], of height and width around the center. */
#define leat_image_central_crop(x, fraction) leat_image_central_crop_at(LEAT_AT, x, fraction)
LEAT_API leat_out leat_image_central_crop_at(leat_loc at, leat_out x, double fraction);
/* Parts of images, resized: boxes is (n, 4) of float, index (n) of int32 has the image of each box.
 * The result is (n, height, width, channels) of float. */
typedef struct leat_crop_and_resize_options {
    bool nearest;               /* false: bilinear */
    double extrapolation_value; /* of pixels outside of the image */
} leat_crop_and_resize_options;
#define leat_image_crop_and_resize(x, boxes, index, height, width, ...)                            \
    leat_image_crop_and_resize_at(LEAT_AT, x, boxes, index, height, width,                         \
                                  LEAT_OPTIONS(leat_crop_and_resize_options, __VA_ARGS__))
LEAT_API leat_out leat_image_crop_and_resize_at(leat_loc at, leat_out x, leat_out boxes,
                                                leat_out index, int64_t height, int64_t width,
                                                const leat_crop_and_resize_options *o);
/* A part of this shape at a random place, of any tensor. */
#define leat_image_random_crop(x, shape, ...)                                                      \
    leat_image_random_crop_at(LEAT_AT, x, shape,                                                   \
                              LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
LEAT_API leat_out leat_image_random_crop_at(leat_loc at, leat_out x, leat_shape shape,
                                            const leat_random_options *o); /* only seed is used */

/* ---- Flips and turns ---- */
#define leat_image_flip_left_right(x) leat_image_flip_at(LEAT_AT, x, 1)
#define leat_image_flip_up_down(x) leat_image_flip_at(LEAT_AT, x, 0)
/* axis: 0 for the height, 1 for the width. */
LEAT_API leat_out leat_image_flip_at(leat_loc at, leat_out x, int axis);
/* With a chance of one half, for each image of a batch. */
#define leat_image_random_flip_left_right(x, ...)                                                  \
    leat_image_random_flip_at(LEAT_AT, x, 1, LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
#define leat_image_random_flip_up_down(x, ...)                                                     \
    leat_image_random_flip_at(LEAT_AT, x, 0, LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
LEAT_API leat_out leat_image_random_flip_at(leat_loc at, leat_out x, int axis,
                                            const leat_random_options *o); /* only seed is used */
/* Height and width change places. */
#define leat_image_transpose(x) leat_image_transpose_at(LEAT_AT, x)
LEAT_API leat_out leat_image_transpose_at(leat_loc at, leat_out x);
/* Turned counter-clockwise k times by 90 degrees. */
#define leat_image_rot90(x, k) leat_image_rot90_at(LEAT_AT, x, k)
LEAT_API leat_out leat_image_rot90_at(leat_loc at, leat_out x, int k);

/* ---- Values ---- */
typedef struct leat_image_convert_options {
    bool saturate; /* values outside of the dtype's range are its ends, instead of wrapping */
} leat_image_convert_options;
/* To another dtype. Integers stand for [0, 1] as floats. */
#define leat_image_convert(x, dtype, ...)                                                          \
    leat_image_convert_at(LEAT_AT, x, dtype, LEAT_OPTIONS(leat_image_convert_options, __VA_ARGS__))
LEAT_API leat_out leat_image_convert_at(leat_loc at, leat_out x, leat_dtype t,
                                        const leat_image_convert_options *o);
/* (x - mean) / deviation of each image, as float (or half); the deviation is at least
 * 1 / sqrt(number of elements). */
#define leat_image_standardize(x) leat_image_standardize_at(LEAT_AT, x)
LEAT_API leat_out leat_image_standardize_at(leat_loc at, leat_out x);

/* by: a float scalar. Added to all elements; distances from the mean of each channel multiplied;
 * added to the hue, where 1 is a whole turn; the saturation multiplied. */
#define leat_image_adjust_brightness(x, by)                                                        \
    leat_image_adjust_at(LEAT_AT, "adjust_brightness", x, by)
#define leat_image_adjust_contrast(x, by) leat_image_adjust_at(LEAT_AT, "adjust_contrast", x, by)
#define leat_image_adjust_hue(x, by) leat_image_adjust_at(LEAT_AT, "adjust_hue", x, by)
#define leat_image_adjust_saturation(x, by)                                                        \
    leat_image_adjust_at(LEAT_AT, "adjust_saturation", x, by)
LEAT_API leat_out leat_image_adjust_at(leat_loc at, const char *what, leat_out x, leat_out by);
/* The same by a random number of [-most, most), or of [low, high). */
#define leat_image_random_brightness(x, most, ...)                                                 \
    leat_image_random_adjust_at(LEAT_AT, "adjust_brightness", x, -(most), most,                    \
                                LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
#define leat_image_random_hue(x, most, ...)                                                        \
    leat_image_random_adjust_at(LEAT_AT, "adjust_hue", x, -(most), most,                           \
                                LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
#define leat_image_random_contrast(x, low, high, ...)                                              \
    leat_image_random_adjust_at(LEAT_AT, "adjust_contrast", x, low, high,                          \
                                LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
#define leat_image_random_saturation(x, low, high, ...)                                            \
    leat_image_random_adjust_at(LEAT_AT, "adjust_saturation", x, low, high,                        \
                                LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
LEAT_API leat_out leat_image_random_adjust_at(leat_loc at, const char *what, leat_out x, double low,
                                              double high,
                                              const leat_random_options *o); /* only seed is used */
/* gain * x ^ gamma */
#define leat_image_adjust_gamma(x, gamma, gain) leat_image_adjust_gamma_at(LEAT_AT, x, gamma, gain)
LEAT_API leat_out leat_image_adjust_gamma_at(leat_loc at, leat_out x, double gamma, double gain);

/* ---- Colors: the last dimension is 3, or 1 for gray ---- */
#define leat_image_rgb_to_gray(x) leat_image_rgb_to_gray_at(LEAT_AT, x)
LEAT_API leat_out leat_image_rgb_to_gray_at(leat_loc at, leat_out x);
#define leat_image_gray_to_rgb(x) leat_image_gray_to_rgb_at(LEAT_AT, x)
LEAT_API leat_out leat_image_gray_to_rgb_at(leat_loc at, leat_out x);
#define leat_image_rgb_to_hsv(x, ...) LEAT_OP1("RGBToHSV", x, ##__VA_ARGS__)
#define leat_image_hsv_to_rgb(x, ...) LEAT_OP1("HSVToRGB", x, ##__VA_ARGS__)
#define leat_image_rgb_to_yiq(x) leat_image_colors_at(LEAT_AT, "rgb_to_yiq", x)
#define leat_image_yiq_to_rgb(x) leat_image_colors_at(LEAT_AT, "yiq_to_rgb", x)
#define leat_image_rgb_to_yuv(x) leat_image_colors_at(LEAT_AT, "rgb_to_yuv", x)
#define leat_image_yuv_to_rgb(x) leat_image_colors_at(LEAT_AT, "yuv_to_rgb", x)
LEAT_API leat_out leat_image_colors_at(leat_loc at, const char *which, leat_out x);

/* ---- Boxes: (y1, x1, y2, x2), floats; in images, 0 and 1 are the edges ---- */
/* images is (batch, height, width, 1, 3 or 4), boxes (batch, n, 4), colors (m, channels). */
#define leat_image_draw_boxes(images, boxes, ...)                                                  \
    LEAT_OP2("DrawBoundingBoxes", images, boxes, ##__VA_ARGS__)
#define leat_image_draw_boxes_in(images, boxes, colors, ...)                                       \
    LEAT_OP3("DrawBoundingBoxesV2", images, boxes, colors, ##__VA_ARGS__)
typedef struct leat_non_max_suppression_options {
    leat_given given;       /* set by the macro */
    double iou_threshold;   /* default 0.5: boxes that overlap more are dropped */
    double score_threshold; /* boxes of this score or a lower one are dropped; default: none */
} leat_non_max_suppression_options;
/* The indices, int32, of at most `most` boxes (n, 4) of the highest scores (n) that do not overlap
 * much. */
#define leat_non_max_suppression(boxes, scores, most, ...)                                         \
    leat_non_max_suppression_at(LEAT_AT, boxes, scores, most,                                      \
                                LEAT_GIVEN_OPTIONS(leat_non_max_suppression_options, __VA_ARGS__))
LEAT_API leat_out leat_non_max_suppression_at(leat_loc at, leat_out boxes, leat_out scores,
                                              int64_t most,
                                              const leat_non_max_suppression_options *o);
typedef struct leat_sample_box_options {
    leat_given given;          /* set by the macro */
    int64_t seed;              /* default: from the graph's seed, or from the system */
    double min_object_covered; /* of one of the boxes, default 0.1 */
    double aspect_ratio_low, aspect_ratio_high; /* width / height, defaults 0.75 and 1.33 */
    double area_low, area_high;                 /* of the image, defaults 0.05 and 1 */
    int64_t max_attempts;                       /* default 100; then the whole image is taken */
    bool use_image_if_no_bounding_boxes;
} leat_sample_box_options;
/* A random part of an image that contains enough of one of its boxes (batch, n, 4). size is the
 * image's shape, a vector of three integers. The result is begin, output 1 is size, both for
 * leat_slice; output 2 is the part as a box (1, 1, 4). */
#define leat_sample_distorted_box(size, boxes, ...)                                                \
    leat_sample_distorted_box_at(LEAT_AT, size, boxes,                                             \
                                 LEAT_GIVEN_OPTIONS(leat_sample_box_options, __VA_ARGS__))
LEAT_API leat_out leat_sample_distorted_box_at(leat_loc at, leat_out size, leat_out boxes,
                                               const leat_sample_box_options *o);

#endif
