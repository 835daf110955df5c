/* png_write.c -- encodes PNG files by libpng. libpng's errors jump: see png_read.c. */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "core/strbuf.h"
#include "io/image.h"

enum { LARGEST = INT32_MAX };

typedef struct writer {
    const leat_picture *p;
    int compression;
    png_structp png;
    png_infop info;
    jmp_buf jump;
    char why[120]; /* libpng's words */
    leat_strbuf out;
} writer;

static void failed(png_structp png, png_const_charp why)
{
    writer *w = png_get_error_ptr(png);
    snprintf(w->why, sizeof(w->why), "%s", why);
    longjmp(w->jump, 1);
}

static void warned(png_structp png, png_const_charp why)
{
    (void)png, (void)why;
}

static void write_bytes(png_structp png, png_bytep from, size_t n)
{
    writer *w = png_get_io_ptr(png);
    leat_strbuf_add(&w->out, from, n);
    if (w->out.lacking)
        png_error(png, "memory");
}

static void flush(png_structp png)
{
    (void)png;
}

static void write_image(writer *w)
{
    static const int colors[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                 PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    const leat_picture *p = w->p;
    png_set_write_fn(w->png, w, write_bytes, flush);
    png_set_compression_level(w->png, w->compression);
    png_set_compression_mem_level(w->png, MAX_MEM_LEVEL); /* as in TensorFlow: the same bytes */
    png_set_IHDR(w->png, w->info, (png_uint_32)p->width, (png_uint_32)p->height, p->bits,
                 colors[p->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    if (p->bits == 16)
        png_set_swap(w->png); /* the file is big-endian */
    const size_t row = (size_t)p->width * (size_t)(p->channels * p->bits / 8);
    for (int64_t y = 0; y < p->height; y++)
        png_write_row(w->png, (png_const_bytep)p->pixels + (size_t)y * row);
    png_write_end(w->png, NULL);
}

static leat_status encode(writer *w)
{
    w->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, w, failed, warned);
    w->info = w->png ? png_create_info_struct(w->png) : NULL;
    LEAT_REQUIRE(w->info, RESOURCE_EXHAUSTED, "No memory to encode a PNG image");
    if (setjmp(w->jump)) {
        LEAT_TRY(leat_strbuf_check(&w->out));
        return leat_error(INTERNAL, "PNG encoding failed: %s", w->why);
    }
    write_image(w);
    return NULL;
}

leat_status leat_png_encode(const leat_picture *p, int compression, void **bytes_out,
                            size_t *size_out)
{
    LEAT_REQUIRE(p->height > 0 && p->width > 0 && p->channels >= 1 && p->channels <= 4 &&
                     (p->bits == 8 || p->bits == 16),
                 INVALID_ARGUMENT, "a PNG image of %lld x %lld pixels, %d channels of %d bits",
                 (long long)p->height, (long long)p->width, p->channels, p->bits);
    LEAT_REQUIRE(p->width <= LARGEST / 4 && p->width * p->channels < LARGEST / p->height,
                 INVALID_ARGUMENT, "a PNG image of %lld x %lld pixels is too large",
                 (long long)p->height, (long long)p->width);
    writer w = {.p = p, .compression = compression, .out = {.checked = true}};
    leat_status s = encode(&w);
    png_destroy_write_struct(&w.png, &w.info);
    if (s) {
        leat_strbuf_release(&w.out);
        return s;
    }
    *size_out = w.out.n;
    *bytes_out = leat_strbuf_take(&w.out);
    return NULL;
}
