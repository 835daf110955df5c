/* Any bytes as files of images: by the decoder of their format, with options that the last byte
 * chooses, and as BMP, whose decoder does not look at the first bytes. Pixels are written to memory
 * of exactly their size. What was decoded is encoded as PNG, and decoded again alike. A PNG is
 * decoded again with the right checksums, since few changes would come behind them otherwise. */
#include "io/image.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MOST = 1 << 16 }; /* bytes of an image: larger ones are slow and no different */

typedef struct memory {
    leat_image_info size;
    uint8_t *pixels;
} memory;

static leat_status alloc(void *arg, const leat_image_info *size, void **pixels_out)
{
    memory *m = arg;
    const int64_t pixels = size->frames * size->height * size->width;
    if (m->pixels)
        abort(); /* asked for twice */
    if (pixels > MOST || pixels * size->channels * size->bits / 8 > MOST)
        return leat_error(RESOURCE_EXHAUSTED, "too large for the fuzzer");
    m->size = *size;
    m->pixels = malloc((size_t)(pixels * size->channels * size->bits / 8));
    *pixels_out = m->pixels;
    return NULL;
}

static size_t bytes_of(const leat_image_info *i)
{
    return (size_t)(i->frames * i->height * i->width * i->channels * i->bits / 8);
}

static void encode(const memory *m)
{
    const leat_picture p = {m->size.height * m->size.frames, m->size.width, m->size.channels,
                            m->size.bits, m->pixels};
    void *bytes = NULL;
    size_t n = 0;
    memory again = {0};
    const leat_image_sink to = {.alloc = alloc, .arg = &again};
    LEAT_DIE_ON_ERROR(leat_png_encode(&p, 1, &bytes, &n));
    LEAT_DIE_ON_ERROR(leat_png_decode(bytes, n, 0, m->size.bits, &to));
    if (bytes_of(&again.size) != bytes_of(&m->size) ||
        memcmp(again.pixels, m->pixels, bytes_of(&m->size)) != 0)
        abort();
    free(again.pixels);
    free(bytes);
    const leat_jpeg_style style = LEAT_JPEG_STYLE;
    if (m->size.bits == 8 && (m->size.channels == 1 || m->size.channels == 3)) {
        leat_status s = leat_jpeg_encode(&p, &style, &bytes, &n);
        if (!s)
            free(bytes);
        leat_status_free(s); /* a side of more than 65,500 pixels */
    }
}

static void settle(memory *m, leat_status s)
{
    if (!s)
        encode(m);
    free(m->pixels);
    *m = (memory){0};
    leat_status_free(s);
}

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A copy with the checksum of each chunk corrected; a chunk is its length, kind, bytes and CRC. */
static uint8_t *corrected(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n);
    memcpy(copy, data, n);
    for (size_t at = 8; n - at >= 12 && u32(copy + at) <= n - at - 12;) {
        const size_t size = u32(copy + at);
        const uint32_t crc = (uint32_t)crc32(0, copy + at + 4, (uInt)size + 4);
        for (int i = 0; i < 4; i++)
            copy[at + 8 + size + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + size;
    }
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const int channels[] = {0, 1, 3, 4};
    memory m = {0};
    const leat_image_sink to = {.alloc = alloc, .arg = &m};
    const unsigned choice = n ? data[n - 1] : 0;
    leat_jpeg_options o = {.channels = channels[choice % 3],
                           .ratio = 1 << (choice >> 2) % 4,
                           .fancy_upscaling = choice >> 4 & 1,
                           .try_recover_truncated = choice >> 5 & 1,
                           .acceptable_fraction = choice >> 6 & 1 ? 0 : 1,
                           .accurate = choice >> 7 & 1};
    leat_image_info info;
    leat_status_free(leat_image_inspect(data, n, &info));
    switch (leat_image_format_of(data, n)) {
    case LEAT_IMAGE_PNG: {
        settle(&m, leat_png_decode(data, n, channels[choice % 4], choice & 4 ? 16 : 8, &to));
        uint8_t *copy = corrected(data, n);
        settle(&m, leat_png_decode(copy, n, channels[choice % 4], choice & 4 ? 16 : 8, &to));
        free(copy);
        break;
    }
    case LEAT_IMAGE_GIF:
        settle(&m, leat_gif_decode(data, n, &to));
        break;
    case LEAT_IMAGE_JPEG:
        settle(&m, leat_jpeg_decode(data, n, &o, &to));
        o.crop = true;
        o.crop_y = choice % 7;
        o.crop_x = choice % 19;
        o.crop_height = 1 + choice % 5;
        o.crop_width = 1 + choice % 23;
        settle(&m, leat_jpeg_decode(data, n, &o, &to));
        break;
    default:
        settle(&m, leat_bmp_decode(data, n, channels[choice % 4], &to));
    }
    return 0;
}
