/* kernel.c -- the functions that a kernel calls while it runs. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/element.h"
#include "runtime/kernel_int.h"
#include "runtime/step.h"

struct leat_temp {
    struct leat_temp *next;
    leat_tensor *tensor;
};

leat_entry leat_entry_copy(const leat_entry *e)
{
    if (e->tensor)
        leat_tensor_ref(e->tensor);
    if (e->var)
        leat_resource_ref(&e->var->base);
    return *e;
}

const leat_node *leat_kernel_node(leat_kernel *k)
{
    return k->bound->node;
}

void *leat_kernel_state(leat_kernel *k)
{
    return k->bound->state;
}

int leat_kernel_inputs(leat_kernel *k)
{
    return k->n_in;
}

const leat_tensor *leat_kernel_in(leat_kernel *k, int i)
{
    return k->in[i].tensor;
}

leat_dtype leat_kernel_out_dtype(leat_kernel *k, int i)
{
    leat_dtype t = leat_dtype_base(k->bound->node->out_types[i]);
    return k->as_float && (t == LEAT_HALF || t == LEAT_BFLOAT16) ? LEAT_FLOAT : t;
}

static void set_tensor(leat_kernel *k, int i, leat_tensor *t)
{
    if (k->out[i].tensor || k->out[i].var)
        leat_entry_clear(&k->out[i]);
    k->out[i].tensor = t;
}

/* A tensor in the buffer of output i's slot, if the buffer has no other reference and is large
 * enough. */
static leat_tensor *from_plan(leat_kernel *k, int i, leat_dtype t, const leat_shape *shape,
                              int64_t count)
{
    leat_buffer **kept = &k->kept[k->slots[i]];
    int64_t bytes;
    if (!leat_mul_ok(count, (int64_t)leat_element_size(t), &bytes))
        return NULL;
    leat_buffer *b = *kept;
    int idle = 1;
    if (b && b->size >= (size_t)bytes &&
        atomic_compare_exchange_strong_explicit(&b->refs, &idle, 2, memory_order_acquire,
                                                memory_order_relaxed))
        return leat_tensor_over(b, b->data, t, shape);
    if (b && atomic_load_explicit(&b->refs, memory_order_acquire) > 1)
        return NULL; /* a tensor of an earlier step is still in use */
    leat_status s = leat_buffer_new(k->device->allocator, t, count, &b);
    if (s) {
        leat_status_free(s);
        return NULL;
    }
    leat_buffer_unref(*kept);
    b->cached = true;
    *kept = b;
    leat_buffer_ref(b);
    return leat_tensor_over(b, b->data, t, shape);
}

leat_status leat_kernel_out(leat_kernel *k, int i, const leat_shape *shape, leat_tensor **out)
{
    leat_dtype t = leat_kernel_out_dtype(k, i);
    leat_tensor *y = NULL;
    leat_status s = NULL;
    leat_buffer_for = k->bound->node->name;
    if (k->slots && k->slots[i] >= 0 && !leat_dtype_managed(t)) {
        int64_t count = leat_shape_count(shape);
        if (count > 0)
            y = from_plan(k, i, t, shape, count);
    }
    if (!y)
        s = leat_tensor_alloc(leat_kernel_out_on_host(k, i) ? NULL : k->device->allocator, t, shape,
                              &y);
    leat_buffer_for = NULL;
    if (s)
        return s;
    set_tensor(k, i, y);
    *out = y;
    return NULL;
}

leat_status leat_kernel_out_over(leat_kernel *k, int i, int in, const leat_shape *shape,
                                 leat_tensor **out)
{
    leat_tensor *x = k->in[in].tensor;
    leat_dtype t = leat_kernel_out_dtype(k, i);
    if (!x || k->in[in].var || k->in[in].moved || !leat_tensor_sole(x) ||
        leat_dtype_managed(x->dtype) || leat_dtype_managed(t) ||
        leat_element_size(t) != leat_element_size(x->dtype) || x->count == 0 ||
        leat_shape_count(shape) != x->count ||
        (k->bound->places && k->bound->places[in] != k->bound->places[k->n_in + i]))
        return leat_kernel_out(k, i, shape, out);
    if (x->dtype == t && leat_shape_equal(shape, &x->shape)) {
        k->in[in].moved = true;
        *out = x;
    } else {
        leat_buffer_ref(x->buffer);
        *out = leat_tensor_over(x->buffer, x->data, t, shape);
    }
    set_tensor(k, i, *out);
    return NULL;
}

void leat_kernel_set(leat_kernel *k, int i, leat_tensor *t)
{
    set_tensor(k, i, t);
}

void leat_kernel_set_ref(leat_kernel *k, int i, leat_variable *v)
{
    leat_resource_ref(&v->base);
    leat_entry_clear(&k->out[i]);
    k->out[i].var = v;
}

void leat_kernel_forward(leat_kernel *k, int i, int in)
{
    bool ref = leat_dtype_is_ref(k->bound->node->out_types[i]);
    leat_entry_clear(&k->out[i]);
    if (ref && k->in[in].var) {
        leat_resource_ref(&k->in[in].var->base);
        k->out[i].var = k->in[in].var;
    } else {
        k->out[i].tensor = leat_tensor_ref(k->in[in].tensor);
    }
}

leat_status leat_kernel_take(leat_kernel *k, int i, leat_tensor **out)
{
    leat_tensor *t = k->in[i].tensor;
    if (leat_tensor_sole(t) && (!t->buffer || !t->buffer->cached)) {
        k->in[i].tensor = NULL;
        *out = t;
        return NULL;
    }
    return leat_tensor_clone(t->buffer ? t->buffer->allocator : NULL, t, out);
}

leat_status leat_kernel_temp(leat_kernel *k, leat_dtype t, const leat_shape *shape,
                             leat_tensor **out)
{
    leat_allocator *memory =
        k->bound->def->flags & LEAT_KERNEL_ON_HOST ? NULL : k->device->allocator;
    leat_buffer_for = k->bound->node->name;
    leat_status s = leat_tensor_alloc(memory, t, shape, out);
    leat_buffer_for = NULL;
    if (s)
        return s;
    struct leat_temp *temp = leat_new(struct leat_temp);
    *temp = (struct leat_temp){k->temps, *out};
    k->temps = temp;
    return NULL;
}

void leat_kernel_free_temps(leat_kernel *k)
{
    while (k->temps) {
        struct leat_temp *t = k->temps;
        k->temps = t->next;
        leat_tensor_unref(t->tensor);
        free(t);
    }
}

void leat_kernel_for(leat_kernel *k, int64_t n, double unit_ns,
                     void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    leat_loop_stop stop;
    leat_pool_for_until(k->device->intra, n, unit_ns, fn, arg, leat_kernel_stop(k, &stop));
}

static bool is_late(const leat_step *s)
{
    return s->deadline_ns && leat_now_ns() > s->deadline_ns;
}

bool leat_kernel_cancelled(leat_kernel *k)
{
    if (!leat_step_cancelled(k->step) && !is_late(k->step))
        return false;
    atomic_store_explicit(&k->stopped, true, memory_order_relaxed);
    return true;
}

leat_status leat_kernel_check(leat_kernel *k)
{
    if (!leat_kernel_cancelled(k))
        return NULL;
    const leat_node *n = k->bound->node;
    LEAT_REQUIRE(!leat_step_cancelled(k->step), CANCELLED, "{{node %s}} was cancelled", n->name);
    return leat_error(DEADLINE_EXCEEDED, "Timed out while {{node %s}} (%s) was running", n->name,
                      n->op->def->name);
}

static bool is_stopped(void *kernel)
{
    return leat_kernel_cancelled(kernel);
}

const leat_loop_stop *leat_kernel_stop(leat_kernel *k, leat_loop_stop *s)
{
    *s = (leat_loop_stop){is_stopped, k};
    return k->bound->holds_state ? NULL : s;
}

void leat_kernel_done(leat_kernel *k, leat_status s)
{
    k->done(k, s);
}

leat_device *leat_kernel_device(leat_kernel *k)
{
    return k->device;
}

leat_resources *leat_kernel_resources(leat_kernel *k)
{
    return k->device->resources;
}

leat_status leat_kernel_handle(leat_kernel *k, int i, const leat_handle **out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->dtype == LEAT_RESOURCE && t->count > 0 && *(leat_handle **)t->data,
                 INVALID_ARGUMENT, "Input %d of '%s' is not a resource handle", i,
                 leat_node_name(leat_kernel_node(k)));
    const leat_handle *h = *(leat_handle **)t->data;
    const char *here = leat_kernel_device(k)->name;
    LEAT_REQUIRE(strcmp(h->device, here) == 0, INVALID_ARGUMENT,
                 "Trying to access resource %s located in device %s from device %s", h->name,
                 h->device, here);
    *out = h;
    return NULL;
}

leat_status leat_kernel_variable(leat_kernel *k, int i, leat_variable **out)
{
    if (k->in[i].var) {
        *out = k->in[i].var;
        return NULL;
    }
    const leat_tensor *t = k->in[i].tensor;
    LEAT_REQUIRE(t && t->dtype == LEAT_RESOURCE && t->count == 1 && *(leat_handle **)t->data,
                 INVALID_ARGUMENT, "Input %d of %s is not a handle of a variable", i,
                 k->bound->node->name);
    const leat_handle *h = *(leat_handle **)t->data;
    leat_resource *r;
    leat_status s =
        leat_resources_find(k->device->resources, h->container, h->name, &leat_variable_type, &r);
    if (s)
        return leat_status_prefix(s,
                                  "Error while reading resource variable %s from Container: %s. "
                                  "This could mean that the variable was uninitialized. ",
                                  h->name, h->container);
    /* The input's entry, which the executor clears, owns the reference to the variable. */
    k->in[i].var = (leat_variable *)r;
    *out = (leat_variable *)r;
    return NULL;
}

leat_status leat_kernel_run(leat_kernel *k)
{
    leat_status s = k->bound->via_float ? leat_kernel_run_via_float(k) : k->bound->def->run(k);
    if (k->temps)
        leat_kernel_free_temps(k);
    return !s && atomic_load_explicit(&k->stopped, memory_order_relaxed) ? leat_kernel_check(k) : s;
}
