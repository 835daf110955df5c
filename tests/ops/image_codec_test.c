/* image_codec_test.c -- ops of files of images, by their constructors: there and back, DecodeImage,
 * which TensorFlow 1.15 lacks, and errors that name the node. What the other ops give is in
 * tests/vectors/image_codec.vec. */
#include "test.h"

#include <leat/leat.h>

enum { H = 5, W = 7 };

typedef struct fixture {
    leat_graph *g;
    leat_session *s;
    leat_out file;        /* fed */
    leat_tensor *png, *p; /* a PNG file of 16 bits, and its pixels */
} fixture;

static leat_tensor *string_of(void *bytes, size_t n)
{
    leat_tensor *t = leat_scalar_string(bytes, n);
    free(bytes);
    return t;
}

static fixture begin(void)
{
    fixture f = {.g = leat_graph_new()};
    void *bytes = NULL;
    size_t n = 0;
    f.file = leat_placeholder(f.g, LEAT_STRING, leat_shape());
    CHECK_OK(leat_tensor_new(LEAT_UINT16, leat_shape(H, W, 3), &f.p));
    for (int i = 0; i < H * W * 3; i++)
        leat_tensor_set_at(f.p, i, i * 601 % 65536);
    CHECK_OK(leat_image_encode_png(f.p, -1, &bytes, &n));
    f.png = string_of(bytes, n);
    CHECK_OK(leat_session_open(f.g, &f.s));
    return f;
}

static void end(fixture *f)
{
    leat_tensor_unref(f->png);
    leat_tensor_unref(f->p);
    leat_session_close(f->s);
    leat_graph_free(f->g);
}

static leat_tensor *run(fixture *f, leat_out x, leat_tensor *file)
{
    leat_tensor *y = NULL;
    CHECK_OK(
        leat_session_run(f->s, LEAT_FEED({f->file, file}), LEAT_FETCH({x, &y}), LEAT_NO_TARGET));
    return y;
}

/* Checks shape and dtype, and each value against want(i). */
static void check(fixture *f, leat_out x, leat_tensor *file, leat_dtype t, const char *shape,
                  double (*want)(const fixture *f, int64_t i))
{
    leat_tensor *y = run(f, x, file);
    if (!y)
        return;
    const leat_shape s = leat_tensor_shape(y);
    CHECK_STR(leat_shape_show(&s).s, shape);
    CHECK_INT(leat_tensor_dtype(y), t);
    for (int64_t i = 0; i < leat_tensor_count(y); i++)
        CHECK_NEAR(leat_tensor_at(y, i), want(f, i), 1e-7);
    leat_tensor_unref(y);
}

static double whole(const fixture *f, int64_t i)
{
    return leat_tensor_at(f->p, i);
}
static double upper(const fixture *f, int64_t i)
{
    return (double)((int)whole(f, i) >> 8);
}
static double unit(const fixture *f, int64_t i)
{
    return whole(f, i) / 65535;
}

static void there_and_back(void)
{
    fixture f = begin();
    leat_out image = leat_decode_png(f.file, leat_attr_type("dtype", LEAT_UINT16));
    leat_out again = leat_decode_png(leat_encode_png(image), leat_attr_type("dtype", LEAT_UINT16));
    check(&f, again, f.png, LEAT_UINT16, "[5,7,3]", whole);
    leat_out bytes = leat_encode_jpeg(leat_decode_png(f.file), leat_attr_int("quality", 70));
    leat_tensor *y = run(&f, leat_extract_jpeg_shape(bytes), f.png);
    CHECK(y && leat_tensor_at(y, 0) == H && leat_tensor_at(y, 1) == W && leat_tensor_at(y, 2) == 3);
    leat_tensor_unref(y);
    y = run(&f, leat_decode_and_crop_jpeg(bytes, leat_ints(f.g, 1, 2, 3, 4)), f.png);
    CHECK(y && leat_tensor_count(y) == 3 * 4 * 3);
    leat_tensor_unref(y);
    y = run(&f, leat_decode_gif(bytes), f.png); /* an image of a JPEG is a batch of one */
    CHECK(y && leat_tensor_rank(y) == 4 && leat_tensor_dim(y, 0) == 1);
    leat_tensor_unref(y);
    end(&f);
}

/* Two frames: a pixel of the color 10, 20, 30, then one of 1, 2, 3. */
static double gif_pixel(const fixture *f, int64_t i)
{
    return i < 3 ? (double)(i + 1) * 10 : (double)(i - 2);
}
static double gif_unit(const fixture *f, int64_t i)
{
    return gif_pixel(f, i) / 255;
}
static double gif_wide(const fixture *f, int64_t i)
{
    return gif_pixel(f, i) * 256;
}
static double bmp_pixel(const fixture *f, int64_t i)
{
    return (double)(3 - i);
}

static leat_out any(const fixture *f, leat_dtype t, bool expand)
{
    return LEAT_OP1("DecodeImage", f->file, leat_attr_type("dtype", t),
                    leat_attr_bool("expand_animations", expand));
}

static void decode_image(void)
{
    static const char gif[] = "GIF89a\1\0\1\0\x80\0\0\1\2\3\12\24\36"
                              ",\0\0\0\0\1\0\1\0\0\2\2\x4c\1\0"
                              ",\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;";
    static const char bmp[] = "BM\72\0\0\0\0\0\0\0\66\0\0\0\50\0\0\0\1\0\0\0\1\0\0\0\1\0\30\0\0\0"
                              "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3\0";
    fixture f = begin();
    leat_tensor *two = leat_scalar_string(gif, sizeof(gif) - 1);
    leat_tensor *small = leat_scalar_string(bmp, sizeof(bmp) - 1);
    check(&f, any(&f, LEAT_UINT8, true), f.png, LEAT_UINT8, "[5,7,3]", upper);
    check(&f, any(&f, LEAT_UINT16, true), f.png, LEAT_UINT16, "[5,7,3]", whole);
    check(&f, any(&f, LEAT_FLOAT, false), f.png, LEAT_FLOAT, "[5,7,3]", unit);
    check(&f, any(&f, LEAT_UINT8, true), two, LEAT_UINT8, "[2,1,1,3]", gif_pixel);
    check(&f, any(&f, LEAT_UINT8, false), two, LEAT_UINT8, "[1,1,3]", gif_pixel);
    check(&f, any(&f, LEAT_FLOAT, true), two, LEAT_FLOAT, "[2,1,1,3]", gif_unit);
    check(&f, any(&f, LEAT_UINT16, false), two, LEAT_UINT16, "[1,1,3]", gif_wide);
    check(&f, any(&f, LEAT_UINT8, true), small, LEAT_UINT8, "[1,1,3]", bmp_pixel);
    leat_tensor_unref(two);
    leat_tensor_unref(small);
    end(&f);
}

static void refuses(fixture *f, leat_out x, const char *bytes, size_t n, const char *words)
{
    leat_tensor *file = leat_scalar_string(bytes, n), *y = NULL;
    leat_status s =
        leat_session_run(f->s, LEAT_FEED({f->file, file}), LEAT_FETCH({x, &y}), LEAT_NO_TARGET);
    CHECK(s && strstr(leat_status_message(s), "[[{{node image}}]]"));
    CHECK_ERROR(s, INVALID_ARGUMENT, words);
    leat_tensor_unref(file);
}

static void refused(void)
{
    fixture f = begin();
    const leat_string *png = leat_tensor_data(f.png);
    leat_out x = leat_decode_png(f.file, leat_name("image"));
    refuses(&f, x, png->data, png->size - 30, "the data ends too soon (at byte ");
    refuses(&f, x, "BM", 2, "got unknown format starting with 'BM'");
    end(&f);
    f = begin();
    x = LEAT_OP1("DecodeImage", f.file, leat_name("image"));
    refuses(&f, x, "text", 4, "Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
    refuses(&f, x, "GIF89a", 6, "failed to open gif file");
    refuses(&f, x, "BM", 2, "requires at least 32 bytes");
    end(&f);
    f = begin();
    x = LEAT_OP1("DecodeImage", f.file, leat_attr_int("channels", 2), leat_name("image"));
    refuses(&f, x, "text", 4, "`channels` must be 0, 1, 3 or 4 but got 2");
    end(&f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"there_and_back", there_and_back}, {"decode_image", decode_image},
               {"refused", refused});
}
