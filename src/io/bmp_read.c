/* bmp_read.c -- decodes BMP files without compression: 8 bits a pixel, taken as gray, since
 * TensorFlow ignores palettes; 24 bits, BGR; 32 bits, BGRA. Rows are padded to four bytes and are
 * stored from the bottom up, or from the top down if the height is negative. */
#include <limits.h>
#include <stdlib.h>

#include "io/coding.h"
#include "io/image.h"

/* Offsets of the fields of the header. */
enum { AT_PIXELS = 10, AT_WIDTH = 18, AT_HEIGHT = 22, AT_BITS = 28, AT_COMPRESSION = 30 };
enum { HEADER = 32, CHECK_ROWS = 256 };

typedef struct bmp {
    const uint8_t *rows; /* the first in the file */
    int64_t height, width, row;
    int channels;
    bool top_down;
} bmp;

static int32_t i32(const uint8_t *p)
{
    return (int32_t)leat_get_fixed32(p);
}

static leat_status open_bmp(const void *bytes, size_t n, int channels, bmp *b)
{
    const uint8_t *p = bytes;
    LEAT_REQUIRE(n >= HEADER, INVALID_ARGUMENT,
                 "Incomplete bmp content, requires at least 32 bytes to find the header size, "
                 "width, height, and bpp, got %zu bytes",
                 n);
    const int64_t offset = i32(p + AT_PIXELS), width = i32(p + AT_WIDTH);
    const int64_t height = i32(p + AT_HEIGHT);
    const int bits = p[AT_BITS] | p[AT_BITS + 1] << 8;
    /* The two bytes above the bits are the low ones of the kind of compression. */
    const int compression = p[AT_COMPRESSION] | p[AT_COMPRESSION + 1] << 8;
    LEAT_REQUIRE(compression == 0, INVALID_ARGUMENT,
                 "The bmp content must not be compressed, it is of kind %d (at byte 30)",
                 compression);
    LEAT_REQUIRE(!channels || channels == bits / 8, INVALID_ARGUMENT,
                 "channels attribute %d does not match bits per pixel from file %d", channels,
                 bits / 8);
    channels = bits / 8;
    LEAT_REQUIRE(channels == 1 || channels == 3 || channels == 4, INVALID_ARGUMENT,
                 "Number of channels must be 1, 3 or 4, was %d", channels);
    LEAT_REQUIRE(width > 0, INVALID_ARGUMENT, "Width must be positive, is %lld (at byte 18)",
                 (long long)width);
    LEAT_REQUIRE(height != 0, INVALID_ARGUMENT, "Height must be nonzero (at byte 22)");
    LEAT_REQUIRE(offset >= 0, INVALID_ARGUMENT,
                 "header size must be nonnegative, is %lld (at byte 10)", (long long)offset);
    const int64_t rows = llabs(height); /* of 32 bits each: no product below overflows */
    LEAT_REQUIRE(width * rows < INT32_MAX / 8, INVALID_ARGUMENT,
                 "Total possible pixel bytes must be less than 2^30: the image is %lld x %lld",
                 (long long)width, (long long)rows);
    const int64_t row = (channels * width + 3) / 4 * 4;
    const int64_t need = offset + (rows - 1) * row + channels * width;
    LEAT_REQUIRE((uint64_t)need <= n, INVALID_ARGUMENT,
                 "Incomplete bmp content, requires at least %lld bytes, got %zu bytes",
                 (long long)need, n);
    *b = (bmp){p + offset, rows, width, row, channels, height < 0};
    return NULL;
}

static leat_image_info info_of(const bmp *b)
{
    return (leat_image_info){LEAT_IMAGE_BMP, 1, b->height, b->width, b->channels, 8};
}

static void decode_row(const bmp *b, const uint8_t *from, uint8_t *to)
{
    const int c = b->channels;
    if (c == 1)
        memcpy(to, from, (size_t)b->width);
    for (int64_t x = 0; c > 1 && x < b->width; x++, from += c, to += c) {
        to[0] = from[2];
        to[1] = from[1];
        to[2] = from[0];
        if (c == 4)
            to[3] = from[3];
    }
}

leat_status leat_bmp_decode(const void *bytes, size_t n, int channels, const leat_image_sink *to)
{
    bmp b;
    void *pixels;
    LEAT_TRY(open_bmp(bytes, n, channels, &b));
    const leat_image_info size = info_of(&b);
    LEAT_TRY(to->alloc(to->arg, &size, &pixels));
    for (int64_t y = 0; y < b.height; y++) {
        const int64_t from = b.top_down ? y : b.height - 1 - y;
        decode_row(&b, b.rows + from * b.row, (uint8_t *)pixels + y * b.width * b.channels);
        if (y % CHECK_ROWS == 0)
            LEAT_TRY(leat_image_check(to));
    }
    return NULL;
}

leat_status leat_bmp_inspect(const void *bytes, size_t n, leat_image_info *out)
{
    bmp b;
    LEAT_TRY(open_bmp(bytes, n, 0, &b));
    *out = info_of(&b);
    return NULL;
}
