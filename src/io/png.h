/* png.h -- writes PNG files. */
#ifndef LEAT_IO_PNG_H
#define LEAT_IO_PNG_H

#include <leat/status.h>
#include <stdint.h>

/* An image: rows from top to bottom, channels of a pixel side by side. */
typedef struct leat_png {
    int64_t height, width;
    int channels;       /* 1 gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha */
    int bits;           /* of a channel: 8, or 16 in the byte order of the machine */
    const void *pixels; /* borrowed */
} leat_png;
enum { LEAT_PNG_DEFAULT = -1 }; /* the compression that zlib considers a good one; else 0 to 9 */
/* Gives the bytes of a file; free with free(). */
leat_status leat_png_encode(const leat_png *p, int compression, void **bytes_out,
                            size_t *size_out) LEAT_MUST_CHECK;

#endif
