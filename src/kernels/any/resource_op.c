/* resource_op.c -- see resource_op.h. */
#include "kernels/any/resource_op.h"

#include <ctype.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"

/* A reference whose value is [container, name]. */
typedef struct named_ref {
    leat_variable base;
    leat_resource *object;
} named_ref;

static void named_ref_free(void *resource)
{
    leat_resource *object = ((named_ref *)resource)->object;
    leat_variable_free(resource);
    leat_resource_unref(object);
}
static const leat_resource_type named_ref_type = {"NamedRef", named_ref_free};

static void handle_object_unref(void *object)
{
    leat_resource_unref(object);
}

void leat_resource_op_release(void *state)
{
    leat_resource_op *op = state;
    leat_tensor_unref(atomic_load(&op->handle));
    leat_variable *v = atomic_load(&op->ref);
    leat_resource_unref(v ? &v->base : NULL);
}

/* ---- Making ---- */

typedef struct make_args {
    leat_kernel *kernel;
    const leat_node *node;
    leat_resource_place place;
    const leat_resource_maker *maker;
} make_args;

static leat_status make(void *arg, leat_resource **out)
{
    make_args *m = arg;
    return m->maker->make(m->kernel, m->place.name, out);
}

/* A resource without a shared_name has the node's name, and belongs to the session. */
leat_status leat_resource_place_of(leat_kernel *k, leat_resource_place *out)
{
    const leat_node *n = leat_kernel_node(k);
    const char *c = leat_node_string(n, "container"), *shared = leat_node_string(n, "shared_name");
    bool good = !*c || isalnum((unsigned char)*c) || *c == '.';
    for (const char *p = c; *p; p++)
        good &= isalnum((unsigned char)*p) || strchr("-./", *p);
    LEAT_REQUIRE(good, INVALID_ARGUMENT, "container contains invalid characters: %s", c);
    LEAT_REQUIRE(*shared != '_', INVALID_ARGUMENT, "shared_name cannot start with '_':%s", shared);
    const leat_device *d = leat_kernel_device(k);
    *out = (leat_resource_place){.where = *shared || !d->own ? d->resources : d->own,
                                 .container = *c ? c : "localhost",
                                 .name = *shared ? shared : leat_node_name(n)};
    return NULL;
}

/* Sets output 0 to a handle, which holds r unless r is NULL. */
static leat_status give_handle(leat_kernel *k, const leat_resource_place *place,
                               const leat_resource_type *type, leat_resource *r)
{
    leat_resource_op *op = leat_kernel_state(k);
    leat_tensor *t, *none = NULL;
    LEAT_TRY(leat_tensor_new(LEAT_RESOURCE, leat_shape(), &t));
    leat_handle *h =
        leat_handle_new(leat_kernel_device(k)->name, place->container, place->name, type->name, 0);
    if (r) {
        leat_resource_ref(r);
        h->object = r;
        h->object_unref = handle_object_unref;
    }
    AT(leat_handle *, t)[0] = h;
    if (!atomic_compare_exchange_strong(&op->handle, &none, t)) {
        leat_tensor_unref(t); /* another step has made it meanwhile */
        t = none;
    }
    leat_kernel_set(k, 0, leat_tensor_ref(t));
    return NULL;
}

static leat_status give_ref(leat_kernel *k, const make_args *m, leat_resource *r)
{
    leat_resource_op *op = leat_kernel_state(k);
    leat_tensor *t;
    leat_variable *none = NULL;
    LEAT_TRY(leat_tensor_new(LEAT_STRING, leat_shape(2), &t));
    if (!leat_string_set(&AT(leat_string, t)[0], m->place.container, strlen(m->place.container)) ||
        !leat_string_set(&AT(leat_string, t)[1], m->place.name, strlen(m->place.name))) {
        leat_tensor_unref(t);
        return leat_error(RESOURCE_EXHAUSTED, "No memory for a handle of %s", m->place.name);
    }
    named_ref *ref = leat_new(named_ref);
    leat_resource_init(&ref->base.base, &named_ref_type);
    pthread_mutex_init(&ref->base.lock, NULL);
    ref->base.value = t;
    ref->base.dtype = LEAT_STRING;
    ref->base.shape = t->shape;
    ref->base.name = leat_xstrdup(m->place.name);
    leat_resource_ref(r);
    ref->object = r;
    leat_variable *v = &ref->base;
    if (!atomic_compare_exchange_strong(&op->ref, &none, v)) {
        leat_resource_unref(&v->base);
        v = none;
    }
    leat_kernel_set_ref(k, 0, v);
    return NULL;
}

static leat_status first_run(leat_kernel *k, const leat_resource_maker *maker)
{
    make_args m = {.kernel = k, .node = leat_kernel_node(k), .maker = maker};
    leat_resource *r;
    LEAT_TRY(leat_resource_place_of(k, &m.place));
    LEAT_TRY(leat_resources_find_or_make(m.place.where, m.place.container, m.place.name,
                                         maker->type, make, &m, &r));
    leat_status s = maker->check ? maker->check(m.node, r) : NULL;
    if (!s)
        s = leat_dtype_is_ref(m.node->out_types[0])
                ? give_ref(k, &m, r)
                : give_handle(k, &m.place, maker->type, maker->by_name ? NULL : r);
    leat_resource_unref(r);
    return s;
}

leat_status leat_resource_op_run(leat_kernel *k, const leat_resource_maker *m)
{
    leat_resource_op *op = leat_kernel_state(k);
    leat_tensor *t = atomic_load_explicit(&op->handle, memory_order_acquire);
    leat_variable *v = atomic_load_explicit(&op->ref, memory_order_acquire);
    if (t)
        leat_kernel_set(k, 0, leat_tensor_ref(t));
    else if (v)
        leat_kernel_set_ref(k, 0, v);
    else
        return first_run(k, m);
    return NULL;
}

leat_status leat_resource_handle_run(leat_kernel *k, const leat_resource_type *type)
{
    leat_resource_op *op = leat_kernel_state(k);
    leat_resource_place place;
    leat_tensor *t = atomic_load_explicit(&op->handle, memory_order_acquire);
    if (t) {
        leat_kernel_set(k, 0, leat_tensor_ref(t));
        return NULL;
    }
    LEAT_TRY(leat_resource_place_of(k, &place));
    return give_handle(k, &place, type, NULL);
}

/* ---- Finding ---- */

static leat_status by_name(leat_kernel *k, const char *container, const char *name,
                           const leat_resource_type *type, leat_resource **out)
{
    const leat_device *d = leat_kernel_device(k);
    if (d->own) {
        leat_status s = leat_resources_find(d->own, container, name, type, out);
        if (!s)
            return NULL;
        leat_status_free(s);
    }
    return leat_resources_find(d->resources, container, name, type, out);
}

static leat_status by_ref(leat_kernel *k, int i, const leat_resource_type *type,
                          leat_resource **out)
{
    leat_variable *v = k->in[i].var;
    leat_resource *r = v && v->base.type == &named_ref_type ? ((named_ref *)v)->object : NULL;
    if (r && r->type == type) {
        leat_resource_ref(r);
        *out = r;
        return NULL;
    }
    leat_tensor *t = leat_tensor_ref(k->in[i].tensor);
    if (v)
        LEAT_TRY(leat_variable_read(v, &t));
    leat_status s = NULL;
    if (t->dtype == LEAT_STRING && t->count == 2) {
        const leat_string *p = t->data;
        s = by_name(k, p[0].data ? p[0].data : "", p[1].data ? p[1].data : "", type, out);
    } else {
        s = leat_error(INVALID_ARGUMENT, "Resource handle must have 2 elements, but had shape: %s",
                       leat_shape_show(&t->shape).s);
    }
    leat_tensor_unref(t);
    return s;
}

leat_status leat_kernel_resource(leat_kernel *k, int i, const leat_resource_type *type,
                                 leat_resource **out)
{
    if (k->in[i].var || !k->in[i].tensor || k->in[i].tensor->dtype != LEAT_RESOURCE)
        return by_ref(k, i, type, out);
    const leat_handle *h;
    LEAT_TRY(leat_kernel_handle(k, i, &h));
    leat_resource *r = h->object_unref == handle_object_unref ? h->object : NULL;
    if (!r || r->type != type)
        return by_name(k, h->container, h->name, type, out);
    leat_resource_ref(r);
    *out = r;
    return NULL;
}

/* ---- Signatures ---- */

static void list_types(leat_strbuf *b, leat_dtype first, const leat_dtype *t, int n)
{
    if (first)
        leat_strbuf_puts(b, leat_dtype_name(first));
    for (int i = 0; i < n; i++)
        leat_strbuf_printf(b, "%s%s", i || first ? ", " : "", leat_dtype_name(t[i]));
}

static leat_status mismatch(const leat_node *n, const leat_dtype *in, int n_in,
                            const leat_dtype *out, int n_out)
{
    leat_strbuf b = {0};
    leat_dtype handle = leat_out_dtype(n->in[0]);
    leat_strbuf_puts(&b, "Signature mismatch, have: ");
    for (int i = 0; i < n->n_in; i++)
        leat_strbuf_printf(&b, "%s%s", i ? ", " : "", leat_dtype_name(leat_out_dtype(n->in[i])));
    leat_strbuf_puts(&b, "->");
    list_types(&b, LEAT_INVALID, n->out_types, n->n_out);
    leat_strbuf_puts(&b, " expected: ");
    list_types(&b, handle, in, n_in);
    leat_strbuf_puts(&b, "->");
    list_types(&b, LEAT_INVALID, out, n_out);
    leat_status s = leat_error(INVALID_ARGUMENT, "%s", leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return s;
}

leat_status leat_kernel_signature(leat_kernel *k, const leat_dtype *in, int n_in,
                                  const leat_dtype *out, int n_out)
{
    const leat_node *n = leat_kernel_node(k);
    bool same = n->n_in == n_in + 1 && n->n_out == n_out;
    for (int i = 0; same && i < n_in; i++)
        same = leat_dtype_base(leat_out_dtype(n->in[i + 1])) == in[i];
    for (int i = 0; same && i < n_out; i++)
        same = leat_dtype_base(n->out_types[i]) == out[i];
    return same ? NULL : mismatch(n, in, n_in, out, n_out);
}
