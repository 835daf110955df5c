/* lrn.c -- LRN and LRNGrad. */
#include <inttypes.h>

#include "kernels/opencl/opencl.h"

extern const leat_cl_text leat_cl_text_lanes, leat_cl_text_lrn;
static const leat_cl_text *const texts[] = {&leat_cl_text_lanes, &leat_cl_text_lrn, NULL};

/* Neighbours on each side. */
static leat_status reach_of(leat_kernel *k, int64_t depth, int64_t *out)
{
    const int64_t radius = leat_node_int(leat_kernel_node(k), "depth_radius");
    LEAT_REQUIRE(radius >= 0 && radius < INT32_MAX, INVALID_ARGUMENT,
                 "depth_radius = %" PRId64 " larger than int max", radius);
    *out = radius < depth ? radius : depth;
    return NULL;
}

static void sizes(leat_cl_launch *l, const leat_tensor *x, int64_t reach)
{
    const int64_t depth = x->shape.dim[3];
    leat_cl_int(l, x->count / depth);
    leat_cl_int(l, depth);
    leat_cl_int(l, reach);
}

static void numbers(leat_cl_launch *l, const leat_node *n)
{
    leat_cl_float(l, leat_node_float(n, "bias"));
    leat_cl_float(l, leat_node_float(n, "alpha"));
    leat_cl_float(l, leat_node_float(n, "beta"));
}

static leat_status forward(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    int64_t reach = 0;
    LEAT_REQUIRE(x->shape.rank == 4, INVALID_ARGUMENT, "in must be 4-dimensional");
    LEAT_TRY(reach_of(k, x->shape.dim[3], &reach));
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    if (!y->count)
        return NULL;
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", "lrn");
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, y);
    sizes(&l, x, reach);
    numbers(&l, leat_kernel_node(k));
    return leat_cl_each(&l, x->count / x->shape.dim[3], (double)x->shape.dim[3]);
}

static leat_status backward(leat_kernel *k)
{
    const leat_tensor *dy = leat_kernel_in(k, 0), *x = leat_kernel_in(k, 1),
                      *y = leat_kernel_in(k, 2);
    const leat_node *n = leat_kernel_node(k);
    leat_tensor *dx, *ratio;
    int64_t reach = 0;
    LEAT_REQUIRE(dy->shape.rank == 4 && x->shape.rank == 4 && y->shape.rank == 4, INVALID_ARGUMENT,
                 "inputs must be 4-dimensional");
    LEAT_REQUIRE(leat_shape_equal(&x->shape, &dy->shape) && leat_shape_equal(&y->shape, &dy->shape),
                 INVALID_ARGUMENT,
                 "input_grads, input_image, and out_image should have the same shape: %s, %s, %s",
                 leat_shape_show(&dy->shape).s, leat_shape_show(&x->shape).s,
                 leat_shape_show(&y->shape).s);
    LEAT_TRY(reach_of(k, x->shape.dim[3], &reach));
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &dx));
    if (!dx->count)
        return NULL;
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &x->shape, &ratio));
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", "lrn_ratio");
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, y);
    leat_cl_tensor(&l, dy);
    leat_cl_tensor(&l, ratio);
    leat_cl_tensor(&l, dx);
    sizes(&l, x, reach);
    numbers(&l, n);
    LEAT_TRY(leat_cl_each(&l, x->count / x->shape.dim[3], (double)x->shape.dim[3]));
    l = leat_cl_begin(leat_cl_of(k), texts, "", "lrn_add");
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, ratio);
    leat_cl_tensor(&l, dx);
    sizes(&l, x, reach);
    leat_cl_float(&l, -2 * leat_node_float(n, "alpha") * leat_node_float(n, "beta"));
    return leat_cl_each(&l, x->count / x->shape.dim[3], (double)x->shape.dim[3]);
}

const leat_kernel_def leat_opencl_lrn[] = {
    {.op = "LRN", .where = {{"T", LEAT_T(FLOAT)}}, .run = forward},
    {.op = "LRNGrad", .where = {{"T", LEAT_T(FLOAT)}}, .run = backward},
    {0},
};
