/* image_codec.c -- images from the bytes of files and the reverse: DecodePng, DecodeJpeg,
 * DecodeAndCropJpeg, DecodeGif, DecodeBmp, DecodeImage; EncodePng, EncodeJpeg,
 * EncodeJpegVariableQuality; and ExtractJpegShape. */
#include "ops/image_util.h"

static leat_status contents_rank(leat_infer *c)
{
    leat_shape unused;
    return leat_infer_rank(c, 0, 0, &unused);
}

/* Output: (height, width, channels). */
static leat_status image_out(leat_infer *c, int64_t height, int64_t width)
{
    const int64_t channels = leat_node_int(leat_infer_node(c), "channels");
    LEAT_REQUIRE(channels >= 0, INVALID_ARGUMENT, "channels must be non-negative, got %lld",
                 (long long)channels);
    leat_infer_out(c, 0, leat_shape(height, width, channels ? channels : -1));
    return NULL;
}

static leat_status decode_shape(leat_infer *c)
{
    LEAT_TRY(contents_rank(c));
    return image_out(c, -1, -1);
}

static leat_status decode_crop_shape(leat_infer *c)
{
    leat_shape window;
    LEAT_TRY(contents_rank(c));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &window));
    LEAT_TRY(leat_dim_is(window.dim[0], 4));
    const leat_tensor *value = leat_infer_value(c, 1);
    const int64_t height = value ? leat_int_at(value, 2) : -1;
    const int64_t width = value ? leat_int_at(value, 3) : -1;
    return image_out(c, height < 0 ? -1 : height, width < 0 ? -1 : width);
}

static leat_status decode_gif_shape(leat_infer *c)
{
    LEAT_TRY(contents_rank(c));
    leat_infer_out(c, 0, leat_shape(-1, -1, -1, 3));
    return NULL;
}

static leat_status decode_any_shape(leat_infer *c)
{
    LEAT_TRY(contents_rank(c));
    if (!leat_node_bool(leat_infer_node(c), "expand_animations"))
        return image_out(c, -1, -1);
    return leat_shape_any(c);
}

static leat_status encode_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 0, 3, &unused));
    return leat_shape_scalar(c);
}

static leat_status jpeg_shape_shape(leat_infer *c)
{
    LEAT_TRY(contents_rank(c));
    leat_infer_out(c, 0, leat_shape(3));
    return NULL;
}

#define JPEG_ATTRS                                                                                 \
    "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; "                            \
    "try_recover_truncated: bool = false; acceptable_fraction: float = 1.0; "                      \
    "dct_method: string = ''"

const leat_op_def leat_ops_image_codec[] = {
    {.name = "DecodePng",
     .inputs = "contents: string",
     .outputs = "image: dtype",
     .attrs = "channels: int = 0; dtype: {uint8, uint16} = DT_UINT8",
     .shape = decode_shape,
     .grad = leat_grad_none},
    {.name = "DecodeJpeg",
     .inputs = "contents: string",
     .outputs = "image: uint8",
     .attrs = JPEG_ATTRS,
     .shape = decode_shape,
     .grad = leat_grad_none},
    {.name = "DecodeAndCropJpeg",
     .inputs = "contents: string, crop_window: int32",
     .outputs = "image: uint8",
     .attrs = JPEG_ATTRS,
     .shape = decode_crop_shape,
     .grad = leat_grad_none},
    {.name = "DecodeGif",
     .inputs = "contents: string",
     .outputs = "image: uint8",
     .shape = decode_gif_shape,
     .grad = leat_grad_none},
    {.name = "DecodeBmp",
     .inputs = "contents: string",
     .outputs = "image: uint8",
     .attrs = "channels: int = 0",
     .shape = decode_shape,
     .grad = leat_grad_none},
    {.name = "DecodeImage", /* of TensorFlow 2 */
     .inputs = "contents: string",
     .outputs = "image: dtype",
     .attrs = "channels: int = 0; dtype: {uint8, uint16, float} = DT_UINT8; "
              "expand_animations: bool = true",
     .shape = decode_any_shape,
     .grad = leat_grad_none},
    {.name = "EncodePng",
     .inputs = "image: T",
     .outputs = "contents: string",
     .attrs = "compression: int = -1; T: {uint8, uint16} = DT_UINT8",
     .shape = encode_shape,
     .grad = leat_grad_none},
    {.name = "EncodeJpeg",
     .inputs = "image: uint8",
     .outputs = "contents: string",
     .attrs = "format: {'', 'grayscale', 'rgb'} = ''; quality: int = 95; "
              "progressive: bool = false; optimize_size: bool = false; "
              "chroma_downsampling: bool = true; density_unit: {'in', 'cm'} = 'in'; "
              "x_density: int = 300; y_density: int = 300; xmp_metadata: string = ''",
     .shape = encode_shape,
     .grad = leat_grad_none},
    {.name = "EncodeJpegVariableQuality",
     .inputs = "images: uint8, quality: int32",
     .outputs = "contents: string",
     .shape = encode_shape,
     .grad = leat_grad_none},
    {.name = "ExtractJpegShape",
     .inputs = "contents: string",
     .outputs = "image_shape: output_type",
     .attrs = "output_type: {int32, int64} = DT_INT32",
     .shape = jpeg_shape_shape,
     .grad = leat_grad_none},
    {0},
};
