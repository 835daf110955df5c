/* image.c -- files of images for programs (leat/image.h): which format a file has, and the decoder
 * and encoder of that format. */
#include "io/image.h"

#include <string.h>

#include "core/buffer.h"

leat_image_format leat_image_format_of(const void *bytes, size_t size)
{
    static const struct {
        const char *begin;
        size_t n;
        leat_image_format format;
    } of[] = {{"\xff\xd8\xff", 3, LEAT_IMAGE_JPEG},
              {"\x89PNG\r\n\x1a\n", 8, LEAT_IMAGE_PNG},
              {"GIF8", 4, LEAT_IMAGE_GIF},
              {"BM", 2, LEAT_IMAGE_BMP}};
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        if (size >= of[i].n && memcmp(bytes, of[i].begin, of[i].n) == 0)
            return of[i].format;
    return LEAT_IMAGE_UNKNOWN;
}

const char *leat_image_format_name(leat_image_format f)
{
    static const char *const names[] = {"unknown", "PNG", "JPEG", "GIF", "BMP"};
    return (size_t)f < sizeof(names) / sizeof(*names) ? names[f] : names[0];
}

static leat_status unknown(size_t size)
{
    return leat_error(INVALID_ARGUMENT, "%zu bytes that are neither PNG, JPEG, GIF nor BMP", size);
}

leat_status leat_image_inspect(const void *bytes, size_t size, leat_image_info *info_out)
{
    LEAT_REQUIRE((bytes || !size) && info_out, INVALID_ARGUMENT,
                 "leat_image_inspect: bytes or info_out is NULL");
    switch (leat_image_format_of(bytes, size)) {
    case LEAT_IMAGE_PNG:
        return leat_png_inspect(bytes, size, info_out);
    case LEAT_IMAGE_JPEG:
        return leat_jpeg_inspect(bytes, size, info_out);
    case LEAT_IMAGE_GIF:
        return leat_gif_inspect(bytes, size, info_out);
    case LEAT_IMAGE_BMP:
        return leat_bmp_inspect(bytes, size, info_out);
    default:
        return unknown(size);
    }
}

/* ---- Decoding into a tensor ---- */
static leat_status alloc(void *arg, const leat_image_info *size, void **pixels_out)
{
    leat_tensor **image = arg;
    const leat_shape shape =
        size->format == LEAT_IMAGE_GIF
            ? leat_shape(size->frames, size->height, size->width, size->channels)
            : leat_shape(size->height, size->width, size->channels);
    LEAT_TRY(leat_tensor_alloc(NULL, size->bits == 16 ? LEAT_UINT16 : LEAT_UINT8, &shape, image));
    *pixels_out = (*image)->data;
    return NULL;
}

static leat_status decode(const void *bytes, size_t size, int channels, int bits,
                          const leat_image_sink *to)
{
    const leat_image_format f = leat_image_format_of(bytes, size);
    leat_jpeg_options o = LEAT_JPEG_OPTIONS;
    o.channels = channels;
    LEAT_REQUIRE(f == LEAT_IMAGE_PNG || bits == 8 || f == LEAT_IMAGE_UNKNOWN, INVALID_ARGUMENT,
                 "%s does not support uint16 output", leat_image_format_name(f));
    switch (f) {
    case LEAT_IMAGE_PNG:
        return leat_png_decode(bytes, size, channels, bits, to);
    case LEAT_IMAGE_JPEG:
        LEAT_REQUIRE(channels != 4, INVALID_ARGUMENT,
                     "channels must be 0, 1, or 3 for JPEG, got %d", channels);
        return leat_jpeg_decode(bytes, size, &o, to);
    case LEAT_IMAGE_GIF:
        LEAT_REQUIRE(channels == 0 || channels == 3, INVALID_ARGUMENT,
                     "channels must be 0 or 3 for GIF, got %d", channels);
        return leat_gif_decode(bytes, size, to);
    case LEAT_IMAGE_BMP:
        return leat_bmp_decode(bytes, size, channels, to);
    default:
        return unknown(size);
    }
}

leat_status leat_image_decode(const void *bytes, size_t size, int channels, leat_dtype dtype,
                              leat_tensor **image_out)
{
    LEAT_REQUIRE((bytes || !size) && image_out, INVALID_ARGUMENT,
                 "leat_image_decode: bytes or image_out is NULL");
    LEAT_REQUIRE(channels == 0 || channels == 1 || channels == 3 || channels == 4, INVALID_ARGUMENT,
                 "channels must be 0, 1, 3, or 4, got %d", channels);
    LEAT_REQUIRE(dtype == LEAT_UINT8 || dtype == LEAT_UINT16, INVALID_ARGUMENT,
                 "Type must be uint8 or uint16, got %s", leat_dtype_name(dtype));
    leat_tensor *image = NULL;
    const leat_image_sink to = {.alloc = alloc, .arg = &image};
    leat_status s = decode(bytes, size, channels, dtype == LEAT_UINT16 ? 16 : 8, &to);
    if (s)
        leat_tensor_unref(image);
    else
        *image_out = image;
    return s;
}

/* ---- Encoding a tensor ---- */
static leat_status picture_of(const leat_tensor *t, const char *function, leat_picture *out)
{
    LEAT_TRY(leat_tensor_check(t, function));
    LEAT_REQUIRE(t->shape.rank == 3, INVALID_ARGUMENT, "image must be 3-dimensional: %s",
                 leat_shape_show(&t->shape).s);
    LEAT_REQUIRE(t->dtype == LEAT_UINT8 || t->dtype == LEAT_UINT16, INVALID_ARGUMENT,
                 "image must have type uint8 or uint16, got %s", leat_dtype_name(t->dtype));
    LEAT_REQUIRE(t->shape.dim[2] >= 1 && t->shape.dim[2] <= 4, INVALID_ARGUMENT,
                 "image must have 1, 2, 3, or 4 channels, got %lld", (long long)t->shape.dim[2]);
    *out = (leat_picture){t->shape.dim[0], t->shape.dim[1], (int)t->shape.dim[2],
                          t->dtype == LEAT_UINT16 ? 16 : 8, t->data};
    return NULL;
}

leat_status leat_image_encode_png(const leat_tensor *image, int compression, void **bytes_out,
                                  size_t *size_out)
{
    leat_picture p = {0};
    LEAT_TRY(picture_of(image, "leat_image_encode_png", &p));
    LEAT_REQUIRE(compression >= -1 && compression <= 9, INVALID_ARGUMENT,
                 "compression should be in [-1,9], got %d", compression);
    return leat_png_encode(&p, compression, bytes_out, size_out);
}

leat_status leat_image_encode_jpeg(const leat_tensor *image, int quality, void **bytes_out,
                                   size_t *size_out)
{
    leat_picture p = {0};
    leat_jpeg_style style = LEAT_JPEG_STYLE;
    LEAT_TRY(picture_of(image, "leat_image_encode_jpeg", &p));
    LEAT_REQUIRE(quality >= 0 && quality <= 100, INVALID_ARGUMENT,
                 "quality must be in [0,100], got %d", quality);
    style.quality = quality;
    return leat_jpeg_encode(&p, &style, bytes_out, size_out);
}
