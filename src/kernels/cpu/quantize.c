/* quantize.c -- QuantizeV2 and Dequantize, as TensorFlow computes them: in float, with the
 * constants in double, so that a number that lies between two integers goes the same way. */
#include <float.h>
#include <math.h>

#include "kernels/cpu/arith.h"

/* What an integer q stands for, and which integer stands for x:
 *   MIN_COMBINED  (q + half) * scale + least       (x - least) * scale - half
 *   MIN_FIRST     first + q * scale                round(x * scale) - first
 *   SCALED        q * scale                        x * scale
 * `half` is half of the number of integers for a signed type, else 0. */
typedef enum quantize_mode { MIN_COMBINED, MIN_FIRST, SCALED } quantize_mode;

typedef struct limits {
    double low, high, steps; /* smallest and largest integer, number of integers */
    float half;
} limits;

static limits limits_of(leat_dtype t)
{
    switch (t) {
    case LEAT_QINT8:
        return (limits){INT8_MIN, INT8_MAX, 1 << 8, 128};
    case LEAT_QUINT8:
        return (limits){0, UINT8_MAX, 1 << 8, 0};
    case LEAT_QINT16:
        return (limits){INT16_MIN, INT16_MAX, 1 << 16, 32768};
    case LEAT_QUINT16:
        return (limits){0, UINT16_MAX, 1 << 16, 0};
    default:
        return (limits){INT32_MIN, INT32_MAX, 4294967296.0, 2147483648.0f};
    }
}

typedef struct quantize_args {
    quantize_mode mode;
    bool to_even; /* SCALED: 0.5 goes to 0 */
    limits l;
    float min, max;           /* of the range of floats */
    float scale, first, half; /* see above */
    const leat_tensor *x;
    leat_tensor *y;
} quantize_args;

static quantize_mode mode_of(const leat_node *n)
{
    const char *mode = leat_node_string(n, "mode");
    return !strcmp(mode, "MIN_FIRST") ? MIN_FIRST : !strcmp(mode, "SCALED") ? SCALED : MIN_COMBINED;
}

/* One number of an input. */
static leat_status scalar(leat_kernel *k, int i, const char *name, float *out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT,
                 "%s must contain a single float element, but it contains %lld elements", name,
                 (long long)t->count);
    *out = AT(float, t)[0];
    return NULL;
}

static float clamp(float x, float low, float high)
{
    x = x > high ? high : x; /* what is not a number stays that */
    return x < low ? low : x;
}

/* The integer that is next to y, or the smallest or largest one; 0 for what is not a number. */
static int64_t saturate(const limits *l, double y)
{
    return y >= l->high  ? (int64_t)l->high
           : y <= l->low ? (int64_t)l->low
           : y == y      ? (int64_t)y
                         : 0;
}

/* ---- QuantizeV2 ---- */

static double quantized(const quantize_args *a, float x)
{
    /* The largest float that 32 bits can hold is the last one below 2^31. */
    if (a->mode == MIN_FIRST)
        return fminf(roundf(x * a->scale) - (a->first - (float)a->l.low), 2147483520.0f);
    x = clamp(x, a->min, a->max);
    if (a->mode == SCALED)
        return a->to_even ? rintf(x * a->scale) : roundf(x * a->scale);
    const float y = (x - a->min) * a->scale;
    return a->half > 0 ? roundf(y - a->half) : truncf(y + 0.5f);
}

#define PARTS(T)                                                                                   \
    static void quantize_##T(void *arg, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const quantize_args *a = arg;                                                              \
        for (int64_t i = begin; i < end; i++)                                                      \
            AT(T, a->y)[i] = (T)saturate(&a->l, quantized(a, AT(float, a->x)[i]));                 \
    }                                                                                              \
    static void dequantize_##T(void *arg, int64_t begin, int64_t end)                              \
    {                                                                                              \
        const quantize_args *a = arg;                                                              \
        for (int64_t i = begin; i < end; i++)                                                      \
            AT(float, a->y)[i] = ((float)AT(T, a->x)[i] + a->half) * a->scale + a->first;          \
    }
PARTS(int8_t)
PARTS(uint8_t)
PARTS(int16_t)
PARTS(uint16_t)
PARTS(int32_t)

typedef void part_fn(void *arg, int64_t begin, int64_t end);

static part_fn *part_of(leat_dtype t, bool back)
{
    switch (t) {
    case LEAT_QINT8:
        return back ? dequantize_int8_t : quantize_int8_t;
    case LEAT_QUINT8:
        return back ? dequantize_uint8_t : quantize_uint8_t;
    case LEAT_QINT16:
        return back ? dequantize_int16_t : quantize_int16_t;
    case LEAT_QUINT16:
        return back ? dequantize_uint16_t : quantize_uint16_t;
    default:
        return back ? dequantize_int32_t : quantize_int32_t;
    }
}

/* The range has 0 in it, and is not so narrow that all floats would become one integer. */
static leat_status widen(leat_kernel *k, quantize_args *a)
{
    float min = 0, max = 0;
    LEAT_TRY(scalar(k, 1, "min_range", &min));
    LEAT_TRY(scalar(k, 2, "max_range", &max));
    LEAT_REQUIRE(isfinite(min) && isfinite(max), INVALID_ARGUMENT,
                 "min_range and max_range must be finite, got %g and %g", (double)min, (double)max);
    LEAT_REQUIRE(!(max < min), INVALID_ARGUMENT,
                 "input_max_range must be larger than input_min_range.");
    const float least = fmaxf(1, fmaxf(fabsf(min), fabsf(max))) / 100;
    a->min = fminf(0, min);
    a->max = fmaxf(0, fmaxf(max, a->min + least));
    return NULL;
}

/* The largest scale with which both ends of the range become integers of the type. */
static void scale_both(quantize_args *a)
{
    const float low = (float)a->l.low, high = (float)a->l.high;
    const float below = low * a->min > 0 ? low / a->min : FLT_MAX;
    const float above = high * a->max > 0 ? high / a->max : FLT_MAX;
    a->scale = fminf(below, above);
    a->min = low / a->scale;
    a->max = high / a->scale;
}

static leat_status quantize_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_dtype t = leat_kernel_out_dtype(k, 0);
    quantize_args a = {.mode = mode_of(n), .l = limits_of(t), .x = leat_kernel_in(k, 0)};
    a.to_even = !strcmp(leat_node_string(n, "round_mode"), "HALF_TO_EVEN");
    LEAT_REQUIRE(!a.to_even || a.mode == SCALED, INVALID_ARGUMENT,
                 "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '%s'.",
                 leat_node_string(n, "mode"));
    LEAT_TRY(widen(k, &a));
    a.half = a.l.half;
    if (a.mode == SCALED)
        scale_both(&a);
    else if (a.mode == MIN_FIRST)
        a.scale = (float)((a.l.steps - 1) / (a.max - a.min));
    else
        a.scale = (float)((a.l.high - a.l.low) / (a.max - a.min));
    a.first = roundf(a.min * a.scale);
    leat_tensor *min, *max;
    const leat_shape s = leat_shape();
    LEAT_TRY(leat_kernel_out(k, 0, &a.x->shape, &a.y));
    LEAT_TRY(leat_kernel_out(k, 1, &s, &min));
    LEAT_TRY(leat_kernel_out(k, 2, &s, &max));
    leat_kernel_for(k, a.y->count, 2, part_of(t, false), &a);
    AT(float, min)[0] = a.min;
    AT(float, max)[0] = a.max;
    return NULL;
}

/* ---- Dequantize ---- */

static leat_status dequantize_run(leat_kernel *k)
{
    quantize_args a = {.mode = mode_of(leat_kernel_node(k)), .x = leat_kernel_in(k, 0)};
    a.l = limits_of(a.x->dtype);
    LEAT_TRY(scalar(k, 1, "min_range", &a.min));
    LEAT_TRY(scalar(k, 2, "max_range", &a.max));
    const float low = (float)a.l.low, high = (float)a.l.high;
    if (a.mode == MIN_COMBINED) {
        a.half = a.l.half;
        a.scale = (a.max - a.min) / (high - low);
        a.first = a.min;
    } else if (a.mode == MIN_FIRST) {
        a.scale = (float)((a.max - a.min) / (a.l.steps - 1));
        a.first = a.max == a.min ? a.min : roundf(a.min / a.scale) * a.scale;
        a.first -= low * a.scale;
    } else {
        a.scale = low == 0 ? a.max / high : fmaxf(a.min / low, a.max / high);
    }
    LEAT_TRY(leat_kernel_out(k, 0, &a.x->shape, &a.y));
    leat_kernel_for(k, a.y->count, 1, part_of(a.x->dtype, true), &a);
    return NULL;
}

const leat_kernel_def leat_cpu_quantize[] = {
    {.op = "QuantizeV2", .run = quantize_run},
    {.op = "Dequantize", .run = dequantize_run},
    {0},
};
