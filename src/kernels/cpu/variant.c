/* variant.c -- zeros like variants, and sums of variants: numbers, lists, optionals, and the
 * variants in them. AddN of variants. */
#include "core/variant.h"

#include "core/element.h"
#include "kernels/cpu/tensor_list.h"
#include "kernels/cpu/update.h"

enum { MOST_DEPTH = 64 }; /* limit of the nesting of variants */

static leat_status too_deep(int depth)
{
    LEAT_REQUIRE(depth <= MOST_DEPTH, RESOURCE_EXHAUSTED,
                 "Variants that hold variants %d deep are not added up, nor made zero", depth);
    return NULL;
}

/* ---- Zeros ---- */

static leat_status zeros_of(leat_variant v, int depth, leat_variant *out);

static leat_status zeros_like(const leat_tensor *t, int depth, leat_tensor **out)
{
    leat_status s = leat_tensor_new(t->dtype, t->shape, out);
    for (int64_t i = 0; t->dtype == LEAT_VARIANT && i < t->count && !s; i++)
        s = zeros_of(AT(leat_variant, t)[i], depth + 1, &AT(leat_variant, *out)[i]);
    return s;
}

static leat_status list_zeros(const leat_list *l, int depth, leat_list *z)
{
    z->max = l->max;
    LEAT_TRY(leat_list_resize(z, l->n));
    for (int64_t i = 0; i < l->n; i++)
        if (l->v[i])
            LEAT_TRY(zeros_like(l->v[i], depth, &z->v[i]));
    return NULL;
}

/* Frees a partly filled object after an error. Takes v and s. */
static leat_status keep(leat_variant v, leat_status s, leat_variant *out)
{
    if (s)
        leat_variant_drop(v);
    else
        *out = v;
    return s;
}

static leat_status zeros_of(leat_variant v, int depth, leat_variant *out)
{
    const uint64_t zero = 0;
    size_t size;
    leat_status s = NULL;
    LEAT_TRY(too_deep(depth));
    if (!v.type) {
        *out = v;
        return NULL;
    }
    if (leat_number_variant_bytes(&v, &size) && leat_number_variant(v.type->name, &zero, size, out))
        return NULL;
    if (v.type == &leat_list_type) {
        const leat_list *l = v.object;
        leat_list *z = leat_list_new(l->dtype, &l->element);
        s = list_zeros(l, depth, z);
        return keep((leat_variant){v.type, z}, s, out);
    }
    LEAT_REQUIRE(v.type == &leat_optional_type, UNIMPLEMENTED,
                 "ZerosLike of a variant that is not a number, an optional or a list is not "
                 "supported");
    const leat_optional *o = v.object;
    leat_optional *z = leat_optional_new(o->n);
    for (int i = 0; i < o->n && !s; i++)
        s = zeros_like(o->v[i], depth, &z->v[i]);
    return keep((leat_variant){v.type, z}, s, out);
}

leat_status leat_variant_zeros(leat_variant v, leat_variant *out)
{
    return zeros_of(v, 1, out);
}

/* ---- Sums ---- */

static leat_status sum_of(leat_variant a, leat_variant b, int depth, leat_variant *out);

static leat_status add_items(const leat_tensor *a, const leat_tensor *b, int depth,
                             leat_tensor **out)
{
    if (!a || !b) {
        *out = leat_tensor_ref(a ? a : b);
        return NULL;
    }
    LEAT_REQUIRE(leat_shape_equal(&a->shape, &b->shape) && a->dtype == b->dtype, INVALID_ARGUMENT,
                 "Trying to add two tensors with incompatible element shapes. One is %s and the "
                 "other is %s",
                 leat_shape_show(&a->shape).s, leat_shape_show(&b->shape).s);
    leat_status s = NULL;
    if (a->dtype == LEAT_VARIANT) {
        s = leat_tensor_new(a->dtype, a->shape, out);
        for (int64_t i = 0; i < a->count && !s; i++)
            s = sum_of(AT(leat_variant, a)[i], AT(leat_variant, b)[i], depth + 1,
                       &AT(leat_variant, *out)[i]);
        return s;
    }
    leat_update_fn add = leat_update_of(a->dtype, LEAT_UPDATE_ADD);
    LEAT_REQUIRE(add, INVALID_ARGUMENT, "Trying to add unsupported dtype %s",
                 leat_dtype_name(a->dtype));
    LEAT_TRY(leat_tensor_clone(NULL, a, out));
    add((*out)->data, b->data, b->count, 1);
    return NULL;
}

static leat_status add_lists(const leat_list *a, const leat_list *b, int depth, leat_variant *out)
{
    LEAT_REQUIRE(a->dtype == b->dtype, INVALID_ARGUMENT,
                 "Trying to add two lists of tensors of different dtypes. One is %s and the other "
                 "is %s",
                 leat_dtype_name(a->dtype), leat_dtype_name(b->dtype));
    LEAT_REQUIRE(leat_shape_compatible(&a->element, &b->element), INVALID_ARGUMENT,
                 "Trying to add two lists of tensors with incompatible element shapes. One is %s "
                 "and the other is %s",
                 leat_shape_show(&a->element).s, leat_shape_show(&b->element).s);
    LEAT_REQUIRE(a->n == b->n, INVALID_ARGUMENT,
                 "Trying to add two lists of tensors with different lengths. One is %lld and the "
                 "other is %lld",
                 (long long)a->n, (long long)b->n);
    leat_shape element;
    LEAT_TRY(leat_shape_merge(&a->element, &b->element, &element));
    leat_list *l = leat_list_new(a->dtype, &element);
    leat_status s = leat_list_resize(l, a->n);
    for (int64_t i = 0; i < a->n && !s; i++)
        s = add_items(a->v[i], b->v[i], depth, &l->v[i]);
    return keep((leat_variant){&leat_list_type, l}, s, out);
}

static leat_status add_optionals(const leat_optional *a, const leat_optional *b, int depth,
                                 leat_variant *out)
{
    LEAT_REQUIRE(!a->n == !b->n, INVALID_ARGUMENT,
                 "Cannot add optionals because one has a value and the other doesn't.");
    LEAT_REQUIRE(a->n == b->n, INVALID_ARGUMENT,
                 "Cannot add optionals because they have different numbers of components (%d vs. "
                 "%d).",
                 a->n, b->n);
    leat_optional *o = leat_optional_new(a->n);
    leat_status s = NULL;
    for (int i = 0; i < a->n && !s; i++)
        s = add_items(a->v[i], b->v[i], depth, &o->v[i]);
    return keep((leat_variant){&leat_optional_type, o}, s, out);
}

static leat_status sum_of(leat_variant a, leat_variant b, int depth, leat_variant *out)
{
    LEAT_TRY(too_deep(depth));
    LEAT_REQUIRE(a.type == b.type, INVALID_ARGUMENT,
                 "Cannot add variants of different types: '%s' and '%s'",
                 a.type ? a.type->name : "empty", b.type ? b.type->name : "empty");
    if (a.type == &leat_list_type)
        return add_lists(a.object, b.object, depth, out);
    if (a.type == &leat_optional_type)
        return add_optionals(a.object, b.object, depth, out);
    LEAT_REQUIRE(a.type && leat_number_variant_add(&a, &b, out), INVALID_ARGUMENT,
                 "Cannot add variants of type '%s'", a.type ? a.type->name : "empty");
    return NULL;
}

static leat_status add_n_run(leat_kernel *k)
{
    const int n = leat_kernel_inputs(k);
    for (int i = 0; i < n && n > 1; i++)
        LEAT_REQUIRE(leat_kernel_in(k, i)->shape.rank == 0, INVALID_ARGUMENT,
                     "AddN of non-scalar Tensor with dtype=DT_VARIANT is not supported; inputs[%d "
                     "has shape: %s.",
                     i, leat_shape_show(&leat_kernel_in(k, i)->shape).s);
    if (n == 1) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    leat_variant sum = *AT(leat_variant, leat_kernel_in(k, 0));
    leat_status s = NULL;
    for (int i = 1; i < n && !s; i++) {
        leat_variant next = {0};
        s = sum_of(sum, *AT(leat_variant, leat_kernel_in(k, i)), 1, &next);
        if (i > 1)
            leat_variant_drop(sum);
        sum = next;
    }
    return s ? s : leat_variant_give(k, 0, sum);
}

const leat_kernel_def leat_cpu_variant[] = {
    {.op = "AddN", .where = {{"T", LEAT_T(VARIANT)}}, .run = add_n_run},
    {0},
};
