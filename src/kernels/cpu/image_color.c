/* image_color.c -- RGBToHSV, HSVToRGB, AdjustContrast, AdjustContrastv2, AdjustHue,
 * AdjustSaturation. A pixel is three numbers (red, green, blue or hue, saturation, value), or any
 * number of channels where the contrast is adjusted. */
#include "kernels/cpu/image_resize.h"

typedef struct pixels {
    const leat_tensor *x;
    leat_tensor *y;
    float by; /* what a hue or a saturation is changed by */
} pixels;

/* ---- RGBToHSV, HSVToRGB ---- */

static inline double clip01_double(double x)
{
    x = x > 0 ? x : 0;
    return x < 1 ? x : 1;
}

static inline float clip01_float(float x)
{
    x = x > 0 ? x : 0;
    return x < 1 ? x : 1;
}

#define COLORS(dtype, T)                                                                           \
    static void to_hsv_##T(void *arg, int64_t begin, int64_t end)                                  \
    {                                                                                              \
        const pixels *p = arg;                                                                     \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const T *x = AT(const T, p->x) + 3 * i, r = x[0], g = x[1], b = x[2];                  \
            T *y = AT(T, p->y) + 3 * i;                                                            \
            const T rg = r > g ? r : g, v = rg > b ? rg : b;                                       \
            const T low = r < g ? r : g, range = v - (low < b ? low : b);                          \
            const T norm = (T)1 / range * ((T)1 / (T)6);                                           \
            T h = r == v   ? norm * (g - b)                                                        \
                  : g == v ? norm * (b - r) + (T)2 / (T)6                                          \
                           : norm * (r - g) + (T)4 / (T)6;                                         \
            h = range > 0 ? h : 0;                                                                 \
            y[0] = h < 0 ? h + 1 : h;                                                              \
            y[1] = v > 0 ? range / v : 0;                                                          \
            y[2] = v;                                                                              \
        }                                                                                          \
    }                                                                                              \
    static void to_rgb_##T(void *arg, int64_t begin, int64_t end)                                  \
    {                                                                                              \
        const pixels *p = arg;                                                                     \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const T *x = AT(const T, p->x) + 3 * i, h = x[0] * 6, s = x[1], v = x[2];              \
            T *y = AT(T, p->y) + 3 * i;                                                            \
            const T one_s = -s + 1;                                                                \
            y[0] = (one_s + s * clip01_##T((h < 3 ? 3 - h : h - 3) - 1)) * v;                      \
            y[1] = (one_s + s * clip01_##T(-(h < 2 ? 2 - h : h - 2) + 2)) * v;                     \
            y[2] = (one_s + s * clip01_##T(-(h < 4 ? 4 - h : h - 4) + 2)) * v;                     \
        }                                                                                          \
    }
LEAT_X_FLOAT(COLORS)

static leat_status convert(leat_kernel *k, void (*floats)(void *, int64_t, int64_t),
                           void (*doubles)(void *, int64_t, int64_t))
{
    pixels p = {.x = leat_kernel_in(k, 0)};
    const leat_shape *s = &p.x->shape;
    LEAT_REQUIRE(s->rank >= 1, INVALID_ARGUMENT, "input must be at least 1D%s",
                 leat_shape_show(s).s);
    LEAT_REQUIRE(s->dim[s->rank - 1] == 3, FAILED_PRECONDITION,
                 "input must have 3 channels but input only has %lld channels.",
                 (long long)s->dim[s->rank - 1]);
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, s, &p.y));
    leat_kernel_for(k, p.x->count / 3, 5, p.x->dtype == LEAT_DOUBLE ? doubles : floats, &p);
    return NULL;
}

static leat_status to_hsv_run(leat_kernel *k)
{
    return convert(k, to_hsv_float, to_hsv_double);
}

static leat_status to_rgb_run(leat_kernel *k)
{
    return convert(k, to_rgb_float, to_rgb_double);
}

/* ---- AdjustHue, AdjustSaturation ---- */

/* A hue of [0, 6), from any number. Numbers near the range are changed as TensorFlow changes them,
 * in steps of 6. */
static inline float wrap_hue(float h)
{
    if (!(fabsf(h) < 600))
        h = fmodf(h, 6); /* NaN if h is not finite */
    while (h < 0)
        h += 6;
    while (h >= 6)
        h -= 6;
    return h;
}

static inline void adjust_hue(const float *x, float by, float *y)
{
    const float r = x[0], g = x[1], b = x[2];
    float low, mid, high, h = 0;
    int part; /* the sixth of the circle that the hue is in */
    if (r < g) {
        part = b < r ? 1 : b > g ? 3 : 2;
        low = b < r ? b : r;
        mid = b < r ? r : b > g ? g : b;
        high = b > g && !(b < r) ? b : g;
    } else {
        part = b < g ? 0 : b > r ? 4 : 5;
        low = b < g ? b : g;
        mid = b < g ? g : b > r ? r : b;
        high = b > r && !(b < g) ? b : r;
    }
    if (high != low) {
        const float ratio = (mid - low) / (high - low);
        h = (float)part + (part % 2 == 0 ? ratio : 1 - ratio);
    }
    h = wrap_hue(h + by * 6);
    part = h >= 0 && h < 6 ? (int)h : 5;
    const float ratio = h - (float)part;
    mid = low + (part % 2 == 0 ? ratio : 1 - ratio) * (high - low);
    y[0] = part == 0 || part == 5 ? high : part == 1 || part == 4 ? mid : low;
    y[1] = part == 1 || part == 2 ? high : part == 0 || part == 3 ? mid : low;
    y[2] = part == 3 || part == 4 ? high : part == 2 || part == 5 ? mid : low;
}

static inline void adjust_saturation(const float *x, float by, float *y)
{
    const float r = x[0], g = x[1], b = x[2];
    const float gb = g < b ? b : g, v = r < gb ? gb : r;
    const float low = b < g ? b : g, range = v - (low < r ? low : r);
    const float norm = 1.0f / (6.0f * range);
    float s = v > 0 ? range / v : 0, h;
    if (r == v)
        h = norm * (g - b);
    else if (g == v)
        h = (float)(norm * (b - r) + 2.0 / 6.0);
    else
        h = (float)(norm * (r - g) + 4.0 / 6.0);
    if (range <= 0)
        h = 0;
    if (h < 0)
        h = h + 1;
    s = s * by;
    s = 0 < s ? s : 0;
    s = s < 1 ? s : 1;
    const float c = s * v, m = v - c, sixths = h * 6;
    float high = 0, mid = 0; /* above m */
    const int part = sixths >= 0 && sixths < 6 ? (int)sixths : -1;
    if (part >= 0) {
        float turn = sixths; /* in (0, 2] */
        while (turn <= 0)
            turn += 2.0f;
        while (turn >= 2.0f)
            turn -= 2.0f;
        high = c;
        mid = c * (1 - fabsf(turn - 1));
    }
    y[0] = (part == 0 || part == 5 ? high : part == 1 || part == 4 ? mid : 0) + m;
    y[1] = (part == 1 || part == 2 ? high : part == 0 || part == 3 ? mid : 0) + m;
    y[2] = (part == 3 || part == 4 ? high : part == 2 || part == 5 ? mid : 0) + m;
}

static void hue_part(void *arg, int64_t begin, int64_t end)
{
    const pixels *p = arg;
    for (int64_t i = begin; i < end; i++)
        adjust_hue(AT(const float, p->x) + 3 * i, p->by, AT(float, p->y) + 3 * i);
}

static void saturation_part(void *arg, int64_t begin, int64_t end)
{
    const pixels *p = arg;
    for (int64_t i = begin; i < end; i++)
        adjust_saturation(AT(const float, p->x) + 3 * i, p->by, AT(float, p->y) + 3 * i);
}

static leat_status adjust(leat_kernel *k, const char *what, void (*part)(void *, int64_t, int64_t))
{
    const leat_tensor *by = leat_kernel_in(k, 1);
    pixels p = {.x = leat_kernel_in(k, 0)};
    const leat_shape *s = &p.x->shape;
    LEAT_REQUIRE(s->rank >= 3, INVALID_ARGUMENT, "input must be at least 3-D, got shape%s",
                 leat_shape_show(s).s);
    LEAT_REQUIRE(by->shape.rank == 0, INVALID_ARGUMENT, "%s must be scalar: %s", what,
                 leat_shape_show(&by->shape).s);
    LEAT_REQUIRE(s->dim[s->rank - 1] == 3, INVALID_ARGUMENT,
                 "input must have 3 channels but instead has %lld channels.",
                 (long long)s->dim[s->rank - 1]);
    p.by = AT(float, by)[0];
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, s, &p.y));
    leat_kernel_for(k, p.x->count / 3, 10, part, &p);
    return NULL;
}

static leat_status hue_run(leat_kernel *k)
{
    return adjust(k, "delta", hue_part);
}

static leat_status saturation_run(leat_kernel *k)
{
    return adjust(k, "scale", saturation_part);
}

/* ---- AdjustContrast, AdjustContrastv2: the distance of each channel from its mean ---- */

typedef struct contrast {
    const leat_tensor *x;
    leat_tensor *y;
    float *means;                   /* (images, channels) */
    int64_t images, size, channels; /* size: pixels of an image */
    float factor, least, most;
} contrast;

static leat_status contrast_begin(leat_kernel *k, contrast *c)
{
    static const char *const names[] = {"contrast_factor", "min_value", "max_value"};
    float *to[] = {&c->factor, &c->least, &c->most};
    c->x = leat_kernel_in(k, 0);
    const leat_shape *s = &c->x->shape;
    LEAT_REQUIRE(s->rank >= 3, INVALID_ARGUMENT, "input must be at least 3-D, got shape%s",
                 leat_shape_show(s).s);
    for (int i = 1; i < leat_kernel_inputs(k); i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "%s must be scalar: %s", names[i - 1],
                     leat_shape_show(&t->shape).s);
        *to[i - 1] = AT(float, t)[0];
    }
    LEAT_TRY(leat_kernel_out(k, 0, s, &c->y));
    if (c->y->count == 0)
        return NULL;
    leat_tensor *means;
    c->size = s->dim[s->rank - 3] * s->dim[s->rank - 2];
    c->channels = s->dim[s->rank - 1];
    c->images = c->x->count / (c->size * c->channels);
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &(leat_shape){2, {c->images, c->channels}}, &means));
    c->means = AT(float, means);
    return NULL;
}

/* The sums of the channels of an image, in y: the second half of the pixels is added to the first
 * again and again, which adds in the order that TensorFlow adds, many channels at a time. */
static void fold(const float *x, float *y, int64_t size, int64_t channels)
{
    int64_t right = size / 2, left = size - right;
    const float *half = x + left * channels;
    LEAT_SIMD
    for (int64_t i = 0; i < right * channels; i++)
        y[i] = half[i] + x[i];
    if (left > right)
        memcpy(y + right * channels, x + right * channels, (size_t)channels * sizeof(*y));
    while (left > 1) {
        const int64_t n = left / 2;
        left -= n;
        half = y + left * channels;
        LEAT_SIMD
        for (int64_t i = 0; i < n * channels; i++)
            y[i] += half[i];
    }
}

enum { REPEAT = 16, WIDEST = 16 }; /* means are repeated for up to WIDEST channels */

static void contrast2_part(void *arg, int64_t begin, int64_t end)
{
    const contrast *c = arg;
    const int64_t channels = c->channels, n = c->size * channels;
    const float scale = 1.0f / (float)c->size, factor = c->factor;
    for (int64_t i = begin; i < end; i++) {
        const float *x = AT(const float, c->x) + i * n;
        float *y = AT(float, c->y) + i * n, *mean = c->means + i * channels;
        float repeated[REPEAT * WIDEST];
        fold(x, y, c->size, channels);
        for (int64_t j = 0; j < channels; j++)
            mean[j] = y[j] * scale;
        int64_t e = 0;
        if (channels <= WIDEST) {
            const int64_t row = REPEAT * channels;
            for (int64_t j = 0; j < row; j++)
                repeated[j] = j < channels ? mean[j] : repeated[j - channels];
            for (; e + row <= n; e += row)
                LEAT_SIMD
            for (int64_t j = 0; j < row; j++)
                y[e + j] = repeated[j] + factor * (x[e + j] - repeated[j]);
        }
        for (; e < n; e += channels)
            LEAT_SIMD
        for (int64_t j = 0; j < channels; j++)
            y[e + j] = mean[j] + factor * (x[e + j] - mean[j]);
    }
}

static leat_status contrast2_run(leat_kernel *k)
{
    contrast c = {0};
    LEAT_TRY(contrast_begin(k, &c));
    if (c.y->count > 0)
        leat_kernel_for(k, c.images, 0.7 * (double)(c.size * c.channels), contrast2_part, &c);
    return NULL;
}

#define CONTRAST(dtype, T)                                                                         \
    static void contrast_##T(void *arg, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const contrast *c = arg;                                                                   \
        const int64_t channels = c->channels, n = c->size * channels;                              \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const T *x = AT(const T, c->x) + i * n;                                                \
            float *y = AT(float, c->y) + i * n, *mean = c->means + i * channels;                   \
            memset(mean, 0, (size_t)channels * sizeof(*mean));                                     \
            for (int64_t e = 0; e < n; e += channels)                                              \
                for (int64_t j = 0; j < channels; j++)                                             \
                    mean[j] += (float)x[e + j];                                                    \
            for (int64_t j = 0; j < channels; j++)                                                 \
                mean[j] /= (float)c->size;                                                         \
            for (int64_t e = 0; e < n; e += channels)                                              \
                for (int64_t j = 0; j < channels; j++) {                                           \
                    float v = ((float)x[e + j] - mean[j]) * c->factor + mean[j];                   \
                    v = c->most < v ? c->most : v;                                                 \
                    y[e + j] = v < c->least ? c->least : v;                                        \
                }                                                                                  \
        }                                                                                          \
    }
LEAT_X_IMAGE(CONTRAST)

static leat_status contrast_run(leat_kernel *k)
{
    contrast c = {0};
    LEAT_TRY(contrast_begin(k, &c));
    static void (*const parts[])(void *, int64_t, int64_t) = {
#define ENTRY(dtype, T) [LEAT_##dtype] = contrast_##T,
        LEAT_X_IMAGE(ENTRY)};
    if (c.y->count > 0)
        leat_kernel_for(k, c.images, 2 * (double)(c.size * c.channels), parts[c.x->dtype], &c);
    return NULL;
}

const leat_kernel_def leat_cpu_image_color[] = {
    {.op = "RGBToHSV", .where = {{"T", LEAT_ROW_FLOAT}}, .run = to_hsv_run},
    {.op = "HSVToRGB", .where = {{"T", LEAT_ROW_FLOAT}}, .run = to_rgb_run},
    {.op = "AdjustContrast",
     .where = {{"T", LEAT_TYPES_IMAGE & ~(LEAT_T(INT64) | LEAT_T(UINT16))}},
     .run = contrast_run},
    {.op = "AdjustContrastv2", .where = {{"T", LEAT_T(FLOAT)}}, .run = contrast2_run},
    {.op = "AdjustHue", .where = {{"T", LEAT_T(FLOAT)}}, .run = hue_run},
    {.op = "AdjustSaturation", .where = {{"T", LEAT_T(FLOAT)}}, .run = saturation_run},
    {0},
};
