/* avg_pool.c -- AvgPool, AvgPool3D and their gradients. Padding does not count: what a window has
 * in the image is averaged. */
#include <inttypes.h>

#include "kernels/cpu/arith.h"
#include "kernels/cpu/windows.h"

typedef struct averaging {
    leat_windows w;
    const leat_tensor *x;
    leat_tensor *y;
} averaging;

#define AVERAGES(dtype, T)                                                                         \
    /* Output rows [begin, end). */                                                                \
    static void average_##T(void *arg, int64_t begin, int64_t end)                                 \
    {                                                                                              \
        const averaging *a = arg;                                                                  \
        const leat_windows *w = &a->w;                                                             \
        const int64_t ch = w->channels;                                                            \
        const int64_t elements = leat_window_elements(w);                                          \
        leat_look look = leat_look_begin(w->k);                                                    \
        T *y = AT(T, a->y) + begin * w->out[2] * ch;                                               \
        for (int64_t row = begin; row < end; row++) {                                              \
            int64_t b[6];                                                                          \
            const T *x = AT(const T, a->x) + leat_windows_of_row(w, row, b) * ch;                  \
            for (int64_t o = 0; o < w->out[2]; o++, y += ch) {                                     \
                leat_window_at(w, 2, o, &b[4], &b[5]);                                             \
                if (leat_look_over(&look, elements))                                               \
                    return;                                                                        \
                const int64_t count = (b[1] - b[0]) * (b[3] - b[2]) * (b[5] - b[4]);               \
                memset(y, 0, (size_t)ch * sizeof(T));                                              \
                LEAT_EACH_PIXEL(w, b[0], b[1], b[2], b[3], b[4], b[5], at)                         \
                {                                                                                  \
                    LEAT_SIMD                                                                      \
                    for (int64_t i = 0; i < ch; i++)                                               \
                        y[i] += x[at * ch + i];                                                    \
                }                                                                                  \
                for (int64_t i = 0; i < ch; i++)                                                   \
                    y[i] /= (T)count;                                                              \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* The gradient: images [begin, end). */                                                       \
    static void spread_##T(void *arg, int64_t begin, int64_t end)                                  \
    {                                                                                              \
        const averaging *a = arg;                                                                  \
        const leat_windows *w = &a->w;                                                             \
        const int64_t ch = w->channels, rows = w->out[0] * w->out[1];                              \
        const int64_t elements = leat_window_elements(w);                                          \
        leat_look look = leat_look_begin(w->k);                                                    \
        const int64_t size = w->in[0] * w->in[1] * w->in[2] * ch;                                  \
        const T *dy = AT(const T, a->x) + begin * rows * w->out[2] * ch;                           \
        for (int64_t image = begin; image < end; image++) {                                        \
            T *dx = AT(T, a->y) + image * size;                                                    \
            memset(dx, 0, (size_t)size * sizeof(T));                                               \
            for (int64_t row = 0; row < rows; row++) {                                             \
                int64_t b[6];                                                                      \
                leat_windows_of_row(w, row, b);                                                    \
                for (int64_t o = 0; o < w->out[2]; o++, dy += ch) {                                \
                    leat_window_at(w, 2, o, &b[4], &b[5]);                                         \
                    if (leat_look_over(&look, elements))                                           \
                        return;                                                                    \
                    const int64_t count = (b[1] - b[0]) * (b[3] - b[2]) * (b[5] - b[4]);           \
                    const T part = (T)(1.0 / (double)count);                                       \
                    LEAT_EACH_PIXEL(w, b[0], b[1], b[2], b[3], b[4], b[5], at)                     \
                    {                                                                              \
                        LEAT_SIMD                                                                  \
                        for (int64_t i = 0; i < ch; i++)                                           \
                            dx[at * ch + i] += dy[i] * part;                                       \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
LEAT_X_FLOAT(AVERAGES)

static leat_status forward(leat_kernel *k, int dims)
{
    averaging a = {.x = leat_kernel_in(k, 0)};
    LEAT_TRY(leat_windows_read(k, &a.x->shape, dims, false, &a.w));
    LEAT_TRY(leat_kernel_out(k, 0, &a.w.y, &a.y));
    if (a.y->count > 0)
        leat_kernel_for(k, leat_windows_rows(&a.w), leat_windows_row_ns(&a.w, 0.05),
                        a.x->dtype == LEAT_DOUBLE ? average_double : average_float, &a);
    return NULL;
}

static leat_status avg_run(leat_kernel *k)
{
    return forward(k, 2);
}

static leat_status avg_run_3d(leat_kernel *k)
{
    return forward(k, 3);
}

/* Input 0 is the shape of the image, input 1 is dy. */
static leat_status backward(leat_kernel *k, int dims)
{
    const leat_tensor *shape = leat_kernel_in(k, 0);
    averaging a = {.x = leat_kernel_in(k, 1)};
    leat_shape s = {.rank = dims + 2};
    LEAT_REQUIRE(shape->shape.rank == 1 && shape->count == s.rank, INVALID_ARGUMENT,
                 "orig_input_shape must be 1-dimensional and %d elements", s.rank);
    LEAT_REQUIRE(a.x->shape.rank == s.rank, INVALID_ARGUMENT, "out_backprop must be %d-dimensional",
                 s.rank);
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = AT(int32_t, shape)[i];
        LEAT_REQUIRE(s.dim[i] >= 0, INVALID_ARGUMENT,
                     "orig_input_shape must not be negative: dimension %d is %" PRId64, i,
                     s.dim[i]);
    }
    LEAT_TRY(leat_windows_read(k, &s, dims, false, &a.w));
    LEAT_TRY(leat_windows_expect("grad", &a.x->shape, &a.w.y));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &a.y));
    const double rows = (double)(a.w.out[0] * a.w.out[1]);
    if (a.y->count > 0)
        leat_kernel_for(k, a.w.images, leat_windows_row_ns(&a.w, 0.1) * rows,
                        a.x->dtype == LEAT_DOUBLE ? spread_double : spread_float, &a);
    return NULL;
}

static leat_status avg_grad_run(leat_kernel *k)
{
    return backward(k, 2);
}

static leat_status avg_grad_run_3d(leat_kernel *k)
{
    return backward(k, 3);
}

#define KERNEL(op_, fn, host_)                                                                     \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_ROW_FLOAT}}, .run = fn, .init = leat_windows_init,         \
        .flags = LEAT_KERNEL_VIA_FLOAT, .host = host_                                              \
    }

const leat_kernel_def leat_cpu_avg_pool[] = {
    KERNEL("AvgPool", avg_run, NULL),
    KERNEL("AvgPool3D", avg_run_3d, NULL),
    KERNEL("AvgPoolGrad", avg_grad_run, "orig_input_shape"),
    KERNEL("AvgPool3DGrad", avg_grad_run_3d, "orig_input_shape"),
    {0},
};
