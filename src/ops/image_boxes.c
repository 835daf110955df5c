/* image_boxes.c -- ops on boxes in images, each (y1, x1, y2, x2): DrawBoundingBoxes,
 * SampleDistortedBoundingBox, NonMaxSuppression and its versions, CombinedNonMaxSuppression. */
#include "ops/image_util.h"

static leat_status draw_shape(leat_infer *c)
{
    leat_shape images, boxes;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &images));
    const int64_t depth = images.dim[3];
    LEAT_REQUIRE(depth < 0 || depth == 1 || depth == 3 || depth == 4, INVALID_ARGUMENT,
                 "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
    LEAT_TRY(leat_infer_rank(c, 1, 3, &boxes));
    LEAT_TRY(leat_dim_is(boxes.dim[2], 4));
    return leat_shape_unchanged(c);
}

static leat_status draw_shape2(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 3, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status sample_shape(leat_infer *c)
{
    leat_shape size, boxes;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &size));
    LEAT_TRY(leat_infer_rank(c, 1, 3, &boxes));
    LEAT_TRY(leat_infer_scalars(c, 2, leat_infer_inputs(c)));
    LEAT_TRY(leat_dim_is(size.dim[0], 3));
    LEAT_TRY(leat_dim_is(boxes.dim[2], 4));
    leat_infer_out(c, 0, leat_shape(3));
    leat_infer_out(c, 1, leat_shape(3));
    leat_infer_out(c, 2, leat_shape(1, 1, 4));
    return NULL;
}

/* Scalar input i as a dimension, -1 if it is not known. */
static leat_status scalar_dim(leat_infer *c, int i, int64_t *out)
{
    *out = -1;
    if (leat_infer_int(c, i, out))
        LEAT_REQUIRE(*out >= 0, INVALID_ARGUMENT,
                     "Dimension size, given by scalar input %d, must be non-negative but is "
                     "%" PRId64,
                     i, *out);
    return NULL;
}

/* Boxes (or overlaps), scores, then scalars. The last output is a scalar where there are several;
 * the others are vectors of the same size. */
static leat_status suppress(leat_infer *c, bool overlaps)
{
    leat_shape boxes, scores;
    int64_t n;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &boxes));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &scores));
    LEAT_TRY(leat_infer_scalars(c, 2, leat_infer_inputs(c)));
    LEAT_TRY(leat_dim_merge(boxes.dim[0], scores.dim[0], &n));
    if (overlaps)
        LEAT_TRY(leat_dim_merge(boxes.dim[0], boxes.dim[1], &n));
    else
        LEAT_TRY(leat_dim_is(boxes.dim[1], 4));
    int64_t selected = -1;
    if (leat_node_has(leat_infer_node(c), "pad_to_max_output_size") &&
        leat_node_bool(leat_infer_node(c), "pad_to_max_output_size"))
        LEAT_TRY(scalar_dim(c, 2, &selected));
    const int outputs = leat_infer_outputs(c);
    for (int i = 0; i < outputs; i++)
        leat_infer_out(c, i, i > 0 && i == outputs - 1 ? leat_shape() : leat_shape(selected));
    return NULL;
}

static leat_status suppress_shape(leat_infer *c)
{
    return suppress(c, false);
}

static leat_status overlaps_shape(leat_infer *c)
{
    return suppress(c, true);
}

static leat_status combined_shape(leat_infer *c)
{
    leat_shape boxes, scores;
    int64_t batch, unused, total, each;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &boxes));
    LEAT_TRY(leat_infer_rank(c, 1, 3, &scores));
    LEAT_TRY(leat_infer_scalars(c, 2, 6));
    LEAT_TRY(leat_dim_merge(boxes.dim[0], scores.dim[0], &batch));
    LEAT_TRY(leat_dim_merge(boxes.dim[1], scores.dim[1], &unused));
    LEAT_TRY(leat_dim_is(boxes.dim[3], 4));
    const int64_t q = boxes.dim[2], classes = scores.dim[2];
    LEAT_REQUIRE(q < 0 || classes < 0 || q == 1 || q == classes, INVALID_ARGUMENT,
                 "third dimension of boxes must be either 1 or equal to the third dimension of "
                 "scores");
    LEAT_TRY(scalar_dim(c, 3, &total));
    LEAT_REQUIRE(total != 0, INVALID_ARGUMENT, "max_total_size should be > 0 ");
    LEAT_TRY(scalar_dim(c, 2, &each));
    int64_t size = total;
    if (leat_node_bool(leat_infer_node(c), "pad_per_class")) {
        LEAT_REQUIRE(each != 0, INVALID_ARGUMENT,
                     "max_output_size_per_class must be > 0 if pad_per_class is set to true ");
        int64_t all;
        LEAT_TRY(leat_dim_mul(each, classes, &all));
        size = total < 0 || all < 0 ? -1 : all < total ? all : total;
    }
    leat_infer_out(c, 0, leat_shape(boxes.dim[0], size, 4));
    leat_infer_out(c, 1, leat_shape(boxes.dim[0], size));
    leat_infer_out(c, 2, leat_shape(boxes.dim[0], size));
    leat_infer_out(c, 3, leat_shape(boxes.dim[0]));
    return NULL;
}

#define HALF_FLOAT "{half, float} = DT_FLOAT"
#define SAMPLE                                                                                     \
    "T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0; "                       \
    "aspect_ratio_range: list(float) = [0.75, 1.33]; area_range: list(float) = [0.05, 1.0]; "      \
    "max_attempts: int = 100; use_image_if_no_bounding_boxes: bool = false"

const leat_op_def leat_ops_image_boxes[] = {
    {.name = "DrawBoundingBoxes",
     .inputs = "images: T, boxes: float",
     .outputs = "output: T",
     .attrs = "T: {float, half} = DT_FLOAT",
     .shape = draw_shape,
     .grad = leat_grad_none},
    {.name = "DrawBoundingBoxesV2",
     .inputs = "images: T, boxes: float, colors: float",
     .outputs = "output: T",
     .attrs = "T: {float, half} = DT_FLOAT",
     .shape = draw_shape2,
     .grad = leat_grad_missing},
    {.name = "SampleDistortedBoundingBox",
     .inputs = "image_size: T, bounding_boxes: float",
     .outputs = "begin: T, size: T, bboxes: float",
     .attrs = SAMPLE "; min_object_covered: float = 0.1",
     .shape = sample_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "SampleDistortedBoundingBoxV2",
     .inputs = "image_size: T, bounding_boxes: float, min_object_covered: float",
     .outputs = "begin: T, size: T, bboxes: float",
     .attrs = SAMPLE,
     .shape = sample_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "NonMaxSuppression",
     .inputs = "boxes: float, scores: float, max_output_size: int32",
     .outputs = "selected_indices: int32",
     .attrs = "iou_threshold: float = 0.5",
     .shape = suppress_shape,
     .grad = leat_grad_none},
    {.name = "NonMaxSuppressionV2",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold",
     .outputs = "selected_indices: int32",
     .attrs = "T: " HALF_FLOAT "; T_threshold: " HALF_FLOAT,
     .shape = suppress_shape,
     .grad = leat_grad_none},
    {.name = "NonMaxSuppressionV3",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, "
               "score_threshold: T_threshold",
     .outputs = "selected_indices: int32",
     .attrs = "T: " HALF_FLOAT "; T_threshold: " HALF_FLOAT,
     .shape = suppress_shape,
     .grad = leat_grad_missing},
    {.name = "NonMaxSuppressionV4",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, "
               "score_threshold: T_threshold",
     .outputs = "selected_indices: int32, valid_outputs: int32",
     .attrs =
         "T: " HALF_FLOAT "; T_threshold: " HALF_FLOAT "; pad_to_max_output_size: bool = false",
     .shape = suppress_shape,
     .grad = leat_grad_missing},
    {.name = "NonMaxSuppressionV5",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, "
               "score_threshold: T, soft_nms_sigma: T",
     .outputs = "selected_indices: int32, selected_scores: T, valid_outputs: int32",
     .attrs = "T: " HALF_FLOAT "; pad_to_max_output_size: bool = false",
     .shape = suppress_shape,
     .grad = leat_grad_missing},
    {.name = "NonMaxSuppressionWithOverlaps",
     .inputs = "overlaps: float, scores: float, max_output_size: int32, "
               "overlap_threshold: float, score_threshold: float",
     .outputs = "selected_indices: int32",
     .attrs = "",
     .shape = overlaps_shape,
     .grad = leat_grad_none},
    {.name = "CombinedNonMaxSuppression",
     .inputs = "boxes: float, scores: float, max_output_size_per_class: int32, "
               "max_total_size: int32, iou_threshold: float, score_threshold: float",
     .outputs = "nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, "
                "valid_detections: int32",
     .attrs = "pad_per_class: bool = false; clip_boxes: bool = true",
     .shape = combined_shape,
     .grad = leat_grad_none},
    {0},
};
