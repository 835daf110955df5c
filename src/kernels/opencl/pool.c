/* pool.c -- MaxPool, AvgPool, their 3-D forms but for MaxPool3DGrad, and their gradients. */
#include <string.h>

#include "kernels/cpu/windows.h"
#include "kernels/opencl/walk.h"
#include "kernels/cpu/shapes.h"

extern const leat_cl_text leat_cl_text_lanes, leat_cl_text_pool;
static const leat_cl_text *const texts[] = {&leat_cl_text_lanes, &leat_cl_text_pool, NULL};

/* The struct of pool.cl. */
typedef struct windows {
    int32_t images, channels;
    int32_t in[3], out[3], size[3], stride[3], before[3];
} windows;

static leat_status narrow(const leat_windows *w, windows *out)
{
    LEAT_REQUIRE(w->images <= INT32_MAX && w->channels <= INT32_MAX &&
                     leat_shape_count(&w->x) <= INT32_MAX,
                 UNIMPLEMENTED, "kernels of GPUs count to 2**31 - 1, and images here have more");
    *out = (windows){.images = (int32_t)w->images, .channels = (int32_t)w->channels};
    for (int i = 0; i < 3; i++) {
        out->in[i] = (int32_t)w->in[i];
        out->out[i] = (int32_t)w->out[i];
        out->size[i] = (int32_t)w->size[i];
        out->stride[i] = (int32_t)w->stride[i];
        out->before[i] = (int32_t)w->before[i];
    }
    return NULL;
}

static int dims_of(leat_kernel *k)
{
    return strstr(leat_node_op(leat_kernel_node(k)), "3D") ? 3 : 2;
}

static bool is_max(leat_kernel *k)
{
    return leat_node_op(leat_kernel_node(k))[0] == 'M';
}

static int64_t blocks_of(leat_kernel *k, const leat_windows *w)
{
    const int64_t lanes = leat_cl_of(k)->listed->on_cpu ? 16 : 1;
    return (w->channels + lanes - 1) / lanes;
}

static leat_status forward(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_windows w;
    windows small;
    leat_tensor *y;
    LEAT_TRY(leat_windows_read(k, &x->shape, dims_of(k), is_max(k), &w));
    LEAT_TRY(leat_kernel_out(k, 0, &w.y, &y));
    if (!y->count)
        return NULL;
    LEAT_TRY(narrow(&w, &small));
    leat_cl_launch l =
        leat_cl_begin(leat_cl_of(k), texts, "", is_max(k) ? "max_pool" : "average_pool");
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, y);
    leat_cl_bytes(&l, &small, sizeof small);
    leat_cl_int(&l, blocks_of(k, &w));
    return leat_cl_each(&l, y->count / w.channels * blocks_of(k, &w),
                        2 * (double)(w.size[0] * w.size[1] * w.size[2]));
}

static leat_status backward(leat_kernel *k, const leat_windows *w, const void *x, const void *y,
                            const leat_tensor *dy, leat_tensor *dx)
{
    windows small;
    if (!dx->count)
        return NULL;
    LEAT_TRY(narrow(w, &small));
    leat_cl_launch l =
        leat_cl_begin(leat_cl_of(k), texts, "", is_max(k) ? "max_pool_grad" : "average_pool_grad");
    leat_cl_at(&l, x);
    leat_cl_at(&l, y);
    leat_cl_tensor(&l, dy);
    leat_cl_tensor(&l, dx);
    leat_cl_bytes(&l, &small, sizeof small);
    leat_cl_int(&l, blocks_of(k, w));
    return leat_cl_each(&l, w->images * blocks_of(k, w),
                        (double)(dx->count / w->images / blocks_of(k, w)));
}

static leat_status max_grad(leat_kernel *k)
{
    static const char *const names[] = {"tensor_in", "tensor_out", "out_backprop"};
    const leat_tensor *x = leat_kernel_in(k, 0), *y = leat_kernel_in(k, 1),
                      *dy = leat_kernel_in(k, 2);
    leat_windows w;
    leat_tensor *dx;
    for (int i = 0; i < 3; i++)
        LEAT_REQUIRE(leat_kernel_in(k, i)->shape.rank == 4, INVALID_ARGUMENT,
                     "%s must be 4-dimensional", names[i]);
    LEAT_TRY(leat_windows_read(k, &x->shape, 2, false, &w));
    LEAT_TRY(leat_windows_expect("orig_output", &y->shape, &w.y));
    LEAT_TRY(leat_windows_expect("grad", &dy->shape, &w.y));
    LEAT_TRY(leat_kernel_out(k, 0, &w.x, &dx));
    return backward(k, &w, x->data, y->data, dy, dx);
}

static leat_status average_grad(leat_kernel *k)
{
    const leat_tensor *sizes = leat_kernel_in(k, 0), *dy = leat_kernel_in(k, 1);
    const int dims = dims_of(k);
    leat_windows w;
    leat_tensor *dx;
    leat_shape s;
    LEAT_REQUIRE(sizes->shape.rank == 1 && sizes->count == dims + 2, INVALID_ARGUMENT,
                 "out_backprop must be 1-dimensional and %d elements", dims + 2);
    LEAT_REQUIRE(dy->shape.rank == dims + 2, INVALID_ARGUMENT,
                 "out_backprop must be %d-dimensional", dims + 2);
    LEAT_TRY(leat_shape_from_tensor(sizes, &s));
    LEAT_TRY(leat_windows_read(k, &s, dims, false, &w));
    LEAT_TRY(leat_windows_expect("grad", &dy->shape, &w.y));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &dx));
    return backward(k, &w, dx->data, dy->data, dy, dx);
}

#define ROW(name, fn, host_)                                                                       \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_T(FLOAT)}}, .run = fn, .host = host_                      \
    }

const leat_kernel_def leat_opencl_pool[] = {
    ROW("MaxPool", forward, NULL),
    ROW("MaxPoolV2", forward, "ksize, strides"),
    ROW("MaxPool3D", forward, NULL),
    ROW("MaxPoolGrad", max_grad, NULL),
    ROW("MaxPoolGradV2", max_grad, "ksize, strides"),
    ROW("AvgPool", forward, NULL),
    ROW("AvgPool3D", forward, NULL),
    ROW("AvgPoolGrad", average_grad, "orig_input_shape"),
    ROW("AvgPool3DGrad", average_grad, "orig_input_shape"),
    {0},
};
