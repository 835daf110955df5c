/* image.h -- files of images, decoded from memory and encoded into memory. leat/image.h and the
 * kernels are made of these functions.
 *
 * Decoders do not trust the bytes. What is wrong with them is INVALID_ARGUMENT with TensorFlow's
 * words, followed by the library's and, where it is known, the offset. Sizes are checked before
 * memory is allocated: against TensorFlow's limits, and against what the bytes can hold at most.
 */
#ifndef LEAT_IO_IMAGE_H
#define LEAT_IO_IMAGE_H

#include <leat/image.h>

/* ---- Decoding ---- */
/* Where pixels go: rows from top to bottom, channels of a pixel side by side, frame after frame;
 * channels of 16 bits are in the byte order of the machine. */
typedef struct leat_image_sink {
    /* Called once, when the size is known: memory for all pixels. */
    leat_status (*alloc)(void *arg, const leat_image_info *size, void **pixels_out);
    /* Called every few rows; an error ends the decoding. May be NULL. */
    leat_status (*check)(void *arg);
    void *arg;
} leat_image_sink;
static inline leat_status leat_image_check(const leat_image_sink *to)
{
    return to->check ? to->check(to->arg) : NULL;
}

/* channels: 0, 1, 3, 4. bits: 8 or 16, whatever the file has. */
leat_status leat_png_decode(const void *bytes, size_t n, int channels, int bits,
                            const leat_image_sink *to) LEAT_MUST_CHECK;
leat_status leat_png_inspect(const void *bytes, size_t n, leat_image_info *out) LEAT_MUST_CHECK;

typedef struct leat_jpeg_options {
    int channels;               /* 0, 1, 3 */
    int ratio;                  /* 1, 2, 4, 8: decodes a smaller image */
    bool fancy_upscaling;       /* of the chroma planes */
    bool try_recover_truncated; /* fills in what a truncated file lacks */
    float acceptable_fraction;  /* of rows that must be there; others are black */
    bool accurate;              /* dct_method INTEGER_ACCURATE */
    bool crop;                  /* decodes a window, which must be within the image */
    int64_t crop_y, crop_x, crop_height, crop_width;
} leat_jpeg_options;
#define LEAT_JPEG_OPTIONS                                                                          \
    ((leat_jpeg_options){.ratio = 1, .fancy_upscaling = true, .acceptable_fraction = 1})
leat_status leat_jpeg_decode(const void *bytes, size_t n, const leat_jpeg_options *o,
                             const leat_image_sink *to) LEAT_MUST_CHECK;
leat_status leat_jpeg_inspect(const void *bytes, size_t n, leat_image_info *out) LEAT_MUST_CHECK;

leat_status leat_gif_decode(const void *bytes, size_t n, const leat_image_sink *to) LEAT_MUST_CHECK;
leat_status leat_gif_inspect(const void *bytes, size_t n, leat_image_info *out) LEAT_MUST_CHECK;

/* channels: 0, or as many as the file has. */
leat_status leat_bmp_decode(const void *bytes, size_t n, int channels,
                            const leat_image_sink *to) LEAT_MUST_CHECK;
leat_status leat_bmp_inspect(const void *bytes, size_t n, leat_image_info *out) LEAT_MUST_CHECK;

/* ---- Encoding: gives the bytes of a file, followed by a NUL; free with free() ---- */
typedef struct leat_picture {
    int64_t height, width;
    int channels;
    int bits;           /* of a channel: 8, or 16 in the byte order of the machine (PNG) */
    const void *pixels; /* borrowed */
} leat_picture;

enum { LEAT_PNG_DEFAULT = -1 }; /* the compression that zlib considers a good one; else 0 to 9 */
leat_status leat_png_encode(const leat_picture *p, int compression, void **bytes_out,
                            size_t *size_out) LEAT_MUST_CHECK;

typedef struct leat_jpeg_style {
    int quality; /* 0 to 100; a value beyond is taken for the nearest */
    bool progressive, optimize_size, chroma_downsampling;
    int density_unit; /* 1 inch, 2 cm */
    int x_density, y_density;
    const char *xmp; /* metadata; may be NULL */
    size_t xmp_size;
} leat_jpeg_style;
#define LEAT_JPEG_STYLE                                                                            \
    ((leat_jpeg_style){.quality = 95,                                                              \
                       .chroma_downsampling = true,                                                \
                       .density_unit = 1,                                                          \
                       .x_density = 300,                                                           \
                       .y_density = 300})
leat_status leat_jpeg_encode(const leat_picture *p, const leat_jpeg_style *style, void **bytes_out,
                             size_t *size_out) LEAT_MUST_CHECK;

#endif
