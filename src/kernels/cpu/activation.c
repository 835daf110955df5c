/* activation.c -- Relu6, Elu, Selu, LeakyRelu, Softplus, Softsign, and the ops that their gradients
 * add. NaN stays NaN in all of them. */
#include <tgmath.h> /* exp(x) is expf(x) for a float */

#include "kernels/cpu/row1.h"
#include "kernels/cpu/row2.h"
#include "kernels/cpu/vmath.h"

/* The functions of float are vectorised, those of double are the C library's. */
#define EXP_float(x) leat_expf(x)
#define EXP_double(x) exp(x)

/* Above and below these, softplus is x and e^x to the last bit. */
#define LOW_float (-13.942385f)
#define LOW_double (-34.043653389117)

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_SCALE_ALPHA 1.7580993408473768599402175208123

#define EXPR1_relu6(T, x) ((x) < 0 ? 0 : (x) > 6 ? 6 : (x))
#define EXPR1_elu(T, x) ((x) < 0 ? EXP_##T(x) - 1 : (x))
#define EXPR1_selu(T, x) ((x) < 0 ? (T)SELU_SCALE_ALPHA * (EXP_##T(x) - 1) : (T)SELU_SCALE * (x))
#define EXPR1_softplus(T, x) ((x) > -LOW_##T ? (x) : (x) < LOW_##T ? EXP_##T(x) : log1p(EXP_##T(x)))
#define EXPR1_softsign(T, x) ((x) / (fabs(x) + 1))

/* The gradients take dy and x; those of Elu and Selu take dy and y. */
#define EXPR_relu6_grad(T, dy, x) (T)((dy) * (T)((x) > 0 && (x) < 6))
#define EXPR_elu_grad(T, dy, y) ((y) < 0 ? ((y) + 1) * (dy) : (dy))
#define EXPR_selu_grad(T, dy, y)                                                                   \
    ((y) < 0 ? (dy) * ((y) + (T)SELU_SCALE_ALPHA) : (dy) * (T)SELU_SCALE)
#define EXPR_softplus_grad(T, dy, x) ((dy) / (EXP_##T(-(x)) + 1))
#define EXPR_softsign_grad(T, dy, x) ((dy) / ((fabs(x) + 1) * (fabs(x) + 1)))

#define ONE(name, ns)                                                                              \
    LEAT_Y_FLOAT(LEAT_ROW1_SAME, name)                                                             \
    LEAT_ROW1_INIT(name, ns, LEAT_Y_FLOAT(LEAT_ROW1_ENTRY, name))
#define TWO(name, ns)                                                                              \
    LEAT_Y_FLOAT(LEAT_ROW2_SAME, name)                                                             \
    LEAT_ROW2_INIT(name, ns, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, name))
ONE(elu, 0.6)
ONE(selu, 0.6)
ONE(softplus, 8)
ONE(softsign, 0.4)
TWO(elu_grad, 0.3)
TWO(selu_grad, 0.3)
TWO(softplus_grad, 0.8)
TWO(softsign_grad, 0.4)

LEAT_Y_REAL(LEAT_ROW1_SAME, relu6)
LEAT_Y_FLOAT(LEAT_ROW2_SAME, relu6_grad)
LEAT_Y_INTEGER(LEAT_ROW2_SLOW, relu6_grad)
LEAT_ROW1_INIT(relu6, 0.25, LEAT_Y_REAL(LEAT_ROW1_ENTRY, relu6))
LEAT_ROW2_INIT(relu6_grad, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, relu6_grad))

/* ---- LeakyRelu, which has the attribute alpha ---- */

/* y[i] is f(a[i], x[i]): a where x is above 0, else alpha times a; of LeakyRelu a is x. */
#define LEAKY(name, dtype, T)                                                                      \
    static void leaky_##T(const void *a_, const void *x_, void *y_, int64_t n, double alpha_)      \
    {                                                                                              \
        const T *a = a_, *x = x_, alpha = (T)alpha_;                                               \
        T *y = y_;                                                                                 \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = x[i] > 0 ? a[i] : a[i] * alpha;                                                 \
    }
LEAT_Y_FLOAT(LEAKY, )

static leat_status leaky_init(const leat_node *n, void *state)
{
    double *alpha = state;
    leat_dtype t = leat_node_type(n, "T");
    *alpha = leat_node_float(n, "alpha");
    if (t == LEAT_HALF) /* alpha is rounded to type T */
        *alpha = leat_half_to_float(leat_half_from_float((float)*alpha));
    else if (t == LEAT_BFLOAT16)
        *alpha = leat_bfloat16_to_float(leat_bfloat16_from_float((float)*alpha));
    return NULL;
}

typedef struct leaky_args {
    void (*fn)(const void *a, const void *x, void *y, int64_t n, double alpha);
    const char *a, *x;
    char *y;
    size_t size;
    double alpha;
} leaky_args;

static void leaky_part(void *arg, int64_t begin, int64_t end)
{
    leaky_args *p = arg;
    size_t at = (size_t)begin * p->size;
    p->fn(p->a + at, p->x + at, p->y + at, end - begin, p->alpha);
}

static leat_status leaky_run(leat_kernel *k)
{
    const leat_tensor *a = leat_kernel_in(k, 0), *x = leat_kernel_in(k, leat_kernel_inputs(k) - 1);
    const leat_node *n = leat_kernel_node(k);
    LEAT_TRY(leat_row2_check_same(leat_node_name(n), leat_node_op(n), &a->shape, &x->shape));
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &a->shape, &y));
    leaky_args p = {a->dtype == LEAT_FLOAT ? leaky_float : leaky_double,
                    .a = a->data,
                    .x = x->data,
                    .y = y->data,
                    .size = leat_dtype_size(a->dtype),
                    .alpha = *(const double *)leat_kernel_state(k)};
    leat_kernel_for(k, a->count, 0.3, leaky_part, &p);
    return NULL;
}

#define FLOAT LEAT_ROW_FLOAT
#define LEAKY_KERNEL(name)                                                                         \
    {                                                                                              \
        .op = name, .where = {{"T", FLOAT}}, .run = leaky_run, .init = leaky_init,                 \
        .state_size = sizeof(double), .flags = LEAT_KERNEL_VIA_FLOAT                               \
    }

const leat_kernel_def leat_cpu_activation[] = {
    LEAT_ROW1_KERNEL("Relu6", LEAT_ROW_REAL, relu6),
    LEAT_ROW2_SAME_KERNEL("Relu6Grad", LEAT_ROW_REAL, relu6_grad),
    LEAT_ROW1_KERNEL("Elu", FLOAT, elu),
    LEAT_ROW2_SAME_KERNEL("EluGrad", FLOAT, elu_grad),
    LEAT_ROW1_KERNEL("Selu", FLOAT, selu),
    LEAT_ROW2_SAME_KERNEL("SeluGrad", FLOAT, selu_grad),
    LEAT_ROW1_KERNEL("Softplus", FLOAT, softplus),
    LEAT_ROW2_SAME_KERNEL("SoftplusGrad", FLOAT, softplus_grad),
    LEAT_ROW1_KERNEL("Softsign", FLOAT, softsign),
    LEAT_ROW2_SAME_KERNEL("SoftsignGrad", FLOAT, softsign_grad),
    LEAKY_KERNEL("LeakyRelu"),
    LEAKY_KERNEL("LeakyReluGrad"),
    {0},
};
