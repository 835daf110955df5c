/* image_color.c -- ops on the colors of pixels: RGBToHSV, HSVToRGB, AdjustContrast,
 * AdjustContrastv2, AdjustHue, AdjustSaturation. The last dimension of an image has its colors. */
#include "ops/image_util.h"

static leat_status color_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &s));
    if (s.rank > 0) {
        LEAT_TRY(leat_dim_is(s.dim[s.rank - 1], 3));
        s.dim[s.rank - 1] = 3;
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

/* The output has the shape of the image, of rank 3 or more. */
static leat_status image_unchanged(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 3, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status contrast_shape(leat_infer *c)
{
    LEAT_TRY(leat_infer_scalars(c, 1, leat_infer_inputs(c)));
    return image_unchanged(c);
}

/* ---- The gradient of RGBToHSV ---- */

/* A color (0 to 2) of each pixel: x[..., color]. */
static leat_out color_of(leat_out x, int color)
{
    return leat_gather(x, leat_scalar(leat_node_graph(x.node), LEAT_INT32, color),
                       leat_scalar(leat_node_graph(x.node), LEAT_INT32, -1));
}

typedef struct colors {
    leat_out x[3];                    /* red, green, blue */
    leat_out biggest[3], smallest[3]; /* 1 where this color is the biggest (smallest), else 0 */
    leat_out positive[3];             /* 1 where this color is above 0 */
    leat_out saturation, value;
} colors;

/* 1 where a condition holds. */
static leat_out mask(leat_out condition, leat_out like)
{
    return leat_cast(condition, leat_dtype_base(leat_out_dtype(like)));
}

static leat_out inverse(leat_out x)
{
    return leat_div_no_nan(leat_scalar_like(x, 1), x);
}

static leat_out minus(leat_out x)
{
    return leat_mul(x, leat_scalar_like(x, -1));
}

/* Of equal colors, red is bigger than green and green than blue. */
static void compare_colors(colors *c)
{
    leat_out r = c->x[0], g = c->x[1], b = c->x[2];
    c->biggest[0] = mask(leat_logical_and(leat_greater_equal(r, b), leat_greater_equal(r, g)), r);
    c->biggest[1] = mask(leat_logical_and(leat_greater(g, r), leat_greater_equal(g, b)), r);
    c->biggest[2] = mask(leat_logical_and(leat_greater(b, r), leat_greater(b, g)), r);
    c->smallest[0] = mask(leat_logical_and(leat_less(r, b), leat_less(r, g)), r);
    c->smallest[1] = mask(leat_logical_and(leat_less_equal(g, r), leat_less(g, b)), r);
    c->smallest[2] = mask(leat_logical_and(leat_less_equal(b, r), leat_less_equal(b, g)), r);
    for (int i = 0; i < 3; i++)
        c->positive[i] = mask(leat_greater(c->x[i], leat_scalar_like(r, 0)), r);
}

/* d saturation / d color i: least / greatest^2 where i is the greatest color, -1 / greatest where
 * it is the least. j and k are the other colors. */
static leat_out saturation_by(const colors *c, int i, int j, int k)
{
    leat_out least = leat_add(leat_mul(c->smallest[j], c->x[j]), leat_mul(c->smallest[k], c->x[k]));
    leat_out greatest =
        leat_add(leat_mul(c->biggest[j], c->x[j]), leat_mul(c->biggest[k], c->x[k]));
    leat_out as_greatest = leat_mul(leat_mul(c->biggest[i], least), inverse(leat_square(c->x[i])));
    leat_out as_least = leat_mul(minus(c->smallest[i]), inverse(greatest));
    return leat_mul(c->positive[i], leat_add(as_greatest, as_least));
}

/* d hue / d color i, in parts of the circle. next and last are the other colors in the order of
 * the circle (red, green, blue, red ...): the hue is a third of the circle times i, plus
 * (next - last) / (greatest - least) / 6 where i is the greatest. Where another color m is the
 * greatest, the result depends on whether color i is the least. */
static leat_out hue_by(const colors *c, int i, int next, int last)
{
    leat_out d = leat_sub(c->x[next], c->x[last]);
    leat_out sum = leat_mul(leat_mul(leat_mul(minus(leat_mul(c->positive[i], c->biggest[i])), d),
                                     inverse(leat_square(c->saturation))),
                            inverse(leat_square(c->value)));
    for (int m = 0; m < 3; m++) {
        if (m == i)
            continue;
        const int other = 3 - i - m; /* neither i nor m */
        leat_out is = leat_mul(c->positive[m], c->biggest[m]);
        /* Color i is the least: (last - next) / (x[m] - x[i])^2. */
        leat_out least = leat_mul(leat_mul(leat_mul(is, c->smallest[i]), minus(d)),
                                  inverse(leat_square(leat_sub(c->x[m], c->x[i]))));
        /* Color i is in the middle: -1 / (x[m] - x[other]) if m is next, else 1 / (...). */
        leat_out middle =
            leat_mul(leat_mul(is, c->smallest[other]), inverse(leat_sub(c->x[m], c->x[other])));
        sum = leat_add(leat_add(sum, least), m == next ? minus(middle) : middle);
    }
    return leat_div(sum, leat_scalar_like(sum, 6));
}

static leat_status hsv_grad(leat_grad *g)
{
    leat_out y = leat_grad_output(g, 0), dy = leat_grad_out(g, 0);
    colors c = {.saturation = color_of(y, 1), .value = color_of(y, 2)};
    for (int i = 0; i < 3; i++)
        c.x[i] = color_of(leat_grad_input(g, 0), i);
    compare_colors(&c);
    leat_out dh = color_of(dy, 0), ds = color_of(dy, 1), dv = color_of(dy, 2), dx[3];
    for (int i = 0; i < 3; i++) {
        const int next = (i + 1) % 3, last = (i + 2) % 3;
        dx[i] = leat_add(
            leat_add(leat_mul(dv, c.biggest[i]), leat_mul(ds, saturation_by(&c, i, next, last))),
            leat_mul(dh, hue_by(&c, i, next, last)));
    }
    return leat_grad_in(g, 0, leat_pack(dx, 3, -1));
}

const leat_op_def leat_ops_image_color[] = {
    {.name = "RGBToHSV",
     .inputs = "images: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double} = DT_FLOAT",
     .shape = color_shape,
     .grad = hsv_grad},
    {.name = "HSVToRGB",
     .inputs = "images: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double} = DT_FLOAT",
     .shape = color_shape,
     .grad = leat_grad_none},
    {.name = "AdjustContrast",
     .inputs = "images: T, contrast_factor: float, min_value: float, max_value: float",
     .outputs = "output: float",
     .attrs = "T: {uint8, int8, int16, int32, int64, float, double}",
     .shape = contrast_shape,
     .grad = leat_grad_missing},
    {.name = "AdjustContrastv2",
     .inputs = "images: T, contrast_factor: float",
     .outputs = "output: T",
     .attrs = "T: {half, float} = DT_FLOAT",
     .shape = contrast_shape,
     .grad = leat_grad_missing},
    {.name = "AdjustHue",
     .inputs = "images: T, delta: float",
     .outputs = "output: T",
     .attrs = "T: {half, float} = DT_FLOAT",
     .shape = image_unchanged,
     .grad = leat_grad_missing},
    {.name = "AdjustSaturation",
     .inputs = "images: T, scale: float",
     .outputs = "output: T",
     .attrs = "T: {half, float} = DT_FLOAT",
     .shape = image_unchanged,
     .grad = leat_grad_missing},
    {0},
};
