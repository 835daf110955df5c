/* fill.c -- Fill, ZerosLike, OnesLike. */
#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/tensor_list.h"

static leat_status fill(leat_kernel *k)
{
    const leat_tensor *dims = leat_kernel_in(k, 0), *value = leat_kernel_in(k, 1);
    LEAT_REQUIRE(dims->shape.rank == 1, INVALID_ARGUMENT, "dims must be a vector, got shape %s",
                 leat_shape_show(&dims->shape).s);
    LEAT_REQUIRE(value->shape.rank == 0, INVALID_ARGUMENT, "value must be a scalar, got shape %s",
                 leat_shape_show(&value->shape).s);
    leat_shape s;
    leat_tensor *y;
    LEAT_TRY(leat_shape_from_tensor(dims, &s));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    return leat_move_fill(k, y, value->data);
}

static leat_status zero_variant(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_variant zeros = {0};
    LEAT_REQUIRE(x->shape.rank == 0 && AT(leat_variant, x)->type, UNIMPLEMENTED,
                 "ZerosLike of a variant that is empty or not a scalar is not supported");
    LEAT_TRY(leat_variant_zeros(*AT(leat_variant, x), &zeros));
    return leat_variant_give(k, 0, zeros);
}

static leat_status zeros_like(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    if (x->dtype == LEAT_VARIANT)
        return zero_variant(k);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &x->shape, &y));
    return leat_move_zero(k, y);
}

static leat_status ones_like(leat_kernel *k)
{
    static const union {
        float f;
        double d;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        bool b;
        uint16_t bits;
        leat_complex64 c64;
        leat_complex128 c128;
    } one[LEAT_DTYPE_MAX + 1] = {
        [LEAT_FLOAT] = {.f = 1},
        [LEAT_DOUBLE] = {.d = 1},
        [LEAT_INT8] = {.i8 = 1},
        [LEAT_UINT8] = {.i8 = 1},
        [LEAT_INT16] = {.i16 = 1},
        [LEAT_UINT16] = {.i16 = 1},
        [LEAT_INT32] = {.i32 = 1},
        [LEAT_INT64] = {.i64 = 1},
        [LEAT_BOOL] = {.b = true},
        [LEAT_HALF] = {.bits = 0x3c00},
        [LEAT_BFLOAT16] = {.bits = 0x3f80},
        [LEAT_COMPLEX64] = {.c64 = {1, 0}},
        [LEAT_COMPLEX128] = {.c128 = {1, 0}},
    };
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &x->shape, &y));
    return leat_move_fill(k, y, &one[y->dtype]);
}

const leat_kernel_def leat_cpu_fill[] = {
    {.op = "Fill", .run = fill},
    {.op = "ZerosLike", .run = zeros_like},
    {.op = "OnesLike", .run = ones_like},
    {0},
};
