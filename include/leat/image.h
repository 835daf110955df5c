/* image.h -- images: files of images as tensors, and tensors as files. Ops that work on images are
 * in image_ops.h.
 *
 *     leat_out image = leat_decode_jpeg(contents, leat_attr_int("channels", 3));
 */
#ifndef LEAT_IMAGE_H
#define LEAT_IMAGE_H

#include <leat/ops.h>

/* ---- Files of images: PNG, JPEG, GIF and BMP are decoded, PNG and JPEG are encoded ---- */
typedef enum leat_image_format {
    LEAT_IMAGE_UNKNOWN,
    LEAT_IMAGE_PNG,
    LEAT_IMAGE_JPEG,
    LEAT_IMAGE_GIF,
    LEAT_IMAGE_BMP,
} leat_image_format;
typedef struct leat_image_info {
    leat_image_format format;
    int64_t frames; /* images of an animated GIF; else 1 */
    int64_t height, width;
    int channels; /* 1 gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha, or CMYK of a JPEG */
    int bits;     /* of a channel: 8 or 16 */
} leat_image_info;

/* By the first bytes of a file. */
LEAT_API leat_image_format leat_image_format_of(const void *bytes, size_t size);
LEAT_API const char *leat_image_format_name(leat_image_format f); /* "PNG" ...; "unknown" */
/* What the header of a file says; of a GIF, the headers of its frames. INVALID_ARGUMENT says what
 * is wrong with the file. */
LEAT_API leat_status leat_image_inspect(const void *bytes, size_t size,
                                        leat_image_info *info_out) LEAT_MUST_CHECK;
/* Gives an image of shape [height, width, channels], or [frames, height, width, 3] of a GIF, as the
 * decoding ops do. channels: 1 gray, 3 RGB, 4 RGB and alpha, 0 as many as the file has; JPEG has
 * neither alpha nor CMYK here, GIF has 3 channels, and BMP is not converted. dtype: LEAT_UINT8, or
 * LEAT_UINT16 for PNG. INVALID_ARGUMENT says what is wrong with the file and where. */
LEAT_API leat_status leat_image_decode(const void *bytes, size_t size, int channels,
                                       leat_dtype dtype, leat_tensor **image_out) LEAT_MUST_CHECK;
/* Gives the bytes of a PNG file with an image of shape [height, width, 1 to 4 channels], uint8 or
 * uint16. compression: 0 none to 9 most, -1 what zlib considers best. Free with free(). */
LEAT_API leat_status leat_image_encode_png(const leat_tensor *image, int compression,
                                           void **bytes_out, size_t *size_out) LEAT_MUST_CHECK;
/* The same of a JPEG file with an image of shape [height, width, 1 or 3], uint8. quality: 0 to
 * 100. */
LEAT_API leat_status leat_image_encode_jpeg(const leat_tensor *image, int quality, void **bytes_out,
                                            size_t *size_out) LEAT_MUST_CHECK;

/* ---- The same as ops, with TensorFlow's attributes. contents: a string scalar ---- */
#define leat_decode_png(contents, ...) LEAT_OP1("DecodePng", contents, ##__VA_ARGS__)
#define leat_decode_jpeg(contents, ...) LEAT_OP1("DecodeJpeg", contents, ##__VA_ARGS__)
/* crop_window: int32, y, x, height and width. */
#define leat_decode_and_crop_jpeg(contents, crop_window, ...)                                      \
    LEAT_OP2("DecodeAndCropJpeg", contents, crop_window, ##__VA_ARGS__)
#define leat_decode_gif(contents, ...) LEAT_OP1("DecodeGif", contents, ##__VA_ARGS__)
#define leat_decode_bmp(contents, ...) LEAT_OP1("DecodeBmp", contents, ##__VA_ARGS__)
/* Height, width and channels of a JPEG file, without decoding its pixels. */
#define leat_extract_jpeg_shape(contents, ...) LEAT_OP1("ExtractJpegShape", contents, ##__VA_ARGS__)
#define leat_encode_png(image, ...) LEAT_OP1("EncodePng", image, ##__VA_ARGS__)
#define leat_encode_jpeg(image, ...) LEAT_OP1("EncodeJpeg", image, ##__VA_ARGS__)

#endif
