/* max_pool.c -- max pooling: MaxPool, MaxPoolV2, MaxPool3D, MaxPoolWithArgmax, and the gradients of
 * all of them. */
#include <inttypes.h>
#include <stdatomic.h>

#include "kernels/cpu/arith.h"
#include "kernels/cpu/windows.h"

#define INLINE static inline __attribute__((always_inline))

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 4")
#endif

enum {
    BLOCK = 64, /* channels that are computed at a time */
#if defined(__AVX512F__)
    VECTOR_BYTES = 64,
#elif defined(__AVX__)
    VECTOR_BYTES = 32,
#else
    VECTOR_BYTES = 16,
#endif
    VECTORS = 4, /* that are computed at a time */
};

typedef struct pooling {
    leat_windows w;
    const leat_tensor *x, *y, *dy;
    leat_tensor *out;
    leat_tensor *index;  /* of the largest elements */
    bool with_image;     /* indices count over all images */
    _Atomic int64_t bad; /* one more than the place of an index that is none, or 0 */
} pooling;

#define FN(name) FN_(name, T)
#define FN_(name, type) FN__(name, type)
#define FN__(name, type) name##_##type
#define ADD(a, b) ((T)((FN(LEAT_WIDE))(a) + (FN(LEAT_WIDE))(b)))
#define T float
#define MASK int32_t
#include "kernels/cpu/max_pool.inc"
#undef MASK
#undef T
#define T double
#define MASK int64_t
#include "kernels/cpu/max_pool.inc"
#undef MASK
#undef T
#define T int8_t
#include "kernels/cpu/max_pool.inc"
#undef T
#define T int16_t
#include "kernels/cpu/max_pool.inc"
#undef T
#define T int32_t
#include "kernels/cpu/max_pool.inc"
#undef T
#define T int64_t
#include "kernels/cpu/max_pool.inc"
#undef T
#define T uint8_t
#include "kernels/cpu/max_pool.inc"
#undef T
#define T uint16_t
#include "kernels/cpu/max_pool.inc"
#undef T
#define T uint32_t
#include "kernels/cpu/max_pool.inc"
#undef T
#define T uint64_t
#include "kernels/cpu/max_pool.inc"
#undef T

typedef void (*part_fn)(void *arg, int64_t begin, int64_t end);
#define ENTRY(name, dtype, type) [LEAT_##dtype] = name##_##type,
#define TABLE(name)                                                                                \
    static const part_fn name[] = {LEAT_Y_REAL(ENTRY, name)[LEAT_QINT8] = name##_int8_t}
TABLE(max_rows);
TABLE(argmax_rows);
TABLE(spread_images);
TABLE(pick_rows);
TABLE(scatter_images);
TABLE(gather_images);

/* A pixel of a window is counted by an int32. */
static leat_status countable(const leat_windows *w)
{
    int64_t pixels = 1;
    for (int d = 0; d < 3; d++)
        LEAT_REQUIRE(leat_mul_ok(pixels, w->in[d], &pixels) && pixels <= INT32_MAX,
                     INVALID_ARGUMENT, "The image has too many pixels to pool: %s",
                     leat_shape_show(&w->x).s);
    return NULL;
}

static leat_status forward(leat_kernel *k, int dims)
{
    pooling a = {.x = leat_kernel_in(k, 0)};
    LEAT_TRY(leat_windows_read(k, &a.x->shape, dims, true, &a.w));
    LEAT_TRY(leat_kernel_out(k, 0, &a.w.y, &a.out));
    if (a.out->count > 0)
        leat_kernel_for(k, leat_windows_rows(&a.w), leat_windows_row_ns(&a.w, 0.05),
                        max_rows[a.x->dtype], &a);
    return NULL;
}

static leat_status max_run(leat_kernel *k)
{
    return forward(k, 2);
}

static leat_status max_run_3d(leat_kernel *k)
{
    return forward(k, 3);
}

static leat_status argmax_run(leat_kernel *k)
{
    pooling a = {.x = leat_kernel_in(k, 0),
                 .with_image = leat_node_bool(leat_kernel_node(k), "include_batch_in_index")};
    LEAT_REQUIRE(a.x->shape.rank == 4, INVALID_ARGUMENT, "tensor_in must be 4-dimensional (2)");
    LEAT_TRY(leat_windows_read(k, &a.x->shape, 2, false, &a.w));
    LEAT_TRY(countable(&a.w));
    LEAT_REQUIRE(leat_kernel_out_dtype(k, 1) == LEAT_INT64 || a.x->count <= INT32_MAX,
                 INVALID_ARGUMENT, "Indices into %s need int64", leat_shape_show(&a.x->shape).s);
    LEAT_TRY(leat_kernel_out(k, 0, &a.w.y, &a.out));
    LEAT_TRY(leat_kernel_out(k, 1, &a.w.y, &a.index));
    if (a.out->count > 0)
        leat_kernel_for(k, leat_windows_rows(&a.w), leat_windows_row_ns(&a.w, 0.3),
                        argmax_rows[a.x->dtype], &a);
    return NULL;
}

/* Inputs x, y, dy; reads the windows and checks the shapes of y and, unless second order, dy. */
static leat_status read_three(leat_kernel *k, int dims, bool second, pooling *a)
{
    const char *const names[] = {"tensor_in", "tensor_out", "out_backprop"};
    *a =
        (pooling){.x = leat_kernel_in(k, 0), .y = leat_kernel_in(k, 1), .dy = leat_kernel_in(k, 2)};
    for (int i = 0; i < 3; i++)
        LEAT_REQUIRE(leat_kernel_in(k, i)->shape.rank == dims + 2, INVALID_ARGUMENT,
                     "%s must be %d-dimensional", names[i], dims + 2);
    LEAT_TRY(leat_windows_read(k, &a->x->shape, dims, false, &a->w));
    LEAT_TRY(countable(&a->w));
    LEAT_TRY(leat_windows_expect("orig_output", &a->y->shape, &a->w.y));
    LEAT_TRY(leat_windows_expect("grad", &a->dy->shape, second ? &a->w.x : &a->w.y));
    return leat_kernel_out(k, 0, second ? &a->w.y : &a->w.x, &a->out);
}

/* What an image costs. */
static double image_ns(const leat_windows *w, double element_ns)
{
    return leat_windows_row_ns(w, element_ns) * (double)(w->out[0] * w->out[1]) +
           0.1 * (double)(w->in[0] * w->in[1] * w->in[2] * w->channels);
}

static leat_status max_grad_run(leat_kernel *k)
{
    pooling a;
    LEAT_TRY(read_three(k, 2, false, &a));
    if (a.out->count > 0)
        leat_kernel_for(k, a.w.images, image_ns(&a.w, 0.2), spread_images[a.x->dtype], &a);
    return NULL;
}

static leat_status grad_grad(leat_kernel *k, int dims)
{
    pooling a;
    LEAT_TRY(read_three(k, dims, true, &a));
    if (a.out->count > 0)
        leat_kernel_for(k, leat_windows_rows(&a.w), leat_windows_row_ns(&a.w, 0.1),
                        pick_rows[a.x->dtype], &a);
    return NULL;
}

static leat_status max_grad_grad_run(leat_kernel *k)
{
    return grad_grad(k, 2);
}

static leat_status max_grad_grad_run_3d(leat_kernel *k)
{
    return grad_grad(k, 3);
}

/* ---- MaxPool3DGrad: as in TensorFlow, all elements within 1e-5 of the largest one get the
 * gradient, not only the first ---- */

static void near_images(void *arg, int64_t begin, int64_t end)
{
    const pooling *a = arg;
    const leat_windows *w = &a->w;
    const int64_t ch = w->channels, rows = w->out[0] * w->out[1];
    const int64_t elements = leat_window_elements(w);
    leat_look look = leat_look_begin(w->k);
    const int64_t size = w->in[0] * w->in[1] * w->in[2] * ch;
    int64_t done = begin * rows * w->out[2] * ch;
    for (int64_t image = begin; image < end; image++) {
        const float *x = AT(const float, a->x) + image * size;
        float *dx = AT(float, a->out) + image * size;
        memset(dx, 0, (size_t)size * sizeof(float));
        for (int64_t row = 0; row < rows; row++) {
            int64_t b[6];
            leat_windows_of_row(w, row, b);
            for (int64_t o = 0; o < w->out[2]; o++, done += ch) {
                const float *y = AT(const float, a->y) + done, *dy = AT(const float, a->dy) + done;
                leat_window_at(w, 2, o, &b[4], &b[5]);
                if (leat_look_over(&look, elements))
                    return;
                LEAT_EACH_PIXEL(w, b[0], b[1], b[2], b[3], b[4], b[5], at)
                {
                    LEAT_SIMD
                    for (int64_t i = 0; i < ch; i++)
                        dx[at * ch + i] += fabsf(x[at * ch + i] - y[i]) < 1e-5f ? dy[i] : 0;
                }
            }
        }
    }
}

static leat_status max_grad_run_3d(leat_kernel *k)
{
    pooling a;
    LEAT_TRY(read_three(k, 3, false, &a));
    if (a.out->count > 0)
        leat_kernel_for(k, a.w.images, image_ns(&a.w, 0.1), near_images, &a);
    return NULL;
}

/* ---- Gradients by the indices of MaxPoolWithArgmax ---- */

static leat_status by_index(leat_kernel *k, bool second)
{
    pooling a = {.x = leat_kernel_in(k, 0),
                 .dy = leat_kernel_in(k, 1),
                 .index = (leat_tensor *)leat_kernel_in(k, 2),
                 .with_image = leat_node_bool(leat_kernel_node(k), "include_batch_in_index")};
    LEAT_TRY(leat_windows_read(k, &a.x->shape, 2, false, &a.w));
    LEAT_TRY(leat_windows_expect("grad", &a.dy->shape, second ? &a.w.x : &a.w.y));
    LEAT_TRY(leat_windows_expect("argmax", &a.index->shape, &a.w.y));
    LEAT_TRY(leat_kernel_out(k, 0, second ? &a.w.y : &a.w.x, &a.out));
    if (a.out->count == 0)
        return NULL;
    leat_kernel_for(k, a.w.images, image_ns(&a.w, 0.1),
                    (second ? gather_images : scatter_images)[a.x->dtype], &a);
    if (a.bad)
        return leat_error(INVALID_ARGUMENT,
                          "Invalid output gradient index: argmax has %" PRId64
                          " for an image of %" PRId64 " elements",
                          leat_index_at(a.index, a.bad - 1), a.x->count / a.w.images);
    return NULL;
}

static leat_status argmax_grad_run(leat_kernel *k)
{
    return by_index(k, false);
}

static leat_status argmax_grad_grad_run(leat_kernel *k)
{
    return by_index(k, true);
}

#define KERNEL(op_, types, fn)                                                                     \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = fn, .init = leat_windows_init,                  \
        .flags = LEAT_KERNEL_VIA_FLOAT                                                             \
    }

const leat_kernel_def leat_cpu_max_pool[] = {
    KERNEL("MaxPool", LEAT_ROW_REAL | LEAT_T(QINT8), max_run),
    {.op = "MaxPoolV2",
     .where = {{"T", LEAT_ROW_REAL | LEAT_T(QINT8)}},
     .run = max_run,
     .flags = LEAT_KERNEL_VIA_FLOAT,
     .host = "ksize, strides"},
    KERNEL("MaxPool3D", LEAT_T(FLOAT), max_run_3d),
    KERNEL("MaxPoolWithArgmax", LEAT_ROW_REAL, argmax_run),
    KERNEL("MaxPoolGrad", LEAT_ROW_REAL, max_grad_run),
    {.op = "MaxPoolGradV2",
     .where = {{"T", LEAT_ROW_REAL}},
     .run = max_grad_run,
     .flags = LEAT_KERNEL_VIA_FLOAT,
     .host = "ksize, strides"},
    KERNEL("MaxPoolGradGrad", LEAT_ROW_REAL, max_grad_grad_run),
    {.op = "MaxPoolGradGradV2",
     .where = {{"T", LEAT_ROW_REAL}},
     .run = max_grad_grad_run,
     .flags = LEAT_KERNEL_VIA_FLOAT,
     .host = "ksize, strides"},
    {.op = "MaxPool3DGrad",
     .where = {{"T", LEAT_T(FLOAT)}, {"TInput", LEAT_T(FLOAT)}},
     .run = max_grad_run_3d,
     .init = leat_windows_init,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    KERNEL("MaxPool3DGradGrad", LEAT_ROW_REAL, max_grad_grad_run_3d),
    KERNEL("MaxPoolGradWithArgmax", LEAT_ROW_REAL, argmax_grad_run),
    KERNEL("MaxPoolGradGradWithArgmax", LEAT_ROW_REAL, argmax_grad_grad_run),
    {0},
};
