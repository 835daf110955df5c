/* special.c -- the gamma function and related functions, element-wise: Lgamma, Digamma, Igamma,
 * Zeta ... */
#include <leat/extend.h>
#include <leat/ops.h>

#include "ops/broadcast_grad.h"

#define X leat_grad_input(g, 0)
#define DY leat_grad_out(g, 0)

static leat_status lgamma_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_mul(DY, leat_digamma(X)));
}

static leat_status digamma_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_mul(DY, leat_polygamma(leat_scalar_like(X, 1), X)));
}

static leat_status bessel_i0e_grad(leat_grad *g)
{
    leat_out y = leat_grad_output(g, 0);
    leat_out dx = leat_sub(LEAT_OP1("BesselI1e", X), leat_mul(leat_sign(X), y));
    return leat_grad_in(g, 0, leat_mul(DY, dx));
}

/* i0e(x) - y (sign(x) + 1/x), and 1/2 at 0 */
static leat_status bessel_i1e_grad(leat_grad *g)
{
    const leat_dtype t = leat_dtype_base(leat_out_dtype(X));
    const double eps = t == LEAT_DOUBLE     ? 0x1p-52
                       : t == LEAT_FLOAT    ? 0x1p-23
                       : t == LEAT_BFLOAT16 ? 0x1p-7
                                            : 0x1p-10;
    leat_out y = leat_grad_output(g, 0), zeros = leat_zeros_like(X),
             least = leat_scalar_like(X, eps);
    leat_out some = leat_greater(leat_abs(X), least);
    leat_out x = leat_select(some, X, leat_add(least, zeros));
    leat_out slope = leat_mul(y, leat_add(leat_sign(x), leat_reciprocal(x)));
    leat_out dx = leat_sub(LEAT_OP1("BesselI0e", x), slope);
    dx = leat_select(some, dx, leat_add(leat_scalar_like(X, 0.5), zeros));
    return leat_grad_in(g, 0, leat_mul(DY, dx));
}

/* With respect to x: exp(-x + (a - 1) log(x) - lgamma(a)). */
static leat_status igamma_grad_signed(leat_grad *g, bool minus)
{
    leat_out a = leat_grad_input(g, 0), x = leat_grad_input(g, 1), dz = DY;
    leat_out less = leat_sub(a, leat_scalar_like(a, 1));
    leat_out by_a = leat_mul(LEAT_OP2("IgammaGradA", a, x), dz);
    leat_out by_x =
        leat_exp(leat_sub(leat_add(leat_neg(x), leat_mul(less, leat_log(x))), leat_lgamma(a)));
    by_x = leat_mul(by_x, dz);
    return minus ? leat_grad_broadcast(g, leat_neg(by_a), leat_neg(by_x))
                 : leat_grad_broadcast(g, by_a, by_x);
}

static leat_status igamma_grad(leat_grad *g)
{
    return igamma_grad_signed(g, false);
}

static leat_status igammac_grad(leat_grad *g)
{
    return igamma_grad_signed(g, true);
}

/* With respect to q only, as in TensorFlow. */
static leat_status zeta_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), q = leat_grad_input(g, 1);
    leat_out up = LEAT_OP2("Zeta", leat_add(x, leat_scalar_like(x, 1)), q);
    return leat_grad_broadcast(g, (leat_out){0}, leat_mul(leat_mul(leat_neg(x), up), DY));
}

static leat_status polygamma_grad(leat_grad *g)
{
    leat_out n = leat_grad_input(g, 0), x = leat_grad_input(g, 1);
    leat_out up = leat_polygamma(leat_add(n, leat_scalar_like(n, 1)), x);
    return leat_grad_broadcast(g, (leat_out){0}, leat_mul(up, DY));
}

static leat_status next_after_grad(leat_grad *g)
{
    leat_out dz = DY;
    return leat_grad_broadcast(g, dz, leat_zeros_like(dz));
}

/* With respect to x: exp((b - 1) log(1 - x) + (a - 1) log(x) - log_beta(a, b)). If x is a scalar
 * that was broadcast, summed. */
static leat_status betainc_grad(leat_grad *g)
{
    leat_out a = leat_grad_input(g, 0), b = leat_grad_input(g, 1), x = leat_grad_input(g, 2);
    leat_out one = leat_scalar_like(x, 1);
    leat_out log_beta =
        leat_sub(leat_add(leat_lgamma(a), leat_lgamma(b)), leat_lgamma(leat_add(a, b)));
    leat_out right = leat_mul(leat_sub(b, one), leat_log(leat_sub(one, x)));
    leat_out left = leat_mul(leat_sub(a, one), leat_log(x));
    leat_out dx = leat_mul(leat_exp(leat_sub(leat_add(right, left), log_beta)), DY);
    leat_out sx = leat_shape_of(x), axes = leat_broadcast_gradient_args(leat_shape_of(a), sx);
    return leat_grad_in(g, 2, leat_reshape(leat_sum(dx, leat_output(axes, 1)), sx));
}

/* Scalars fit any shape. */
static leat_status betainc_shape(leat_infer *c)
{
    leat_shape out = leat_shape_unknown(), some = leat_shape();
    int scalars = 0;
    for (int i = 0; i < 3; i++) {
        leat_shape in = leat_infer_in(c, i);
        if (in.rank == 0) {
            scalars++;
        } else if (in.rank < 0) {
            some = in;
        } else {
            LEAT_TRY(leat_shape_merge(&out, &in, &out));
            some = out;
        }
    }
    leat_infer_out(c, 0, scalars >= 2 ? some : out);
    return NULL;
}

#define REAL "T: {bfloat16, half, float, double}"
#define UNARY(op, gradient)                                                                        \
    {                                                                                              \
        .name = op, .inputs = "x: T", .outputs = "y: T", .attrs = REAL,                            \
        .shape = leat_shape_unchanged, .grad = gradient, .flags = LEAT_OP_CWISE                    \
    }
#define BINARY(op, in, gradient)                                                                   \
    {                                                                                              \
        .name = op, .inputs = in, .outputs = "z: T", .attrs = "T: {float, double}",                \
        .shape = leat_shape_broadcast_binary, .grad = gradient, .flags = LEAT_OP_CWISE             \
    }

const leat_op_def leat_ops_special[] = {
    UNARY("Lgamma", lgamma_grad),
    UNARY("Digamma", digamma_grad),
    UNARY("BesselI0e", bessel_i0e_grad),
    UNARY("BesselI1e", bessel_i1e_grad),
    BINARY("Igamma", "a: T, x: T", igamma_grad),
    BINARY("Igammac", "a: T, x: T", igammac_grad),
    BINARY("IgammaGradA", "a: T, x: T", leat_grad_missing),
    BINARY("Zeta", "x: T, q: T", zeta_grad),
    BINARY("Polygamma", "a: T, x: T", polygamma_grad),
    {.name = "NextAfter",
     .inputs = "x1: T, x2: T",
     .outputs = "output: T",
     .attrs = "T: {double, float} = DT_FLOAT",
     .shape = leat_shape_broadcast_binary,
     .grad = next_after_grad,
     .flags = LEAT_OP_CWISE},
    {.name = "Betainc",
     .inputs = "a: T, b: T, x: T",
     .outputs = "z: T",
     .attrs = "T: {float, double}",
     .shape = betainc_shape,
     .grad = betainc_grad},
    {0},
};
