/* special.c -- the gamma function and related functions, element-wise. All are computed in double:
 * they are slow anyway, and float would lose digits. */
#include "kernels/cpu/special_fn.h"
#include "kernels/cpu/row1.h"
#include "kernels/cpu/row2.h"

#define ONE(name, ns)                                                                              \
    LEAT_Y_FLOAT(LEAT_ROW1_SAME, name)                                                             \
    LEAT_ROW1_INIT(name, ns, LEAT_Y_FLOAT(LEAT_ROW1_ENTRY, name))
#define EXPR1_lgamma(T, x) (T) leat_log_gamma((double)(x))
#define EXPR1_digamma(T, x) (T) leat_digamma((double)(x))
#define EXPR1_bessel_i0e(T, x) (T) leat_bessel_i0e((double)(x))
#define EXPR1_bessel_i1e(T, x) (T) leat_bessel_i1e((double)(x))
ONE(lgamma, 40)
ONE(digamma, 40)
ONE(bessel_i0e, 100)
ONE(bessel_i1e, 100)

#define TWO(name, ns)                                                                              \
    LEAT_Y_FLOAT(LEAT_ROW2_SLOW, name)                                                             \
    LEAT_ROW2_INIT(name, ns, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, name))
#define EXPR_igamma(T, a, x) (T) leat_igamma((double)(a), (double)(x))
#define EXPR_igammac(T, a, x) (T) leat_igammac((double)(a), (double)(x))
#define EXPR_igamma_grad_a(T, a, x) (T) leat_igamma_grad_a((double)(a), (double)(x))
#define EXPR_zeta(T, x, q) (T) leat_zeta((double)(x), (double)(q))
#define EXPR_polygamma(T, n, x) (T) leat_polygamma((double)(n), (double)(x))
#define EXPR_next_after(T, x, y)                                                                   \
    (sizeof(T) == 4 ? (T)nextafterf((float)(x), (float)(y)) : (T)nextafter(x, y))
TWO(igamma, 300)
TWO(igammac, 300)
TWO(igamma_grad_a, 300)
TWO(zeta, 300)
TWO(polygamma, 300)
TWO(next_after, 5)

/* ---- Betainc: three operands, of one shape or scalars ---- */
typedef struct beta_args {
    const leat_tensor *in[3];
    leat_tensor *z;
} beta_args;

static double number(const leat_tensor *t, int64_t i)
{
    i = t->shape.rank == 0 ? 0 : i;
    return t->dtype == LEAT_FLOAT ? (double)AT(float, t)[i] : AT(double, t)[i];
}

static void beta_part(void *arg, int64_t begin, int64_t end)
{
    const beta_args *b = arg;
    for (int64_t i = begin; i < end; i++) {
        const double v =
            leat_betainc(number(b->in[0], i), number(b->in[1], i), number(b->in[2], i));
        if (b->z->dtype == LEAT_FLOAT)
            AT(float, b->z)[i] = (float)v;
        else
            AT(double, b->z)[i] = v;
    }
}

static leat_status betainc(leat_kernel *k)
{
    static const char *const names[] = {"a", "b", "x"};
    beta_args b = {.in = {leat_kernel_in(k, 0), leat_kernel_in(k, 1), leat_kernel_in(k, 2)}};
    int of = 0; /* an input that is not a scalar, if there is one */
    for (int i = 0; i < 3; i++) {
        if (b.in[i]->shape.rank == 0)
            continue;
        if (b.in[of]->shape.rank == 0)
            of = i;
        LEAT_REQUIRE(leat_shape_equal(&b.in[of]->shape, &b.in[i]->shape), INVALID_ARGUMENT,
                     "Shapes of %s and %s are inconsistent: %s vs. %s", names[of], names[i],
                     leat_shape_show(&b.in[of]->shape).s, leat_shape_show(&b.in[i]->shape).s);
    }
    LEAT_TRY(leat_kernel_out(k, 0, &b.in[of]->shape, &b.z));
    leat_kernel_for(k, b.z->count, 300, beta_part, &b);
    return NULL;
}

#define FLOAT LEAT_ROW_FLOAT

const leat_kernel_def leat_cpu_special[] = {
    LEAT_ROW1_KERNEL("Lgamma", FLOAT, lgamma),
    LEAT_ROW1_KERNEL("Digamma", FLOAT, digamma),
    LEAT_ROW1_KERNEL("BesselI0e", FLOAT, bessel_i0e),
    LEAT_ROW1_KERNEL("BesselI1e", FLOAT, bessel_i1e),
    LEAT_ROW2_KERNEL("Igamma", FLOAT, igamma),
    LEAT_ROW2_KERNEL("Igammac", FLOAT, igammac),
    LEAT_ROW2_KERNEL("IgammaGradA", FLOAT, igamma_grad_a),
    LEAT_ROW2_KERNEL("Zeta", FLOAT, zeta),
    LEAT_ROW2_KERNEL("Polygamma", FLOAT, polygamma),
    LEAT_ROW2_KERNEL("NextAfter", FLOAT, next_after),
    {.op = "Betainc", .where = {{"T", FLOAT}}, .run = betainc},
    {0},
};
