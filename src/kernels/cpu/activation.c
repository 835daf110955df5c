/* activation.c -- Relu6, Elu, Selu, LeakyRelu, Softplus, Softsign, and the ops that their gradients
 * add. Each is an expression; a row of a table pairs it with an op. */
#include <float.h>

#include "kernels/cpu/arith.h"
#include "kernels/cpu/vmath.h"

/* y[i] = f(a[i]), or f(a[i], b[i]); y may be a. */
typedef void (*activation_fn)(const void *a, const void *b, void *y, int64_t n, double alpha);

#define LOOP(name, T, expr)                                                                        \
    static void name##_##T(const void *a_, const void *b_, void *y_, int64_t n, double alpha_)     \
    {                                                                                              \
        const T *a = a_, *b = b_, alpha = (T)alpha_;                                               \
        T *y = y_;                                                                                 \
        (void)b, (void)alpha;                                                                      \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (T)(expr);                                                                      \
    }

/* NaN stays NaN in all of them. */
#define RELU6(dtype, T)                                                                            \
    LOOP(relu6, T, a[i]<0 ? 0 : a[i]> 6 ? 6 : a[i])                                                \
    LOOP(relu6_grad, T, a[i] * (T)(b[i] > 0 && b[i] < 6))
LEAT_X_REAL(RELU6)

/* softplus is x above and e^x below these, to the last bit */
#define SOFTPLUS_FLOAT (-13.942385f)
#define SOFTPLUS_DOUBLE (-34.043653389117)

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_SCALE_ALPHA 1.7580993408473768599402175208123

#define FLOATING(T, EXP, LOG1P, ABS, low)                                                          \
    LOOP(elu, T, a[i] < 0 ? EXP(a[i]) - 1 : a[i])                                                  \
    LOOP(elu_grad, T, b[i] < 0 ? (b[i] + 1) * a[i] : a[i])                                         \
    LOOP(selu, T, a[i] < 0 ? (T)SELU_SCALE_ALPHA * (EXP(a[i]) - 1) : (T)SELU_SCALE * a[i])         \
    LOOP(selu_grad, T, b[i] < 0 ? a[i] * (b[i] + (T)SELU_SCALE_ALPHA) : a[i] * (T)SELU_SCALE)      \
    LOOP(leaky_relu, T, a[i] > 0 ? a[i] : a[i] * alpha)                                            \
    LOOP(leaky_relu_grad, T, b[i] > 0 ? a[i] : a[i] * alpha)                                       \
    LOOP(softplus, T, a[i] > -low ? a[i] : a[i] < low ? EXP(a[i]) : LOG1P(EXP(a[i])))              \
    LOOP(softplus_grad, T, a[i] / (EXP(-b[i]) + 1))                                                \
    LOOP(softsign, T, a[i] / (ABS(a[i]) + 1))                                                      \
    LOOP(softsign_grad, T, a[i] / ((ABS(b[i]) + 1) * (ABS(b[i]) + 1)))
FLOATING(float, leat_expf, log1pf, fabsf, SOFTPLUS_FLOAT)
FLOATING(double, exp, log1p, fabs, SOFTPLUS_DOUBLE)

typedef struct activation {
    const char *op;
    double ns; /* of one element */
    activation_fn fn[LEAT_UINT64 + 1];
} activation;

#define ENTRY_RELU6(dtype, T) [LEAT_##dtype] = relu6_##T,
#define ENTRY_RELU6_GRAD(dtype, T) [LEAT_##dtype] = relu6_grad_##T,
#define FLOATS(name)                                                                               \
    {                                                                                              \
        [LEAT_FLOAT] = name##_float, [LEAT_DOUBLE] = name##_double                                 \
    }

static const activation activations[] = {
    {"Relu6", 0.25, {LEAT_X_REAL(ENTRY_RELU6)}},
    {"Relu6Grad", 0.3, {LEAT_X_REAL(ENTRY_RELU6_GRAD)}},
    {"Elu", 0.6, FLOATS(elu)},
    {"EluGrad", 0.3, FLOATS(elu_grad)},
    {"Selu", 0.6, FLOATS(selu)},
    {"SeluGrad", 0.3, FLOATS(selu_grad)},
    {"LeakyRelu", 0.25, FLOATS(leaky_relu)},
    {"LeakyReluGrad", 0.3, FLOATS(leaky_relu_grad)},
    {"Softplus", 8, FLOATS(softplus)},
    {"SoftplusGrad", 0.8, FLOATS(softplus_grad)},
    {"Softsign", 0.4, FLOATS(softsign)},
    {"SoftsignGrad", 0.4, FLOATS(softsign_grad)},
};

typedef struct activation_state {
    const activation *a;
    double alpha;
} activation_state;

static leat_status init(const leat_node *n, void *state)
{
    activation_state *st = state;
    for (size_t i = 0; i < sizeof(activations) / sizeof(*activations); i++)
        if (strcmp(activations[i].op, leat_node_op(n)) == 0)
            st->a = &activations[i];
    leat_dtype t = leat_node_type(n, "T");
    st->alpha = leat_node_float(n, "alpha");
    if (t == LEAT_HALF) /* alpha is of type T */
        st->alpha = leat_half_to_float(leat_half_from_float((float)st->alpha));
    else if (t == LEAT_BFLOAT16)
        st->alpha = leat_bfloat16_to_float(leat_bfloat16_from_float((float)st->alpha));
    return NULL;
}

typedef struct activation_args {
    activation_fn fn;
    const char *a, *b;
    char *y;
    size_t size;
    double alpha;
} activation_args;

static void part(void *arg, int64_t begin, int64_t end)
{
    activation_args *p = arg;
    size_t at = (size_t)begin * p->size;
    p->fn(p->a + at, p->b ? p->b + at : NULL, p->y + at, end - begin, p->alpha);
}

static leat_status run(leat_kernel *k)
{
    activation_state *st = leat_kernel_state(k);
    const leat_tensor *a = leat_kernel_in(k, 0);
    activation_args p = {st->a->fn[a->dtype], .a = a->data, .size = leat_dtype_size(a->dtype),
                         .alpha = st->alpha};
    if (leat_kernel_inputs(k) == 2) {
        const leat_tensor *b = leat_kernel_in(k, 1);
        LEAT_REQUIRE(leat_shape_equal(&a->shape, &b->shape), INVALID_ARGUMENT,
                     "Inputs to operation %s of type %s must have the same size and shape.  Input "
                     "0: %s != input 1: %s",
                     leat_node_name(leat_kernel_node(k)), st->a->op, leat_shape_show(&a->shape).s,
                     leat_shape_show(&b->shape).s);
        p.b = b->data;
    }
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &a->shape, &y));
    p.y = y->data;
    leat_kernel_for(k, a->count, st->a->ns, part, &p);
    return NULL;
}

#define REAL (LEAT_TYPES_REAL & ~LEAT_TYPES_SMALL_FLOAT)
#define FLOAT (LEAT_T(FLOAT) | LEAT_T(DOUBLE))
#define KERNEL(name, types)                                                                        \
    {                                                                                              \
        .op = name, .where = {{"T", types}}, .run = run, .init = init,                             \
        .state_size = sizeof(activation_state), .flags = LEAT_KERNEL_VIA_FLOAT                     \
    }

const leat_kernel_def leat_cpu_activation[] = {
    KERNEL("Relu6", REAL),
    KERNEL("Relu6Grad", REAL),
    KERNEL("Elu", FLOAT),
    KERNEL("EluGrad", FLOAT),
    KERNEL("Selu", FLOAT),
    KERNEL("SeluGrad", FLOAT),
    KERNEL("LeakyRelu", FLOAT),
    KERNEL("LeakyReluGrad", FLOAT),
    KERNEL("Softplus", FLOAT),
    KERNEL("SoftplusGrad", FLOAT),
    KERNEL("Softsign", FLOAT),
    KERNEL("SoftsignGrad", FLOAT),
    {0},
};
