/* summary_media.c -- ImageSummary, AudioSummary and AudioSummaryV2: Summary messages with PNG and
 * WAV files in them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/half.h"
#include "io/image.h"
#include "io/wav.h"
#include "kernels/cpu/summary.h"

/* ---- Messages of several values ---- */
typedef struct values {
    Leat__Summary m;
    Leat__Summary__Value *v; /* `most` of them, of which m has m.n_value */
    Leat__Summary__Image *images;
    Leat__Summary__Audio *audios;
    char *tags; /* TAG_ROOM bytes more than the base tag for each */
    size_t tag_size;
} values;

enum { TAG_ROOM = 32 };

static void values_init(values *x, size_t most, const char *base)
{
    leat__summary__init(&x->m);
    x->v = leat_new_array(Leat__Summary__Value, most + 1);
    x->m.value = leat_new_array(Leat__Summary__Value *, most + 1);
    x->images = leat_new_array(Leat__Summary__Image, most + 1);
    x->audios = leat_new_array(Leat__Summary__Audio, most + 1);
    x->tag_size = strlen(base) + TAG_ROOM;
    x->tags = leat_xcalloc(most + 1, x->tag_size);
}

static void values_release(values *x)
{
    for (size_t i = 0; i < x->m.n_value; i++) {
        free(x->images[i].encoded_image_string.data);
        free(x->audios[i].encoded_audio_string.data);
    }
    free(x->v);
    free(x->m.value);
    free(x->images);
    free(x->audios);
    free(x->tags);
}

/* The next value, whose tag is "base/image", or "base/image/2" if several may come. */
static Leat__Summary__Value *next_value(values *x, const char *base, const char *what, bool several)
{
    const size_t i = x->m.n_value++;
    Leat__Summary__Value *v = x->m.value[i] = &x->v[i];
    leat__summary__value__init(v);
    v->tag = x->tags + i * x->tag_size;
    snprintf(v->tag, x->tag_size, several ? "%s/%s/%zu" : "%s/%s", base, what, i);
    return v;
}

/* ---- Images ---- */
typedef struct pictures {
    const leat_tensor *x;
    int64_t pixels; /* of one image */
    int depth;
    const uint8_t *bad_color;
    uint8_t *bytes; /* one image; NULL: those of x are used */
} pictures;

static bool finite_pixel(const pictures *p, int64_t pixel)
{
    for (int c = 0; c < p->depth; c++)
        if (!isfinite(leat_tensor_at(p->x, pixel * p->depth + c)))
            return false;
    return true;
}

/* v * scale + offset, rounded as arithmetic of the dtype does. */
static uint8_t scaled(leat_dtype t, double v, float scale, float offset)
{
    if (t == LEAT_DOUBLE)
        return (uint8_t)(v * scale + offset);
    float product = (float)v * scale;
    if (t == LEAT_HALF)
        product = leat_half_to_float(leat_half_from_float(product));
    float sum = product + offset;
    if (t == LEAT_HALF)
        sum = leat_half_to_float(leat_half_from_float(sum));
    return (uint8_t)sum;
}

/* Scales an image to bytes: values from 0 on to [0, 255], others to [1, 255] with 0 at 128. */
static void scale_image(const pictures *p, int64_t image)
{
    const int64_t begin = image * p->pixels, end = begin + p->pixels;
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = begin; i < end; i++)
        for (int c = 0; finite_pixel(p, i) && c < p->depth; c++) {
            const float v = (float)leat_tensor_at(p->x, i * p->depth + c);
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
    const float top = least < 0 && -least > most ? -least : most;
    float scale = top < 1e-6f ? 0 : (least < 0 ? 127.0f : 255.0f) / top;
    if (p->x->dtype == LEAT_HALF)
        scale = leat_half_to_float(leat_half_from_float(scale));
    const float offset = least < 0 ? 128 : 0;
    uint8_t *to = p->bytes;
    for (int64_t i = begin; i < end; i++, to += p->depth) {
        const bool finite = finite_pixel(p, i);
        for (int c = 0; c < p->depth; c++)
            to[c] = finite
                        ? scaled(p->x->dtype, leat_tensor_at(p->x, i * p->depth + c), scale, offset)
                        : p->bad_color[c];
    }
}

static leat_status add_images(pictures *p, values *all, const char *base, int64_t most)
{
    const int64_t *dim = p->x->shape.dim;
    for (int64_t i = 0; i < most && i < dim[0]; i++) {
        Leat__Summary__Value *v = next_value(all, base, "image", most > 1);
        Leat__Summary__Image *m = &all->images[i];
        leat__summary__image__init(m);
        v->value_case = LEAT__SUMMARY__VALUE__VALUE_IMAGE;
        v->image = m;
        m->height = (int32_t)dim[1];
        m->width = (int32_t)dim[2];
        m->colorspace = p->depth;
        if (p->bytes)
            scale_image(p, i);
        const leat_picture picture = {
            .height = dim[1],
            .width = dim[2],
            .channels = p->depth,
            .bits = 8,
            .pixels = p->bytes ? p->bytes : (const uint8_t *)p->x->data + i * p->pixels * p->depth};
        LEAT_TRY(leat_png_encode(&picture, LEAT_PNG_DEFAULT, (void **)&m->encoded_image_string.data,
                                 &m->encoded_image_string.len));
    }
    return NULL;
}

static leat_status check_images(const leat_tensor *x, const leat_tensor *bad_color)
{
    const int64_t *dim = x->shape.dim;
    LEAT_REQUIRE(bad_color->dtype == LEAT_UINT8, INVALID_ARGUMENT,
                 "bad_color must be uint8, got %s", leat_dtype_name(bad_color->dtype));
    LEAT_REQUIRE(bad_color->shape.rank == 1, INVALID_ARGUMENT,
                 "bad_color must be a vector, got shape %s", leat_shape_show(&bad_color->shape).s);
    LEAT_REQUIRE(x->shape.rank == 4 && (dim[3] == 1 || dim[3] == 3 || dim[3] == 4),
                 INVALID_ARGUMENT, "Tensor must be 4-D with last dim 1, 3, or 4, not %s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(dim[0] <= INT_MAX && dim[1] <= INT_MAX && dim[2] <= INT_MAX &&
                     (dim[2] == 0 || dim[1] < (1 << 29) / dim[2]),
                 INVALID_ARGUMENT, "Tensor too large for summary %s", leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(dim[1] > 0 && dim[2] > 0, INVALID_ARGUMENT,
                 "input tensor must have non-zero dims. Found: [%lld, %lld, %lld, %lld].",
                 (long long)dim[0], (long long)dim[1], (long long)dim[2], (long long)dim[3]);
    LEAT_REQUIRE(x->dtype == LEAT_UINT8 || bad_color->count >= dim[3], INVALID_ARGUMENT,
                 "expected depth <= bad_color.size, got depth = %lld, bad_color.size = %lld",
                 (long long)dim[3], (long long)bad_color->count);
    return NULL;
}

leat_status leat_summary_images(leat_kernel *k, const char *tag, const leat_tensor *x, int64_t most,
                                const leat_tensor *bad_color)
{
    LEAT_REQUIRE(most <= INT_MAX, INVALID_ARGUMENT, "max_images must be < 2^31");
    LEAT_TRY(check_images(x, bad_color));
    pictures p = {.x = x,
                  .pixels = x->shape.dim[1] * x->shape.dim[2],
                  .depth = (int)x->shape.dim[3],
                  .bad_color = bad_color->data};
    const size_t size = (size_t)(p.pixels * p.depth);
    if (x->dtype != LEAT_UINT8 && !(p.bytes = malloc(size)))
        return leat_error(RESOURCE_EXHAUSTED, "no memory for an image of %zu bytes", size);
    values all = {0};
    values_init(&all, (size_t)(most < x->shape.dim[0] ? most : x->shape.dim[0]), tag);
    leat_status s = add_images(&p, &all, tag, most);
    if (!s)
        s = leat_summary_put(k, &all.m);
    values_release(&all);
    free(p.bytes);
    return s;
}

static leat_status image_summary(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *tag = leat_kernel_in(k, 0);
    LEAT_REQUIRE(tag->count == 1, INVALID_ARGUMENT, "Tags must be a scalar");
    return leat_summary_images(k, leat_summary_tag(tag, 0), leat_kernel_in(k, 1),
                               leat_node_int(n, "max_images"), leat_node_tensor(n, "bad_color"));
}

/* ---- Sounds ---- */
static leat_status add_audios(const leat_tensor *x, values *all, const char *base, int64_t most,
                              float rate)
{
    const int64_t frames = x->shape.dim[1], channels = x->shape.rank == 2 ? 1 : x->shape.dim[2];
    for (int64_t i = 0; i < most && i < x->shape.dim[0]; i++) {
        Leat__Summary__Value *v = next_value(all, base, "audio", most > 1);
        Leat__Summary__Audio *m = &all->audios[i];
        leat__summary__audio__init(m);
        v->value_case = LEAT__SUMMARY__VALUE__VALUE_AUDIO;
        v->audio = m;
        m->sample_rate = rate;
        m->num_channels = channels;
        m->length_frames = frames;
        m->content_type = "audio/wav";
        const long whole = lrintf(rate);
        LEAT_TRY(leat_wav_encode(AT(float, x) + i * frames * channels, whole ? whole : 1, channels,
                                 frames, (void **)&m->encoded_audio_string.data,
                                 &m->encoded_audio_string.len));
    }
    return NULL;
}

leat_status leat_summary_sounds(leat_kernel *k, const char *tag, const leat_tensor *x, int64_t most,
                                float rate)
{
    LEAT_REQUIRE(x->shape.rank == 2 || x->shape.rank == 3, INVALID_ARGUMENT,
                 "Tensor must be 3-D or 2-D, got: %s", leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(rate > 0, INVALID_ARGUMENT, "sample_rate must be > 0");
    values all = {0};
    values_init(&all, (size_t)(most < x->shape.dim[0] ? most : x->shape.dim[0]), tag);
    leat_status s = add_audios(x, &all, tag, most, rate);
    if (!s)
        s = leat_summary_put(k, &all.m);
    values_release(&all);
    return s;
}

static leat_status audio_summary(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *tag = leat_kernel_in(k, 0);
    LEAT_REQUIRE(tag->count == 1, INVALID_ARGUMENT, "Tag must be a scalar");
    float rate = (float)leat_node_float(n, "sample_rate");
    if (leat_kernel_inputs(k) > 2) {
        const leat_tensor *given = leat_kernel_in(k, 2);
        LEAT_REQUIRE(given->count == 1, INVALID_ARGUMENT, "sample_rate must be a scalar, got: %s",
                     leat_shape_show(&given->shape).s);
        rate = AT(float, given)[0];
    }
    return leat_summary_sounds(k, leat_summary_tag(tag, 0), leat_kernel_in(k, 1),
                               leat_node_int(n, "max_outputs"), rate);
}

const leat_kernel_def leat_cpu_summary_media[] = {
    {.op = "ImageSummary", .run = image_summary, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "AudioSummary", .run = audio_summary, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "AudioSummaryV2", .run = audio_summary, .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
