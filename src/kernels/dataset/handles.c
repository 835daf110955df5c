/* handles.c -- see handles.h. */
#include "kernels/dataset/handles.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/any/resource_op.h"
#include "proto/tensor.pb-c.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

/* ---- Resources that only their handles refer to ---- */

static void object_unref(void *object)
{
    leat_resource_unref(object);
}

leat_status leat_anonymous_handle(leat_kernel *k, int i, const char *name, leat_resource *r)
{
    leat_tensor *t;
    static atomic_llong count;
    leat_strbuf unique = {0};
    leat_status s = leat_tensor_new(LEAT_RESOURCE, leat_shape(), &t);
    if (s) {
        leat_resource_unref(r);
        return s;
    }
    leat_strbuf_printf(&unique, "_%s%lld", name, atomic_fetch_add(&count, 1));
    leat_handle *h = leat_handle_new(leat_kernel_device(k)->name, name, leat_strbuf_text(&unique),
                                     r->type->name, 0);
    leat_strbuf_release(&unique);
    h->object = r;
    h->object_unref = object_unref;
    *AT(leat_handle *, t) = h;
    leat_kernel_set(k, i, t);
    if (k->n_out > 1) {
        LEAT_TRY(leat_tensor_new(LEAT_VARIANT, leat_shape(), &t));
        leat_kernel_set(k, 1, t);
    }
    return NULL;
}

/* The resource that the handle holds; NULL if the handle is of another kind. */
static leat_resource *held(const leat_handle *h)
{
    return h->object_unref == object_unref ? h->object : NULL;
}

leat_status leat_anonymous_resource(leat_kernel *k, int i, const leat_resource_type *type,
                                    leat_resource **out)
{
    const leat_handle *h;
    LEAT_TRY(leat_kernel_handle(k, i, &h));
    leat_resource *r = held(h);
    if (!r || r->type != type)
        return leat_kernel_resource(k, i, type, out);
    leat_resource_ref(r);
    *out = r;
    return NULL;
}

/* Where resources of this session are. */
static leat_resources *session_resources(leat_kernel *k)
{
    const leat_device *d = leat_kernel_device(k);
    return d->own ? d->own : d->resources;
}

static leat_status share(void *arg, leat_resource **out)
{
    leat_resource_ref(arg);
    *out = arg;
    return NULL;
}

/* Keeps r, to which h refers, so that it is found by its name. */
static leat_status keep(leat_kernel *k, const leat_handle *h, leat_resource *r)
{
    leat_resource *same;
    LEAT_TRY(leat_resources_find_or_make(session_resources(k), h->container, h->name, r->type,
                                         share, r, &same));
    leat_resource_unref(same);
    return NULL;
}

void leat_anonymous_delete(leat_kernel *k, int i)
{
    const leat_handle *h;
    leat_status s = leat_kernel_handle(k, i, &h);
    leat_resource *r = s ? NULL : held(h);
    if (r)
        s = leat_resources_remove(session_resources(k), h->container, h->name, r->type);
    leat_status_free(s); /* Nothing was kept. */
}

/* ---- Elements ---- */

leat_element_spec leat_element_spec_of(const leat_node *n)
{
    leat_element_spec e = {0};
    const leat_dtype *types = leat_node_types(n, "output_types", &e.n_types);
    const leat_shape *shapes = leat_node_shapes(n, "output_shapes", &e.n_shapes);
    e.types = leat_new_array(leat_dtype, e.n_types + 1);
    e.shapes = leat_new_array(leat_shape, e.n_shapes + 1);
    for (int i = 0; i < e.n_types; i++)
        e.types[i] = types[i];
    for (int i = 0; i < e.n_shapes; i++)
        e.shapes[i] = shapes[i];
    return e;
}

void leat_element_spec_release(leat_element_spec *e)
{
    free(e->types);
    free(e->shapes);
}

static leat_status verify_types(const leat_dtype *want, int n_want, const leat_dtype *have,
                                int n_have)
{
    LEAT_REQUIRE(n_want == n_have, INVALID_ARGUMENT,
                 "Number of components does not match: expected %d types but got %d.", n_want,
                 n_have);
    for (int i = 0; i < n_want; i++)
        LEAT_REQUIRE(want[i] == have[i], INVALID_ARGUMENT,
                     "Data type mismatch at component %d: expected %s but got %s.", i,
                     leat_dtype_name(want[i]), leat_dtype_name(have[i]));
    return NULL;
}

static leat_status verify_shapes(const leat_shape *want, int n_want, const leat_shape *have,
                                 int n_have)
{
    LEAT_REQUIRE(n_want == n_have, INVALID_ARGUMENT,
                 "Number of components does not match: expected %d shapes but got %d.", n_want,
                 n_have);
    for (int i = 0; i < n_want; i++)
        LEAT_REQUIRE(leat_shape_compatible(&want[i], &have[i]), INVALID_ARGUMENT,
                     "Incompatible shapes at component %d: expected %s but got %s.", i,
                     leat_shape_show(&want[i]).s, leat_shape_show(&have[i]).s);
    return NULL;
}

leat_status leat_element_spec_fits(const leat_element_spec *e, const leat_node *n)
{
    int n_types, n_shapes;
    const leat_dtype *types = leat_node_types(n, "output_types", &n_types);
    const leat_shape *shapes = leat_node_shapes(n, "output_shapes", &n_shapes);
    if (n_types)
        LEAT_TRY(verify_types(types, n_types, e->types, e->n_types));
    return n_shapes ? verify_shapes(shapes, n_shapes, e->shapes, e->n_shapes) : NULL;
}

leat_status leat_element_spec_fits_dataset(const leat_element_spec *e, const leat_dataset *d)
{
    LEAT_TRY(verify_types(e->types, e->n_types, d->types, d->n));
    return verify_shapes(e->shapes, e->n_shapes, d->shapes, d->n);
}

/* ---- Handles as strings ---- */

leat_status leat_handle_to_string(leat_kernel *k, const leat_resource_type *type)
{
    leat_resource *r;
    leat_tensor *y;
    Leat__TensorProto *p;
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "resource_handle must be a scalar");
    LEAT_TRY(leat_anonymous_resource(k, 0, type, &r));
    const leat_handle *h = *AT(leat_handle *, t);
    leat_status s = held(h) == r ? keep(k, h, r) : NULL;
    leat_resource_unref(r);
    LEAT_TRY(s);
    LEAT_TRY(leat_tensor_to_proto(t, LEAT_TENSOR_CONSTANT, &p));
    leat_strbuf bytes = {0};
    s = leat_proto_pack(p->resource_handle_val[0], &bytes);
    leat_proto_free(p);
    if (!s)
        s = leat_tensor_of_string(leat_strbuf_text(&bytes), bytes.n, &y);
    leat_strbuf_release(&bytes);
    if (!s)
        leat_kernel_set(k, 0, y);
    return s;
}

/* The handle in a string, as a tensor. */
static leat_status parse_handle(const leat_string *x, leat_tensor **out)
{
    Leat__ResourceHandleProto *h = NULL;
    leat_status s = x->size ? LEAT_UNPACK(resource_handle_proto, x->data, x->size, &h) : NULL;
    if (!h) { /* An empty string is a message without fields, and names no iterator. */
        leat_status_free(s);
        return leat_error(INVALID_ARGUMENT,
                          "Could not parse string_handle as a valid ResourceHandle");
    }
    Leat__TensorProto p = LEAT__TENSOR_PROTO__INIT;
    p.dtype = LEAT__DATA_TYPE__DT_RESOURCE;
    p.n_resource_handle_val = 1;
    p.resource_handle_val = &h;
    s = leat_tensor_from_proto(&p, out);
    leat_proto_free(h);
    return s;
}

leat_status leat_handle_find(leat_kernel *k, const leat_handle *h, const leat_resource_type *type,
                             leat_resource **out)
{
    const leat_device *d = leat_kernel_device(k);
    LEAT_REQUIRE(strcmp(h->device, d->name) == 0, INVALID_ARGUMENT,
                 "Attempted create an iterator on device \"%s\" from handle defined on device "
                 "\"%s\"",
                 d->name, h->device);
    leat_status s = d->own ? leat_resources_find(d->own, h->container, h->name, type, out) : NULL;
    if (d->own && !s)
        return NULL;
    leat_status_free(s);
    return leat_resources_find(d->resources, h->container, h->name, type, out);
}

leat_status leat_handle_from_string(leat_kernel *k, const leat_resource_type *type,
                                    leat_status (*check)(const leat_node *n,
                                                         const leat_resource *r))
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    leat_tensor *y;
    leat_resource *r;
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "string_handle must be a scalar");
    LEAT_TRY(parse_handle(AT(leat_string, t), &y));
    leat_status s = leat_handle_find(k, *AT(leat_handle *, y), type, &r);
    if (!s) {
        s = check ? check(leat_kernel_node(k), r) : NULL;
        leat_resource_unref(r);
    }
    if (s)
        leat_tensor_unref(y);
    else
        leat_kernel_set(k, 0, y);
    return s;
}
