/* element.c -- copying and releasing elements; strings, resource handles, variants. */
#include "core/element.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

bool leat_string_set(leat_string *dst, const char *data, size_t size)
{
    char *copy = NULL;
    if (size) {
        copy = size < SIZE_MAX ? malloc(size + 1) : NULL;
        if (!copy)
            return false;
        memcpy(copy, data, size);
        copy[size] = '\0';
    }
    free(dst->data);
    dst->data = copy;
    dst->size = size;
    return true;
}

/* When an object is freed, references that it drops are queued and dropped after it is freed, so
 * that the stack does not grow with the nesting of objects. */
void leat_variant_drop(leat_variant v)
{
    static __thread struct {
        leat_variant *v;
        int n, cap;
        bool busy;
    } later;
    if (!v.type || !v.type->unref)
        return;
    if (later.busy) {
        leat_grow(later.v, later.n, later.cap);
        later.v[later.n++] = v;
        return;
    }
    later.busy = true;
    v.type->unref(v.object);
    while (later.n > 0) {
        later.n--;
        later.v[later.n].type->unref(later.v[later.n].object);
    }
    free(later.v);
    later.v = NULL;
    later.cap = 0;
    later.busy = false;
}

void leat_elements_release(leat_dtype t, void *data, int64_t n)
{
    if (t == LEAT_STRING) {
        leat_string *s = data;
        for (int64_t i = 0; i < n; i++) {
            free(s[i].data);
            s[i] = (leat_string){0};
        }
    } else if (t == LEAT_RESOURCE) {
        leat_handle **h = data;
        for (int64_t i = 0; i < n; i++) {
            leat_handle_unref(h[i]);
            h[i] = NULL;
        }
    } else if (t == LEAT_VARIANT) {
        leat_variant *v = data;
        for (int64_t i = 0; i < n; i++) {
            leat_variant old = v[i];
            v[i] = (leat_variant){0};
            leat_variant_drop(old);
        }
    }
}

static leat_status strings_copy(leat_string *dst, const leat_string *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        LEAT_REQUIRE(leat_string_set(&dst[i], src[i].data, src[i].size), RESOURCE_EXHAUSTED,
                     "OOM when copying a string of %zu bytes", src[i].size);
    return NULL;
}

/* Takes the new reference before dropping the old one: both may be to the same object. */
static void handles_copy(leat_handle **dst, leat_handle *const *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        leat_handle *old = dst[i];
        if (src[i])
            leat_handle_ref(src[i]);
        dst[i] = src[i];
        leat_handle_unref(old);
    }
}

static void variants_copy(leat_variant *dst, const leat_variant *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        leat_variant old = dst[i], new = src[i];
        if (new.type &&new.type->ref)
            new.type->ref(new.object);
        dst[i] = new;
        leat_variant_drop(old);
    }
}

leat_status leat_elements_copy(leat_dtype t, void *dst, const void *src, int64_t n)
{
    if (n <= 0)
        return NULL;
    if (t == LEAT_STRING)
        return strings_copy(dst, src, n);
    if (t == LEAT_RESOURCE)
        handles_copy(dst, src, n);
    else if (t == LEAT_VARIANT)
        variants_copy(dst, src, n);
    else
        memmove(dst, src, (size_t)n * leat_dtype_size(t));
    return NULL;
}

leat_handle *leat_handle_new(const char *device, const char *container, const char *name,
                             const char *type_name, uint64_t hash_code)
{
    leat_handle *h = leat_new(leat_handle);
    atomic_init(&h->refs, 1);
    h->device = leat_xstrdup(device);
    h->container = leat_xstrdup(container);
    h->name = leat_xstrdup(name);
    h->type_name = leat_xstrdup(type_name);
    h->hash_code = hash_code;
    return h;
}

void leat_handle_ref(leat_handle *h)
{
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
}

void leat_handle_unref(leat_handle *h)
{
    if (!h || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (h->object)
        h->object_unref(h->object);
    free(h->device);
    free(h->container);
    free(h->name);
    free(h->type_name);
    free(h->dtypes);
    free(h->shapes);
    free(h);
}
