/* image_area.c -- ResizeArea: an output pixel is the mean of the input pixels that it covers, each
 * weighted by the part that is covered. QuantizedResizeBilinear: bilinear interpolation in
 * integers. */
#include "kernels/cpu/image_resize.h"

/* The input pixels [begin, end) that an output pixel covers, some of which may lie outside of the
 * image and then count as the pixel at its edge. */
typedef struct cover {
    int32_t begin, end;
    float first, last; /* the parts that are covered of pixels begin and end - 1 */
} cover;

typedef struct area {
    leat_resize r;
    const cover *columns, *rows;
    float scale; /* of a sum of pixels */
} area;

/* How much of pixel v lies in [from, to). */
static float part_of(int64_t v, float from, float to, float scale)
{
    if ((float)v < from)
        return (float)(v + 1) > to ? scale : (float)(v + 1) - from;
    return (float)(v + 1) > to ? to - (float)v : 1.0f;
}

static leat_status find_covers(leat_kernel *k, int64_t out, float scale, const cover **all)
{
    cover *v;
    LEAT_TRY(leat_resize_temp(k, out, sizeof(*v), &v));
    for (int64_t i = 0; i < out; i++) {
        const float from = (float)i * scale, to = (float)(i + 1) * scale;
        const int64_t begin = (int64_t)floorf(from), end = (int64_t)ceilf(to);
        v[i] = (cover){.begin = (int32_t)begin,
                       .end = (int32_t)end,
                       .first = part_of(begin, from, to, scale),
                       .last = part_of(end - 1, from, to, scale)};
    }
    *all = v;
    return NULL;
}

enum { CHANNELS = 64 }; /* done at a time */

/* n <= CHANNELS channels of one output pixel; image points to the first of them. */
#define PIXEL(dtype, T)                                                                            \
    static void pixel_##T(const area *a, const T *image, const cover *v, const cover *h, int n,    \
                          float *y)                                                                \
    {                                                                                              \
        const leat_resize *r = &a->r;                                                              \
        float sum[CHANNELS] = {0}, across[CHANNELS];                                               \
        for (int64_t i = v->begin; i < v->end; i++) {                                              \
            const T *row = image + leat_resize_bound(i, r->in_height) * r->in_width * r->channels; \
            const float part = i == v->begin ? v->first : i == v->end - 1 ? v->last : 1.0f;        \
            const T *p = row + leat_resize_bound(h->begin, r->in_width) * r->channels;             \
            for (int c = 0; c < n; c++)                                                            \
                across[c] = (float)p[c] * h->first;                                                \
            if (h->begin + 1 != h->end) {                                                          \
                for (int64_t x = h->begin + 1; x < h->end - 1; x++) {                              \
                    p = row + leat_resize_bound(x, r->in_width) * r->channels;                     \
                    for (int c = 0; c < n; c++)                                                    \
                        across[c] += (float)p[c];                                                  \
                }                                                                                  \
                p = row + leat_resize_bound(h->end - 1, r->in_width) * r->channels;                \
                for (int c = 0; c < n; c++)                                                        \
                    across[c] += (float)p[c] * h->last;                                            \
            }                                                                                      \
            for (int c = 0; c < n; c++)                                                            \
                sum[c] += across[c] * part;                                                        \
        }                                                                                          \
        for (int c = 0; c < n; c++)                                                                \
            y[c] = sum[c] * a->scale;                                                              \
    }                                                                                              \
    static void row_##T(const area *a, int64_t i)                                                  \
    {                                                                                              \
        const leat_resize *r = &a->r;                                                              \
        const T *image =                                                                           \
            AT(const T, r->x) + i / r->out_height * r->in_height * r->in_width * r->channels;      \
        float *y = AT(float, r->y) + i * r->out_width * r->channels;                               \
        const cover *v = &a->rows[i % r->out_height];                                              \
        for (int64_t x = 0; x < r->out_width; x++, y += r->channels) {                             \
            if (r->channels == 3) {                                                                \
                pixel_##T(a, image, v, &a->columns[x], 3, y);                                      \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t c = 0; c < r->channels; c += CHANNELS) {                                  \
                const int64_t left = r->channels - c;                                              \
                pixel_##T(a, image + c, v, &a->columns[x], left < CHANNELS ? (int)left : CHANNELS, \
                          y + c);                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
LEAT_X_IMAGE(PIXEL)

static void area_part(void *arg, int64_t begin, int64_t end)
{
    const area *a = arg;
    for (int64_t i = begin; i < end; i++)
        switch (a->r.x->dtype) {
#define CASE(dtype, T)                                                                             \
    case LEAT_##dtype:                                                                             \
        row_##T(a, i);                                                                             \
        break;
            LEAT_X_IMAGE(CASE)
        default:
            break;
        }
}

static leat_status area_run(leat_kernel *k)
{
    area a = {0};
    leat_resize *r = &a.r;
    LEAT_TRY(leat_resize_begin(k, r));
    if (r->y->count == 0)
        return NULL;
    LEAT_TRY(find_covers(k, r->out_width, r->width_scale, &a.columns));
    LEAT_TRY(find_covers(k, r->out_height, r->height_scale, &a.rows));
    a.scale = (float)(1.0 / (r->height_scale * r->width_scale));
    const double covered = (double)(r->height_scale + 1) * (double)(r->width_scale + 1);
    leat_kernel_for(k, r->batch * r->out_height, covered * (double)(r->out_width * r->channels),
                    area_part, &a);
    return NULL;
}

/* ---- QuantizedResizeBilinear: weights are fractions of 2^bits ---- */

typedef struct quantized {
    leat_resize r;
    const leat_lerp *columns, *rows;
} quantized;

static inline uint8_t lerp_quint8(const uint8_t v[4], float x, float y)
{
    const int16_t across = (int16_t)(x * 128), down = (int16_t)(y * 128);
    const int16_t top = (int16_t)(v[0] * 128 + (v[1] - v[0]) * across);
    const int16_t bottom = (int16_t)(v[2] * 128 + (v[3] - v[2]) * across);
    const int16_t out = (int16_t)(top + (bottom - top) / 128 * down);
    return (uint8_t)((out + 64) / 128);
}

/* TensorFlow reads a qint32 through a float. */
static inline int32_t lerp_qint32(const int32_t v[4], float x, float y)
{
    const int64_t one = INT64_C(1) << 30;
    const int64_t across = (int64_t)(x * (float)one), down = (int64_t)(y * (float)one);
    const int64_t p[4] = {(int64_t)(float)v[0], (int64_t)(float)v[1], (int64_t)(float)v[2],
                          (int64_t)(float)v[3]};
    const int64_t top = p[0] * one + (p[1] - p[0]) * across;
    const int64_t bottom = p[2] * one + (p[3] - p[2]) * across;
    const int64_t out = top + (bottom - top) / one * down;
    return (int32_t)((out + one / 2) / one);
}

static inline float lerp_float(const float v[4], float x, float y)
{
    const float top = v[0] + (v[1] - v[0]) * x, bottom = v[2] + (v[3] - v[2]) * x;
    return top + (bottom - top) * y;
}

#define QUANTIZED(name, T)                                                                         \
    static void quantized_##name(void *arg, int64_t begin, int64_t end)                            \
    {                                                                                              \
        const quantized *q = arg;                                                                  \
        const leat_resize *r = &q->r;                                                              \
        const int64_t channels = r->channels, row = r->in_width * channels;                        \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const leat_lerp v = q->rows[i % r->out_height];                                        \
            const T *image = AT(const T, r->x) + i / r->out_height * r->in_height * row;           \
            const T *top = image + v.lower * row, *bottom = image + v.upper * row;                 \
            T *y = AT(T, r->y) + i * r->out_width * channels;                                      \
            for (int64_t x = 0; x < r->out_width; x++, y += channels) {                            \
                const leat_lerp h = q->columns[x];                                                 \
                for (int64_t c = 0; c < channels; c++) {                                           \
                    const int64_t l = h.lower * channels + c, m = h.upper * channels + c;          \
                    const T p[4] = {top[l], top[m], bottom[l], bottom[m]};                         \
                    y[c] = lerp_##name(p, h.weight, v.weight);                                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
QUANTIZED(quint8, uint8_t)
QUANTIZED(qint32, int32_t)
QUANTIZED(float, float)

static leat_status quantized_run(leat_kernel *k)
{
    quantized q = {0};
    leat_resize *r = &q.r;
    LEAT_TRY(leat_resize_begin(k, r));
    for (int i = 2; i < 4; i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        leat_tensor *out;
        LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT, "%s must have one element, got shape %s",
                     i == 2 ? "min" : "max", leat_shape_show(&t->shape).s);
        LEAT_TRY(leat_kernel_out(k, i - 1, &(leat_shape){0}, &out));
        AT(float, out)[0] = AT(float, t)[0];
    }
    if (r->y->count == 0)
        return NULL;
    if (r->in_height == r->out_height && r->in_width == r->out_width) {
        memcpy(r->y->data, r->x->data, (size_t)r->y->count * leat_dtype_size(r->y->dtype));
        return NULL;
    }
    leat_lerp *columns, *rows;
    LEAT_TRY(leat_resize_lerps(k, r, r->in_width, r->out_width, r->width_scale, &columns));
    LEAT_TRY(leat_resize_lerps(k, r, r->in_height, r->out_height, r->height_scale, &rows));
    q.columns = columns;
    q.rows = rows;
    leat_kernel_for(k, r->batch * r->out_height, 2 * (double)(r->out_width * r->channels),
                    r->x->dtype == LEAT_QUINT8   ? quantized_quint8
                    : r->x->dtype == LEAT_QINT32 ? quantized_qint32
                                                 : quantized_float,
                    &q);
    return NULL;
}

const leat_kernel_def leat_cpu_image_area[] = {
    {.op = "ResizeArea",
     .where = {{"T", LEAT_TYPES_IMAGE}},
     .run = area_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "QuantizedResizeBilinear",
     .where = {{"T", LEAT_T(QUINT8) | LEAT_T(QINT32) | LEAT_T(FLOAT)}},
     .run = quantized_run},
    {0},
};
