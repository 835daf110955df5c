/* tensor_list.c -- lists of tensors in variants: helpers of their kernels, and the kernels for one
 * item: EmptyTensorList, TensorListReserve, Length, ElementShape, PushBack, PopBack, GetItem,
 * SetItem, Resize. */
#include "kernels/cpu/tensor_list.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"

leat_list *leat_list_new(leat_dtype t, const leat_shape *element)
{
    leat_list *l = leat_new(leat_list);
    atomic_init(&l->refs, 1);
    l->dtype = t;
    l->element = *element;
    l->max = -1;
    return l;
}

void leat_list_free(leat_list *l)
{
    if (!l || atomic_fetch_sub(&l->refs, 1) > 1)
        return;
    for (int64_t i = 0; i < l->n; i++)
        leat_tensor_unref(l->v[i]);
    free(l->v);
    free(l);
}

static void list_ref(void *object)
{
    atomic_fetch_add(&((leat_list *)object)->refs, 1);
}

static void list_unref(void *object)
{
    leat_list_free(object);
}

const leat_variant_type leat_list_type = {
    .name = "tensorflow::TensorList", .ref = list_ref, .unref = list_unref};

leat_status leat_list_resize(leat_list *l, int64_t n)
{
    for (int64_t i = n; i < l->n; i++)
        leat_tensor_unref(l->v[i]);
    if (n > l->cap) {
        leat_tensor **v = realloc(l->v, (size_t)n * sizeof(*v));
        LEAT_REQUIRE(v, RESOURCE_EXHAUSTED, "no memory for a list of %lld tensors", (long long)n);
        l->v = v;
        l->cap = n;
    }
    for (int64_t i = l->n; i < n; i++)
        l->v[i] = NULL;
    l->n = n;
    return NULL;
}

void leat_list_push(leat_list *l, leat_tensor *t)
{
    leat_grow(l->v, l->n, l->cap);
    l->v[l->n++] = t;
}

static leat_status same_dtype(leat_kernel *k, const leat_list *l)
{
    const leat_node *n = leat_kernel_node(k);
    if (!leat_node_has(n, "element_dtype"))
        return NULL;
    leat_dtype t = leat_node_type(n, "element_dtype");
    LEAT_REQUIRE(t == l->dtype, INVALID_ARGUMENT,
                 "Invalid data types; op elements %s but list elements %s", leat_dtype_name(t),
                 leat_dtype_name(l->dtype));
    return NULL;
}

leat_status leat_list_input(leat_kernel *k, int i, const leat_list **out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "Input list must be a scalar saw: %s",
                 leat_shape_show(&t->shape).s);
    const leat_variant *v = AT(leat_variant, t);
    LEAT_REQUIRE(v->type == &leat_list_type, INVALID_ARGUMENT,
                 "Input handle is not a list. Saw: '%s'", v->type ? v->type->name : "empty");
    *out = v->object;
    return same_dtype(k, *out);
}

leat_status leat_list_take(leat_kernel *k, int i, leat_list **out)
{
    const leat_list *l = NULL;
    leat_tensor *t;
    LEAT_TRY(leat_list_input(k, i, &l));
    LEAT_TRY(leat_kernel_take(k, i, &t));
    leat_variant *v = AT(leat_variant, t);
    leat_list *own = v->object;
    if (atomic_load(&own->refs) == 1) { /* only t holds the list, and only this kernel holds t */
        *v = (leat_variant){0};
        leat_tensor_unref(t);
        *out = own;
        return NULL;
    }
    leat_list *copy = leat_list_new(own->dtype, &own->element);
    copy->max = own->max;
    leat_status s = leat_list_resize(copy, own->n);
    for (int64_t j = 0; j < own->n && !s; j++)
        copy->v[j] = leat_tensor_ref(own->v[j]);
    leat_tensor_unref(t);
    if (s) {
        leat_list_free(copy);
        return s;
    }
    *out = copy;
    return NULL;
}

leat_status leat_list_give(leat_kernel *k, int i, leat_list *l)
{
    return leat_variant_give(k, i, (leat_variant){&leat_list_type, l});
}

leat_status leat_list_shape(leat_kernel *k, int i, leat_shape *out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    if (t->shape.rank == 0) {
        LEAT_REQUIRE(leat_index_at(t, 0) == -1, INVALID_ARGUMENT,
                     "The only valid scalar shape tensor is the fully unknown shape specified as "
                     "-1.");
        *out = leat_shape_unknown();
        return NULL;
    }
    LEAT_REQUIRE(t->shape.rank == 1 && t->count <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "A shape must be a vector of at most %d sizes, got shape %s", LEAT_MAX_RANK,
                 leat_shape_show(&t->shape).s);
    leat_shape s = {.rank = (int)t->count};
    for (int d = 0; d < s.rank; d++) {
        s.dim[d] = leat_index_at(t, d);
        LEAT_REQUIRE(s.dim[d] >= -1, INVALID_ARGUMENT, "Dimension %lld must be >= -1",
                     (long long)s.dim[d]);
    }
    *out = s;
    return NULL;
}

leat_status leat_list_merge(leat_shape *s, const leat_shape *other)
{
    LEAT_REQUIRE(s->rank < 0 || other->rank < 0 || s->rank == other->rank, INVALID_ARGUMENT,
                 "Incompatible ranks during merge: %d vs. %d", s->rank, other->rank);
    LEAT_REQUIRE(leat_shape_compatible(s, other), INVALID_ARGUMENT,
                 "Incompatible shapes during merge: %s vs. %s", leat_shape_show(s).s,
                 leat_shape_show(other).s);
    return leat_shape_merge(s, other, s);
}

leat_status leat_list_element(leat_kernel *k, const leat_list *l, int i, leat_shape *out)
{
    LEAT_TRY(leat_list_shape(k, i, out));
    return leat_list_merge(out, &l->element);
}

leat_status leat_list_known(const leat_list *l, leat_shape *s)
{
    for (int64_t i = 0; i < l->n; i++)
        if (l->v[i])
            LEAT_TRY(leat_list_merge(s, &l->v[i]->shape));
    return NULL;
}

/* ---- Kernels ---- */

static leat_status scalar_int(leat_kernel *k, int i, const char *what, int64_t *out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "%s expected to be a scalar but got shape: %s", what,
                 leat_shape_show(&t->shape).s);
    *out = AT(int32_t, t)[0];
    return NULL;
}

static leat_status make(leat_kernel *k, bool reserve)
{
    leat_shape element;
    int64_t n = 0;
    LEAT_TRY(leat_list_shape(k, 0, &element));
    LEAT_TRY(scalar_int(k, 1, reserve ? "num_elements" : "max_num_elements", &n));
    LEAT_REQUIRE(!reserve || n >= 0, INVALID_ARGUMENT,
                 "The num_elements to reserve must be a non negative number, but got %lld",
                 (long long)n);
    leat_list *l = leat_list_new(leat_node_type(leat_kernel_node(k), "element_dtype"), &element);
    leat_status s = NULL;
    if (reserve)
        s = leat_list_resize(l, n);
    else
        l->max = n;
    if (s) {
        leat_list_free(l);
        return s;
    }
    return leat_list_give(k, 0, l);
}

static leat_status empty_run(leat_kernel *k)
{
    return make(k, false);
}

static leat_status reserve_run(leat_kernel *k)
{
    return make(k, true);
}

static leat_status length_run(leat_kernel *k)
{
    const leat_list *l = NULL;
    leat_tensor *y;
    LEAT_TRY(leat_list_input(k, 0, &l));
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &y));
    AT(int32_t, y)[0] = (int32_t)l->n;
    return NULL;
}

static leat_status element_shape_run(leat_kernel *k)
{
    const leat_list *l = NULL;
    leat_tensor *y;
    LEAT_TRY(leat_list_input(k, 0, &l));
    leat_shape s = {.rank = l->element.rank >= 0, .dim = {l->element.rank}};
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    for (int64_t i = 0; i < y->count; i++) {
        int64_t d = l->element.rank >= 0 ? l->element.dim[i] : -1;
        if (y->dtype == LEAT_INT32)
            AT(int32_t, y)[i] = (int32_t)d;
        else
            AT(int64_t, y)[i] = d;
    }
    return NULL;
}

static leat_status push_run(leat_kernel *k)
{
    const leat_list *l = NULL;
    leat_list *own;
    const leat_tensor *x = leat_kernel_in(k, 1);
    LEAT_TRY(leat_list_input(k, 0, &l));
    LEAT_REQUIRE(leat_shape_compatible(&l->element, &x->shape), INVALID_ARGUMENT,
                 "Tried to append a tensor with incompatible shape to a list. Op element shape: %s "
                 "list shape: %s",
                 leat_shape_show(&x->shape).s, leat_shape_show(&l->element).s);
    LEAT_REQUIRE(l->max < 0 || l->n < l->max, INVALID_ARGUMENT,
                 "Tried to push item into a full list list size: %lld max_num_elements: %lld",
                 (long long)l->n, (long long)l->max);
    LEAT_TRY(leat_list_take(k, 0, &own));
    leat_list_push(own, leat_tensor_ref(x));
    return leat_list_give(k, 0, own);
}

/* Item i, or the zeros that a missing item means. Gives a reference. */
static leat_status item(leat_kernel *k, const leat_list *l, int64_t i, int shape_input,
                        leat_tensor **out)
{
    if (l->v[i]) {
        *out = leat_tensor_ref(l->v[i]);
        return NULL;
    }
    leat_shape s;
    LEAT_TRY(leat_list_element(k, l, shape_input, &s));
    LEAT_TRY(leat_list_known(l, &s));
    LEAT_REQUIRE(leat_shape_known(&s), INVALID_ARGUMENT,
                 "Trying to read an uninitialized tensor but element_shape is not fully defined: "
                 "%s and no list element is set.",
                 leat_shape_show(&s).s);
    return leat_tensor_new(l->dtype, s, out);
}

static leat_status pop_run(leat_kernel *k)
{
    const leat_list *l = NULL;
    leat_list *own;
    leat_tensor *x = NULL;
    LEAT_TRY(leat_list_input(k, 0, &l));
    LEAT_REQUIRE(l->n > 0, INVALID_ARGUMENT, "Trying to pop from an empty list.");
    LEAT_TRY(item(k, l, l->n - 1, 1, &x));
    leat_status s = leat_list_take(k, 0, &own);
    if (!s) {
        leat_tensor_unref(own->v[--own->n]);
        s = leat_list_give(k, 0, own);
    }
    if (s) {
        leat_tensor_unref(x);
        return s;
    }
    leat_kernel_set(k, 1, x);
    return NULL;
}

static leat_status get_run(leat_kernel *k)
{
    const leat_list *l = NULL;
    int64_t i = 0;
    leat_tensor *x = NULL;
    LEAT_TRY(leat_list_input(k, 0, &l));
    LEAT_TRY(scalar_int(k, 1, "index", &i));
    LEAT_REQUIRE(i >= 0 && i < l->n, INVALID_ARGUMENT,
                 "Trying to access element %lld in a list with %lld elements.", (long long)i,
                 (long long)l->n);
    LEAT_TRY(item(k, l, i, 2, &x));
    leat_kernel_set(k, 0, x);
    return NULL;
}

static leat_status set_run(leat_kernel *k)
{
    const leat_list *l = NULL;
    leat_list *own;
    int64_t i = 0;
    const leat_tensor *x = leat_kernel_in(k, 2);
    LEAT_TRY(leat_list_input(k, 0, &l));
    LEAT_TRY(scalar_int(k, 1, "index", &i));
    LEAT_REQUIRE(i >= 0 && i < l->n, INVALID_ARGUMENT,
                 "Trying to modify element %lld in a list with %lld elements.", (long long)i,
                 (long long)l->n);
    LEAT_REQUIRE(leat_shape_compatible(&l->element, &x->shape), INVALID_ARGUMENT,
                 "Tried to set a tensor with incompatible shape at a list index. Item element "
                 "shape: %s list shape: %s",
                 leat_shape_show(&x->shape).s, leat_shape_show(&l->element).s);
    LEAT_TRY(leat_list_take(k, 0, &own));
    leat_tensor_unref(own->v[i]);
    own->v[i] = leat_tensor_ref(x);
    return leat_list_give(k, 0, own);
}

static leat_status resize_run(leat_kernel *k)
{
    leat_list *own;
    int64_t n = 0;
    LEAT_TRY(scalar_int(k, 1, "size", &n));
    LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT,
                 "TensorListSlice expects size to be non-negative. Got: %lld", (long long)n);
    LEAT_TRY(leat_list_take(k, 0, &own));
    leat_status s = leat_list_resize(own, n);
    if (s) {
        leat_list_free(own);
        return s;
    }
    return leat_list_give(k, 0, own);
}

const leat_kernel_def leat_cpu_tensor_list[] = {
    {.op = "EmptyTensorList", .run = empty_run},
    {.op = "TensorListReserve", .run = reserve_run},
    {.op = "TensorListLength", .run = length_run},
    {.op = "TensorListElementShape", .run = element_shape_run},
    {.op = "TensorListPushBack", .run = push_run},
    {.op = "TensorListPopBack", .run = pop_run},
    {.op = "TensorListGetItem", .run = get_run},
    {.op = "TensorListSetItem", .run = set_run},
    {.op = "TensorListResize", .run = resize_run},
    {0},
};
