/* image_crop.c -- CropAndResize, CropAndResizeGradImage, CropAndResizeGradBoxes: boxes of images,
 * resized to one size. A box is (y1, x1, y2, x2); 0 and 1 are the first and the last pixel. */
#include "kernels/cpu/image_resize.h"

typedef struct crop {
    const leat_tensor *image; /* (batch, height, width, depth); in GradImage the output */
    const leat_tensor *boxes; /* (n, 4) */
    const leat_tensor *index; /* (n): the image of each box */
    const leat_tensor *grads; /* (n, crop height, crop width, depth), the ops for gradients */
    leat_tensor *y;
    int64_t n, batch, height, width, depth, crop_height, crop_width;
    bool nearest;
    float outside;            /* the value of pixels outside of the image */
    const leat_lerp *columns; /* (n, crop width); lower is -1 outside of the image */
} crop;

static leat_status check_boxes(crop *c)
{
    c->n = 0;
    if (c->boxes->count == 0 && c->index->count == 0)
        return NULL;
    LEAT_REQUIRE(c->boxes->shape.rank == 2, INVALID_ARGUMENT, "boxes must be 2-D%s",
                 leat_shape_show(&c->boxes->shape).s);
    LEAT_REQUIRE(c->boxes->shape.dim[1] == 4, INVALID_ARGUMENT, "boxes must have 4 columns");
    LEAT_REQUIRE(c->index->shape.rank == 1, INVALID_ARGUMENT, "box_index must be 1-D%s",
                 leat_shape_show(&c->index->shape).s);
    c->n = c->boxes->shape.dim[0];
    LEAT_REQUIRE(c->index->count == c->n, INVALID_ARGUMENT, "box_index has incompatible shape");
    return NULL;
}

static leat_status check_index(const crop *c)
{
    for (int64_t i = 0; i < c->n; i++)
        LEAT_REQUIRE(AT(int32_t, c->index)[i] >= 0 && AT(int32_t, c->index)[i] < c->batch,
                     OUT_OF_RANGE, "box_index has values outside [0, batch_size)");
    return NULL;
}

static leat_status set_image(crop *c, const leat_shape *s)
{
    c->batch = s->dim[0];
    c->height = s->dim[1];
    c->width = s->dim[2];
    c->depth = s->dim[3];
    LEAT_REQUIRE(c->height > 0 && c->width > 0, INVALID_ARGUMENT,
                 "image dimensions must be positive");
    LEAT_REQUIRE(c->height <= INT32_MAX && c->width <= INT32_MAX, INVALID_ARGUMENT,
                 "image dimensions must not exceed max int32");
    return NULL;
}

/* Where pixel i of a crop lies in the image, along one dimension, for a box from `from` to `to`. */
static float crop_at(int64_t i, int64_t crop_size, int64_t size, float from, float to)
{
    if (crop_size <= 1)
        return (float)(0.5 * (from + to) * (double)(size - 1));
    const float scale = (to - from) * (float)(size - 1) / (float)(crop_size - 1);
    return from * (float)(size - 1) + (float)i * scale;
}

static leat_lerp lerp_at(float at, int64_t size)
{
    if (!(at >= 0 && at <= (float)(size - 1)))
        return (leat_lerp){.lower = -1};
    const int64_t lower = leat_resize_bound((int64_t)floorf(at), size);
    return (leat_lerp){(int32_t)lower, (int32_t)leat_resize_bound((int64_t)ceilf(at), size),
                       at - (float)lower};
}

/* The pixel nearest to it; its weight is not used. */
static leat_lerp nearest_at(float at, int64_t size)
{
    if (!(at >= 0 && at <= (float)(size - 1)))
        return (leat_lerp){.lower = -1};
    const int64_t i = leat_resize_bound((int64_t)roundf(at), size);
    return (leat_lerp){(int32_t)i, (int32_t)i, 0};
}

static leat_lerp find(const crop *c, float at, int64_t size)
{
    return c->nearest ? nearest_at(at, size) : lerp_at(at, size);
}

static leat_lerp row_of(const crop *c, int64_t box, int64_t y)
{
    const float *b = AT(const float, c->boxes) + 4 * box;
    return find(c, crop_at(y, c->crop_height, c->height, b[0], b[2]), c->height);
}

static leat_status find_columns(leat_kernel *k, crop *c)
{
    leat_lerp *v;
    LEAT_TRY(leat_resize_temp(k, c->n * c->crop_width, sizeof(*v), &v));
    for (int64_t i = 0; i < c->n; i++) {
        const float *b = AT(const float, c->boxes) + 4 * i;
        for (int64_t x = 0; x < c->crop_width; x++)
            v[i * c->crop_width + x] =
                find(c, crop_at(x, c->crop_width, c->width, b[1], b[3]), c->width);
    }
    c->columns = v;
    return NULL;
}

/* ---- CropAndResize ---- */

static void fill(float *y, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = value;
}

/* Rows [begin, end) of the crops, counted over all boxes. */
#define CROP(dtype, T)                                                                             \
    static void crop_##T(void *arg, int64_t begin, int64_t end)                                    \
    {                                                                                              \
        const crop *c = arg;                                                                       \
        const int64_t depth = c->depth, row = c->width * depth;                                    \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const int64_t box = i / c->crop_height;                                                \
            const leat_lerp v = row_of(c, box, i % c->crop_height);                                \
            float *y = AT(float, c->y) + i * c->crop_width * depth;                                \
            if (v.lower < 0) {                                                                     \
                fill(y, c->crop_width *depth, c->outside);                                         \
                continue;                                                                          \
            }                                                                                      \
            const T *image = AT(const T, c->image) + AT(int32_t, c->index)[box] * c->height * row; \
            const T *top = image + v.lower * row, *bottom = image + v.upper * row;                 \
            for (int64_t x = 0; x < c->crop_width; x++, y += depth) {                              \
                const leat_lerp h = c->columns[box * c->crop_width + x];                           \
                if (h.lower < 0) {                                                                 \
                    fill(y, depth, c->outside);                                                    \
                    continue;                                                                      \
                }                                                                                  \
                const T *a = top + h.lower * depth, *b = top + h.upper * depth;                    \
                const T *d = bottom + h.lower * depth, *e = bottom + h.upper * depth;              \
                LEAT_SIMD                                                                          \
                for (int64_t j = 0; j < depth; j++) {                                              \
                    const float up = (float)a[j] + ((float)b[j] - (float)a[j]) * h.weight;         \
                    const float down = (float)d[j] + ((float)e[j] - (float)d[j]) * h.weight;       \
                    y[j] = up + (down - up) * v.weight;                                            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
LEAT_X_IMAGE(CROP)

static leat_status crop_run(leat_kernel *k)
{
    const leat_tensor *size = leat_kernel_in(k, 3);
    const leat_node *n = leat_kernel_node(k);
    crop c = {.image = leat_kernel_in(k, 0),
              .boxes = leat_kernel_in(k, 1),
              .index = leat_kernel_in(k, 2),
              .nearest = !strcmp(leat_node_string(n, "method"), "nearest"),
              .outside = (float)leat_node_float(n, "extrapolation_value")};
    LEAT_REQUIRE(c.image->shape.rank == 4, INVALID_ARGUMENT, "input image must be 4-D%s",
                 leat_shape_show(&c.image->shape).s);
    LEAT_TRY(set_image(&c, &c.image->shape));
    LEAT_TRY(check_boxes(&c));
    LEAT_REQUIRE(size->shape.rank == 1, INVALID_ARGUMENT, "crop_size must be 1-D%s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(size->count == 2, INVALID_ARGUMENT, "crop_size must have two elements%s",
                 leat_shape_show(&size->shape).s);
    c.crop_height = AT(int32_t, size)[0];
    c.crop_width = AT(int32_t, size)[1];
    LEAT_REQUIRE(c.crop_height > 0 && c.crop_width > 0, INVALID_ARGUMENT,
                 "crop dimensions must be positive");
    LEAT_TRY(
        leat_kernel_out(k, 0, &(leat_shape){4, {c.n, c.crop_height, c.crop_width, c.depth}}, &c.y));
    LEAT_TRY(check_index(&c));
    if (c.y->count == 0)
        return NULL;
    LEAT_TRY(find_columns(k, &c));
    static void (*const crops[])(void *, int64_t, int64_t) = {
#define ENTRY(dtype, T) [LEAT_##dtype] = crop_##T,
        LEAT_X_IMAGE(ENTRY)};
    leat_kernel_for(k, c.n * c.crop_height, 2 * (double)(c.crop_width * (c.depth + 4)),
                    crops[c.image->dtype], &c);
    return NULL;
}

/* ---- The gradient of the image ---- */

/* Images [begin, end): each adds what its boxes say, in their order. */
#define SPREAD(dtype, T)                                                                           \
    static void spread_box_##T(const crop *c, int64_t box)                                         \
    {                                                                                              \
        const int64_t depth = c->depth, row = c->width * depth;                                    \
        T *image = AT(T, c->y) + AT(int32_t, c->index)[box] * c->height * row;                     \
        for (int64_t y = 0; y < c->crop_height; y++) {                                             \
            const leat_lerp v = row_of(c, box, y);                                                 \
            const float *g =                                                                       \
                AT(const float, c->grads) + (box * c->crop_height + y) * c->crop_width * depth;    \
            for (int64_t x = 0; v.lower >= 0 && x < c->crop_width; x++, g += depth) {              \
                const leat_lerp h = c->columns[box * c->crop_width + x];                           \
                if (h.lower < 0)                                                                   \
                    continue;                                                                      \
                T *top = image + v.lower * row, *bottom = image + v.upper * row;                   \
                const int64_t left = h.lower * depth, right = h.upper * depth;                     \
                for (int64_t d = 0; d < depth; d++) {                                              \
                    if (c->nearest) {                                                              \
                        top[left + d] += (T)g[d];                                                  \
                        continue;                                                                  \
                    }                                                                              \
                    const float up = (1 - v.weight) * g[d], down = v.weight * g[d];                \
                    top[left + d] += (T)((1 - h.weight) * up);                                     \
                    top[right + d] += (T)(h.weight * up);                                          \
                    bottom[left + d] += (T)((1 - h.weight) * down);                                \
                    bottom[right + d] += (T)(h.weight * down);                                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void spread_##T(void *arg, int64_t begin, int64_t end)                                  \
    {                                                                                              \
        const crop *c = arg;                                                                       \
        for (int64_t box = 0; box < c->n; box++)                                                   \
            if (AT(int32_t, c->index)[box] >= begin && AT(int32_t, c->index)[box] < end)           \
                spread_box_##T(c, box);                                                            \
    }
LEAT_X_FLOAT(SPREAD)

/* Crops of gradients: (n, crop height, crop width, depth). */
static leat_status set_grads(crop *c)
{
    const leat_shape *s = &c->grads->shape;
    LEAT_REQUIRE(s->rank == 4, INVALID_ARGUMENT, "grads image must be 4-D%s", leat_shape_show(s).s);
    c->crop_height = s->dim[1];
    c->crop_width = s->dim[2];
    LEAT_REQUIRE(c->crop_height > 0 && c->crop_width > 0, INVALID_ARGUMENT,
                 "grads dimensions must be positive");
    return NULL;
}

static leat_status grad_image_run(leat_kernel *k)
{
    const leat_tensor *size = leat_kernel_in(k, 3);
    crop c = {.grads = leat_kernel_in(k, 0),
              .boxes = leat_kernel_in(k, 1),
              .index = leat_kernel_in(k, 2),
              .nearest = !strcmp(leat_node_string(leat_kernel_node(k), "method"), "nearest")};
    LEAT_TRY(set_grads(&c));
    LEAT_TRY(check_boxes(&c));
    LEAT_REQUIRE(c.grads->shape.dim[0] == c.n, INVALID_ARGUMENT,
                 "boxes and grads have incompatible shape");
    LEAT_REQUIRE(size->shape.rank == 1, INVALID_ARGUMENT, "image_size must be 1-D%s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(size->count == 4, INVALID_ARGUMENT, "image_size must have 4 elements%s",
                 leat_shape_show(&size->shape).s);
    leat_shape image = {.rank = 4};
    for (int i = 0; i < 4; i++)
        image.dim[i] = AT(int32_t, size)[i];
    LEAT_TRY(set_image(&c, &image));
    LEAT_REQUIRE(c.grads->shape.dim[3] == c.depth, INVALID_ARGUMENT,
                 "image_size and grads are incompatible");
    LEAT_REQUIRE(c.batch >= 0, INVALID_ARGUMENT, "image_size must not be negative: %lld",
                 (long long)c.batch);
    LEAT_TRY(leat_kernel_out(k, 0, &image, &c.y));
    LEAT_TRY(check_index(&c));
    memset(c.y->data, 0, (size_t)c.y->count * leat_dtype_size(c.y->dtype));
    if (c.grads->count == 0 || c.y->count == 0)
        return NULL;
    LEAT_TRY(find_columns(k, &c));
    leat_kernel_for(k, c.batch, 4 * (double)c.grads->count / (double)c.batch,
                    c.y->dtype == LEAT_DOUBLE ? spread_double : spread_float, &c);
    return NULL;
}

/* ---- The gradient of the boxes ---- */

/* The part of a box's gradient along one dimension: from and to are its two coordinates. */
static void add_edges(float grad, int64_t i, int64_t crop_size, int64_t size, float *from,
                      float *to)
{
    if (crop_size > 1) {
        const float ratio = (float)(size - 1) / (float)(crop_size - 1);
        *from += grad * ((float)(size - 1) - (float)i * ratio);
        *to += grad * ((float)i * ratio);
    } else {
        const double half = grad * 0.5 * (double)(size - 1);
        *from = (float)(*from + half);
        *to = (float)(*to + half);
    }
}

/* Here TensorFlow computes positions in another order of operations. */
static float edge_at(int64_t i, int64_t crop_size, int64_t size, float from, float to)
{
    if (crop_size <= 1)
        return (float)(0.5 * (from + to) * (double)(size - 1));
    const float scale = (to - from) * ((float)(size - 1) / (float)(crop_size - 1));
    return from * (float)(size - 1) + (float)i * scale;
}

#define EDGES(dtype, T)                                                                            \
    static void edges_##T(void *arg, int64_t begin, int64_t end)                                   \
    {                                                                                              \
        const crop *c = arg;                                                                       \
        const int64_t depth = c->depth, row = c->width * depth;                                    \
        for (int64_t box = begin; box < end; box++) {                                              \
            const float *b = AT(const float, c->boxes) + 4 * box;                                  \
            const T *image = AT(const T, c->image) + AT(int32_t, c->index)[box] * c->height * row; \
            const float *g =                                                                       \
                AT(const float, c->grads) + box * c->crop_height * c->crop_width * depth;          \
            float sum[4] = {0};                                                                    \
            for (int64_t i = 0; i < c->crop_height * c->crop_width; i++, g += depth) {             \
                const int64_t y = i / c->crop_width, x = i % c->crop_width;                        \
                const leat_lerp v =                                                                \
                    lerp_at(edge_at(y, c->crop_height, c->height, b[0], b[2]), c->height);         \
                const leat_lerp h =                                                                \
                    lerp_at(edge_at(x, c->crop_width, c->width, b[1], b[3]), c->width);            \
                if (v.lower < 0 || h.lower < 0)                                                    \
                    continue;                                                                      \
                const T *top = image + v.lower * row, *bottom = image + v.upper * row;             \
                for (int64_t d = 0; d < depth; d++) {                                              \
                    const int64_t l = h.lower * depth + d, r = h.upper * depth + d;                \
                    const float tl = (float)top[l], tr = (float)top[r];                            \
                    const float bl = (float)bottom[l], br = (float)bottom[r];                      \
                    float by_y = (1 - h.weight) * (bl - tl) + h.weight * (br - tr);                \
                    float by_x = (1 - v.weight) * (tr - tl) + v.weight * (br - bl);                \
                    by_y *= g[d];                                                                  \
                    by_x *= g[d];                                                                  \
                    add_edges(by_y, y, c->crop_height, c->height, &sum[0], &sum[2]);               \
                    add_edges(by_x, x, c->crop_width, c->width, &sum[1], &sum[3]);                 \
                }                                                                                  \
            }                                                                                      \
            memcpy(AT(float, c->y) + 4 * box, sum, sizeof(sum));                                   \
        }                                                                                          \
    }
LEAT_X_IMAGE(EDGES)

static leat_status grad_boxes_run(leat_kernel *k)
{
    crop c = {.grads = leat_kernel_in(k, 0),
              .image = leat_kernel_in(k, 1),
              .boxes = leat_kernel_in(k, 2),
              .index = leat_kernel_in(k, 3)};
    LEAT_TRY(set_grads(&c));
    LEAT_REQUIRE(c.image->shape.rank == 4, INVALID_ARGUMENT, "input image must be 4-D%s",
                 leat_shape_show(&c.image->shape).s);
    LEAT_TRY(set_image(&c, &c.image->shape));
    LEAT_REQUIRE(c.grads->shape.dim[3] == c.depth, INVALID_ARGUMENT, "image, grads depth differ");
    LEAT_TRY(check_boxes(&c));
    LEAT_REQUIRE(c.grads->shape.dim[0] == c.n, INVALID_ARGUMENT,
                 "boxes and grads have incompatible shape");
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){2, {c.n, 4}}, &c.y));
    LEAT_TRY(check_index(&c));
    if (c.n == 0)
        return NULL;
    static void (*const edges[])(void *, int64_t, int64_t) = {
#define EDGE_ENTRY(dtype, T) [LEAT_##dtype] = edges_##T,
        LEAT_X_IMAGE(EDGE_ENTRY)};
    leat_kernel_for(k, c.n, 5 * (double)c.grads->count / (double)c.n, edges[c.image->dtype], &c);
    return NULL;
}

const leat_kernel_def leat_cpu_image_crop[] = {
    {.op = "CropAndResize",
     .where = {{"T", LEAT_TYPES_IMAGE}},
     .run = crop_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "CropAndResizeGradImage",
     .where = {{"T", LEAT_ROW_FLOAT}},
     .run = grad_image_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "CropAndResizeGradBoxes",
     .where = {{"T", LEAT_TYPES_IMAGE}},
     .run = grad_boxes_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
