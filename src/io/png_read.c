/* png_read.c -- decodes PNG files by libpng, with TensorFlow's conversions: to gray, RGB or RGB and
 * alpha, to 8 or 16 bits.
 *
 * libpng reports an error by a jump out of its functions. They are called by `guarded` alone, and
 * all that they change is in the reader, so no local variable is lost by a jump.
 */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"

enum {
    CHECK_ROWS = 64,
    DEFLATE_MOST = 1032, /* bytes that one compressed byte can become */
    SIDE_MOST = 1 << 27, /* pixels, exclusive, as in TensorFlow */
    PIXELS_MOST = 1 << 29
};

typedef struct reader {
    const uint8_t *bytes;
    size_t n, at;
    png_structp png;
    png_infop info;
    jmp_buf jump;
    char why[120]; /* libpng's words for what is wrong */
    /* From the header. */
    png_uint_32 width, height;
    int depth, color;
    /* Wanted. */
    int channels, bits;
    bool widen; /* 8 bits of the file become 16 */
    int passes;
    uint8_t *pixels;
    size_t row; /* bytes */
    const leat_image_sink *to;
    leat_status status; /* of the sink's check */
} reader;

static void failed(png_structp png, png_const_charp why)
{
    reader *r = png_get_error_ptr(png);
    snprintf(r->why, sizeof(r->why), "%s", why);
    longjmp(r->jump, 1);
}

/* Warnings are about what does not change the pixels. */
static void warned(png_structp png, png_const_charp why)
{
    (void)png, (void)why;
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    reader *r = png_get_io_ptr(png);
    if (n > r->n - r->at)
        png_error(png, "the data ends too soon");
    memcpy(to, r->bytes + r->at, n);
    r->at += n;
}

static bool guarded(reader *r, void (*step)(reader *r))
{
    if (setjmp(r->jump))
        return false;
    step(r);
    return true;
}

static leat_status bad(reader *r, const char *what)
{
    if (r->status)
        return r->status;
    if (strstr(r->why, "memory"))
        return leat_error(RESOURCE_EXHAUSTED, "No memory to decode a PNG image of %zu bytes", r->n);
    return leat_error(INVALID_ARGUMENT, "Invalid PNG %s %zu: %s (at byte %zu)", what, r->n, r->why,
                      r->at);
}

static void read_header(reader *r)
{
    png_set_read_fn(r->png, r, read_bytes);
    png_read_info(r->png, r->info);
    png_get_IHDR(r->png, r->info, &r->width, &r->height, &r->depth, &r->color, NULL, NULL, NULL);
}

/* Asks libpng for the conversions. The alpha that it adds to an image of fewer than 8 bits is that
 * of these bits, as TensorFlow has it. */
static void convert(reader *r)
{
    const bool transparent = png_get_valid(r->png, r->info, PNG_INFO_tRNS) != 0;
    const bool palette = r->color == PNG_COLOR_TYPE_PALETTE;
    const bool alpha = (r->color & PNG_COLOR_MASK_ALPHA) != 0;
    const bool gray = !(r->color & PNG_COLOR_MASK_COLOR);
    if (!r->channels)
        r->channels = palette ? 3 + transparent : png_get_channels(r->png, r->info);
    if (r->channels % 2) {
        if (alpha || transparent)
            png_set_strip_alpha(r->png);
    } else if (!alpha) {
        if (transparent)
            png_set_tRNS_to_alpha(r->png);
        else
            png_set_add_alpha(r->png, (1u << r->depth) - 1, PNG_FILLER_AFTER);
    }
    if (r->depth == 16 && r->bits == 8)
        png_set_strip_16(r->png);
    r->widen = r->depth <= 8 && r->bits == 16;
    png_set_packing(r->png);
    r->passes = png_set_interlace_handling(r->png);
    if (r->bits == 16)
        png_set_swap(r->png); /* the file is big-endian */
    if (palette)
        png_set_palette_to_rgb(r->png);
    if (gray && r->depth < 8)
        png_set_expand_gray_1_2_4_to_8(r->png);
    if (r->channels < 3 && !gray)
        png_set_rgb_to_gray(r->png, PNG_ERROR_ACTION_NONE, 0.299, 0.587); /* as JPEG does */
    else if (r->channels >= 3 && gray)
        png_set_gray_to_rgb(r->png);
    png_read_update_info(r->png, r->info);
    r->row = (size_t)r->width * (size_t)r->channels * (size_t)(r->bits / 8);
    if (png_get_rowbytes(r->png, r->info) * (r->widen ? 2 : 1) != r->row)
        png_error(r->png, "the transparency does not fit the kind of image");
}

static void read_rows(reader *r)
{
    for (int pass = 0; pass < r->passes; pass++)
        for (png_uint_32 y = 0; y < r->height; y++) {
            png_read_row(r->png, r->pixels + (size_t)y * r->row, NULL);
            if (y % CHECK_ROWS == 0 && (r->status = leat_image_check(r->to)))
                longjmp(r->jump, 1);
        }
    png_read_end(r->png, r->info);
}

/* Makes 16 bits of 8, in place: each row begins with its bytes. */
static void widen_rows(reader *r)
{
    for (png_uint_32 y = 0; y < r->height; y++) {
        uint8_t *row = r->pixels + (size_t)y * r->row;
        for (size_t i = r->row / 2; i-- > 0;)
            row[2 * i] = row[2 * i + 1] = row[i];
    }
}

/* How many bytes the rows have before compression; each begins with the number of its filter. */
static uint64_t raw_size(const reader *r)
{
    const uint64_t bits =
        (uint64_t)r->width * png_get_channels(r->png, r->info) * (uint64_t)r->depth;
    return ((bits + 7) / 8 + 1) * r->height;
}

static leat_status open_png(reader *r)
{
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, failed, warned);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    LEAT_REQUIRE(r->info, RESOURCE_EXHAUSTED, "No memory to decode a PNG image");
    if (!guarded(r, read_header))
        return bad(r, "header, data size");
    LEAT_REQUIRE(r->width < SIDE_MOST && r->height < SIDE_MOST &&
                     (uint64_t)r->width * r->height < PIXELS_MOST,
                 INVALID_ARGUMENT, "PNG size too large for int: %u by %u", r->width, r->height);
    return NULL;
}

static leat_status decode(reader *r)
{
    LEAT_TRY(open_png(r));
    LEAT_REQUIRE(raw_size(r) / DEFLATE_MOST <= r->n, INVALID_ARGUMENT,
                 "Invalid PNG data, size %zu: too few bytes for an image of %u by %u", r->n,
                 r->width, r->height);
    if (!guarded(r, convert))
        return bad(r, "header, data size");
    const leat_image_info size = {LEAT_IMAGE_PNG, 1, r->height, r->width, r->channels, r->bits};
    void *pixels;
    LEAT_TRY(r->to->alloc(r->to->arg, &size, &pixels));
    r->pixels = pixels;
    if (!guarded(r, read_rows))
        return bad(r, "data, size");
    if (r->widen)
        widen_rows(r);
    return NULL;
}

leat_status leat_png_decode(const void *bytes, size_t n, int channels, int bits,
                            const leat_image_sink *to)
{
    reader r = {.bytes = bytes, .n = n, .channels = channels, .bits = bits, .to = to};
    leat_status s = decode(&r);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return s;
}

leat_status leat_png_inspect(const void *bytes, size_t n, leat_image_info *out)
{
    reader r = {.bytes = bytes, .n = n};
    leat_status s = open_png(&r);
    if (!s) {
        const bool palette = r.color == PNG_COLOR_TYPE_PALETTE;
        const int channels = palette ? 3 + (png_get_valid(r.png, r.info, PNG_INFO_tRNS) != 0)
                                     : png_get_channels(r.png, r.info);
        *out = (leat_image_info){LEAT_IMAGE_PNG, 1,        r.height,
                                 r.width,        channels, r.depth == 16 ? 16 : 8};
    }
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return s;
}
