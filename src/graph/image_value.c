/* image_value.c -- constructors that change the values of images: dtypes, brightness, contrast,
 * colors; and those of boxes, as tf.image builds them. */
#include <float.h>
#include <string.h>

#include "graph/image_util.h"

/* ---- Dtypes ---- */

static bool is_floating(leat_dtype t)
{
    return t == LEAT_HALF || t == LEAT_BFLOAT16 || t == LEAT_FLOAT || t == LEAT_DOUBLE;
}

/* The greatest number of an integer dtype; 0 for other dtypes. */
static double greatest(leat_dtype t)
{
    switch (t) {
    case LEAT_INT8:
        return INT8_MAX;
    case LEAT_UINT8:
        return UINT8_MAX;
    case LEAT_INT16:
        return INT16_MAX;
    case LEAT_UINT16:
        return UINT16_MAX;
    case LEAT_INT32:
        return INT32_MAX;
    case LEAT_UINT32:
        return UINT32_MAX;
    case LEAT_INT64:
        return (double)INT64_MAX;
    case LEAT_UINT64:
        return (double)UINT64_MAX;
    default:
        return 0;
    }
}

static double lowest(leat_dtype t)
{
    return leat_types_has(LEAT_TYPES_SIGNED, t) ? -greatest(t) - 1 : 0;
}

/* Values beyond the range of integers of type t become its ends. */
static leat_out saturate_cast(leat_out x, leat_dtype t)
{
    const leat_dtype from = leat_dtype_base(leat_out_dtype(x));
    if (is_floating(from) || lowest(from) < lowest(t))
        x = leat_maximum(x, leat_scalar_like(x, lowest(t)));
    if (is_floating(from) || greatest(from) > greatest(t))
        x = leat_minimum(x, leat_scalar_like(x, greatest(t)));
    return leat_cast(x, t);
}

/* Images of integers stand for [0, 1]; both dtypes are integers or floats, and differ. */
static leat_out convert(leat_out x, leat_dtype t, bool saturate)
{
    const leat_dtype from = leat_dtype_base(leat_out_dtype(x));
    if (is_floating(from) && is_floating(t))
        return leat_cast(x, t);
    if (is_floating(t)) {
        leat_out y = leat_cast(x, t);
        return leat_mul(y, leat_scalar_like(y, 1 / greatest(from)));
    }
    if (is_floating(from)) { /* 0.5: for the rounding of the cast */
        leat_out y = leat_mul(x, leat_scalar_like(x, greatest(t) + 0.5));
        return saturate ? saturate_cast(y, t) : leat_cast(y, t);
    }
    if (greatest(from) > greatest(t)) {
        leat_out y =
            leat_floor_div(x, leat_scalar_like(x, (greatest(from) + 1) / (greatest(t) + 1)));
        return saturate ? saturate_cast(y, t) : leat_cast(y, t);
    }
    leat_out y = saturate ? saturate_cast(x, t) : leat_cast(x, t);
    return leat_mul(y, leat_scalar_like(y, (greatest(t) + 1) / (greatest(from) + 1)));
}

static leat_status check_dtype(leat_out x, leat_dtype t, const char *constructor)
{
    const leat_dtype from = leat_dtype_base(leat_out_dtype(x));
    LEAT_REQUIRE(!leat_out_ok(x) || is_floating(from) || greatest(from) > 0, INVALID_ARGUMENT,
                 "%s: an image is of integers or floats, not of %s", constructor,
                 leat_dtype_name(from));
    LEAT_REQUIRE(is_floating(t) || greatest(t) > 0, INVALID_ARGUMENT,
                 "%s: the dtype must be of integers or floats, not %s", constructor,
                 leat_dtype_name(t));
    return NULL;
}

leat_out leat_image_convert_at(leat_loc at, leat_out x, leat_dtype t,
                               const leat_image_convert_options *o)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "convert_image", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = check_dtype(x, t, "leat_image_convert");
    leat_out y = x;
    if (!s)
        y = leat_dtype_base(leat_out_dtype(x)) == t ? leat_identity(x) : convert(x, t, o->saturate);
    return leat_image_end(g, at, outer, s, y);
}

/* The image as half or float, and back. */
static leat_out to_float(leat_out x)
{
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    return t == LEAT_HALF || t == LEAT_FLOAT ? x : convert(x, LEAT_FLOAT, false);
}

static leat_out from_float(leat_out y, leat_dtype t, bool saturate)
{
    return leat_dtype_base(leat_out_dtype(y)) == t ? y : convert(y, t, saturate);
}

/* ---- Adjustments ---- */

static leat_out adjusted(const char *what, leat_out x, leat_out by)
{
    if (!strcmp(what, "adjust_brightness"))
        return leat_add(x, leat_cast(by, leat_dtype_base(leat_out_dtype(x))));
    return LEAT_OP2(!strcmp(what, "adjust_contrast") ? "AdjustContrastv2"
                    : !strcmp(what, "adjust_hue")    ? "AdjustHue"
                                                     : "AdjustSaturation",
                    x, by);
}

/* Hues and saturations stay in range; sums and contrasts may leave it. */
static bool may_overflow(const char *what)
{
    return !strcmp(what, "adjust_brightness") || !strcmp(what, "adjust_contrast");
}

leat_out leat_image_adjust_at(leat_loc at, const char *what, leat_out x, leat_out by)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, what, &outer);
    if (!g)
        return (leat_out){0};
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    leat_status s = check_dtype(x, LEAT_FLOAT, what);
    leat_out y = x;
    if (!s)
        y = from_float(adjusted(what, to_float(x), by), t, may_overflow(what));
    return leat_image_end(g, at, outer, s, y);
}

leat_out leat_image_random_adjust_at(leat_loc at, const char *what, leat_out x, double low,
                                     double high, const leat_random_options *o)
{
    if (!x.node)
        return (leat_out){0};
    leat_graph *g = x.node->graph;
    const bool one_sided = !strcmp(what, "adjust_contrast") || !strcmp(what, "adjust_saturation");
    leat_status s = NULL;
    if (one_sided && !(low >= 0 && high > low))
        s = leat_error(INVALID_ARGUMENT, "random %s: 0 <= low < high must hold, not %g, %g", what,
                       low, high);
    else if (!one_sided && !(high >= 0))
        s = leat_error(INVALID_ARGUMENT, "random %s: the limit must not be negative: %g", what,
                       high);
    else if (!strcmp(what, "adjust_hue") && high > 0.5)
        s = leat_error(INVALID_ARGUMENT, "random %s: the limit must be at most 0.5: %g", what,
                       high);
    if (s)
        return leat_graph_fail(g, at, s);
    leat_loc outer = leat_at_enter(g, at);
    /* A limit of 0 is one: `given` says so only for options that the user named. */
    leat_random_options draw = {.seed = o->seed, .low = low, .high = high};
    draw.given = o->given;
    leat_out zero = leat_scalar(g, LEAT_FLOAT, 0);
    leat_out by =
        high == 0 ? zero : leat_random_at(LEAT_AT, g, "random_uniform", leat_shape(), &draw);
    leat_out y = leat_image_adjust_at(at, what, x, by);
    leat_at_leave(g, outer);
    return y;
}

leat_out leat_image_adjust_gamma_at(leat_loc at, leat_out x, double gamma, double gain)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "adjust_gamma", &outer);
    if (!g)
        return (leat_out){0};
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    leat_status s = check_dtype(x, LEAT_FLOAT, "leat_image_adjust_gamma");
    if (!s && !(gamma >= 0))
        s = leat_error(INVALID_ARGUMENT, "leat_image_adjust_gamma: gamma must not be negative: %g",
                       gamma);
    leat_out y = x;
    if (!s) {
        leat_out f = to_float(x), power = leat_pow(f, leat_scalar_like(f, gamma));
        y = from_float(leat_mul(leat_scalar_like(f, gain), power), t, true);
    }
    return leat_image_end(g, at, outer, s, y);
}

leat_out leat_image_standardize_at(leat_loc at, leat_out x)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "per_image_standardization", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = leat_image_check(x, "leat_image_standardize");
    if (!s)
        s = check_dtype(x, LEAT_FLOAT, "leat_image_standardize");
    leat_out y = x;
    if (!s) {
        const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
        leat_out f = to_float(x), axes = leat_ints(g, -1, -2, -3);
        leat_arg keep = leat_attr_bool("keep_dims", true);
        leat_out sizes = leat_strided_slice(leat_shape_of(f), leat_ints(g, -3), leat_ints(g, 0),
                                            leat_ints(g, 1), leat_attr_int("end_mask", 1));
        leat_out count = leat_prod(sizes, leat_ints(g, 0)), mean = leat_mean(f, axes, keep);
        leat_out variance = leat_mean(leat_square(leat_sub(f, mean)), axes, keep);
        leat_out least = leat_rsqrt(leat_cast(count, leat_dtype_base(leat_out_dtype(f))));
        leat_out deviation = leat_maximum(leat_sqrt(variance), least);
        y = from_float(leat_div(leat_sub(f, mean), deviation), t, true);
    }
    return leat_image_end(g, at, outer, s, y);
}

/* ---- Colors ---- */

/* The last dimension, of three, multiplied by a matrix of (3, columns). */
static leat_out times(leat_graph *g, leat_out x, const double *matrix, int columns)
{
    leat_tensor *t;
    leat_status s = leat_tensor_copy_of(LEAT_DOUBLE, leat_shape(3, columns), matrix, &t);
    if (s)
        return leat_graph_fail(g, LEAT_AT, s);
    leat_out weights = leat_cast(leat_const(g, t), leat_dtype_base(leat_out_dtype(x)));
    leat_tensor_unref(t);
    leat_out product = leat_matmul(leat_reshape(x, leat_ints(g, -1, 3)), weights);
    leat_shape shape = leat_out_shape(x);
    if (shape.rank > 0) {
        int unknown = 0;
        shape.dim[shape.rank - 1] = columns;
        for (int i = 0; i < shape.rank; i++)
            unknown += shape.dim[i] < 0;
        if (unknown <= 1)
            return leat_reshape(product, leat_shape_const(g, shape));
    }
    leat_out front = leat_strided_slice(leat_shape_of(x), leat_ints(g, 0), leat_ints(g, -1),
                                        leat_ints(g, 1), leat_attr_int("begin_mask", 1));
    leat_out parts[] = {front, leat_ints(g, columns)};
    return leat_reshape(product, leat_concat(parts, 2, leat_scalar(g, LEAT_INT32, 0)));
}

leat_out leat_image_colors_at(leat_loc at, const char *which, leat_out x)
{
    static const struct {
        const char *name;
        double v[9];
    } all[] = {
        {"rgb_to_yiq",
         {0.299, 0.59590059, 0.2115, 0.587, -0.27455667, -0.52273617, 0.114, -0.32134392,
          0.31119955}},
        {"yiq_to_rgb",
         {1, 1, 1, 0.95598634, -0.27201283, -1.10674021, 0.6208248, -0.64720424, 1.70423049}},
        {"rgb_to_yuv",
         {0.299, -0.14714119, 0.61497538, 0.587, -0.28886916, -0.51496512, 0.114, 0.43601035,
          -0.10001026}},
        {"yuv_to_rgb", {1, 1, 1, 0, -0.394642334, 2.03206185, 1.13988303, -0.58062185, 0}},
    };
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, which, &outer);
    if (!g)
        return (leat_out){0};
    leat_out y = x;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (!strcmp(which, all[i].name))
            y = times(g, x, all[i].v, 3);
    return leat_image_end(g, at, outer, NULL, y);
}

leat_out leat_image_rgb_to_gray_at(leat_loc at, leat_out x)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "rgb_to_grayscale", &outer);
    if (!g)
        return (leat_out){0};
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    leat_status s = check_dtype(x, LEAT_FLOAT, "leat_image_rgb_to_gray");
    leat_out y = x;
    if (!s) {
        leat_out f = t == LEAT_FLOAT ? x : convert(x, LEAT_FLOAT, false);
        y = from_float(times(g, f, (double[]){0.2989, 0.5870, 0.1140}, 1), t, false);
    }
    return leat_image_end(g, at, outer, s, y);
}

leat_out leat_image_gray_to_rgb_at(leat_loc at, leat_out x)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "grayscale_to_rgb", &outer);
    if (!g)
        return (leat_out){0};
    const leat_shape shape = leat_out_shape(x);
    leat_status s = leat_image_check(x, "leat_image_gray_to_rgb");
    if (!s && shape.rank > 0 && shape.dim[shape.rank - 1] >= 0 && shape.dim[shape.rank - 1] != 1)
        s = leat_error(INVALID_ARGUMENT, "leat_image_gray_to_rgb: the last dimension must be 1: %s",
                       leat_shape_show(&shape).s);
    leat_out y = x;
    if (!s)
        y = leat_tile(x, shape.rank == 3 ? leat_ints(g, 1, 1, 3) : leat_ints(g, 1, 1, 1, 3));
    return leat_image_end(g, at, outer, s, y);
}

/* ---- Boxes ---- */

leat_out leat_non_max_suppression_at(leat_loc at, leat_out boxes, leat_out scores, int64_t most,
                                     const leat_non_max_suppression_options *o)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, boxes, "non_max_suppression", &outer);
    if (!g)
        return (leat_out){0};
    const double iou = leat_given_or(&o->given, "iou_threshold", o->iou_threshold, 0.5);
    const double score = leat_given_or(&o->given, "score_threshold", o->score_threshold, -FLT_MAX);
    leat_out in[] = {boxes, scores, leat_scalar(g, LEAT_INT32, (double)most),
                     leat_scalar_like(boxes, iou), leat_scalar_like(boxes, score)};
    return leat_image_end(g, at, outer, NULL, LEAT_OPN("NonMaxSuppressionV3", in, 5));
}

leat_out leat_sample_distorted_box_at(leat_loc at, leat_out size, leat_out boxes,
                                      const leat_sample_box_options *o)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, size, "sample_distorted_bounding_box", &outer);
    if (!g)
        return (leat_out){0};
    const leat_given *given = &o->given;
    int64_t seed, seed2;
    leat_graph_seeds(g, leat_is_given(given, "seed", o->seed != 0) ? &o->seed : NULL, &seed,
                     &seed2);
    const double covered = leat_given_or(given, "min_object_covered", o->min_object_covered, 0.1);
    const double ratio[] = {leat_given_or(given, "aspect_ratio_low", o->aspect_ratio_low, 0.75),
                            leat_given_or(given, "aspect_ratio_high", o->aspect_ratio_high, 1.33)};
    const double area[] = {leat_given_or(given, "area_low", o->area_low, 0.05),
                           leat_given_or(given, "area_high", o->area_high, 1)};
    leat_out y = LEAT_OP3(
        "SampleDistortedBoundingBoxV2", size, boxes, leat_scalar(g, LEAT_FLOAT, covered),
        leat_attr_int("seed", seed), leat_attr_int("seed2", seed2),
        leat_attr_floats("aspect_ratio_range", ratio, 2), leat_attr_floats("area_range", area, 2),
        leat_attr_int("max_attempts",
                      leat_given_int_or(given, "max_attempts", o->max_attempts, 100)),
        leat_attr_bool("use_image_if_no_bounding_boxes", o->use_image_if_no_bounding_boxes));
    return leat_image_end(g, at, outer, NULL, y);
}
