/* image_decode.c -- DecodePng, DecodeJpeg, DecodeAndCropJpeg, DecodeGif, DecodeBmp and
 * ExtractJpegShape. The first four decode PNG, JPEG and GIF alike, whatever their names say; the
 * name decides about the attributes and the rank of the image. */
#include <limits.h>

#include "core/strbuf.h"
#include "io/image.h"
#include "kernels/cpu/cpu.h"

typedef struct decoder {
    bool frames; /* DecodeGif: all images are batches of frames */
    int channels, bits;
    leat_jpeg_options jpeg;
} decoder;

/* ---- Attributes ---- */
static leat_status read_channels(const leat_node *n, decoder *d)
{
    const int64_t c = leat_node_int(n, "channels");
    LEAT_REQUIRE(c == 0 || c == 1 || c == 3 || c == 4, INVALID_ARGUMENT,
                 "channels must be 0, 1, 3, or 4, got %lld", (long long)c);
    d->channels = d->jpeg.channels = (int)c;
    return NULL;
}

static leat_status init_png(const leat_node *n, void *state)
{
    decoder *d = state;
    *d = (decoder){.bits = leat_node_type(n, "dtype") == LEAT_UINT16 ? 16 : 8,
                   .jpeg = LEAT_JPEG_OPTIONS};
    return read_channels(n, d);
}

static leat_status init_gif(const leat_node *n, void *state)
{
    *(decoder *)state =
        (decoder){.frames = true, .channels = 3, .bits = 8, .jpeg = LEAT_JPEG_OPTIONS};
    ((decoder *)state)->jpeg.channels = 3;
    return NULL;
}

static leat_status init_jpeg(const leat_node *n, void *state)
{
    decoder *d = state;
    const char *dct = leat_node_string(n, "dct_method");
    const int64_t ratio = leat_node_int(n, "ratio");
    *d = (decoder){.bits = 8};
    LEAT_TRY(read_channels(n, d));
    LEAT_REQUIRE(ratio == 1 || ratio == 2 || ratio == 4 || ratio == 8, INVALID_ARGUMENT,
                 "ratio must be 1, 2, 4, or 8, got %lld", (long long)ratio);
    d->jpeg.ratio = (int)ratio;
    d->jpeg.fancy_upscaling = leat_node_bool(n, "fancy_upscaling");
    d->jpeg.try_recover_truncated = leat_node_bool(n, "try_recover_truncated");
    d->jpeg.acceptable_fraction = (float)leat_node_float(n, "acceptable_fraction");
    d->jpeg.accurate = strcmp(dct, "INTEGER_ACCURATE") == 0;
    LEAT_REQUIRE(d->jpeg.accurate || !*dct || strcmp(dct, "INTEGER_FAST") == 0, INVALID_ARGUMENT,
                 "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
    return NULL;
}

static leat_status init_crop(const leat_node *n, void *state)
{
    LEAT_TRY(init_jpeg(n, state));
    ((decoder *)state)->jpeg.crop = true;
    return NULL;
}

static leat_status init_bmp(const leat_node *n, void *state)
{
    *(decoder *)state = (decoder){.bits = 8};
    return read_channels(n, state);
}

/* ---- Where the pixels go ---- */
static leat_status alloc(void *arg, const leat_image_info *size, void **pixels_out)
{
    leat_kernel *k = arg;
    const decoder *d = leat_kernel_state(k);
    LEAT_REQUIRE(d->frames || size->frames == 1, INVALID_ARGUMENT,
                 "Got %lld frames, but animated gifs can only be decoded by tf.image.decode_gif or "
                 "tf.image.decode_image",
                 (long long)size->frames);
    const leat_shape shape =
        d->frames ? leat_shape(size->frames, size->height, size->width, size->channels)
                  : leat_shape(size->height, size->width, size->channels);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    *pixels_out = y->data;
    return NULL;
}

static leat_status check(void *arg)
{
    return leat_kernel_check(arg);
}

static leat_image_sink sink_of(leat_kernel *k)
{
    return (leat_image_sink){alloc, check, k};
}

/* ---- Kernels ---- */
static leat_status contents_of(leat_kernel *k, const leat_string **out)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    LEAT_REQUIRE(x->shape.rank == 0, INVALID_ARGUMENT, "contents must be scalar, got shape %s",
                 leat_shape_show(&x->shape).s);
    *out = x->data;
    return NULL;
}

static leat_status unexpected(const leat_string *x)
{
    leat_strbuf b = {0};
    leat_strbuf_puts(&b, x->size ? "unknown format starting with '" : "empty file");
    if (x->size) {
        leat_strbuf_add_shown(&b, x->data, x->size < 16 ? x->size : 16);
        leat_strbuf_puts(&b, "'");
    }
    leat_status s = leat_error(INVALID_ARGUMENT, "Expected image (JPEG, PNG, or GIF), got %s", b.s);
    leat_strbuf_release(&b);
    return s;
}

static leat_status decode_jpeg(leat_kernel *k, const leat_string *x)
{
    leat_jpeg_options o = ((const decoder *)leat_kernel_state(k))->jpeg;
    LEAT_REQUIRE(o.channels != 4, INVALID_ARGUMENT, "channels must be 0, 1, or 3 for JPEG, got 4");
    if (o.crop) {
        const leat_tensor *window = leat_kernel_in(k, 1);
        LEAT_REQUIRE(window->shape.rank == 1, INVALID_ARGUMENT,
                     "crop_window must be 1-D, got shape %s", leat_shape_show(&window->shape).s);
        LEAT_REQUIRE(window->count == 4, INVALID_ARGUMENT, "crop_size must have four elements %s",
                     leat_shape_show(&window->shape).s);
        const int32_t *v = window->data;
        o.crop_y = v[0];
        o.crop_x = v[1];
        o.crop_height = v[2];
        o.crop_width = v[3];
    }
    const leat_image_sink to = sink_of(k);
    return leat_jpeg_decode(x->data, x->size, &o, &to);
}

static leat_status decode_image(leat_kernel *k)
{
    const decoder *d = leat_kernel_state(k);
    const leat_image_sink to = sink_of(k);
    const leat_string *x = NULL;
    LEAT_TRY(contents_of(k, &x));
    const leat_image_format f = leat_image_format_of(x->data, x->size);
    if (f == LEAT_IMAGE_UNKNOWN || f == LEAT_IMAGE_BMP)
        return unexpected(x);
    LEAT_REQUIRE(x->size <= INT_MAX, INVALID_ARGUMENT, "%s contents are too large for int: %zu",
                 leat_image_format_name(f), x->size);
    LEAT_REQUIRE(f == LEAT_IMAGE_PNG || d->bits == 8, INVALID_ARGUMENT,
                 "%s does not support uint16 output", leat_image_format_name(f));
    if (f == LEAT_IMAGE_JPEG)
        return decode_jpeg(k, x);
    if (f == LEAT_IMAGE_PNG)
        return leat_png_decode(x->data, x->size, d->channels, d->bits, &to);
    LEAT_REQUIRE(d->channels == 0 || d->channels == 3, INVALID_ARGUMENT,
                 "channels must be 0 or 3 for GIF, got %d", d->channels);
    return leat_gif_decode(x->data, x->size, &to);
}

static leat_status decode_bmp(leat_kernel *k)
{
    const decoder *d = leat_kernel_state(k);
    const leat_image_sink to = sink_of(k);
    const leat_string *x = NULL;
    LEAT_TRY(contents_of(k, &x));
    return leat_bmp_decode(x->data, x->size, d->channels, &to);
}

static leat_status extract_jpeg_shape(leat_kernel *k)
{
    const leat_string *x = NULL;
    const leat_shape three = leat_shape(3);
    leat_image_info info;
    leat_tensor *y;
    LEAT_TRY(contents_of(k, &x));
    LEAT_REQUIRE(x->size <= INT_MAX, INVALID_ARGUMENT, "JPEG contents are too large for int: %zu",
                 x->size);
    LEAT_TRY(leat_jpeg_inspect(x->data, x->size, &info));
    LEAT_TRY(leat_kernel_out(k, 0, &three, &y));
    const int64_t dims[] = {info.height, info.width, info.channels};
    for (int i = 0; i < 3; i++)
        if (y->dtype == LEAT_INT32)
            AT(int32_t, y)[i] = (int32_t)dims[i];
        else
            AT(int64_t, y)[i] = dims[i];
    return NULL;
}

#define DECODER(name, run_, init_)                                                                 \
    {                                                                                              \
        .op = name, .run = run_, .state_size = sizeof(decoder), .init = init_,                     \
        .flags = LEAT_KERNEL_EXPENSIVE                                                             \
    }

const leat_kernel_def leat_cpu_image_decode[] = {
    DECODER("DecodePng", decode_image, init_png),
    DECODER("DecodeJpeg", decode_image, init_jpeg),
    DECODER("DecodeAndCropJpeg", decode_image, init_crop),
    DECODER("DecodeGif", decode_image, init_gif),
    DECODER("DecodeBmp", decode_bmp, init_bmp),
    {.op = "ExtractJpegShape", .run = extract_jpeg_shape},
    {0},
};
