/* accumulator_sum.c -- sums of dense gradients. */
#include "kernels/cpu/accumulator.h"
#include "kernels/cpu/update.h"

#include "core/element.h"

void leat_divide(leat_dtype t, void *p, int64_t n, int32_t by)
{
    union {
        float f;
        double d;
        leat_half h;
        leat_bfloat16 b;
    } u;
    switch (t) {
    case LEAT_DOUBLE:
        u.d = by;
        break;
    case LEAT_HALF:
        u.h = leat_half_from_float((float)by);
        break;
    case LEAT_BFLOAT16:
        u.b = leat_bfloat16_from_float((float)by);
        break;
    default:
        u.f = (float)by;
    }
    leat_update_of(t, LEAT_UPDATE_DIV)(p, &u, n, 0);
}

typedef struct part_args {
    char *p;
    const char *u; /* NULL: divide by `by` */
    size_t size;
    leat_dtype t;
    leat_update_fn add;
    int32_t by;
} part_args;

static void part(void *arg, int64_t begin, int64_t end)
{
    part_args *a = arg;
    size_t at = (size_t)begin * a->size;
    if (a->u)
        a->add(a->p + at, a->u + at, end - begin, 1);
    else
        leat_divide(a->t, a->p + at, end - begin, a->by);
}

void leat_add_in_place(leat_kernel *k, leat_tensor *dst, const leat_tensor *src)
{
    part_args a = {.p = dst->data,
                   .u = src->data,
                   .size = leat_element_size(dst->dtype),
                   .t = dst->dtype,
                   .add = leat_update_of(dst->dtype, LEAT_UPDATE_ADD)};
    leat_kernel_for(k, dst->count, 0.1 * (double)a.size, part, &a);
}

static leat_status check_shape(const leat_accumulator *a, const leat_tensor *x)
{
    const leat_shape *want = &a->shape;
    bool fits = leat_shape_compatible(want, &x->shape);
    if (a->count > 0 && !leat_shape_equal(&a->sum->shape, &x->shape)) {
        want = &a->sum->shape;
        fits = false;
    }
    LEAT_REQUIRE(fits, INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s",
                 leat_shape_show(want).s, leat_shape_show(&x->shape).s);
    return NULL;
}

/* The sum, made safe to write to. */
static leat_status own_sum(leat_accumulator *a, leat_kernel *k)
{
    if (leat_tensor_sole(a->sum))
        return NULL;
    leat_tensor *copy;
    LEAT_TRY(leat_tensor_clone(leat_kernel_device(k)->allocator, a->sum, &copy));
    leat_tensor_unref(a->sum);
    a->sum = copy;
    return NULL;
}

leat_status leat_accumulator_add(leat_accumulator *a, leat_kernel *k)
{
    if (a->sparse)
        return leat_accumulator_add_rows(a, k);
    const leat_tensor *x = leat_kernel_in(k, 2);
    LEAT_TRY(check_shape(a, x));
    if (!a->count) {
        a->sum = leat_tensor_ref(x);
        return NULL;
    }
    LEAT_TRY(own_sum(a, k));
    leat_add_in_place(k, a->sum, x);
    return NULL;
}

leat_status leat_accumulator_give(leat_accumulator *a, leat_kernel *k)
{
    if (a->sparse)
        return leat_accumulator_give_rows(a, k);
    if (a->mean && a->count > 1) {
        LEAT_TRY(own_sum(a, k));
        part_args d = {
            .p = a->sum->data, .size = leat_element_size(a->dtype), .t = a->dtype, .by = a->count};
        leat_kernel_for(k, a->sum->count, 0.1 * (double)d.size, part, &d);
    }
    leat_kernel_set(k, 0, a->sum);
    a->sum = NULL;
    return NULL;
}
