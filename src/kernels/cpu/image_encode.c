/* image_encode.c -- EncodePng, EncodeJpeg and EncodeJpegVariableQuality. */
#include <limits.h>
#include <stdlib.h>

#include "io/image.h"
#include "kernels/cpu/cpu.h"

/* Hands the bytes of a file to the output; takes them. */
static leat_status give(leat_kernel *k, void *bytes, size_t n)
{
    const leat_shape scalar = {0};
    leat_tensor *y;
    leat_status s = leat_kernel_out(k, 0, &scalar, &y);
    if (s) {
        free(bytes);
        return s;
    }
    leat_string *to = y->data;
    free(to->data);
    *to = (leat_string){bytes, n};
    return NULL;
}

static leat_status image_of(leat_kernel *k, const char *too_large, leat_picture *p)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    LEAT_REQUIRE(x->shape.rank == 3, INVALID_ARGUMENT, "image must be 3-dimensional%s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(x->count < INT_MAX, INVALID_ARGUMENT, "%s", too_large);
    const int64_t *d = x->shape.dim, most = INT_MAX;
    *p = (leat_picture){d[0], d[1], (int)(d[2] < most ? d[2] : most),
                        x->dtype == LEAT_UINT16 ? 16 : 8, x->data};
    return NULL;
}

/* ---- PNG ---- */
static leat_status encode_png(leat_kernel *k)
{
    const int64_t compression = leat_node_int(leat_kernel_node(k), "compression");
    leat_picture p = {0};
    int64_t row;
    void *bytes;
    size_t n;
    LEAT_REQUIRE(compression >= -1 && compression <= 9, INVALID_ARGUMENT,
                 "compression should be in [-1,9], got %lld", (long long)compression);
    LEAT_TRY(image_of(k, "image cannot have >= int32 max elements", &p));
    LEAT_REQUIRE(leat_mul_ok(p.width, p.channels, &row) && row < INT_MAX / 2, INVALID_ARGUMENT,
                 "image too wide to encode");
    LEAT_REQUIRE(p.channels >= 1 && p.channels <= 4, INVALID_ARGUMENT,
                 "image must have 1, 2, 3, or 4 channels, got %d", p.channels);
    LEAT_REQUIRE(p.height && p.width, INTERNAL, "PNG encoding failed: the image has no pixels");
    LEAT_TRY(leat_png_encode(&p, (int)compression, &bytes, &n));
    return give(k, bytes, n);
}

/* ---- JPEG ---- */
static leat_status jpeg_image_of(leat_kernel *k, int channels, const char *format, leat_picture *p)
{
    LEAT_TRY(image_of(k, "Cannot encode images with >= max int32 elements", p));
    const leat_text shape = leat_shape_show(&leat_kernel_in(k, 0)->shape);
    LEAT_REQUIRE(channels || p->channels == 1 || p->channels == 3, INVALID_ARGUMENT,
                 "image must have 1 or 3 channels, got %s", shape.s);
    LEAT_REQUIRE(!channels || p->channels == channels, INVALID_ARGUMENT,
                 "format %s expects %d channels, got %s", format, channels, shape.s);
    return NULL;
}

static leat_status encode_jpeg(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const char *format = leat_node_string(n, "format");
    const int64_t quality = leat_node_int(n, "quality");
    const int64_t x = leat_node_int(n, "x_density"), y = leat_node_int(n, "y_density");
    const char *xmp = leat_node_string(n, "xmp_metadata");
    LEAT_REQUIRE(quality >= 0 && quality <= 100, INVALID_ARGUMENT,
                 "quality must be in [0,100], got %lld", (long long)quality);
    const leat_jpeg_style style = {
        .quality = (int)quality,
        .progressive = leat_node_bool(n, "progressive"),
        .optimize_size = leat_node_bool(n, "optimize_size"),
        .chroma_downsampling = leat_node_bool(n, "chroma_downsampling"),
        .density_unit = strcmp(leat_node_string(n, "density_unit"), "cm") == 0 ? 2 : 1,
        .x_density = (int)x,
        .y_density = (int)y,
        .xmp = xmp,
        .xmp_size = strlen(xmp),
    };
    leat_picture p = {0};
    void *bytes;
    size_t size;
    LEAT_TRY(jpeg_image_of(k, !*format ? 0 : strcmp(format, "rgb") == 0 ? 3 : 1, format, &p));
    LEAT_TRY(leat_jpeg_encode(&p, &style, &bytes, &size));
    return give(k, bytes, size);
}

/* A quality below 0 or above 100 is taken for the nearest, as TensorFlow does here. */
static leat_status encode_jpeg_quality(leat_kernel *k)
{
    const leat_tensor *quality = leat_kernel_in(k, 1);
    leat_jpeg_style style = LEAT_JPEG_STYLE;
    leat_picture p = {0};
    void *bytes;
    size_t size;
    LEAT_REQUIRE(quality->shape.rank == 0, INVALID_ARGUMENT, "quality must be scalar: %s",
                 leat_shape_show(&quality->shape).s);
    LEAT_TRY(jpeg_image_of(k, 0, "", &p));
    style.quality = AT(int32_t, quality)[0];
    LEAT_TRY(leat_jpeg_encode(&p, &style, &bytes, &size));
    return give(k, bytes, size);
}

const leat_kernel_def leat_cpu_image_encode[] = {
    {.op = "EncodePng", .run = encode_png, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "EncodeJpeg", .run = encode_jpeg, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "EncodeJpegVariableQuality", .run = encode_jpeg_quality, .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
