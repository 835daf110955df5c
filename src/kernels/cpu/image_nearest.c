/* image_nearest.c -- ResizeNearestNeighbor, ResizeNearestNeighborGrad. */
#include "kernels/cpu/image_resize.h"

typedef struct nearest {
    leat_resize r;
    const int32_t *columns, *rows; /* for each output pixel, the input pixel */
} nearest;

static leat_status find_pixels(leat_kernel *k, const leat_resize *r, int64_t in, int64_t out,
                               float scale, const int32_t **pixels)
{
    int32_t *v;
    LEAT_TRY(leat_resize_temp(k, out, sizeof(*v), &v));
    for (int64_t i = 0; i < out; i++) {
        const float at = r->half ? ((float)i + 0.5f) * scale : (float)i * scale;
        v[i] = (int32_t)leat_resize_bound((int64_t)(r->align ? roundf(at) : floorf(at)), in);
    }
    *pixels = v;
    return NULL;
}

static leat_status find_all(leat_kernel *k, nearest *n)
{
    const leat_resize *r = &n->r;
    LEAT_TRY(find_pixels(k, r, r->in_width, r->out_width, r->width_scale, &n->columns));
    return find_pixels(k, r, r->in_height, r->out_height, r->height_scale, &n->rows);
}

/* One output row. */
#define PICK(T)                                                                                    \
    do {                                                                                           \
        const T *from = (const T *)r->x->data + in * r->in_width * channels;                       \
        T *to = (T *)r->y->data + i * r->out_width * channels;                                     \
        if (channels == 1)                                                                         \
            for (int64_t x = 0; x < r->out_width; x++)                                             \
                to[x] = from[n->columns[x]];                                                       \
        else if (channels == 3)                                                                    \
            for (int64_t x = 0; x < r->out_width; x++, to += 3)                                    \
                for (int c = 0; c < 3; c++)                                                        \
                    to[c] = from[(int64_t)n->columns[x] * 3 + c];                                  \
        else                                                                                       \
            for (int64_t x = 0; x < r->out_width; x++, to += channels)                             \
                memcpy(to, from + n->columns[x] * channels, (size_t)channels * sizeof(T));         \
    } while (0)

static void nearest_part(void *arg, int64_t begin, int64_t end)
{
    const nearest *n = arg;
    const leat_resize *r = &n->r;
    const int64_t channels = r->channels;
    const size_t size = leat_dtype_size(r->x->dtype);
    const size_t row = (size_t)(r->out_width * channels) * size;
    int64_t last = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t in = i / r->out_height * r->in_height + n->rows[i % r->out_height];
        if (in == last) {
            char *to = (char *)r->y->data + (size_t)i * row;
            memcpy(to, to - row, row);
            continue;
        }
        last = in;
        switch (size) {
            LEAT_SIZE_CASES(PICK(T))
        }
    }
}

static leat_status nearest_run(leat_kernel *k)
{
    nearest n = {0};
    leat_resize *r = &n.r;
    LEAT_TRY(leat_resize_begin(k, r));
    LEAT_REQUIRE(r->in_height < 1 << 24 && r->in_width < 1 << 24, INVALID_ARGUMENT,
                 "nearest neighbor requires max height & width of 2^24");
    if (r->y->count == 0)
        return NULL;
    LEAT_TRY(find_all(k, &n));
    leat_kernel_for(k, r->batch * r->out_height, 0.5 * (double)(r->out_width * r->channels),
                    nearest_part, &n);
    return NULL;
}

/* ---- The gradient: each pixel of dy is added to the pixel that it came from ---- */

#define ADD(dtype, T)                                                                              \
    static void add_##T(void *arg, int64_t begin, int64_t end)                                     \
    {                                                                                              \
        const nearest *n = arg;                                                                    \
        const leat_resize *r = &n->r;                                                              \
        const int64_t channels = r->channels;                                                      \
        const T *dy = AT(const T, r->x) + begin * r->out_height * r->out_width * channels;         \
        for (int64_t i = begin; i < end; i++)                                                      \
            for (int64_t y = 0; y < r->out_height; y++) {                                          \
                T *row = AT(T, r->y) + (i * r->in_height + n->rows[y]) * r->in_width * channels;   \
                for (int64_t x = 0; x < r->out_width; x++, dy += channels) {                       \
                    T *to = row + n->columns[x] * channels;                                        \
                    for (int64_t c = 0; c < channels; c++)                                         \
                        to[c] = (T)((LEAT_WIDE(T))to[c] + (LEAT_WIDE(T))dy[c]);                    \
                }                                                                                  \
            }                                                                                      \
    }
ADD(UINT8, uint8_t)
ADD(INT8, int8_t)
ADD(INT32, int32_t)
ADD(FLOAT, float)
ADD(DOUBLE, double)

static leat_status nearest_grad_run(leat_kernel *k)
{
    const leat_tensor *dy = leat_kernel_in(k, 0), *size = leat_kernel_in(k, 1);
    const leat_node *node = leat_kernel_node(k);
    nearest n = {.r = {.x = dy,
                       .align = leat_node_bool(node, "align_corners"),
                       .half = leat_node_bool(node, "half_pixel_centers")}};
    leat_resize *r = &n.r;
    LEAT_REQUIRE(dy->shape.rank == 4, INVALID_ARGUMENT, "input must be 4-dimensional%s",
                 leat_shape_show(&dy->shape).s);
    LEAT_REQUIRE(size->shape.rank == 1, INVALID_ARGUMENT, "shape_t must be 1-dimensional%s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(size->count == 2, INVALID_ARGUMENT, "shape_t must have two elements%s",
                 leat_shape_show(&size->shape).s);
    r->batch = dy->shape.dim[0];
    r->out_height = dy->shape.dim[1];
    r->out_width = dy->shape.dim[2];
    r->channels = dy->shape.dim[3];
    r->in_height = AT(int32_t, size)[0];
    r->in_width = AT(int32_t, size)[1];
    LEAT_REQUIRE(r->in_height > 0 && r->in_width > 0, INVALID_ARGUMENT,
                 "shape_t's elements must be positive");
    LEAT_TRY(leat_kernel_out(
        k, 0, &(leat_shape){4, {r->batch, r->in_height, r->in_width, r->channels}}, &r->y));
    memset(r->y->data, 0, (size_t)r->y->count * leat_dtype_size(r->y->dtype));
    if (r->y->count == 0 || dy->count == 0)
        return NULL;
    r->height_scale = leat_resize_scale(r->in_height, r->out_height, r->align);
    r->width_scale = leat_resize_scale(r->in_width, r->out_width, r->align);
    LEAT_TRY(find_all(k, &n));
    static void (*const add[])(void *, int64_t, int64_t) = {[LEAT_UINT8] = add_uint8_t,
                                                            [LEAT_INT8] = add_int8_t,
                                                            [LEAT_INT32] = add_int32_t,
                                                            [LEAT_FLOAT] = add_float,
                                                            [LEAT_DOUBLE] = add_double};
    leat_kernel_for(k, r->batch, (double)dy->count / (double)r->batch, add[dy->dtype], &n);
    return NULL;
}

const leat_kernel_def leat_cpu_image_nearest[] = {
    {.op = "ResizeNearestNeighbor",
     .where = {{"T", LEAT_TYPES_IMAGE | LEAT_T(HALF)}},
     .run = nearest_run},
    {.op = "ResizeNearestNeighborGrad",
     .where = {{"T", LEAT_T(UINT8) | LEAT_T(INT8) | LEAT_T(INT32) | LEAT_ROW_FLOAT}},
     .run = nearest_grad_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
