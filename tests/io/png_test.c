/* png_test.c -- PNG and WAV files, read again by a reader of their own formats. */
#include "io/png.h"
#include "io/wav.h"

#include <zlib.h>

#include "test.h"

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int paeth(int a, int b, int c)
{
    int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Undoes the filters of `height` rows of n bytes, in place; each is after its filter's number. */
static void unfilter(uint8_t *rows, int64_t height, size_t n, size_t pixel, int *used)
{
    for (int64_t y = 0; y < height; y++) {
        uint8_t *row = rows + (size_t)y * (n + 1), *up = row - (n + 1);
        CHECK(row[0] < 5);
        used[row[0]]++;
        for (size_t i = 1; i <= n; i++) {
            int a = i > pixel ? row[i - pixel] : 0, b = y ? up[i] : 0;
            int c = y && i > pixel ? up[i - pixel] : 0;
            int add[] = {0, a, b, (a + b) / 2, paeth(a, b, c)};
            row[i] = (uint8_t)(row[i] + add[row[0]]);
        }
    }
}

static void check_png(int64_t height, int64_t width, int channels, int bits, int compression,
                      const void *pixels, int *used)
{
    static const int colors[] = {0, 0, 4, 2, 6};
    leat_png p = {height, width, channels, bits, pixels};
    void *bytes = NULL;
    size_t n = 0, pixel = (size_t)(channels * bits / 8), row = pixel * (size_t)width;
    CHECK_OK(leat_png_encode(&p, compression, &bytes, &n));
    const uint8_t *f = bytes;
    CHECK(n > 57 && memcmp(f, "\x89PNG\r\n\x1a\n", 8) == 0);
    uLongf size = (uLongf)((row + 1) * (size_t)height);
    uint8_t *rows = malloc(size);
    for (size_t at = 8; at < n; at += 12 + u32(f + at)) {
        const size_t data = u32(f + at);
        CHECK(at + 12 + data <= n);
        CHECK_INT(u32(f + at + 8 + data), crc32(0, f + at + 4, (uInt)data + 4));
        if (memcmp(f + at + 4, "IHDR", 4) == 0) {
            CHECK_INT(u32(f + at + 8), width);
            CHECK_INT(u32(f + at + 12), height);
            CHECK_INT(f[at + 16], bits);
            CHECK_INT(f[at + 17], colors[channels]);
        } else if (memcmp(f + at + 4, "IDAT", 4) == 0) {
            CHECK_INT(uncompress(rows, &size, f + at + 8, data), Z_OK);
        }
    }
    CHECK(memcmp(f + n - 8, "IEND", 4) == 0);
    unfilter(rows, height, row, pixel, used);
    for (int64_t y = 0; y < height; y++)
        for (size_t i = 0; i < row; i++) {
            const uint8_t *from = (const uint8_t *)pixels + (size_t)y * row;
            int want = bits == 8 ? from[i] : from[i ^ 1]; /* of a machine that is little-endian */
            if (rows[(size_t)y * (row + 1) + 1 + i] != want) {
                CHECK_INT(rows[(size_t)y * (row + 1) + 1 + i], want);
                y = height;
                break;
            }
        }
    free(rows);
    free(bytes);
}

/* All kinds of images, and of all filters. */
static void png(void)
{
    enum { SIDE = 40 };
    static uint8_t pixels[SIDE * SIDE * 8];
    int used[5] = {0};
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < sizeof(pixels); i++)
            pixels[i] = (uint8_t)(kind == 0   ? 7
                                  : kind == 1 ? i * 3 % 251
                                  : kind == 2 ? (i / 40) * 5 + i % 40 * 3
                                              : (i * 2654435761u >> 13));
        for (int channels = 1; channels <= 4; channels++)
            for (int bits = 8; bits <= 16; bits += 8) {
                check_png(SIDE, SIDE, channels, bits, LEAT_PNG_DEFAULT, pixels, used);
                check_png(1, SIDE - 1, channels, bits, 9, pixels, used);
                check_png(SIDE, 1, channels, bits, 0, pixels, used);
            }
    }
    for (int i = 0; i < 5; i++)
        CHECK(used[i] > 0);
}

static void png_bad(void)
{
    void *bytes = NULL;
    size_t n;
    const leat_png bad[] = {{0, 3, 1, 8, ""}, {3, 3, 5, 8, ""}, {3, 3, 3, 4, ""}};
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(leat_png_encode(&bad[i], -1, &bytes, &n), INVALID_ARGUMENT, "a PNG image of");
    const leat_png large = {1 << 20, 1 << 20, 4, 16, ""};
    CHECK_ERROR(leat_png_encode(&large, -1, &bytes, &n), INVALID_ARGUMENT, "too large");
}

static void wav(void)
{
    static const float samples[] = {0, 0.5f, -0.5f, 1, -1, 7};
    static const int16_t want[] = {0, 16384, -16384, 32767, -32768, 32767};
    void *bytes = NULL;
    size_t n = 0;
    CHECK_OK(leat_wav_encode(samples, 8000, 2, 3, &bytes, &n));
    CHECK_INT(n, 44 + 12);
    CHECK(memcmp((char *)bytes + 44, want, 12) == 0);
    free(bytes);
    CHECK_ERROR(leat_wav_encode(samples, 0, 2, 3, &bytes, &n), INVALID_ARGUMENT, "sample_rate");
    CHECK_ERROR(leat_wav_encode(samples, 8, 0, 3, &bytes, &n), INVALID_ARGUMENT, "num_channels");
    CHECK_ERROR(leat_wav_encode(samples, 8, 2, 0, &bytes, &n), INVALID_ARGUMENT, "num_frames");
    CHECK_ERROR(leat_wav_encode(samples, 8, 9, (int64_t)1 << 60, &bytes, &n), INVALID_ARGUMENT,
                "cannot be encoded");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"png", png}, {"png_bad", png_bad}, {"wav", wav});
}
