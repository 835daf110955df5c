/* image_shape.c -- constructors that change the shape of images: resizing, cropping, padding,
 * flipping, turning, as tf.image builds them. */
#include <leat/control.h>

#include "graph/image_util.h"

/* The size of a dimension: height is 0, width 1. */
static int64_t size_of(leat_out x, int dim)
{
    const leat_shape s = leat_out_shape(x);
    return s.rank < 3 ? -1 : s.dim[s.rank - 3 + dim];
}

/* The same, computed while a step runs. */
static leat_out size_later(leat_graph *g, leat_out x, int dim)
{
    return leat_gather(leat_shape_of(x),
                       leat_scalar(g, LEAT_INT32, leat_out_shape(x).rank - 3 + dim),
                       leat_scalar(g, LEAT_INT32, 0));
}

/* ---- Resizing ---- */

static leat_out resize_batch(leat_graph *g, leat_out x, int64_t height, int64_t width,
                             const leat_image_resize_options *o)
{
    static const char *const ops[] = {"ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic",
                                      "ResizeArea"};
    leat_out size = leat_ints(g, height, width);
    leat_arg align = leat_attr_bool("align_corners", o->align_corners);
    if (o->method == LEAT_RESIZE_AREA)
        return LEAT_OP2("ResizeArea", x, size, align);
    return LEAT_OP2(ops[o->method], x, size, align,
                    leat_attr_bool("half_pixel_centers", o->half_pixel_centers));
}

leat_out leat_image_resize_at(leat_loc at, leat_out x, int64_t height, int64_t width,
                              const leat_image_resize_options *o)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "resize", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = leat_image_check(x, "leat_image_resize");
    if (!s && (unsigned)o->method > LEAT_RESIZE_AREA)
        s = leat_error(INVALID_ARGUMENT, "leat_image_resize: there is no method %d", o->method);
    leat_out y = x;
    if (!s && !(size_of(x, 0) == height && size_of(x, 1) == width)) {
        const bool one = leat_out_shape(x).rank == 3;
        leat_out axis = leat_scalar(g, LEAT_INT32, 0);
        y = resize_batch(g, one ? leat_expand_dims(x, axis) : x, height, width, o);
        if (one)
            y = leat_squeeze(y, leat_attr_ints("squeeze_dims", LEAT_ARRAY(int64_t, 0), 1));
    }
    return leat_image_end(g, at, outer, s, y);
}

leat_out leat_image_crop_and_resize_at(leat_loc at, leat_out x, leat_out boxes, leat_out index,
                                       int64_t height, int64_t width,
                                       const leat_crop_and_resize_options *o)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "crop_and_resize", &outer);
    if (!g)
        return (leat_out){0};
    leat_out y = LEAT_OP4("CropAndResize", x, boxes, index, leat_ints(g, height, width),
                          leat_attr_string("method", o->nearest ? "nearest" : "bilinear"),
                          leat_attr_float("extrapolation_value", o->extrapolation_value));
    return leat_image_end(g, at, outer, NULL, y);
}

/* ---- Cropping and padding ---- */

/* A vector for all dimensions, from numbers for height and width. */
static leat_out for_dims(leat_graph *g, leat_out x, int64_t batch, int64_t height, int64_t width,
                         int64_t channels)
{
    return leat_out_shape(x).rank == 3 ? leat_ints(g, height, width, channels)
                                       : leat_ints(g, batch, height, width, channels);
}

static leat_out slice_image(leat_graph *g, leat_out x, int64_t top, int64_t left, int64_t height,
                            int64_t width)
{
    return leat_slice(x, for_dims(g, x, 0, top, left, 0), for_dims(g, x, -1, height, width, -1));
}

/* Checks that a box lies in an image of a size that may not be known. */
static leat_status check_box(leat_out x, const char *constructor, int64_t top, int64_t left,
                             int64_t height, int64_t width, bool pad)
{
    LEAT_TRY(leat_image_check(x, constructor));
    const int64_t start[] = {top, left}, size[] = {height, width};
    static const char *const names[] = {"height", "width"};
    for (int i = 0; i < 2; i++) {
        const int64_t in = size_of(x, i), inner = pad ? in : size[i], all = pad ? size[i] : in;
        LEAT_REQUIRE(start[i] >= 0, INVALID_ARGUMENT, "%s: the offset of the %s is negative: %lld",
                     constructor, names[i], (long long)start[i]);
        LEAT_REQUIRE(size[i] > 0, INVALID_ARGUMENT, "%s: the %s must be above 0, not %lld",
                     constructor, names[i], (long long)size[i]);
        LEAT_REQUIRE(inner < 0 || all < 0 || start[i] <= all - inner, INVALID_ARGUMENT,
                     "%s: %lld pixels from pixel %lld do not fit into a %s of %lld", constructor,
                     (long long)inner, (long long)start[i], names[i], (long long)all);
    }
    return NULL;
}

leat_out leat_image_crop_at(leat_loc at, leat_out x, int64_t top, int64_t left, int64_t height,
                            int64_t width)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "crop_to_bounding_box", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = check_box(x, "leat_image_crop", top, left, height, width, false);
    leat_out y = x;
    if (!s)
        y = slice_image(g, x, top, left, height, width);
    return leat_image_end(g, at, outer, s, y);
}

/* What is added after an image of `size` pixels that begin at `start`. */
static leat_out pad_after(leat_graph *g, leat_out x, int dim, int64_t start, int64_t size)
{
    if (size_of(x, dim) >= 0)
        return leat_scalar(g, LEAT_INT32, (double)(size - start - size_of(x, dim)));
    return leat_sub(leat_scalar(g, LEAT_INT32, (double)(size - start)), size_later(g, x, dim));
}

static leat_out pad_image(leat_graph *g, leat_out x, int64_t top, int64_t left, int64_t height,
                          int64_t width)
{
    leat_out zero = leat_scalar(g, LEAT_INT32, 0);
    leat_out pads[] = {zero,
                       zero,
                       leat_scalar(g, LEAT_INT32, (double)top),
                       pad_after(g, x, 0, top, height),
                       leat_scalar(g, LEAT_INT32, (double)left),
                       pad_after(g, x, 1, left, width),
                       zero,
                       zero};
    const bool one = leat_out_shape(x).rank == 3; /* no batch */
    leat_out flat = leat_pack(one ? pads + 2 : pads, one ? 6 : 8, 0);
    return leat_pad(x, leat_reshape(flat, leat_ints(g, -1, 2)));
}

leat_out leat_image_pad_at(leat_loc at, leat_out x, int64_t top, int64_t left, int64_t height,
                           int64_t width)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "pad_to_bounding_box", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = check_box(x, "leat_image_pad", top, left, height, width, true);
    leat_out y = x;
    if (!s)
        y = pad_image(g, x, top, left, height, width);
    return leat_image_end(g, at, outer, s, y);
}

/* Half of how much an image is larger than `size`, rounded down, and of how much smaller. */
static void differences(leat_graph *g, leat_out x, int dim, int64_t size, leat_out *crop,
                        leat_out *pad)
{
    leat_out zero = leat_scalar(g, LEAT_INT32, 0), two = leat_scalar(g, LEAT_INT32, 2);
    leat_out wanted = leat_scalar(g, LEAT_INT32, (double)size), is = size_later(g, x, dim);
    *crop = leat_maximum(leat_floor_div(leat_sub(is, wanted), two), zero);
    *pad = leat_maximum(leat_floor_div(leat_sub(wanted, is), two), zero);
}

/* For images of a size that is known only when a step runs. */
static leat_out crop_or_pad_later(leat_graph *g, leat_out x, int64_t height, int64_t width)
{
    const int64_t size[] = {height, width};
    leat_out zero = leat_scalar(g, LEAT_INT32, 0), all = leat_scalar(g, LEAT_INT32, -1);
    leat_out begin[] = {zero, zero, zero, zero}, kept[] = {all, all, all, all};
    leat_out pads[] = {zero, zero, zero, zero, zero, zero, zero, zero};
    for (int i = 0; i < 2; i++) {
        leat_out wanted = leat_scalar(g, LEAT_INT32, (double)size[i]), pad;
        differences(g, x, i, size[i], &begin[1 + i], &pad);
        kept[1 + i] = leat_minimum(wanted, size_later(g, x, i));
        pads[2 + 2 * i] = pad;
        pads[3 + 2 * i] = leat_sub(leat_sub(wanted, pad), kept[1 + i]);
    }
    const int skip = leat_out_shape(x).rank == 3, n = 4 - skip;
    leat_out cropped = leat_slice(x, leat_pack(begin + skip, n, 0), leat_pack(kept + skip, n, 0));
    leat_out flat = leat_pack(pads + 2 * skip, 2 * n, 0);
    return leat_pad(cropped, leat_reshape(flat, leat_ints(g, -1, 2)));
}

leat_out leat_image_crop_or_pad_at(leat_loc at, leat_out x, int64_t height, int64_t width)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "resize_image_with_crop_or_pad", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = leat_image_check(x, "leat_image_crop_or_pad");
    if (!s && (height <= 0 || width <= 0))
        s = leat_error(INVALID_ARGUMENT,
                       "leat_image_crop_or_pad: height and width must be above 0, not %lld, %lld",
                       (long long)height, (long long)width);
    leat_out y = x;
    const int64_t in_height = size_of(x, 0), in_width = size_of(x, 1);
    if (!s && (in_height < 0 || in_width < 0)) {
        y = crop_or_pad_later(g, x, height, width);
    } else if (!s) {
        const int64_t rows = in_height < height ? in_height : height;
        const int64_t columns = in_width < width ? in_width : width;
        if (rows < in_height || columns < in_width)
            y = slice_image(g, y, (in_height - rows) / 2, (in_width - columns) / 2, rows, columns);
        if (rows < height || columns < width)
            y = pad_image(g, y, (height - rows) / 2, (width - columns) / 2, height, width);
    }
    return leat_image_end(g, at, outer, s, y);
}

/* Half of what is cut off a dimension. */
static leat_out cut(leat_graph *g, leat_out x, int dim, double fraction)
{
    const int64_t size = size_of(x, dim);
    if (size >= 0)
        return leat_scalar(g, LEAT_INT32,
                           (double)(int64_t)(((double)size - (double)size * fraction) / 2));
    leat_out is = leat_cast(size_later(g, x, dim), LEAT_DOUBLE);
    leat_out off = leat_sub(is, leat_mul(is, leat_scalar(g, LEAT_DOUBLE, fraction)));
    return leat_cast(leat_div(off, leat_scalar(g, LEAT_DOUBLE, 2)), LEAT_INT32);
}

leat_out leat_image_central_crop_at(leat_loc at, leat_out x, double fraction)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "central_crop", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = leat_image_check(x, "leat_image_central_crop");
    if (!s && !(fraction > 0 && fraction <= 1))
        s = leat_error(INVALID_ARGUMENT,
                       "leat_image_central_crop: the fraction must be in (0, 1], not %g", fraction);
    leat_out y = x;
    if (!s && fraction < 1) {
        leat_out zero = leat_scalar(g, LEAT_INT32, 0), all = leat_scalar(g, LEAT_INT32, -1);
        leat_out two = leat_scalar(g, LEAT_INT32, 2);
        leat_out begin[] = {zero, cut(g, x, 0, fraction), cut(g, x, 1, fraction), zero};
        leat_out size[] = {all, all, all, all};
        for (int i = 0; i < 2; i++) {
            leat_out is = size_of(x, i) >= 0 ? leat_scalar(g, LEAT_INT32, (double)size_of(x, i))
                                             : size_later(g, x, i);
            size[1 + i] = leat_sub(is, leat_mul(begin[1 + i], two));
        }
        const int skip = leat_out_shape(x).rank == 3;
        y = leat_slice(x, leat_pack(begin + skip, 4 - skip, 0),
                       leat_pack(size + skip, 4 - skip, 0));
    }
    return leat_image_end(g, at, outer, s, y);
}

leat_out leat_image_random_crop_at(leat_loc at, leat_out x, leat_shape shape,
                                   const leat_random_options *o)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "random_crop", &outer);
    if (!g)
        return (leat_out){0};
    if (!leat_shape_known(&shape))
        return leat_image_end(g, at, outer,
                              leat_error(INVALID_ARGUMENT,
                                         "leat_image_random_crop: the shape %s is not fully known",
                                         leat_shape_show(&shape).s),
                              x);
    leat_out size = leat_int_vector_named(LEAT_AT, g, LEAT_INT32, shape.dim, shape.rank, "size");
    leat_out is = leat_shape_of(x);
    leat_out fits = leat_all(leat_greater_equal(is, size), leat_ints(g, 0));
    leat_out words[] = {leat_string_const(g, "Need value.shape >= size, got "), is, size};
    leat_out check =
        leat_op(g, "Assert", leat_in(fits), leat_ins(words, 3), leat_attr_int("summarize", 1000));
    is = leat_identity(is, leat_after(check));
    leat_out limit = leat_add(leat_sub(is, size), leat_scalar(g, LEAT_INT32, 1));
    leat_random_options draw = *o;
    draw.dtype = LEAT_INT32;
    draw.low = 0;
    draw.high = INT32_MAX;
    draw.name = NULL;
    leat_out random = leat_random_at(LEAT_AT, g, "random_uniform", leat_shape(shape.rank), &draw);
    return leat_image_end(g, at, outer, NULL, leat_slice(x, leat_floor_mod(random, limit), size));
}

/* ---- Flips and turns ---- */

static leat_out flip(leat_graph *g, leat_out x, int axis)
{
    return leat_reverse(x, leat_ints(g, leat_out_shape(x).rank - 3 + axis));
}

leat_out leat_image_flip_at(leat_loc at, leat_out x, int axis)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, axis ? "flip_left_right" : "flip_up_down", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = leat_image_check(x, "leat_image_flip");
    leat_out y = x;
    if (!s)
        y = flip(g, x, axis != 0);
    return leat_image_end(g, at, outer, s, y);
}

typedef struct flip_args {
    leat_out x;
    int axis;
} flip_args;

static void flipped(leat_graph *g, void *arg, leat_out *outs)
{
    const flip_args *a = arg;
    outs[0] = flip(g, a->x, a->axis);
}

static void as_is(leat_graph *g, void *arg, leat_out *outs)
{
    (void)g;
    outs[0] = ((flip_args *)arg)->x;
}

/* Each image of a batch: flips is 0 or 1, (batch, 1, 1, 1). */
static leat_out flip_some(leat_graph *g, leat_out x, int axis, const leat_random_options *o)
{
    leat_out batch =
        leat_gather(leat_shape_of(x), leat_scalar(g, LEAT_INT32, 0), leat_scalar(g, LEAT_INT32, 0));
    leat_out one = leat_scalar(g, LEAT_INT32, 1), shape[] = {batch, one, one, one};
    int64_t seed, seed2;
    leat_graph_seeds(g, leat_is_given(&o->given, "seed", o->seed != 0) ? &o->seed : NULL, &seed,
                     &seed2);
    leat_out random =
        LEAT_OP1("RandomUniform", leat_pack(&batch, 1, 0), leat_attr_type("dtype", LEAT_FLOAT),
                 leat_attr_int("seed", seed), leat_attr_int("seed2", seed2));
    leat_out flips = leat_cast(leat_round(leat_reshape(random, leat_pack(shape, 4, 0))),
                               leat_dtype_base(leat_out_dtype(x)));
    return leat_add(leat_mul(flips, flip(g, x, axis)),
                    leat_mul(leat_sub(leat_scalar_like(x, 1), flips), x));
}

leat_out leat_image_random_flip_at(leat_loc at, leat_out x, int axis, const leat_random_options *o)
{
    leat_loc outer;
    leat_graph *g =
        leat_image_begin(at, x, axis ? "random_flip_left_right" : "random_flip_up_down", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = leat_image_check(x, "leat_image_random_flip");
    leat_out y = x;
    if (!s && leat_out_shape(x).rank == 4) {
        y = flip_some(g, x, axis != 0, o);
    } else if (!s) {
        leat_random_options draw = {.given = o->given, .seed = o->seed, .high = 1};
        leat_out random = leat_random_at(LEAT_AT, g, "random_uniform", leat_shape(), &draw);
        leat_out yes = leat_less(random, leat_scalar(g, LEAT_FLOAT, 0.5));
        leat_cond(yes, flipped, as_is, (&(flip_args){x, axis != 0}), &y, 1);
    }
    return leat_image_end(g, at, outer, s, y);
}

static leat_out transpose(leat_graph *g, leat_out x)
{
    return leat_transpose(x, leat_out_shape(x).rank == 3 ? leat_ints(g, 1, 0, 2)
                                                         : leat_ints(g, 0, 2, 1, 3));
}

leat_out leat_image_transpose_at(leat_loc at, leat_out x)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "transpose_image", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = leat_image_check(x, "leat_image_transpose");
    leat_out y = x;
    if (!s)
        y = transpose(g, x);
    return leat_image_end(g, at, outer, s, y);
}

leat_out leat_image_rot90_at(leat_loc at, leat_out x, int k)
{
    leat_loc outer;
    leat_graph *g = leat_image_begin(at, x, "rot90", &outer);
    if (!g)
        return (leat_out){0};
    leat_status s = leat_image_check(x, "leat_image_rot90");
    leat_out y = x;
    const int turns = (k % 4 + 4) % 4;
    if (!s && turns == 1)
        y = transpose(g, flip(g, x, 1));
    else if (!s && turns == 2)
        y = flip(g, flip(g, x, 0), 1);
    else if (!s && turns == 3)
        y = flip(g, transpose(g, x), 1);
    return leat_image_end(g, at, outer, s, y);
}
