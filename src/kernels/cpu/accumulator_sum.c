/* accumulator_sum.c -- sums of dense gradients. */
#include "kernels/cpu/accumulator.h"
#include "kernels/cpu/update.h"

#include "core/element.h"

void leat_divide(leat_dtype t, void *p, int64_t n, int32_t by)
{
    /* A multiplication is faster, and by the inverse of a power of two gives the same result. */
    bool inverse = (by & (by - 1)) == 0 && (t == LEAT_FLOAT || t == LEAT_DOUBLE);
    double x = inverse ? 1.0 / by : by;
    union {
        float f;
        double d;
        leat_half h;
        leat_bfloat16 b;
    } u;
    switch (t) {
    case LEAT_DOUBLE:
        u.d = x;
        break;
    case LEAT_HALF:
        u.h = leat_half_from_float((float)x);
        break;
    case LEAT_BFLOAT16:
        u.b = leat_bfloat16_from_float((float)x);
        break;
    default:
        u.f = (float)x;
    }
    leat_update_of(t, inverse ? LEAT_UPDATE_MUL : LEAT_UPDATE_DIV)(p, &u, n, 0);
}

typedef struct part_args {
    char *p;
    const char *u;
    size_t size;
    leat_dtype t;
    leat_update_fn add;
    int32_t by;
} part_args;

static void part(void *arg, int64_t begin, int64_t end)
{
    enum { BLOCK = 1024 }; /* elements that are added and divided while they are in the cache */
    part_args *a = arg;
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t n = end - i < BLOCK ? end - i : BLOCK;
        size_t at = (size_t)i * a->size;
        a->add(a->p + at, a->u + at, n, 1);
        if (a->by > 1)
            leat_divide(a->t, a->p + at, n, a->by);
    }
}

/* dst = (dst + src) / by */
static void add_and_divide(leat_kernel *k, leat_tensor *dst, const leat_tensor *src, int32_t by)
{
    part_args a = {.p = dst->data,
                   .u = src->data,
                   .size = leat_element_size(dst->dtype),
                   .t = dst->dtype,
                   .add = leat_update_of(dst->dtype, LEAT_UPDATE_ADD),
                   .by = by};
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

/* The sum, copied if it has another owner. */
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

/* Adds the last gradient and divides all by `by`. */
static leat_status add_last(leat_accumulator *a, leat_kernel *k, int32_t by)
{
    if (!a->last)
        return NULL;
    LEAT_TRY(own_sum(a, k));
    add_and_divide(k, a->sum, a->last, by);
    leat_tensor_unref(a->last);
    a->last = NULL;
    return NULL;
}

leat_status leat_accumulator_add(leat_accumulator *a, leat_kernel *k)
{
    if (a->sparse)
        return leat_accumulator_add_rows(a, k);
    const leat_tensor *x = leat_kernel_in(k, 2);
    LEAT_TRY(check_shape(a, x));
    LEAT_TRY(add_last(a, k, 1));
    *(a->count ? &a->last : &a->sum) = leat_tensor_ref(x);
    return NULL;
}

leat_status leat_accumulator_give(leat_accumulator *a, leat_kernel *k)
{
    if (a->sparse)
        return leat_accumulator_give_rows(a, k);
    LEAT_TRY(add_last(a, k, a->mean ? a->count : 1));
    leat_kernel_set(k, 0, a->sum);
    a->sum = NULL;
    return NULL;
}
