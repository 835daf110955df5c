/* image_boxes.c -- DrawBoundingBoxes, DrawBoundingBoxesV2, SampleDistortedBoundingBox,
 * SampleDistortedBoundingBoxV2. */
#include "kernels/cpu/distributions.h"
#include "kernels/cpu/random.h"

/* ---- DrawBoundingBoxes ---- */

enum { COLORS = 10 };
static const float default_colors[COLORS][4] = {
    {1, 1, 0, 1},     /* yellow */
    {0, 0, 1, 1},     /* blue */
    {1, 0, 0, 1},     /* red */
    {0, 1, 0, 1},     /* lime */
    {.5f, 0, .5f, 1}, /* purple */
    {.5f, .5f, 0, 1}, /* olive */
    {.5f, 0, 0, 1},   /* maroon */
    {0, 0, .5f, 1},   /* navy */
    {0, 1, 1, 1},     /* aqua */
    {1, 0, 1, 1},     /* fuchsia */
};

typedef struct canvas {
    float *image; /* (height, width, depth) */
    int64_t height, width, depth;
} canvas;

/* The pixel of a coordinate; NaN and what is far away lie outside. */
static int64_t pixel_of(float at, int64_t size)
{
    const float v = at * (float)(size - 1), far = 4e18f;
    return v != v || v < -far ? -(int64_t)far : v > far ? (int64_t)far : (int64_t)v;
}

/* A line of pixels from (y0, x0) to (y1, x1), which lies in the image. */
static void draw_line(const canvas *c, int64_t y0, int64_t x0, int64_t y1, int64_t x1,
                      const float *color)
{
    for (int64_t y = y0; y <= y1; y++)
        for (int64_t x = x0; x <= x1; x++)
            memcpy(c->image + (y * c->width + x) * c->depth, color,
                   (size_t)c->depth * sizeof(float));
}

static void draw_box(const canvas *c, const float *box, const float *color)
{
    const int64_t top = pixel_of(box[0], c->height), left = pixel_of(box[1], c->width);
    const int64_t bottom = pixel_of(box[2], c->height), right = pixel_of(box[3], c->width);
    if (top > bottom || left > right || top >= c->height || bottom < 0 || left >= c->width ||
        right < 0)
        return;
    const int64_t y0 = top > 0 ? top : 0, y1 = bottom < c->height ? bottom : c->height - 1;
    const int64_t x0 = left > 0 ? left : 0, x1 = right < c->width ? right : c->width - 1;
    if (top >= 0)
        draw_line(c, top, x0, top, x1, color);
    if (bottom < c->height)
        draw_line(c, bottom, x0, bottom, x1, color);
    if (left >= 0)
        draw_line(c, y0, left, y1, left, color);
    if (right < c->width)
        draw_line(c, y0, right, y1, right, color);
}

static leat_status draw_run(leat_kernel *k)
{
    const leat_tensor *images = leat_kernel_in(k, 0), *boxes = leat_kernel_in(k, 1);
    const leat_shape *s = &images->shape;
    LEAT_REQUIRE(s->rank == 4, INVALID_ARGUMENT, "The rank of the images should be 4");
    LEAT_REQUIRE(boxes->shape.rank == 3, INVALID_ARGUMENT,
                 "The rank of the boxes tensor should be 3");
    LEAT_REQUIRE(s->dim[0] == boxes->shape.dim[0], INVALID_ARGUMENT,
                 "The batch sizes should be the same");
    canvas c = {.height = s->dim[1], .width = s->dim[2], .depth = s->dim[3]};
    LEAT_REQUIRE(c.depth == 1 || c.depth == 3 || c.depth == 4, INVALID_ARGUMENT,
                 "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
    LEAT_REQUIRE(boxes->shape.dim[2] == 4, INVALID_ARGUMENT,
                 "The size of the third dimension of the box must be 4. Received: %lld",
                 (long long)boxes->shape.dim[2]);
    LEAT_REQUIRE((c.height > 0 && c.width > 0) || boxes->count == 0, INVALID_ARGUMENT,
                 "images without pixels have no boxes: %s", leat_shape_show(s).s);
    const float *colors = default_colors[0];
    int64_t n = COLORS, row = 4;
    if (leat_kernel_inputs(k) > 2) {
        const leat_tensor *t = leat_kernel_in(k, 2);
        LEAT_REQUIRE(t->shape.rank == 2, INVALID_ARGUMENT, "colors must be a 2-D matrix%s",
                     leat_shape_show(&t->shape).s);
        LEAT_REQUIRE(t->shape.dim[1] >= c.depth, INVALID_ARGUMENT,
                     "colors must have equal or more channels than the image provided: %s",
                     leat_shape_show(&t->shape).s);
        if (t->count > 0) {
            colors = AT(const float, t);
            n = t->shape.dim[0];
            row = t->shape.dim[1];
        }
    }
    const bool gray = c.depth == 1 && colors == default_colors[0];
    static const float white[] = {1};
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, s, &y));
    memcpy(y->data, images->data, (size_t)y->count * sizeof(float));
    leat_look look = leat_look_begin(k);
    for (int64_t b = 0; b < s->dim[0]; b++) {
        c.image = AT(float, y) + b * c.height * c.width * c.depth;
        for (int64_t i = 0; i < boxes->shape.dim[1]; i++) {
            if (leat_look_over(&look, 2 * (c.height + c.width) * c.depth))
                return leat_kernel_check(k);
            draw_box(&c, AT(const float, boxes) + 4 * (b * boxes->shape.dim[1] + i),
                     gray ? white : colors + i % n * row);
        }
    }
    return NULL;
}

/* ---- SampleDistortedBoundingBox ---- */

typedef struct rectangle {
    int32_t left, top, right, bottom;
} rectangle;

/* As a float of what 32 bits hold, as in TensorFlow. */
static float area_of(rectangle r)
{
    return (float)(int32_t)((uint32_t)(r.right - r.left) * (uint32_t)(r.bottom - r.top));
}

static rectangle common(rectangle a, rectangle b)
{
    const rectangle r = {a.left > b.left ? a.left : b.left, a.top > b.top ? a.top : b.top,
                         a.right < b.right ? a.right : b.right,
                         a.bottom < b.bottom ? a.bottom : b.bottom};
    return r.left > r.right || r.top > r.bottom ? (rectangle){0} : r;
}

typedef struct sample {
    int32_t height, width;
    float area[2], aspect[2], covered; /* what a crop must satisfy */
    const float *boxes;                /* (n, 4) */
    int64_t n;
    leat_philox_single random;
} sample;

static rectangle box_of(const sample *s, int64_t i)
{
    if (s->n == 0)
        return (rectangle){0, 0, s->width, s->height};
    const float *b = s->boxes + 4 * i;
    return (rectangle){(int32_t)(b[1] * (float)s->width), (int32_t)(b[0] * (float)s->height),
                       (int32_t)(b[3] * (float)s->width), (int32_t)(b[2] * (float)s->height)};
}

/* Whether a crop covers enough of one of the boxes. */
static bool covers(const sample *s, rectangle crop)
{
    if (area_of(crop) < 1)
        return false;
    for (int64_t i = 0; i < (s->n ? s->n : 1); i++) {
        const rectangle box = box_of(s, i);
        const float area = area_of(box);
        if (area >= 1 && area_of(common(crop, box)) / area >= s->covered)
            return true;
    }
    return false;
}

/* A number below n, without bias. */
static uint32_t below(leat_philox_single *random, uint32_t n)
{
    if ((n & (n - 1)) == 0)
        return leat_philox_one(random) & (n - 1);
    const uint32_t skewed = UINT32_MAX % n + 1;
    uint32_t x;
    do
        x = leat_philox_one(random);
    while (x < skewed);
    return x % n;
}

/* A float rounded to the nearest int32; floats beyond are the ends of the range. */
static int32_t rounded(float x)
{
    return x >= 2147483647.0f ? INT32_MAX : x <= -2147483648.0f ? INT32_MIN : (int32_t)lrintf(x);
}

/* A random crop of this aspect ratio; false if there is none of the allowed area. */
static bool draw_crop(sample *s, float aspect, rectangle *out)
{
    const float least = s->area[0] * (float)s->width * (float)s->height;
    const float most = s->area[1] * (float)s->width * (float)s->height;
    if (s->area[1] <= 0 || !(aspect > 0) || s->width <= 0 || s->height <= 0 ||
        s->area[0] > s->area[1])
        return false;
    int32_t height = rounded(sqrtf(least / aspect)), tallest = rounded(sqrtf(most / aspect));
    if (rounded((float)tallest * aspect) > s->width) {
        const float epsilon = 0.0000001f;
        const double t = (s->width + 0.5 - epsilon) / aspect;
        tallest = t < INT32_MAX ? (int32_t)t : INT32_MAX;
    }
    if (tallest > s->height)
        tallest = s->height;
    if (height >= tallest)
        height = tallest;
    else
        height += (int32_t)below(&s->random, (uint32_t)(tallest - height + 1));
    int32_t width = rounded((float)height * aspect);
    float area = (float)((double)width * height);
    if (area < least) { /* maybe by rounding: a larger one */
        height += 1;
        width = rounded((float)height * aspect);
        area = (float)((double)width * height);
    }
    if (area > most) {
        height -= 1;
        width = rounded((float)height * aspect);
        area = (float)((double)width * height);
    }
    if (area < least || area > most || width > s->width || height > s->height || width <= 0 ||
        height <= 0)
        return false;
    int32_t y = 0, x = 0;
    if (height < s->height)
        y = (int32_t)below(&s->random, (uint32_t)(s->height - height));
    if (width < s->width)
        x = (int32_t)below(&s->random, (uint32_t)(s->width - width));
    *out = (rectangle){x, y, x + width, y + height};
    return true;
}

static leat_status read_range(const leat_node *n, const char *attr, const char *name, float out[2])
{
    int count;
    const double *v = leat_node_floats(n, attr, &count);
    LEAT_REQUIRE(count == 2, INVALID_ARGUMENT, "%s range field must specify 2 dimensions", name);
    out[0] = (float)v[0];
    out[1] = (float)v[1];
    LEAT_REQUIRE(out[0] > 0 && out[1] > 0, INVALID_ARGUMENT,
                 "%s range must be non-negative: [%g, %g]", name, (double)out[0], (double)out[1]);
    return NULL;
}

static leat_status read_attrs(leat_kernel *k, sample *s, int64_t *attempts)
{
    const leat_node *n = leat_kernel_node(k);
    LEAT_TRY(read_range(n, "aspect_ratio_range", "Aspect ratio", s->aspect));
    LEAT_TRY(read_range(n, "area_range", "Area", s->area));
    LEAT_REQUIRE(s->area[0] <= 1 && s->area[1] <= 1, INVALID_ARGUMENT,
                 "Area range must be less then or equal to 1.0: [%g, %g]", (double)s->area[0],
                 (double)s->area[1]);
    *attempts = leat_node_int(n, "max_attempts");
    LEAT_REQUIRE(*attempts > 0 && *attempts <= INT32_MAX, INVALID_ARGUMENT,
                 "Max attempts must be non-negative: %lld", (long long)*attempts);
    if (leat_kernel_inputs(k) > 2) {
        const leat_tensor *t = leat_kernel_in(k, 2);
        LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                     "min_object_covered must be 0-D, got shape %s", leat_shape_show(&t->shape).s);
        s->covered = AT(float, t)[0];
    } else {
        s->covered = (float)leat_node_float(n, "min_object_covered");
    }
    LEAT_REQUIRE(s->covered >= 0, INVALID_ARGUMENT, "Min object covered must be non-negative: %g",
                 (double)s->covered);
    return NULL;
}

static leat_status read_size(const leat_tensor *size, int i, const char *name, int32_t *out)
{
    int64_t v = 0;
    switch (size->dtype) {
        LEAT_CASES(SIGNED, v = AT(T, size)[i])
        LEAT_CASE(UINT8, uint8_t, v = AT(T, size)[i])
    default:
        break;
    }
    LEAT_REQUIRE(v >= 0 && v < INT32_MAX, INVALID_ARGUMENT, "image %s cannot be >= int32 max",
                 name);
    *out = (int32_t)v;
    return NULL;
}

static leat_status read_boxes(leat_kernel *k, sample *s)
{
    const leat_tensor *size = leat_kernel_in(k, 0), *boxes = leat_kernel_in(k, 1);
    LEAT_REQUIRE(size->shape.rank == 1, INVALID_ARGUMENT, "image_size must be 1-dimensional%s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(size->count == 3, INVALID_ARGUMENT, "image_size must contain 3 elements%s",
                 leat_shape_show(&size->shape).s);
    LEAT_TRY(read_size(size, 0, "height", &s->height));
    LEAT_TRY(read_size(size, 1, "width", &s->width));
    LEAT_REQUIRE(boxes->shape.rank == 3, INVALID_ARGUMENT,
                 "input boxes must be 3-dimensional [batch, num_boxes, coords]: %s",
                 leat_shape_show(&boxes->shape).s);
    LEAT_REQUIRE(boxes->shape.dim[2] == 4, INVALID_ARGUMENT,
                 "bounding boxes must have shape [4] or [*, 4], got %s",
                 leat_shape_show(&boxes->shape).s);
    s->boxes = AT(const float, boxes);
    s->n = boxes->count / 4;
    for (int64_t i = 0; i < boxes->count; i++)
        LEAT_REQUIRE(s->boxes[i] >= 0 && s->boxes[i] <= 1, INVALID_ARGUMENT,
                     "All bounding box coordinates must be in [0.0, 1.0]: %g", (double)s->boxes[i]);
    LEAT_REQUIRE(s->n > 0 || leat_node_bool(leat_kernel_node(k), "use_image_if_no_bounding_boxes"),
                 INVALID_ARGUMENT,
                 "No bounding boxes provided as input. One must enable "
                 "use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes.");
    return NULL;
}

/* begin, size: arguments for Slice, in the dtype of image_size; bboxes: the crop as a box. */
static leat_status put_crop(leat_kernel *k, const sample *s, rectangle crop)
{
    const int64_t rows[2][3] = {{crop.top, crop.left, 0},
                                {crop.bottom - crop.top, crop.right - crop.left, -1}};
    leat_tensor *y;
    for (int i = 0; i < 2; i++) {
        LEAT_TRY(leat_kernel_out(k, i, &(leat_shape){1, {3}}, &y));
        for (int j = 0; j < 3; j++)
            switch (y->dtype) {
                LEAT_CASES(SIGNED, AT(T, y)[j] = (T)rows[i][j])
                LEAT_CASE(UINT8, uint8_t, AT(T, y)[j] = (T)rows[i][j])
            default:
                break;
            }
    }
    LEAT_TRY(leat_kernel_out(k, 2, &(leat_shape){3, {1, 1, 4}}, &y));
    AT(float, y)[0] = (float)crop.top / (float)s->height;
    AT(float, y)[1] = (float)crop.left / (float)s->width;
    AT(float, y)[2] = (float)crop.bottom / (float)s->height;
    AT(float, y)[3] = (float)crop.right / (float)s->width;
    return NULL;
}

static leat_status sample_run(leat_kernel *k)
{
    sample s = {0};
    int64_t attempts = 0;
    leat_philox stream;
    LEAT_TRY(read_attrs(k, &s, &attempts));
    LEAT_TRY(read_boxes(k, &s));
    LEAT_TRY(leat_random_reserve(k, (uint64_t)attempts, &stream));
    s.random = (leat_philox_single){.gen = &stream, .used = 4};
    enum { CROP = 64 }; /* elements whose time it takes to draw a crop */
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < attempts; i++) {
        rectangle crop;
        const float aspect =
            leat_uniform_float(leat_philox_one(&s.random)) * (s.aspect[1] - s.aspect[0]) +
            s.aspect[0];
        if (draw_crop(&s, aspect, &crop) && covers(&s, crop))
            return put_crop(k, &s, crop);
        if (leat_look_over(&look, CROP + 8 * s.n))
            return leat_kernel_check(k);
    }
    return put_crop(k, &s, (rectangle){0, 0, s.width, s.height});
}

#define SAMPLE(op_)                                                                                \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_TYPES_SIGNED | LEAT_T(UINT8)}}, .run = sample_run,         \
        .state_size = LEAT_RANDOM_STATE, .release = leat_random_release                            \
    }

const leat_kernel_def leat_cpu_image_boxes[] = {
    {.op = "DrawBoundingBoxes",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = draw_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "DrawBoundingBoxesV2",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = draw_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    SAMPLE("SampleDistortedBoundingBox"),
    SAMPLE("SampleDistortedBoundingBoxV2"),
    {0},
};
