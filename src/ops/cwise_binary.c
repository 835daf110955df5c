/* cwise_binary.c -- arithmetic on two operands that broadcast against each other. */
#include "ops/broadcast_grad.h"

static leat_status add_grad(leat_grad *g)
{
    leat_out dz = leat_grad_out(g, 0);
    return leat_grad_broadcast(g, dz, dz);
}

static leat_status sub_grad(leat_grad *g)
{
    leat_out dz = leat_grad_out(g, 0);
    return leat_grad_broadcast(g, dz, leat_grad_wants(g, 1) ? leat_neg(dz) : (leat_out){0});
}

static leat_status mul_grad(leat_grad *g)
{
    leat_out x = leat_conj(leat_grad_input(g, 0)), y = leat_conj(leat_grad_input(g, 1));
    leat_out dz = leat_grad_out(g, 0), none = {0};
    return leat_grad_broadcast(g, leat_grad_wants(g, 0) ? leat_mul(dz, y) : none,
                               leat_grad_wants(g, 1) ? leat_mul(x, dz) : none);
}

static leat_status mul_no_nan_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), y = leat_grad_input(g, 1), dz = leat_grad_out(g, 0);
    return leat_grad_broadcast(g, leat_mul_no_nan(dz, y), leat_mul_no_nan(x, dz));
}

/* dz / y and dz * (-x / y / y), where op is the kind of division. */
static leat_status quotient_grad(leat_grad *g, const char *op)
{
    leat_out x = leat_conj(leat_grad_input(g, 0)), y = leat_conj(leat_grad_input(g, 1));
    leat_out dz = leat_grad_out(g, 0), none = {0}, dy = {0};
    if (leat_grad_wants(g, 1))
        dy = leat_mul(dz, LEAT_OP2(op, LEAT_OP2(op, leat_neg(x), y), y));
    return leat_grad_broadcast(g, leat_grad_wants(g, 0) ? LEAT_OP2(op, dz, y) : none, dy);
}

static leat_status real_div_grad(leat_grad *g)
{
    return quotient_grad(g, "RealDiv");
}

static leat_status div_grad(leat_grad *g)
{
    return quotient_grad(g, "Div");
}

static leat_status div_no_nan_grad(leat_grad *g)
{
    return quotient_grad(g, "DivNoNan");
}

static leat_status floor_mod_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), y = leat_grad_input(g, 1), dz = leat_grad_out(g, 0);
    return leat_grad_broadcast(g, dz, leat_mul(dz, leat_neg(leat_floor_div(x, y))));
}

static leat_status squared_difference_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), y = leat_grad_input(g, 1), dz = leat_grad_out(g, 0);
    leat_out dx = leat_mul(leat_mul(leat_scalar_like(dz, 2), dz), leat_sub(x, y));
    return leat_grad_broadcast(g, dx, leat_grad_wants(g, 1) ? leat_neg(dx) : (leat_out){0});
}

/* dz is x's gradient where `first` is true, and y's elsewhere. */
static leat_status either_grad(leat_grad *g, leat_out first)
{
    leat_out dz = leat_grad_out(g, 0), zeros = leat_zeros_like(dz), none = {0};
    return leat_grad_broadcast(g, leat_grad_wants(g, 0) ? leat_select(first, dz, zeros) : none,
                               leat_grad_wants(g, 1) ? leat_select(first, zeros, dz) : none);
}

static leat_status maximum_grad(leat_grad *g)
{
    return either_grad(g, leat_greater_equal(leat_grad_input(g, 0), leat_grad_input(g, 1)));
}

static leat_status minimum_grad(leat_grad *g)
{
    return either_grad(g, leat_less_equal(leat_grad_input(g, 0), leat_grad_input(g, 1)));
}

/* 1 where x is not 0, else 0, in x's dtype. */
static leat_out not_zero(leat_out x)
{
    return leat_cast(leat_not_equal(x, leat_scalar_like(x, 0)), leat_dtype_base(leat_out_dtype(x)));
}

static leat_status xlogy_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), y = leat_grad_input(g, 1), dz = leat_grad_out(g, 0);
    return leat_grad_broadcast(g, leat_mul(leat_xlogy(not_zero(x), y), dz),
                               leat_mul(leat_xdivy(x, y), dz));
}

static leat_status xdivy_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), y = leat_grad_input(g, 1), dz = leat_grad_out(g, 0);
    return leat_grad_broadcast(g, leat_mul(leat_xdivy(not_zero(x), y), dz),
                               leat_mul(leat_xdivy(leat_neg(x), leat_square(y)), dz));
}

static bool is_complex(leat_out x)
{
    return leat_types_has(LEAT_TYPES_COMPLEX, leat_dtype_base(leat_out_dtype(x)));
}

/* y x^(y-1) and z log(x); the latter is taken as 0 where x is not positive (if complex: where it is
 * 0). */
static leat_status pow_grad(leat_grad *g)
{
    leat_out x = leat_conj(leat_grad_input(g, 0)), y = leat_conj(leat_grad_input(g, 1));
    leat_out dz = leat_grad_out(g, 0), dx = {0}, dy = {0};
    if (leat_grad_wants(g, 0))
        dx = leat_mul(leat_mul(dz, y), leat_pow(x, leat_sub(y, leat_scalar_like(y, 1))));
    if (leat_grad_wants(g, 1)) {
        leat_out zero = leat_scalar_like(x, 0);
        leat_out positive = is_complex(x) ? leat_not_equal(x, zero) : leat_greater(x, zero);
        leat_out log_x = leat_select(
            positive, leat_log(leat_select(positive, x, leat_ones_like(x))), leat_zeros_like(x));
        dy = leat_mul(leat_mul(dz, leat_conj(leat_grad_output(g, 0))), log_x);
    }
    return leat_grad_broadcast(g, dx, dy);
}

/* By y: x / (x^2 + y^2), by x: -y / (x^2 + y^2). */
static leat_status atan2_grad(leat_grad *g)
{
    leat_out y = leat_grad_input(g, 0), x = leat_grad_input(g, 1);
    leat_out d = leat_div(leat_grad_out(g, 0), leat_add(leat_square(x), leat_square(y)));
    return leat_grad_broadcast(g, leat_mul(x, d), leat_mul(leat_neg(y), d));
}

#define BINARY_AS(op, types, gradient, f, r)                                                       \
    {                                                                                              \
        .name = op, .inputs = "x: T, y: T", .outputs = "z: T", .attrs = "T: " types,               \
        .shape = leat_shape_broadcast_binary, .grad = gradient, .flags = LEAT_OP_CWISE | (f),      \
        .role = r                                                                                  \
    }
#define BINARY(op, types, gradient) BINARY_AS(op, types, gradient, 0, LEAT_ROLE_NONE)
#define REALS "bfloat16, half, float, double"
#define COMPLEX "complex64, complex128"
#define MORE "{" REALS ", uint8, int8, uint16, int16, int32, int64, " COMPLEX "}"
#define FEWER "{" REALS ", int32, int64, " COMPLEX "}"
#define FLOATS "{half, float, double, " COMPLEX "}"
#define ORDERED "{" REALS ", int32, int64}"

const leat_op_def leat_ops_cwise_binary[] = {
    BINARY_AS("Add", "{" REALS ", uint8, int8, int16, int32, int64, " COMPLEX ", string}", add_grad,
              0, LEAT_ROLE_ADD),
    BINARY_AS("AddV2", "{" REALS ", uint8, int8, int16, int32, int64, " COMPLEX "}", add_grad,
              LEAT_OP_COMMUTATIVE | LEAT_OP_AGGREGATE, LEAT_ROLE_ADD),
    BINARY_AS("Sub", MORE, sub_grad, 0, LEAT_ROLE_SUB),
    BINARY_AS("Mul", MORE, mul_grad, LEAT_OP_COMMUTATIVE, LEAT_ROLE_MUL),
    BINARY("MulNoNan", FLOATS, mul_no_nan_grad),
    BINARY_AS("Div", MORE, div_grad, 0, LEAT_ROLE_DIV),
    BINARY("DivNoNan", FLOATS, div_no_nan_grad),
    BINARY("FloorDiv", MORE, leat_grad_none),
    BINARY("TruncateDiv", MORE, leat_grad_none),
    BINARY_AS("RealDiv", MORE, real_div_grad, 0, LEAT_ROLE_DIV),
    BINARY_AS("SquaredDifference", FEWER, squared_difference_grad, LEAT_OP_COMMUTATIVE,
              LEAT_ROLE_NONE),
    BINARY("Xlogy", FLOATS, xlogy_grad),
    BINARY("Xdivy", FLOATS, xdivy_grad),
    BINARY("Maximum", ORDERED, maximum_grad),
    BINARY("Minimum", ORDERED, minimum_grad),
    BINARY("Mod", "{int32, int64, half, bfloat16, float, double}", leat_grad_missing),
    BINARY("FloorMod", "{int32, int64, bfloat16, half, float, double}", floor_mod_grad),
    BINARY("TruncateMod", "{int32, int64, bfloat16, half, float, double}", leat_grad_missing),
    BINARY("Pow", "{bfloat16, float, half, double, int32, int64, " COMPLEX "}", pow_grad),
    {.name = "Atan2",
     .inputs = "y: T, x: T",
     .outputs = "z: T",
     .attrs = "T: {" REALS "}",
     .shape = leat_shape_broadcast_binary,
     .grad = atan2_grad,
     .flags = LEAT_OP_CWISE},
    {0},
};
