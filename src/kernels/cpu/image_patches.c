/* image_patches.c -- kernels that take parts of images as they are: RandomCrop, ExtractGlimpse. */
#include "kernels/cpu/distributions.h"
#include "kernels/cpu/image_resize.h"
#include "kernels/cpu/random.h"

/* ---- RandomCrop ---- */

static leat_status random_crop_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *size = leat_kernel_in(k, 1);
    LEAT_REQUIRE(x->shape.rank == 3, INVALID_ARGUMENT, "input must be 3-dimensional%s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(size->shape.rank == 1, INVALID_ARGUMENT, "shape_t must be 1-dimensional%s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(size->count == 2, INVALID_ARGUMENT, "shape_t must have two elements%s",
                 leat_shape_show(&size->shape).s);
    const int64_t height = x->shape.dim[0], width = x->shape.dim[1], depth = x->shape.dim[2];
    const int64_t rows = AT(int64_t, size)[0], columns = AT(int64_t, size)[1];
    LEAT_REQUIRE(rows >= 0 && columns >= 0, INVALID_ARGUMENT,
                 "size must not be negative: %lld, %lld", (long long)rows, (long long)columns);
    LEAT_REQUIRE(width >= columns, FAILED_PRECONDITION,
                 "width must be >= target_width: width = %lld, target_width = %lld",
                 (long long)width, (long long)columns);
    LEAT_REQUIRE(height >= rows, FAILED_PRECONDITION,
                 "height must be >= target_height: height = %lld, target_height = %lld",
                 (long long)height, (long long)rows);
    LEAT_REQUIRE(width < INT32_MAX && height < INT32_MAX, INVALID_ARGUMENT,
                 "the image must be smaller than max int32 in each dimension");
    leat_tensor *y;
    leat_philox stream;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){3, {rows, columns, depth}}, &y));
    LEAT_TRY(leat_random_reserve(k, 1, &stream));
    leat_philox_single random = {.gen = &stream, .used = 4};
    int64_t left = 0, top = 0;
    if (width > columns)
        left = leat_philox_one(&random) % (uint32_t)(width - columns + 1);
    if (height > rows)
        top = leat_philox_one(&random) % (uint32_t)(height - rows + 1);
    const size_t pixel = (size_t)depth * leat_dtype_size(x->dtype);
    for (int64_t i = 0; i < rows && y->count > 0; i++)
        memcpy((char *)y->data + (size_t)(i * columns) * pixel,
               (const char *)x->data + (size_t)((top + i) * width + left) * pixel,
               (size_t)columns * pixel);
    return NULL;
}

/* ---- ExtractGlimpse ---- */

typedef enum noise { UNIFORM, GAUSSIAN, ZERO } noise;

static leat_status read_noise(const leat_node *n, noise *out)
{
    const char *name = leat_node_string(n, "noise");
    const bool uniform = leat_node_bool(n, "uniform_noise");
    LEAT_REQUIRE(!uniform || !*name || !strcmp(name, "uniform"), INVALID_ARGUMENT,
                 "The uniform_noise and noise could not be specified at the same time");
    if (!*name)
        *out = uniform ? UNIFORM : GAUSSIAN;
    else if (!strcmp(name, "uniform"))
        *out = UNIFORM;
    else if (!strcmp(name, "gaussian"))
        *out = GAUSSIAN;
    else if (!strcmp(name, "zero"))
        *out = ZERO;
    else
        return leat_error(INVALID_ARGUMENT,
                          "The noise could only be uniform, gaussian, or zero, got%s", name);
    return NULL;
}

/* Fills a glimpse of n pixels with numbers like those of the image, which has m pixels: uniform
 * between the least and the greatest, or normal with mean and deviation of each channel. */
static void make_noise(noise kind, const float *image, int64_t m, int64_t depth, float *to,
                       int64_t n, leat_philox *stream)
{
    leat_philox_single random = {.gen = stream, .used = 4};
    if (kind == UNIFORM) {
        float low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < m * depth; i++) {
            low = image[i] < low ? image[i] : low;
            high = image[i] > high ? image[i] : high;
        }
        for (int64_t i = 0; i < n * depth; i++)
            to[i] = low + leat_uniform_float(leat_philox_one(&random)) * (high - low);
        return;
    }
    for (int64_t c = 0; c < depth; c++) {
        double sum = 0, squares = 0;
        float low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < m; i++) {
            const float v = image[i * depth + c];
            sum += v;
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        const double mean = m ? sum / (double)m : 0;
        for (int64_t i = 0; i < m; i++)
            squares += (image[i * depth + c] - mean) * (image[i * depth + c] - mean);
        const double deviation = m ? sqrt(squares / (double)m) : 0;
        for (int64_t i = 0; i < n; i++) {
            uint32_t x[4];
            double two[2];
            leat_philox_next(stream, x);
            leat_box_muller_double(x, two);
            const float v = (float)(mean + deviation * two[0]);
            to[i * depth + c] = v < low ? low : v > high ? high : v;
        }
    }
}

/* A coordinate in pixels, as the first pixel of a glimpse; far away is as good as outside. */
static int64_t glimpse_start(float at, int64_t size, int64_t glimpse, bool normalized,
                             bool centered)
{
    if (normalized)
        at *= (float)size;
    if (centered)
        at = at / 2.0f + (float)size / 2.0f;
    at -= (float)glimpse / 2.0f;
    const float far = 4e9f;
    return !(at > -far) ? -(int64_t)far : at > far ? (int64_t)far : (int64_t)at;
}

/* The pixels [from, from + n) of the image that are pixels [to, to + n) of the glimpse. */
typedef struct overlap {
    int64_t from, to, n;
    bool partial; /* noise is needed */
} overlap;

static overlap find_overlap(int64_t start, int64_t glimpse, int64_t size)
{
    overlap o = {.from = start, .n = glimpse};
    if (start < 0) {
        o.n = glimpse + start > 0 ? glimpse + start : 0;
        o.to = glimpse - o.n;
        o.from = 0;
        o.partial = true;
    } else if (start + glimpse >= size) {
        o.n = size - start > 0 ? size - start : 0;
        o.partial = true;
    }
    if (o.n > size)
        o.n = size;
    return o;
}

static leat_status glimpse_run(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *size = leat_kernel_in(k, 1);
    const leat_tensor *offsets = leat_kernel_in(k, 2);
    noise kind = ZERO;
    LEAT_TRY(read_noise(node, &kind));
    LEAT_REQUIRE(x->shape.rank == 4, INVALID_ARGUMENT,
                 "input must be 4-dimensional (batch_size, height, width, depth)%s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(size->shape.rank == 1 && size->count == 2, INVALID_ARGUMENT,
                 "input must be a vector of size 2 (height, width)%s",
                 leat_shape_show(&size->shape).s);
    const int64_t batch = x->shape.dim[0], height = x->shape.dim[1], width = x->shape.dim[2];
    const int64_t depth = x->shape.dim[3], rows = AT(int32_t, size)[0];
    const int64_t columns = AT(int32_t, size)[1];
    LEAT_REQUIRE(rows >= 0 && columns >= 0, INVALID_ARGUMENT,
                 "the size of a glimpse must not be negative: %lld, %lld", (long long)rows,
                 (long long)columns);
    LEAT_REQUIRE(offsets->shape.rank == 2, INVALID_ARGUMENT, "input must be a matrix%s",
                 leat_shape_show(&offsets->shape).s);
    LEAT_REQUIRE(offsets->shape.dim[0] == batch, INVALID_ARGUMENT,
                 "first dimension should be batch%s", leat_shape_show(&offsets->shape).s);
    LEAT_REQUIRE(offsets->shape.dim[1] == 2, INVALID_ARGUMENT,
                 "second dimension should be of size 2 (y,x)%s",
                 leat_shape_show(&offsets->shape).s);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){4, {batch, rows, columns, depth}}, &y));
    if (y->count == 0)
        return NULL;
    const bool normalized = leat_node_bool(node, "normalized");
    const bool centered = leat_node_bool(node, "centered");
    leat_philox stream = leat_philox_of(leat_random_by_chance(), 0);
    for (int64_t i = 0; i < batch && !leat_kernel_cancelled(k); i++) {
        const float *at = AT(const float, offsets) + 2 * i;
        const float *image = AT(const float, x) + i * height * width * depth;
        float *to = AT(float, y) + i * rows * columns * depth;
        const overlap v =
            find_overlap(glimpse_start(at[0], height, rows, normalized, centered), rows, height);
        const overlap h = find_overlap(glimpse_start(at[1], width, columns, normalized, centered),
                                       columns, width);
        if (v.partial || h.partial) {
            if (kind == ZERO || height * width == 0)
                memset(to, 0, (size_t)(rows * columns * depth) * sizeof(*to));
            else
                make_noise(kind, image, height * width, depth, to, rows * columns, &stream);
        }
        for (int64_t r = 0; r < v.n && h.n > 0; r++)
            memcpy(to + ((v.to + r) * columns + h.to) * depth,
                   image + ((v.from + r) * width + h.from) * depth,
                   (size_t)(h.n * depth) * sizeof(*to));
    }
    return NULL;
}

const leat_kernel_def leat_cpu_image_patches[] = {
    {.op = "RandomCrop",
     .where = {{"T", LEAT_TYPES_REAL}},
     .run = random_crop_run,
     .state_size = LEAT_RANDOM_STATE,
     .release = leat_random_release},
    {.op = "ExtractGlimpse", .run = glimpse_run},
    {0},
};
