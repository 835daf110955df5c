/* gif_read.c -- decodes GIF files by giflib: all frames, in RGB. The canvas is as wide and as high
 * as the largest frame, and the first frame must fill it; each later one is drawn over a copy of
 * the one before it, as in TensorFlow, which knows neither transparency nor disposal.
 *
 * The file is read twice: once from block to block, which gives the number of frames and their
 * sizes, then with the pixels, row by row. */
#include <gif_lib.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"

enum {
    CHECK_ROWS = 64,
    PIXELS_MOST = 1 << 30, /* of all frames, exclusive */
    PER_BYTE_MOST = 2731,  /* pixels: 12 bits are a code for at most 4096 of them */
};

typedef struct reader {
    const uint8_t *bytes;
    size_t n, at;
    GifFileType *gif;
    const leat_image_sink *to;
    int64_t frames, height, width; /* of the canvas */
    uint8_t *pixels;
    GifPixelType *row; /* as wide as the widest frame */
} reader;

static int read_bytes(GifFileType *gif, GifByteType *to, int n)
{
    reader *r = gif->UserData;
    const size_t left = r->n - r->at, take = (size_t)n < left ? (size_t)n : left;
    memcpy(to, r->bytes + r->at, take);
    r->at += take;
    return (int)take;
}

/* what: "failed to slurp gif file", TensorFlow's words. */
static leat_status bad(const reader *r, const char *what, int code)
{
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM)
        return leat_error(RESOURCE_EXHAUSTED, "No memory to decode a GIF image of %zu bytes", r->n);
    const char *why = GifErrorString(code);
    return leat_error(INVALID_ARGUMENT, "Invalid GIF data (size %zu), %s: %s (at byte %zu)", r->n,
                      what, why ? why : "Unknown error", r->at);
}

static leat_status slurp_failed(const reader *r)
{
    return bad(r, "failed to slurp gif file", r->gif->Error);
}

static leat_status open_gif(reader *r)
{
    int code = 0;
    r->at = 0;
    r->gif = DGifOpen(r, read_bytes, &code);
    return r->gif ? NULL : bad(r, "failed to open gif file", code);
}

static void close_gif(reader *r)
{
    int code;
    if (r->gif)
        DGifCloseFile(r->gif, &code);
    r->gif = NULL;
}

static leat_status skip_extension(reader *r)
{
    int code;
    GifByteType *data;
    if (DGifGetExtension(r->gif, &code, &data) != GIF_OK)
        return slurp_failed(r);
    while (data)
        if (DGifGetExtensionNext(r->gif, &data) != GIF_OK)
            return slurp_failed(r);
    return NULL;
}

/* Gives the next frame's description, false if there is none. */
static leat_status next_frame(reader *r, bool *there)
{
    for (;;) {
        GifRecordType kind;
        if (DGifGetRecordType(r->gif, &kind) != GIF_OK)
            return slurp_failed(r);
        *there = kind == IMAGE_DESC_RECORD_TYPE;
        if (kind == TERMINATE_RECORD_TYPE)
            return NULL;
        if (kind == EXTENSION_RECORD_TYPE)
            LEAT_TRY(skip_extension(r));
        if (*there)
            return DGifGetImageDesc(r->gif) == GIF_OK ? NULL : slurp_failed(r);
    }
}

/* ---- From block to block ---- */
static leat_status skip_pixels(reader *r)
{
    int code;
    GifByteType *block;
    int64_t bytes = 0;
    const int64_t width = r->gif->Image.Width, height = r->gif->Image.Height;
    LEAT_REQUIRE(width > 0 && height > 0, INVALID_ARGUMENT,
                 "Invalid GIF data (size %zu), failed to slurp gif file: frame %lld is of %lld x "
                 "%lld pixels (at byte %zu)",
                 r->n, (long long)r->frames, (long long)height, (long long)width, r->at);
    if (DGifGetCode(r->gif, &code, &block) != GIF_OK)
        return slurp_failed(r);
    while (block) {
        bytes += *block;
        if (DGifGetCodeNext(r->gif, &block) != GIF_OK)
            return slurp_failed(r);
    }
    LEAT_REQUIRE(height * width / PER_BYTE_MOST <= bytes, INVALID_ARGUMENT,
                 "Invalid GIF data (size %zu), failed to slurp gif file: frame %lld of %lld x %lld "
                 "pixels has only %lld bytes (at byte %zu)",
                 r->n, (long long)r->frames, (long long)height, (long long)width, (long long)bytes,
                 r->at);
    return NULL;
}

static leat_status measure(reader *r)
{
    LEAT_TRY(open_gif(r));
    for (;; r->frames++) {
        bool there;
        LEAT_TRY(next_frame(r, &there));
        if (!there)
            break;
        LEAT_TRY(skip_pixels(r));
        r->height = r->gif->Image.Height > r->height ? r->gif->Image.Height : r->height;
        r->width = r->gif->Image.Width > r->width ? r->gif->Image.Width : r->width;
    }
    close_gif(r);
    LEAT_REQUIRE(r->frames, INVALID_ARGUMENT,
                 "Invalid GIF data (size %zu), failed to slurp gif file: it does not contain any "
                 "image",
                 r->n);
    /* Both sides are below 2^16, and there are fewer frames than bytes: below 2^31. */
    LEAT_REQUIRE(r->frames * r->height < PIXELS_MOST / r->width, INVALID_ARGUMENT,
                 "Invalid GIF data (size %zu), %lld frames of %lld x %lld pixels are too large",
                 r->n, (long long)r->frames, (long long)r->height, (long long)r->width);
    return NULL;
}

/* ---- With the pixels ---- */
static const ColorMapObject *colors_of(const GifFileType *gif)
{
    return gif->Image.ColorMap ? gif->Image.ColorMap : gif->SColorMap;
}

/* Row y of the frame, as far as it is on the canvas. */
static leat_status draw_row(reader *r, uint8_t *canvas, int64_t y)
{
    const GifImageDesc *d = &r->gif->Image;
    const ColorMapObject *colors = colors_of(r->gif);
    uint8_t *to = canvas + ((d->Top + y) * r->width + d->Left) * 3;
    if (d->Top + y >= r->height)
        return NULL;
    for (int64_t x = 0; x < d->Width && d->Left + x < r->width; x++, to += 3) {
        LEAT_REQUIRE(r->row[x] < colors->ColorCount, INVALID_ARGUMENT,
                     "Invalid GIF data (size %zu), found color index %d outside of color map range "
                     "%d",
                     r->n, r->row[x], colors->ColorCount);
        const GifColorType *c = &colors->Colors[r->row[x]];
        to[0] = c->Red;
        to[1] = c->Green;
        to[2] = c->Blue;
    }
    return NULL;
}

static leat_status draw_frame(reader *r, int64_t frame)
{
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2}; /* rows of interlaced images */
    const GifImageDesc *d = &r->gif->Image;
    const size_t size = (size_t)(r->height * r->width) * 3;
    uint8_t *canvas = r->pixels + (size_t)frame * size;
    if (d->Left || d->Top || d->Width != r->width || d->Height != r->height) {
        LEAT_REQUIRE(frame > 0, INVALID_ARGUMENT,
                     "Invalid GIF data (size %zu), the first frame does not fill the canvas", r->n);
        memcpy(canvas, canvas - size, size);
    }
    LEAT_REQUIRE(colors_of(r->gif), INVALID_ARGUMENT,
                 "Invalid GIF data (size %zu), missing color map for frame %lld", r->n,
                 (long long)frame);
    for (int pass = 0; pass < (d->Interlace ? 4 : 1); pass++)
        for (int64_t y = d->Interlace ? first[pass] : 0; y < d->Height;
             y += d->Interlace ? step[pass] : 1) {
            if (DGifGetLine(r->gif, r->row, d->Width) != GIF_OK)
                return slurp_failed(r);
            LEAT_TRY(draw_row(r, canvas, y));
            if (y % CHECK_ROWS == 0)
                LEAT_TRY(leat_image_check(r->to));
        }
    return NULL;
}

static leat_status decode(reader *r)
{
    LEAT_TRY(measure(r));
    const leat_image_info size = {LEAT_IMAGE_GIF, r->frames, r->height, r->width, 3, 8};
    void *pixels;
    LEAT_TRY(r->to->alloc(r->to->arg, &size, &pixels));
    r->pixels = pixels;
    r->row = malloc((size_t)r->width);
    LEAT_REQUIRE(r->row, RESOURCE_EXHAUSTED, "No memory for a row of pixels");
    LEAT_TRY(open_gif(r));
    for (int64_t i = 0; i < r->frames; i++) {
        bool there;
        LEAT_TRY(next_frame(r, &there));
        LEAT_TRY(draw_frame(r, i));
    }
    return NULL;
}

leat_status leat_gif_decode(const void *bytes, size_t n, const leat_image_sink *to)
{
    reader r = {.bytes = bytes, .n = n, .to = to};
    leat_status s = decode(&r);
    close_gif(&r);
    free(r.row);
    return s;
}

leat_status leat_gif_inspect(const void *bytes, size_t n, leat_image_info *out)
{
    reader r = {.bytes = bytes, .n = n};
    leat_status s = measure(&r);
    close_gif(&r);
    if (!s)
        *out = (leat_image_info){LEAT_IMAGE_GIF, r.frames, r.height, r.width, 3, 8};
    return s;
}
