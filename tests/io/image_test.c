/* image_test.c -- files of images: what is encoded is decoded again, sizes and formats are told,
 * and damaged files of every kind give errors that say what is wrong. */
#include <leat/image.h>
#include "io/image.h"

#include "test.h"

enum { H = 21, W = 34 };

/* An image of smooth rows with some noise. */
static leat_tensor *picture(leat_dtype t, int channels)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, leat_shape(H, W, channels), &x));
    for (int64_t i = 0; i < leat_tensor_count(x); i++)
        leat_tensor_set_at(
            x, i, (double)((i / channels * 7 + i * i % 11) % 256) * (t == LEAT_UINT16 ? 257 : 1));
    return x;
}

static bool same(const leat_tensor *a, const leat_tensor *b)
{
    const leat_shape s = leat_tensor_shape(a), t = leat_tensor_shape(b);
    return leat_tensor_dtype(a) == leat_tensor_dtype(b) && leat_shape_equal(&s, &t) &&
           memcmp(leat_tensor_data(a), leat_tensor_data(b), leat_tensor_bytes(a)) == 0;
}

static void png(void)
{
    for (int channels = 1; channels <= 4; channels++)
        for (int t = 0; t < 2; t++)
            for (int level = -1; level <= 9; level += 5) {
                leat_tensor *x = picture(t ? LEAT_UINT16 : LEAT_UINT8, channels), *y = NULL;
                void *bytes = NULL;
                size_t n = 0;
                leat_image_info info = {0};
                CHECK_OK(leat_image_encode_png(x, level, &bytes, &n));
                CHECK_OK(leat_image_inspect(bytes, n, &info));
                CHECK_INT(info.format, LEAT_IMAGE_PNG);
                CHECK_INT(info.height, H);
                CHECK_INT(info.width, W);
                CHECK_INT(info.channels, channels);
                CHECK_INT(info.bits, t ? 16 : 8);
                CHECK_OK(leat_image_decode(bytes, n, 0, leat_tensor_dtype(x), &y));
                CHECK(same(x, y));
                leat_tensor_unref(x);
                leat_tensor_unref(y);
                free(bytes);
            }
}

static void jpeg(void)
{
    for (int channels = 1; channels <= 3; channels += 2) {
        leat_tensor *x = picture(LEAT_UINT8, channels), *y = NULL;
        void *bytes = NULL;
        size_t n = 0;
        leat_image_info info = {0};
        CHECK_OK(leat_image_encode_jpeg(x, 100, &bytes, &n));
        CHECK_OK(leat_image_inspect(bytes, n, &info));
        CHECK_INT(info.format, LEAT_IMAGE_JPEG);
        CHECK_INT(info.height, H);
        CHECK_INT(info.width, W);
        CHECK_INT(info.channels, channels);
        CHECK_OK(leat_image_decode(bytes, n, 0, LEAT_UINT8, &y));
        double off = 0;
        for (int64_t i = 0; y && i < leat_tensor_count(x); i++)
            off += fabs(leat_tensor_at(y, i) - leat_tensor_at(x, i));
        CHECK(off < 30.0 * (double)leat_tensor_count(x)); /* the noise is lost */
        leat_tensor_unref(x);
        leat_tensor_unref(y);
        free(bytes);
    }
}

/* A GIF of 2 x 2 pixels, of colors 1, 2, 3, 0, then a frame of 1 x 1 at the right of row 1. */
static const uint8_t a_gif[] = {
    'G',  'I',  'F', '8', '9', 'a', 2,   0, 2, 0, 0x81, 0, 0, 1, 2, 3,    10, 20, 30,
    40,   50,   60,  70,  80,  90,  ',', 0, 0, 0, 0,    2, 0, 2, 0, 0,    2,  3,  0x8c,
    0x38, 0x14, 0,   ',', 1,   0,   1,   0, 1, 0, 1,    0, 0, 2, 2, 0x4c, 1,  0,  ';'};
static const uint8_t a_bmp[] = {'B', 'M', 70, 0, 0, 0, 0, 0, 0, 0, 54, 0,  0,  0,  40, 0, 0, 0,
                                2,   0,   0,  0, 2, 0, 0, 0, 1, 0, 24, 0,  0,  0,  0,  0, 0, 0,
                                0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0, 0, 0,
                                1,   2,   3,  4, 5, 6, 0, 0, 7, 8, 9,  10, 11, 12, 0,  0};

static void gif(void)
{
    static const uint8_t want[] = {10, 20, 30, 40, 50, 60, 70, 80, 90, 1,  2,  3,
                                   10, 20, 30, 40, 50, 60, 70, 80, 90, 10, 20, 30};
    leat_image_info info = {0};
    leat_tensor *y = NULL;
    CHECK_OK(leat_image_inspect(a_gif, sizeof(a_gif), &info));
    CHECK_INT(info.frames, 2);
    CHECK_INT(info.width, 2);
    CHECK_OK(leat_image_decode(a_gif, sizeof(a_gif), 0, LEAT_UINT8, &y));
    if (y) {
        const leat_shape s = leat_tensor_shape(y);
        CHECK_STR(leat_shape_show(&s).s, "[2,2,2,3]");
        CHECK(memcmp(leat_tensor_data(y), want, sizeof(want)) == 0);
    }
    leat_tensor_unref(y);
}

static void bmp(void)
{
    static const uint8_t want[] = {9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4};
    leat_image_info info = {0};
    leat_tensor *y = NULL;
    CHECK_OK(leat_image_inspect(a_bmp, sizeof(a_bmp), &info));
    CHECK_INT(info.format, LEAT_IMAGE_BMP);
    CHECK_INT(info.channels, 3);
    CHECK_OK(leat_image_decode(a_bmp, sizeof(a_bmp), 3, LEAT_UINT8, &y));
    CHECK(y && memcmp(leat_tensor_data(y), want, sizeof(want)) == 0);
    leat_tensor_unref(y);
}

/* ---- Damage ---- */
static leat_status decode(const void *bytes, size_t n)
{
    leat_tensor *y = NULL;
    leat_status s = leat_image_decode(bytes, n, 0, LEAT_UINT8, &y);
    CHECK(!s == (y != NULL));
    leat_tensor_unref(y);
    return s;
}

/* Every beginning of a file, and every byte changed: an error of the right code, or an image. */
static void damage(const uint8_t *file, size_t n, bool cut_is_error)
{
    uint8_t *copy = malloc(n);
    for (size_t i = 0; i < n; i++) {
        memcpy(copy, file, i); /* so that a sanitizer sees the end */
        uint8_t *part = malloc(i + 1);
        memcpy(part, file, i);
        leat_status s = decode(part, i);
        CHECK_INT(leat_status_code(s), s || cut_is_error ? LEAT_INVALID_ARGUMENT : LEAT_OK);
        leat_status_free(s);
        free(part);
        memcpy(copy, file, n);
        for (int bit = 0; bit < 8; bit += 3) {
            copy[i] = (uint8_t)(file[i] ^ 1 << bit);
            s = decode(copy, n);
            CHECK(!s || leat_status_code(s) == LEAT_INVALID_ARGUMENT);
            leat_status_free(s);
        }
    }
    free(copy);
}

static void damaged(void)
{
    leat_tensor *x = picture(LEAT_UINT8, 3);
    void *bytes = NULL;
    size_t n = 0;
    CHECK_OK(leat_image_encode_png(x, 9, &bytes, &n));
    damage(bytes, n, true);
    CHECK_ERROR(decode(bytes, n - 20), INVALID_ARGUMENT, "the data ends too soon (at byte ");
    ((uint8_t *)bytes)[60] ^= 1;
    CHECK_ERROR(decode(bytes, n), INVALID_ARGUMENT, "Invalid PNG data, size");
    free(bytes);
    CHECK_OK(leat_image_encode_jpeg(x, 50, &bytes, &n));
    damage(bytes, n, true);
    CHECK_ERROR(decode(bytes, 100), INVALID_ARGUMENT, "Premature end of input file (at byte ");
    CHECK_ERROR(decode(bytes, n - 100), INVALID_ARGUMENT, "it ends at row");
    free(bytes);
    damage(a_gif, sizeof(a_gif), true);
    CHECK_ERROR(decode(a_gif, 30), INVALID_ARGUMENT, "failed to slurp gif file: ");
    damage(a_bmp, sizeof(a_bmp), false);
    CHECK_ERROR(decode(a_bmp, 60), INVALID_ARGUMENT, "requires at least 68 bytes, got 60 bytes");
    CHECK_ERROR(decode("hello", 5), INVALID_ARGUMENT, "neither PNG, JPEG, GIF nor BMP");
    CHECK_ERROR(decode(NULL, 0), INVALID_ARGUMENT, "neither PNG");
    leat_tensor_unref(x);
}

/* A few bytes that claim to be a large image: an error before memory is allocated. */
static leat_status never(void *arg, const leat_image_info *size, void **pixels_out)
{
    *(bool *)arg = true;
    return leat_error(INTERNAL, "asked for memory");
}

static void bombs(void)
{
    bool asked = false;
    const leat_image_sink to = {.alloc = never, .arg = &asked};
    const leat_jpeg_options o = LEAT_JPEG_OPTIONS;
    leat_tensor *x = picture(LEAT_UINT8, 3);
    uint8_t *bytes = NULL;
    size_t n = 0;
    CHECK_OK(leat_image_encode_jpeg(x, 50, (void **)&bytes, &n));
    for (size_t i = 0; i + 9 < n; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) /* 60,000 x 60,000 */
            memcpy(bytes + i + 5, "\xea\x60\xea\x60", 4);
    CHECK_ERROR(leat_jpeg_decode(bytes, n, &o, &to), INVALID_ARGUMENT, "is too large");
    for (size_t i = 0; i + 9 < n; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) /* 10,000 x 10,000 */
            memcpy(bytes + i + 5, "\x27\x10\x27\x10", 4);
    CHECK_ERROR(leat_jpeg_decode(bytes, n, &o, &to), INVALID_ARGUMENT,
                "too few bytes for an image of 10000 x 10000 pixels");
    free(bytes);
    CHECK_OK(leat_image_encode_png(x, 9, (void **)&bytes, &n));
    /* 20,000 x 20,000 pixels: the CRC is checked first, so it is right. */
    memcpy(bytes + 16, "\0\0\x4e\x20\0\0\x4e\x20", 8);
    memcpy(bytes + 29, "\x6c\x12\xd1\x6e", 4);
    leat_status s = leat_png_decode(bytes, n, 0, 8, &to);
    CHECK_ERROR(s, INVALID_ARGUMENT, "too few bytes for an image of 20000 by 20000");
    free(bytes);
    uint8_t gif[sizeof(a_gif)];
    memcpy(gif, a_gif, sizeof(gif));
    memcpy(gif + 30, "\x60\xea\x60\xea", 4);
    CHECK_ERROR(leat_gif_decode(gif, sizeof(gif), &to), INVALID_ARGUMENT, "has only 3 bytes");
    uint8_t bmp[sizeof(a_bmp)];
    memcpy(bmp, a_bmp, sizeof(bmp));
    memcpy(bmp + 18, "\x60\xea\0\0\x60\xea\0\0", 8);
    CHECK_ERROR(leat_bmp_decode(bmp, sizeof(bmp), 0, &to), INVALID_ARGUMENT,
                "the image is 60000 x 60000");
    CHECK(!asked);
    leat_tensor_unref(x);
}

static void refused(void)
{
    leat_tensor *x = picture(LEAT_UINT16, 3), *small = NULL;
    void *bytes = NULL;
    size_t n;
    CHECK_ERROR(leat_image_encode_jpeg(x, 50, &bytes, &n), INVALID_ARGUMENT, "of 16 bits");
    CHECK_ERROR(leat_image_encode_png(x, 10, &bytes, &n), INVALID_ARGUMENT, "[-1,9], got 10");
    CHECK_ERROR(leat_image_encode_jpeg(x, 101, &bytes, &n), INVALID_ARGUMENT, "[0,100], got 101");
    CHECK_ERROR(leat_image_encode_png(NULL, 1, &bytes, &n), INVALID_ARGUMENT,
                "leat_image_encode_png");
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(0, 3, 3), &small));
    CHECK_ERROR(leat_image_encode_png(small, 1, &bytes, &n), INVALID_ARGUMENT, "0 x 3 pixels");
    const leat_picture large = {1 << 20, 1 << 20, 4, 16, ""};
    CHECK_ERROR(leat_png_encode(&large, -1, &bytes, &n), INVALID_ARGUMENT, "too large");
    static const uint8_t row[1000001];
    const leat_picture wide = {1, sizeof(row), 1, 8, row}; /* libpng's limit is 1,000,000 */
    CHECK_ERROR(leat_png_encode(&wide, -1, &bytes, &n), INTERNAL, "PNG encoding failed: ");
    leat_tensor *y = NULL;
    CHECK_ERROR(leat_image_decode(a_gif, sizeof(a_gif), 0, LEAT_UINT16, &y), INVALID_ARGUMENT,
                "GIF does not support uint16 output");
    CHECK_ERROR(leat_image_decode(a_gif, sizeof(a_gif), 1, LEAT_UINT8, &y), INVALID_ARGUMENT,
                "channels must be 0 or 3 for GIF, got 1");
    leat_tensor_unref(x);
    leat_tensor_unref(small);
}

/* A truncated file that is to be recovered, cut after each byte: libjpeg reads the last bytes again
 * and again, but not for ever. */
static leat_status into(void *arg, const leat_image_info *size, void **pixels_out)
{
    *pixels_out = arg;
    return size->height * size->width * size->channels <= H * W * 3
               ? NULL
               : leat_error(INTERNAL, "an image of another size");
}

static void recovered(void)
{
    static uint8_t pixels[H * W * 3];
    const leat_image_sink to = {.alloc = into, .arg = pixels};
    leat_jpeg_options o = LEAT_JPEG_OPTIONS;
    leat_tensor *x = picture(LEAT_UINT8, 3);
    uint8_t *bytes = NULL;
    size_t n = 0, header = 0, good = 0;
    CHECK_OK(leat_image_encode_jpeg(x, 20, (void **)&bytes, &n));
    for (size_t i = 0; i + 1 < n; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0xda)
            header = i + 14;
    o.try_recover_truncated = true;
    CHECK(header && header < n);
    for (size_t i = header + 1; i < n; i++) {
        const uint8_t last = bytes[i - 1];
        for (int k = 0; k < 2; k++) { /* then with the beginning of a marker */
            leat_status s = leat_jpeg_decode(bytes, i, &o, &to);
            CHECK(!s || leat_status_code(s) == LEAT_INVALID_ARGUMENT);
            good += !s;
            leat_status_free(s);
            bytes[i - 1] = 0xff;
        }
        bytes[i - 1] = last;
    }
    CHECK(good > n - header);
    free(bytes);
    leat_tensor_unref(x);
}

/* A window has the pixels of the whole image, with and without smooth chroma, at each scale. */
static void crops(void)
{
    static uint8_t all[H * W * 3], part[H * W * 3];
    const leat_image_sink to_all = {.alloc = into, .arg = all},
                          to_part = {.alloc = into, .arg = part};
    leat_tensor *x = picture(LEAT_UINT8, 3);
    void *bytes = NULL;
    size_t n = 0;
    CHECK_OK(leat_image_encode_jpeg(x, 80, &bytes, &n));
    for (int ratio = 1; ratio <= 2; ratio++)
        for (int fancy = 0; fancy < 2; fancy++) {
            const int64_t h = (H + ratio - 1) / ratio, w = (W + ratio - 1) / ratio;
            leat_jpeg_options o = LEAT_JPEG_OPTIONS;
            o.ratio = ratio;
            o.fancy_upscaling = fancy;
            CHECK_OK(leat_jpeg_decode(bytes, n, &o, &to_all));
            o.crop = true;
            int64_t wrong = 0;
            for (o.crop_y = 0; o.crop_y < h; o.crop_y += 3)
                for (o.crop_x = 0; o.crop_x < w; o.crop_x += 5) {
                    o.crop_height = 1 + (h - o.crop_y - 1) * 2 / 3;
                    o.crop_width = 1 + (w - o.crop_x - 1) * 3 / 4;
                    CHECK_OK(leat_jpeg_decode(bytes, n, &o, &to_part));
                    for (int64_t y = 0; y < o.crop_height; y++)
                        wrong += memcmp(part + y * o.crop_width * 3,
                                        all + ((o.crop_y + y) * w + o.crop_x) * 3,
                                        (size_t)o.crop_width * 3) != 0;
                }
            CHECK_INT(wrong, 0);
        }
    free(bytes);
    leat_tensor_unref(x);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"png", png}, {"jpeg", jpeg}, {"gif", gif}, {"bmp", bmp},
               {"damaged", damaged}, {"bombs", bombs}, {"refused", refused},
               {"recovered", recovered}, {"crops", crops});
}
