/* complex.c -- complex numbers and their parts: Complex, Real, Imag, Conj, ComplexAbs, Angle. */
#include <leat/extend.h>
#include <leat/ops.h>

#include "ops/broadcast_grad.h"

static leat_dtype dtype(leat_out x)
{
    return leat_dtype_base(leat_out_dtype(x));
}

/* Complex, Real and similar ops have two type attributes; one determines the other. */
static leat_out complex_of(leat_out re, leat_out im)
{
    const leat_dtype t = dtype(re) == LEAT_DOUBLE ? LEAT_COMPLEX128 : LEAT_COMPLEX64;
    return LEAT_OP2("Complex", re, im, leat_attr_type("Tout", t));
}

static leat_out part_of(const char *op, leat_out x)
{
    const leat_dtype t = dtype(x) == LEAT_COMPLEX128 ? LEAT_DOUBLE : LEAT_FLOAT;
    return LEAT_OP1(op, x, leat_attr_type("Tout", t));
}

static leat_status complex_grad(leat_grad *g)
{
    leat_out dz = leat_grad_out(g, 0);
    return leat_grad_broadcast(g, part_of("Real", dz), part_of("Imag", dz));
}

static leat_status real_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0);
    return leat_grad_in(g, 0, complex_of(dy, leat_scalar_like(dy, 0)));
}

static leat_status imag_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0);
    return leat_grad_in(g, 0, complex_of(leat_scalar_like(dy, 0), dy));
}

static leat_status conj_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_conj(leat_grad_out(g, 0)));
}

/* -dy / (im + i re) */
static leat_status angle_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), dy = leat_grad_out(g, 0);
    leat_out z = leat_reciprocal(complex_of(part_of("Imag", x), part_of("Real", x)));
    return leat_grad_in(g, 0, leat_mul(leat_neg(complex_of(dy, leat_scalar_like(dy, 0))), z));
}

/* dy x / |x|, and 0 at 0 */
static leat_status complex_abs_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), y = leat_grad_output(g, 0), dy = leat_grad_out(g, 0);
    leat_out top = leat_mul(complex_of(dy, leat_zeros_like(dy)), x);
    return leat_grad_in(g, 0, leat_div_no_nan(top, complex_of(y, leat_zeros_like(y))));
}

#define PART(op, in, out, gradient)                                                                \
    {                                                                                              \
        .name = op, .inputs = in, .outputs = out,                                                  \
        .attrs = "T: {complex64, complex128} = DT_COMPLEX64; Tout: {float, double} = DT_FLOAT",    \
        .shape = leat_shape_unchanged, .grad = gradient                                            \
    }

const leat_op_def leat_ops_complex[] = {
    {.name = "Complex",
     .inputs = "real: T, imag: T",
     .outputs = "out: Tout",
     .attrs = "T: {float, double} = DT_FLOAT; Tout: {complex64, complex128} = DT_COMPLEX64",
     .shape = leat_shape_broadcast_binary,
     .grad = complex_grad},
    PART("Real", "input: T", "output: Tout", real_grad),
    PART("Imag", "input: T", "output: Tout", imag_grad),
    PART("Angle", "input: T", "output: Tout", angle_grad),
    PART("ComplexAbs", "x: T", "y: Tout", complex_abs_grad),
    {.name = "Conj",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {complex64, complex128, variant} = DT_COMPLEX64",
     .shape = leat_shape_unchanged,
     .grad = conj_grad},
    {0},
};
