/* relu.c -- Relu and ReluGrad. */
#include "kernels/cpu/arith.h"

typedef struct relu_args {
    const leat_tensor *a, *b; /* features; or gradients and features */
    leat_tensor *y;
} relu_args;

#define RELU(dtype, T)                                                                             \
    static void relu_##T(const T *x, T *y, int64_t n)                                              \
    {                                                                                              \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays */                                            \
    }                                                                                              \
    static void relu_grad_##T(const T *dy, const T *x, T *dx, int64_t n)                           \
    {                                                                                              \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            dx[i] = (T)(dy[i] * (T)(x[i] > 0)); /* -0 and NaN as TensorFlow has them */            \
    }
LEAT_X_REAL(RELU)

#define DO_RELU(dtype, T)                                                                          \
    case LEAT_##dtype:                                                                             \
        relu_##T(AT(T, r->a) + begin, AT(T, r->y) + begin, end - begin);                           \
        break;
#define DO_RELU_GRAD(dtype, T)                                                                     \
    case LEAT_##dtype:                                                                             \
        relu_grad_##T(AT(T, r->a) + begin, AT(T, r->b) + begin, AT(T, r->y) + begin, end - begin); \
        break;

static void relu_part(void *arg, int64_t begin, int64_t end)
{
    relu_args *r = arg;
    switch (r->a->dtype) {
        LEAT_X_REAL(DO_RELU)
    default:
        break;
    }
}

static void relu_grad_part(void *arg, int64_t begin, int64_t end)
{
    relu_args *r = arg;
    switch (r->a->dtype) {
        LEAT_X_REAL(DO_RELU_GRAD)
    default:
        break;
    }
}

static leat_status relu(leat_kernel *k)
{
    relu_args r = {.a = leat_kernel_in(k, 0)};
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &r.a->shape, &r.y));
    leat_kernel_for(k, r.a->count, 0.25, relu_part, &r);
    return NULL;
}

static leat_status relu_grad(leat_kernel *k)
{
    relu_args r = {.a = leat_kernel_in(k, 0), .b = leat_kernel_in(k, 1)};
    LEAT_REQUIRE(leat_shape_equal(&r.a->shape, &r.b->shape), INVALID_ARGUMENT,
                 "Inputs to operation ReluGrad of type ReluGrad must have the same size and shape. "
                 " Input 0: %s != input 1: %s",
                 leat_shape_show(&r.a->shape).s, leat_shape_show(&r.b->shape).s);
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &r.a->shape, &r.y));
    leat_kernel_for(k, r.a->count, 0.3, relu_grad_part, &r);
    return NULL;
}

#define REAL (LEAT_TYPES_REAL & ~LEAT_TYPES_SMALL_FLOAT)

const leat_kernel_def leat_cpu_relu[] = {
    {.op = "Relu", .where = {{"T", REAL}}, .run = relu, .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "ReluGrad", .where = {{"T", REAL}}, .run = relu_grad, .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
