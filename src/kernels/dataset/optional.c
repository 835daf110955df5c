/* optional.c -- a variant that may hold tensors. Its object is reference-counted and immutable. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/dataset/optional.h"

leat_status leat_variant_give(leat_kernel *k, int i, leat_variant v)
{
    leat_tensor *y;
    leat_status s = leat_tensor_new(LEAT_VARIANT, leat_shape(), &y);
    if (s) {
        leat_variant_drop(v);
        return s;
    }
    *AT(leat_variant, y) = v;
    leat_kernel_set(k, i, y);
    return NULL;
}

static void optional_ref(void *object)
{
    atomic_fetch_add(&((leat_optional *)object)->refs, 1);
}

static void optional_unref(void *object)
{
    leat_optional *o = object;
    if (atomic_fetch_sub(&o->refs, 1) > 1)
        return;
    for (int i = 0; i < o->n; i++)
        leat_tensor_unref(o->v[i]);
    free(o->v);
    free(o);
}

const leat_variant_type leat_optional_type = {
    .name = "tensorflow::data::Optional", .ref = optional_ref, .unref = optional_unref};

leat_optional *leat_optional_new(int n)
{
    leat_optional *o = leat_new(leat_optional);
    atomic_init(&o->refs, 1);
    o->n = n;
    o->v = n ? leat_new_array(leat_tensor *, n) : NULL;
    return o;
}

/* An optional that holds the kernel's n inputs, or an empty one. */
static leat_status make(leat_kernel *k, int n)
{
    leat_optional *o = leat_optional_new(n);
    for (int i = 0; i < n; i++)
        o->v[i] = leat_tensor_ref(leat_kernel_in(k, i));
    return leat_variant_give(k, 0, (leat_variant){&leat_optional_type, o});
}

static leat_status from_value_run(leat_kernel *k)
{
    return make(k, leat_kernel_inputs(k));
}

static leat_status none_run(leat_kernel *k)
{
    return make(k, 0);
}

static leat_status optional_of(leat_kernel *k, const char *op, const leat_optional **out)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const leat_variant *v = AT(leat_variant, x);
    LEAT_REQUIRE(x->count == 1 && v->type == &leat_optional_type, INVALID_ARGUMENT,
                 "Input to %s must be an optional.", op);
    *out = v->object;
    return NULL;
}

static leat_status has_value_run(leat_kernel *k)
{
    const leat_optional *o = NULL;
    leat_tensor *y;
    LEAT_TRY(optional_of(k, "OptionalHasValue", &o));
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &y));
    AT(bool, y)[0] = o->n > 0;
    return NULL;
}

static leat_status get_value_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_optional *o = NULL;
    int count;
    LEAT_TRY(optional_of(k, "OptionalGetValue", &o));
    LEAT_REQUIRE(o->n > 0, INVALID_ARGUMENT, "The given optional does not have a value.");
    const leat_dtype *types = leat_node_types(n, "output_types", &count);
    LEAT_REQUIRE(o->n == count, INVALID_ARGUMENT,
                 "The given optional has %d components, expected %d.", o->n, count);
    const leat_shape *shapes = leat_node_shapes(n, "output_shapes", &count);
    for (int i = 0; i < o->n; i++) {
        LEAT_REQUIRE(o->v[i]->dtype == types[i], INVALID_ARGUMENT,
                     "The given optional does not match the expected type for component %d. "
                     "Expected: %s. Actual: %s.",
                     i, leat_dtype_name(types[i]), leat_dtype_name(o->v[i]->dtype));
        LEAT_REQUIRE(i >= count || leat_shape_compatible(&shapes[i], &o->v[i]->shape),
                     INVALID_ARGUMENT,
                     "The given optional does not match the expected shape for component %d. "
                     "Expected: %s. Actual: %s.",
                     i, leat_shape_show(&shapes[i]).s, leat_shape_show(&o->v[i]->shape).s);
    }
    for (int i = 0; i < o->n; i++)
        leat_kernel_set(k, i, leat_tensor_ref(o->v[i]));
    return NULL;
}

const leat_kernel_def leat_data_kernels_optional[] = {
    {.op = "OptionalFromValue", .run = from_value_run},
    {.op = "OptionalNone", .run = none_run},
    {.op = "OptionalHasValue", .run = has_value_run},
    {.op = "OptionalGetValue", .run = get_value_run},
    {0},
};
