/* guard.c -- ops whose output is their input, after a check or without one: Snapshot,
 * CheckNumerics, EnsureShape; DeepCopy. */
#include "kernels/cpu/move.h"

static leat_status pass(leat_kernel *k)
{
    leat_kernel_forward(k, 0, 0);
    return NULL;
}

static leat_status ensure_shape(leat_kernel *k)
{
    leat_shape want = leat_node_shape(leat_kernel_node(k), "shape");
    const leat_shape *s = &leat_kernel_in(k, 0)->shape;
    LEAT_REQUIRE(leat_shape_compatible(s, &want), INVALID_ARGUMENT,
                 "Shape of tensor %s %s is not compatible with expected shape %s.",
                 leat_node_name(leat_node_input(leat_kernel_node(k), 0).node), leat_shape_show(s).s,
                 leat_shape_show(&want).s);
    return pass(k);
}

static leat_status deep_copy(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    return leat_move_flat(k, x->dtype, y->data, x->data, x->count);
}

/* Exponents of all ones are infinities and NaNs; the fraction tells which. */
#define CHECK(name, T, exponent, fraction)                                                         \
    static void check_##name(const T *x, int64_t n, bool *inf, bool *nan)                          \
    {                                                                                              \
        int special = 0;                                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            special |= (x[i] & exponent) == exponent;                                              \
        for (int64_t i = 0; special && i < n; i++)                                                 \
            if ((x[i] & exponent) == exponent)                                                     \
                *(x[i] & fraction ? nan : inf) = true;                                             \
    }
typedef uint16_t bits16 __attribute__((may_alias));
typedef uint32_t bits32 __attribute__((may_alias));
typedef uint64_t bits64 __attribute__((may_alias));
CHECK(half, bits16, 0x7c00, 0x3ff)
CHECK(bfloat16, bits16, 0x7f80, 0x7f)
CHECK(float, bits32, 0x7f800000, 0x7fffff)
CHECK(double, bits64, 0x7ff0000000000000, 0xfffffffffffff)

typedef struct check_args {
    const leat_tensor *x;
    _Atomic bool inf, nan;
} check_args;

static void check_part(void *arg, int64_t begin, int64_t end)
{
    check_args *c = arg;
    bool inf = false, nan = false;
    switch (c->x->dtype) {
    case LEAT_HALF:
        check_half(AT(bits16, c->x) + begin, end - begin, &inf, &nan);
        break;
    case LEAT_BFLOAT16:
        check_bfloat16(AT(bits16, c->x) + begin, end - begin, &inf, &nan);
        break;
    case LEAT_FLOAT:
        check_float(AT(bits32, c->x) + begin, end - begin, &inf, &nan);
        break;
    default:
        check_double(AT(bits64, c->x) + begin, end - begin, &inf, &nan);
    }
    if (inf)
        c->inf = true;
    if (nan)
        c->nan = true;
}

static leat_status check_numerics(leat_kernel *k)
{
    check_args c = {.x = leat_kernel_in(k, 0)};
    leat_kernel_for(k, c.x->count, 0.2, check_part, &c);
    LEAT_REQUIRE(!c.inf && !c.nan, INVALID_ARGUMENT, "%s : Tensor had %s values",
                 leat_node_string(leat_kernel_node(k), "message"),
                 !c.nan   ? "Inf"
                 : !c.inf ? "NaN"
                          : "Inf and NaN");
    return pass(k);
}

const leat_kernel_def leat_cpu_guard[] = {
    {.op = "CheckNumerics", .run = check_numerics},
    {.op = "EnsureShape", .run = ensure_shape},
    {.op = "Snapshot", .run = pass},
    {.op = "GuaranteeConst", .run = pass},
    {.op = "DeepCopy", .run = deep_copy},
    {0},
};
