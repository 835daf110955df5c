/* tensor_array.c -- TensorArrayV3 and TensorArrayGradV3, which make arrays; TensorArrayWriteV3,
 * TensorArrayReadV3, TensorArraySizeV3, TensorArrayCloseV3. */
#include "kernels/cpu/tensor_array.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/cpu/update.h"

static void clear(leat_tensor_array *a)
{
    for (int64_t i = 0; i < a->n; i++)
        leat_tensor_unref(a->items[i].tensor);
    free(a->items);
    a->items = NULL;
    a->n = a->cap = 0;
}

static void array_free(void *resource)
{
    leat_tensor_array *a = resource;
    clear(a);
    for (int i = 0; i < a->n_grads; i++)
        leat_resource_unref(&a->grads[i]->base);
    free(a->grads);
    pthread_mutex_destroy(&a->lock);
    free(a->name);
    free(a->source);
    free(a);
}

static const leat_resource_type array_type = {.name = "N10tensorflow11TensorArrayE",
                                              .free = array_free};

static void release(void *object)
{
    leat_resource_unref(object);
}

leat_status leat_tensor_array_of(leat_kernel *k, leat_tensor_array **out)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    leat_handle *h = t->count == 1 ? AT(leat_handle *, t)[0] : NULL;
    leat_tensor_array *a = h ? h->object : NULL;
    LEAT_REQUIRE(a && a->base.type == &array_type, NOT_FOUND, "Resource %s/%s/%s does not exist.",
                 h ? h->container : "", h ? h->name : "", array_type.name);
    *out = a;
    return NULL;
}

leat_status leat_tensor_array_open(const leat_tensor_array *a)
{
    LEAT_REQUIRE(!a->closed, INVALID_ARGUMENT, "TensorArray %s has already been closed.", a->name);
    return NULL;
}

leat_status leat_tensor_array_dtype(const leat_tensor_array *a, leat_dtype t, bool writes)
{
    LEAT_REQUIRE(a->dtype == t, INVALID_ARGUMENT, "TensorArray dtype is %s but Op %s dtype %s.",
                 leat_dtype_name(a->dtype), writes ? "is trying to write" : "requested",
                 leat_dtype_name(t));
    return NULL;
}

static leat_status resize(leat_tensor_array *a, int64_t n)
{
    if (n <= a->n)
        return NULL;
    if (n > a->cap) {
        int64_t cap = n < INT64_MAX / 2 / (int64_t)sizeof(*a->items) ? 2 * n : n;
        leat_array_item *items = realloc(a->items, (size_t)cap * sizeof(*items));
        LEAT_REQUIRE(items, RESOURCE_EXHAUSTED, "no memory for a TensorArray of %lld tensors",
                     (long long)n);
        a->items = items;
        a->cap = cap;
    }
    memset(a->items + a->n, 0, (size_t)(n - a->n) * sizeof(*a->items));
    a->n = n;
    return NULL;
}

/* ---- Making ---- */

static leat_tensor_array *array_new(char *name, leat_dtype t)
{
    leat_tensor_array *a = leat_new(leat_tensor_array);
    leat_resource_init(&a->base, &array_type);
    pthread_mutex_init(&a->lock, NULL);
    a->name = name;
    a->dtype = t;
    a->marked = -1;
    a->clear_after_read = true;
    return a;
}

/* Outputs a handle that owns the array (takes it), and the initial flow. */
static leat_status give(leat_kernel *k, leat_tensor_array *a)
{
    leat_shape scalar = {0};
    leat_tensor *y = NULL, *flow = NULL;
    leat_status s = leat_kernel_out(k, 0, &scalar, &y);
    if (!s)
        s = leat_kernel_out(k, 1, &scalar, &flow);
    if (s) {
        leat_resource_unref(&a->base);
        return s;
    }
    leat_strbuf name = {0};
    leat_strbuf_printf(&name, "%s%s", a->is_grad ? "_tensor_array_grads" : "_tensor_arrays",
                       a->name);
    leat_handle *h = leat_handle_new(leat_kernel_device(k)->name, "", leat_strbuf_text(&name),
                                     array_type.name, 0);
    leat_strbuf_release(&name);
    h->object = a;
    h->object_unref = release;
    leat_handle_unref(AT(leat_handle *, y)[0]);
    AT(leat_handle *, y)[0] = h;
    AT(float, flow)[0] = 0;
    return NULL;
}

static leat_status array_make(leat_kernel *k)
{
    static atomic_llong made;
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *size = leat_kernel_in(k, 0);
    LEAT_REQUIRE(size->shape.rank == 0, INVALID_ARGUMENT,
                 "TensorArray size must be scalar, but had shape: %s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(AT(int32_t, size)[0] >= 0, INVALID_ARGUMENT, "Size should be >= 0.");

    const char *name = leat_node_string(n, "tensor_array_name");
    leat_strbuf unique = {0};
    leat_strbuf_printf(&unique, "%s_%lld", *name ? name : leat_node_name(n),
                       (long long)atomic_fetch_add(&made, 1));
    leat_tensor_array *a = array_new(leat_strbuf_take(&unique), leat_node_type(n, "dtype"));
    a->element = leat_node_shape(n, "element_shape");
    a->dynamic = leat_node_bool(n, "dynamic_size");
    a->clear_after_read = leat_node_bool(n, "clear_after_read");
    a->identical_shapes = leat_node_bool(n, "identical_element_shapes");
    leat_status s = resize(a, AT(int32_t, size)[0]);
    if (s) {
        leat_resource_unref(&a->base);
        return s;
    }
    return give(k, a);
}

/* prefix followed by s; unknown if s is or if the rank is too high. */
static leat_shape prepend(const leat_shape *prefix, const leat_shape *s)
{
    if (s->rank < 0 || prefix->rank + s->rank > LEAT_MAX_RANK)
        return leat_shape_unknown();
    leat_shape r = *prefix;
    for (int i = 0; i < s->rank; i++)
        r.dim[r.rank++] = s->dim[i];
    return r;
}

/* Makes an array for the gradients of a, whose lock is held: of the same size, with zeros where a
 * was written. */
static leat_status grad_new(leat_tensor_array *a, const char *source, const leat_shape *prefix,
                            leat_tensor_array **out)
{
    leat_strbuf name = {0};
    leat_strbuf_printf(&name, "%s@%s", a->name, source);
    leat_tensor_array *g = array_new(leat_strbuf_take(&name), a->dtype);
    g->is_grad = true;
    g->source = leat_xstrdup(source);
    g->identical_shapes = a->identical_shapes;
    g->marked = a->marked;
    g->element = prepend(prefix, &a->element);
    leat_status s = resize(g, a->n);
    if (s) {
        leat_resource_unref(&g->base);
        return s;
    }
    for (int64_t i = 0; i < a->n; i++) {
        if (!a->items[i].written)
            continue;
        g->items[i].shape = prepend(prefix, &a->items[i].shape);
        g->items[i].written = true;
    }
    leat_grow(a->grads, a->n_grads, a->cap_grads);
    a->grads[a->n_grads++] = g;
    *out = g;
    return NULL;
}

static leat_status find_grad(leat_tensor_array *a, const char *source, const leat_shape *prefix,
                             leat_tensor_array **out)
{
    LEAT_TRY(leat_tensor_array_open(a));
    LEAT_REQUIRE(!a->summed, INVALID_ARGUMENT,
                 "Unable to create a gradients TensorArray for %s.  Perhaps you used the "
                 "multiple_writes_aggregate flag on a previous write?  Gradient calculation is "
                 "impossible when multiple writes are performed to the same index.",
                 a->name);
    a->dynamic = false; /* the size is fixed once gradients are collected */
    for (int i = 0; i < a->n_grads; i++) {
        if (strcmp(a->grads[i]->source, source) == 0) {
            *out = a->grads[i];
            return NULL;
        }
    }
    return grad_new(a, source, prefix, out);
}

static leat_status prefix_of(leat_kernel *k, leat_shape *out)
{
    *out = (leat_shape){0};
    if (leat_kernel_inputs(k) < 3)
        return NULL;
    const leat_tensor *t = leat_kernel_in(k, 2);
    LEAT_REQUIRE(t->shape.rank == 1 && t->count <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "shape must be a vector of {int32,int64}, got shape %s",
                 leat_shape_show(&t->shape).s);
    for (int i = 0; i < t->count; i++) {
        LEAT_REQUIRE(AT(int32_t, t)[i] >= 0, INVALID_ARGUMENT, "Dimension %d must be >= 0",
                     AT(int32_t, t)[i]);
        out->dim[out->rank++] = AT(int32_t, t)[i];
    }
    return NULL;
}

static leat_status array_grad(leat_kernel *k)
{
    leat_tensor_array *a = NULL, *g = NULL;
    leat_shape prefix;
    LEAT_TRY(leat_tensor_array_of(k, &a));
    LEAT_TRY(prefix_of(k, &prefix));
    LEAT_REQUIRE(!a->is_grad, INVALID_ARGUMENT, "Wrong input container. _tensor_array_grads%s",
                 a->name);
    pthread_mutex_lock(&a->lock);
    leat_status s = find_grad(a, leat_node_string(leat_kernel_node(k), "source"), &prefix, &g);
    pthread_mutex_unlock(&a->lock);
    LEAT_TRY(s);
    leat_resource_ref(&g->base);
    return give(k, g);
}

/* ---- Writing and reading ---- */

/* Adds x to the item; copies the item first if it has other owners. */
static leat_status sum(leat_kernel *k, leat_tensor_array *a, int64_t i, leat_tensor *x)
{
    leat_array_item *t = &a->items[i];
    LEAT_REQUIRE(leat_shape_equal(&x->shape, &t->shape), INVALID_ARGUMENT,
                 "TensorArray %s: Could not aggregate to TensorArray index %lld because the "
                 "existing shape is %s but the new input shape is %s.",
                 a->name, (long long)i, leat_shape_show(&t->shape).s, leat_shape_show(&x->shape).s);
    if (!t->tensor || t->tensor->count == 0) {
        leat_tensor_unref(t->tensor);
        t->tensor = leat_tensor_ref(x);
        return NULL;
    }
    const bool far = leat_move_is_far(k);
    leat_update_fn add = far ? NULL : leat_update_of(a->dtype, LEAT_UPDATE_ADD);
    LEAT_REQUIRE(add || (far && k->device->kind->add && a->dtype == LEAT_FLOAT), INVALID_ARGUMENT,
                 "AddToTensor not supported for %s", leat_dtype_name(a->dtype));
    if (!leat_tensor_sole(t->tensor)) {
        leat_tensor *copy;
        LEAT_TRY(leat_tensor_clone(NULL, t->tensor, &copy));
        leat_tensor_unref(t->tensor);
        t->tensor = copy;
    }
    a->summed = true;
    if (far)
        return k->device->kind->add(k->device, t->tensor->data, x->data, x->count);
    add(t->tensor->data, x->data, x->count, 1);
    return NULL;
}

leat_status leat_tensor_array_write(leat_kernel *k, leat_tensor_array *a, int64_t i, leat_tensor *x)
{
    LEAT_TRY(leat_tensor_array_open(a));
    LEAT_REQUIRE(i >= 0 && (a->dynamic || i < a->n), INVALID_ARGUMENT,
                 "TensorArray %s: Tried to write to index %lld but array is not resizeable and "
                 "size is: %lld",
                 a->name, (long long)i, (long long)a->n);
    LEAT_TRY(resize(a, i + 1));
    leat_array_item *t = &a->items[i];
    LEAT_REQUIRE(x->dtype == a->dtype, INVALID_ARGUMENT,
                 "TensorArray %s: Could not write to TensorArray index %lld because the value "
                 "dtype is %s but TensorArray dtype is %s.",
                 a->name, (long long)i, leat_dtype_name(x->dtype), leat_dtype_name(a->dtype));
    LEAT_REQUIRE(leat_shape_compatible(&a->element, &x->shape), INVALID_ARGUMENT,
                 "TensorArray %s: Could not write to TensorArray index %lld because the value "
                 "shape is %s which is incompatible with the TensorArray's inferred element shape: "
                 "%s (consider setting the attribute infer_shape to false).",
                 a->name, (long long)i, leat_shape_show(&x->shape).s,
                 leat_shape_show(&a->element).s);
    if (a->identical_shapes && !leat_shape_known(&a->element))
        a->element = x->shape;
    LEAT_REQUIRE(!t->read, INVALID_ARGUMENT,
                 "TensorArray %s: Could not write to TensorArray index %lld because it has already "
                 "been read.",
                 a->name, (long long)i);
    LEAT_REQUIRE(a->is_grad || !t->written, INVALID_ARGUMENT,
                 "TensorArray %s: Could not write to TensorArray index %lld because it has already "
                 "been written to.",
                 a->name, (long long)i);
    if (t->written)
        return sum(k, a, i, x);
    t->tensor = leat_tensor_ref(x);
    t->shape = x->shape;
    t->written = true;
    return NULL;
}

/* An item that was not written reads as zeros if its shape is known. */
static leat_status make_up(leat_tensor_array *a, int64_t i)
{
    leat_shape s =
        i < a->n && a->is_grad && a->items[i].shape.rank > 0 ? a->items[i].shape : a->element;
    LEAT_REQUIRE(leat_shape_known(&s), INVALID_ARGUMENT,
                 "TensorArray %s: Could not read from TensorArray index %lld.  Furthermore, the "
                 "element shape is not fully defined: %s.  It is possible you are working with a "
                 "resizeable TensorArray and stop_gradients is not allowing the gradients to be "
                 "written.  If you set the full element_shape property on the forward TensorArray, "
                 "the proper all-zeros tensor will be returned instead of incurring this error.",
                 a->name, (long long)i, leat_shape_show(&a->element).s);
    int64_t from = i < a->n ? i : a->n;
    LEAT_TRY(resize(a, i + 1));
    for (int64_t j = from; j <= i; j++) {
        a->items[j].shape = s;
        a->items[j].written = true;
    }
    return NULL;
}

/* An item of zeros, in the memory where the kernel has its values. */
static leat_status zeros(leat_kernel *k, leat_dtype t, const leat_shape *shape, leat_tensor **out)
{
    leat_tensor *x;
    if (!leat_move_is_far(k))
        return leat_tensor_new(t, *shape, out);
    LEAT_TRY(leat_tensor_alloc(k->device->allocator, t, shape, &x));
    leat_status s = leat_move_zero(k, x);
    if (s) {
        leat_tensor_unref(x);
        return s;
    }
    *out = x;
    return NULL;
}

/* An array that another device has written to cannot be read. */
static leat_status check_memory(leat_kernel *k, const leat_tensor_array *a, const leat_tensor *x)
{
    const leat_allocator *m = leat_tensor_memory(x);
    const leat_device *at = m ? m->device : NULL;
    LEAT_REQUIRE(!x->count || at == k->device || (!at && !leat_move_is_far(k)), INVALID_ARGUMENT,
                 "TensorArray %s: an item is in the memory of %s and cannot be read on %s", a->name,
                 at ? at->name : "the host", k->device->name);
    return NULL;
}

leat_status leat_tensor_array_read(leat_kernel *k, leat_tensor_array *a, int64_t i,
                                   leat_tensor **out)
{
    LEAT_TRY(leat_tensor_array_open(a));
    LEAT_REQUIRE(i >= 0 && (a->is_grad || i < a->n), INVALID_ARGUMENT,
                 "Tried to read from index %lld but array size is: %lld", (long long)i,
                 (long long)a->n);
    if (i >= a->n || !a->items[i].written)
        LEAT_TRY(make_up(a, i));
    leat_array_item *t = &a->items[i];
    LEAT_REQUIRE(!t->cleared, INVALID_ARGUMENT,
                 "TensorArray %s: Could not read index %lld twice because it was cleared after a "
                 "previous read (perhaps try setting clear_after_read = false?).",
                 a->name, (long long)i);
    if (!t->tensor)
        LEAT_TRY(zeros(k, a->dtype, &t->shape, &t->tensor));
    LEAT_TRY(check_memory(k, a, t->tensor));
    *out = t->tensor;
    if (a->clear_after_read) {
        t->tensor = NULL;
        t->cleared = true;
    } else {
        leat_tensor_ref(*out);
    }
    t->read = true;
    return NULL;
}

static leat_status index_of(leat_kernel *k, int64_t *out)
{
    const leat_tensor *i = leat_kernel_in(k, 1);
    LEAT_REQUIRE(i->shape.rank == 0, INVALID_ARGUMENT,
                 "TensorArray index must be scalar, but had shape: %s",
                 leat_shape_show(&i->shape).s);
    *out = AT(int32_t, i)[0];
    return NULL;
}

static leat_status array_write(leat_kernel *k)
{
    leat_tensor_array *a = NULL;
    int64_t i;
    leat_tensor *x;
    LEAT_TRY(index_of(k, &i));
    LEAT_TRY(leat_tensor_array_of(k, &a));
    LEAT_TRY(leat_tensor_array_dtype(a, leat_kernel_in(k, 2)->dtype, true));
    x = leat_tensor_ref(leat_kernel_in(k, 2));
    pthread_mutex_lock(&a->lock);
    leat_status s = leat_tensor_array_write(k, a, i, x);
    pthread_mutex_unlock(&a->lock);
    leat_tensor_unref(x);
    LEAT_TRY(s);
    leat_kernel_forward(k, 0, 3);
    return NULL;
}

static leat_status array_read(leat_kernel *k)
{
    leat_tensor_array *a = NULL;
    int64_t i;
    leat_tensor *x = NULL;
    LEAT_TRY(index_of(k, &i));
    LEAT_TRY(leat_tensor_array_of(k, &a));
    LEAT_TRY(leat_tensor_array_dtype(a, leat_kernel_out_dtype(k, 0), false));
    pthread_mutex_lock(&a->lock);
    leat_status s = leat_tensor_array_read(k, a, i, &x);
    pthread_mutex_unlock(&a->lock);
    LEAT_TRY(s);
    leat_kernel_set(k, 0, x);
    return NULL;
}

static leat_status array_size(leat_kernel *k)
{
    leat_tensor_array *a = NULL;
    leat_tensor *y;
    leat_shape scalar = {0};
    LEAT_TRY(leat_tensor_array_of(k, &a));
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    pthread_mutex_lock(&a->lock);
    leat_status s = leat_tensor_array_open(a);
    AT(int32_t, y)[0] = (int32_t)a->n;
    pthread_mutex_unlock(&a->lock);
    return s;
}

static leat_status array_close(leat_kernel *k)
{
    leat_tensor_array *a = NULL;
    LEAT_TRY(leat_tensor_array_of(k, &a));
    pthread_mutex_lock(&a->lock);
    clear(a);
    a->closed = true;
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

const leat_kernel_def leat_cpu_tensor_array[] = {
    {.op = "TensorArrayV3", .run = array_make},
    {.op = "TensorArrayGradV3", .run = array_grad},
    {.op = "TensorArrayGradWithShape", .run = array_grad},
    {.op = "TensorArrayWriteV3", .run = array_write},
    {.op = "TensorArrayReadV3", .run = array_read},
    {.op = "TensorArraySizeV3", .run = array_size},
    {.op = "TensorArrayCloseV3", .run = array_close},
    {0},
};
