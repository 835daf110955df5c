/* png_write.c -- writes PNG files (RFC 2083): the header, one compressed stream of filtered rows,
 * the end. Each row gets the filter whose result has the least sum of absolute values, as the
 * standard recommends. */
#include "io/png.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { FILTERS = 5, LARGEST = INT32_MAX };

typedef struct writer {
    const leat_png *png;
    size_t row;   /* bytes of a row */
    size_t pixel; /* bytes of a pixel */
    z_stream z;
    uint8_t *rows;     /* this row and the one above it, in the file's byte order */
    uint8_t *filtered; /* FILTERS rows, each after the number of its filter */
    uint8_t *out;
    size_t n, room;
} writer;

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* ---- Filters ---- */
static int paeth(int left, int up, int corner)
{
    const int p = left + up - corner;
    const int a = abs(p - left), b = abs(p - up), c = abs(p - corner);
    return a <= b && a <= c ? left : b <= c ? up : corner;
}

static uint8_t predicted(int filter, int left, int up, int corner)
{
    const int of[FILTERS] = {0, left, up, (left + up) / 2,
                             filter == 4 ? paeth(left, up, corner) : 0};
    return (uint8_t)of[filter];
}

/* Gives the row, filtered, with the number of its filter in front. */
static const uint8_t *filter_row(writer *w, const uint8_t *row, const uint8_t *above)
{
    uint64_t least = UINT64_MAX;
    const uint8_t *best = w->filtered;
    for (int filter = 0; filter < FILTERS; filter++) {
        uint8_t *to = w->filtered + (size_t)filter * (w->row + 1);
        uint64_t sum = 0;
        *to = (uint8_t)filter;
        for (size_t i = 0; i < w->row; i++) {
            const bool first = i < w->pixel;
            to[i + 1] = (uint8_t)(row[i] - predicted(filter, first ? 0 : row[i - w->pixel],
                                                     above[i], first ? 0 : above[i - w->pixel]));
            sum += (uint64_t)abs((int8_t)to[i + 1]);
        }
        if (sum < least) {
            least = sum;
            best = to;
        }
    }
    return best;
}

/* Samples of 16 bits are big-endian in the file. */
static void read_row(const writer *w, int64_t y, uint8_t *to)
{
    const uint8_t *from = (const uint8_t *)w->png->pixels + (size_t)y * w->row;
    if (w->png->bits == 8) {
        memcpy(to, from, w->row);
        return;
    }
    for (size_t i = 0; i < w->row; i += 2) {
        uint16_t v;
        memcpy(&v, from + i, 2);
        to[i] = (uint8_t)(v >> 8);
        to[i + 1] = (uint8_t)v;
    }
}

/* ---- Chunks: length, kind, data, CRC of kind and data ---- */
static void put_chunk(uint8_t *at, const char *kind, size_t n)
{
    put_u32(at, (uint32_t)n);
    memcpy(at + 4, kind, 4);
    put_u32(at + 8 + n, (uint32_t)crc32(0, at + 4, (uInt)(n + 4)));
}

static size_t put_header(uint8_t *at, const leat_png *p)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const uint8_t color[] = {0, 0, 4, 2, 6}; /* by the number of channels */
    memcpy(at, magic, 8);
    memset(at + 16, 0, 13);
    put_u32(at + 16, (uint32_t)p->width);
    put_u32(at + 20, (uint32_t)p->height);
    at[24] = (uint8_t)p->bits;
    at[25] = color[p->channels];
    put_chunk(at + 8, "IHDR", 13);
    return 8 + 12 + 13;
}

static bool compress_rows(writer *w)
{
    int64_t height = w->png->height;
    uint8_t *row = w->rows, *above = w->rows + w->row;
    for (int64_t y = 0; y < height; y++) {
        read_row(w, y, row);
        w->z.next_in = (uint8_t *)filter_row(w, row, above);
        w->z.avail_in = (uInt)(w->row + 1);
        w->z.next_out = w->out + w->n;
        w->z.avail_out = (uInt)(w->room - w->n);
        const int rc = deflate(&w->z, y + 1 == height ? Z_FINISH : Z_NO_FLUSH);
        w->n = (size_t)(w->z.next_out - w->out);
        if (w->z.avail_in || rc != (y + 1 == height ? Z_STREAM_END : Z_OK))
            return false;
        uint8_t *t = row;
        row = above;
        above = t;
    }
    return true;
}

static leat_status encode(writer *w, int compression)
{
    const leat_png *p = w->png;
    if (deflateInit(&w->z, compression) != Z_OK)
        return leat_error(RESOURCE_EXHAUSTED, "no memory to compress a PNG image");
    w->room = 128 + deflateBound(&w->z, (uLong)((w->row + 1) * (size_t)p->height));
    w->out = malloc(w->room);
    w->rows = calloc(2, w->row);
    w->filtered = malloc(FILTERS * (w->row + 1));
    if (!w->out || !w->rows || !w->filtered) {
        deflateEnd(&w->z);
        return leat_error(RESOURCE_EXHAUSTED, "no memory for a PNG image of %zu bytes", w->room);
    }
    const size_t data = put_header(w->out, p);
    w->n = data + 8;
    const bool done = compress_rows(w);
    deflateEnd(&w->z);
    LEAT_REQUIRE(done, INTERNAL, "PNG encoding failed");
    put_chunk(w->out + data, "IDAT", w->n - data - 8);
    w->n += 4;
    put_chunk(w->out + w->n, "IEND", 0);
    w->n += 12;
    return NULL;
}

leat_status leat_png_encode(const leat_png *p, int compression, void **bytes_out, size_t *size_out)
{
    LEAT_REQUIRE(p->height > 0 && p->width > 0 && p->channels >= 1 && p->channels <= 4 &&
                     (p->bits == 8 || p->bits == 16),
                 INVALID_ARGUMENT, "a PNG image of %lld x %lld pixels, %d channels of %d bits",
                 (long long)p->height, (long long)p->width, p->channels, p->bits);
    writer w = {.png = p, .pixel = (size_t)(p->channels * p->bits / 8)};
    w.row = w.pixel * (size_t)p->width;
    LEAT_REQUIRE(p->width <= LARGEST / 8 && (int64_t)w.row + 1 <= LARGEST / p->height,
                 INVALID_ARGUMENT, "a PNG image of %lld x %lld pixels is too large",
                 (long long)p->height, (long long)p->width);
    leat_status s = encode(&w, compression);
    free(w.rows);
    free(w.filtered);
    if (s) {
        free(w.out);
        return s;
    }
    *bytes_out = w.out;
    *size_out = w.n;
    return NULL;
}
