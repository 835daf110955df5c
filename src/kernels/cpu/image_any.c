/* image_any.c -- DecodeImage, TensorFlow 2's op for files of all formats: it finds the format, and
 * converts the pixels to its dtype as tf.image.convert_image_dtype does. */
#include <limits.h>

#include "io/image.h"
#include "kernels/cpu/cpu.h"

typedef struct decoding {
    leat_kernel *k;
    leat_dtype dtype; /* of the output */
    bool expand;      /* GIF: all frames, else the first */
    leat_shape shape; /* of the output */
    leat_tensor *y;   /* what was decoded: the output, or memory of this run */
} decoding;

static leat_status alloc(void *arg, const leat_image_info *size, void **pixels_out)
{
    decoding *d = arg;
    const leat_dtype t = size->bits == 16 ? LEAT_UINT16 : LEAT_UINT8;
    const bool gif = size->format == LEAT_IMAGE_GIF;
    const leat_shape frames = leat_shape(size->frames, size->height, size->width, size->channels);
    const leat_shape one = leat_shape(size->height, size->width, size->channels);
    d->shape = gif && d->expand ? frames : one;
    if (t == d->dtype && (!gif || d->expand || size->frames == 1))
        LEAT_TRY(leat_kernel_out(d->k, 0, &d->shape, &d->y));
    else
        LEAT_TRY(leat_kernel_temp(d->k, t, gif ? &frames : &one, &d->y));
    *pixels_out = d->y->data;
    return NULL;
}

static leat_status check(void *arg)
{
    return leat_kernel_check(((decoding *)arg)->k);
}

/* Values of 8 bits become values of 16 by a factor of 256, and floats from 0 to 1. */
static leat_status convert(const decoding *d)
{
    leat_tensor *y;
    if (d->y->dtype == d->dtype && leat_shape_equal(&d->y->shape, &d->shape))
        return NULL;
    LEAT_TRY(leat_kernel_out(d->k, 0, &d->shape, &y));
    const bool wide = d->y->dtype == LEAT_UINT16;
    const float scale = 1.0f / (wide ? 65535.0f : 255.0f);
    for (int64_t i = 0; i < y->count; i++)
        if (d->dtype == LEAT_UINT8)
            AT(uint8_t, y)[i] = AT(uint8_t, d->y)[i];
        else if (d->dtype == LEAT_UINT16)
            AT(uint16_t, y)[i] = (uint16_t)(AT(uint8_t, d->y)[i] * 256);
        else
            AT(float, y)[i] = (float)(wide ? AT(uint16_t, d->y)[i] : AT(uint8_t, d->y)[i]) * scale;
    return NULL;
}

static leat_status decode(decoding *d, const leat_string *x, int channels)
{
    const leat_image_sink to = {alloc, check, d};
    leat_jpeg_options o = LEAT_JPEG_OPTIONS;
    o.channels = channels;
    switch (leat_image_format_of(x->data, x->size)) {
    case LEAT_IMAGE_PNG:
        return leat_png_decode(x->data, x->size, channels, d->dtype == LEAT_UINT8 ? 8 : 16, &to);
    case LEAT_IMAGE_JPEG:
        LEAT_REQUIRE(channels != 4, INVALID_ARGUMENT,
                     "`channels` must be 0, 1 or 3 for JPEG, but got 4");
        return leat_jpeg_decode(x->data, x->size, &o, &to);
    case LEAT_IMAGE_GIF:
        LEAT_REQUIRE(channels == 0 || channels == 3, INVALID_ARGUMENT,
                     "channels must be 0 or 3 for GIF, got %d", channels);
        return leat_gif_decode(x->data, x->size, &to);
    case LEAT_IMAGE_BMP:
        return leat_bmp_decode(x->data, x->size, channels, &to);
    default:
        return leat_error(INVALID_ARGUMENT,
                          "Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
    }
}

static leat_status decode_image(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *x = leat_kernel_in(k, 0);
    const int64_t channels = leat_node_int(n, "channels");
    decoding d = {.k = k,
                  .dtype = leat_kernel_out_dtype(k, 0),
                  .expand = leat_node_bool(n, "expand_animations")};
    LEAT_REQUIRE(channels == 0 || channels == 1 || channels == 3 || channels == 4, INVALID_ARGUMENT,
                 "`channels` must be 0, 1, 3 or 4 but got %lld", (long long)channels);
    LEAT_REQUIRE(x->shape.rank == 0, INVALID_ARGUMENT, "`contents` must be scalar but got shape %s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(AT(leat_string, x)->size <= INT_MAX, INVALID_ARGUMENT,
                 "Input contents are too large for int: %zu", AT(leat_string, x)->size);
    LEAT_TRY(decode(&d, x->data, (int)channels));
    return convert(&d);
}

const leat_kernel_def leat_cpu_image_any[] = {
    {.op = "DecodeImage", .run = decode_image, .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
