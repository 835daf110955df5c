/* resource.c -- resources by container, type and name.
 *
 * One lock guards the maps. It is taken by lookups while steps run, so nothing slow happens under
 * it; what is removed is unreferenced after the lock is released, since a resource's free function
 * may take the lock. */
#include "runtime/resource.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/map.h"

struct leat_resources {
    atomic_int refs;
    pthread_mutex_t lock; /* guards containers; held while a make function runs */
    leat_map containers;  /* name -> leat_map of "type/name" -> leat_resource */
};

void leat_resource_init(leat_resource *r, const leat_resource_type *type)
{
    atomic_init(&r->refs, 1);
    r->type = type;
}

void leat_resource_ref(leat_resource *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
}

void leat_resource_unref(leat_resource *r)
{
    if (r && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
        r->type->free(r);
}

leat_resources *leat_resources_new(void)
{
    leat_resources *rs = leat_new(leat_resources);
    atomic_init(&rs->refs, 1);
    pthread_mutex_init(&rs->lock, NULL);
    return rs;
}

void leat_resources_ref(leat_resources *rs)
{
    atomic_fetch_add_explicit(&rs->refs, 1, memory_order_relaxed);
}

void leat_resources_unref(leat_resources *rs)
{
    if (!rs || atomic_fetch_sub_explicit(&rs->refs, 1, memory_order_acq_rel) != 1)
        return;
    leat_resources_clear(rs, NULL);
    pthread_mutex_destroy(&rs->lock);
    free(rs);
}

/* A type's name has no "/", so "type/name" stands for one resource only. Short keys are made in
 * `small`; others are allocated. */
typedef struct key {
    char small[192], *s;
} key;

static void key_init(key *k, const leat_resource_type *type, const char *name)
{
    size_t t = strlen(type->name), n = strlen(name);
    k->s = t + n + 2 <= sizeof(k->small) ? k->small : leat_xmalloc(t + n + 2);
    memcpy(k->s, type->name, t);
    k->s[t] = '/';
    memcpy(k->s + t + 1, name, n + 1);
}

static void key_release(key *k)
{
    if (k->s != k->small)
        free(k->s);
}

static const char *container_name(const char *container)
{
    return container && *container ? container : "localhost";
}

static leat_status missing(const leat_map *c, const char *container, const char *name,
                           const leat_resource_type *type)
{
    if (!c)
        return leat_error(NOT_FOUND,
                          "Container %s does not exist. (Could not find resource: %s/%s)",
                          container, container, name);
    return leat_error(NOT_FOUND, "Resource %s/%s/%s does not exist.", container, name, type->name);
}

/* With the lock held: gives the resource or NULL, and its container or NULL. */
static leat_resource *look_up(leat_resources *rs, const char *container, const char *key,
                              leat_map **container_out)
{
    *container_out = leat_map_get(&rs->containers, container);
    return *container_out ? leat_map_get(*container_out, key) : NULL;
}

/* Gives a reference to the resource: a new one, or, with `remove`, the one that the map had. */
static leat_status find(leat_resources *rs, const char *container, const char *name,
                        const leat_resource_type *type, bool remove, leat_resource **out)
{
    container = container_name(container);
    key k;
    key_init(&k, type, name);
    leat_map *c;
    pthread_mutex_lock(&rs->lock);
    leat_resource *r = look_up(rs, container, k.s, &c);
    if (r && remove)
        leat_map_remove(c, k.s);
    else if (r)
        leat_resource_ref(r);
    leat_status s = r ? NULL : missing(c, container, name, type);
    pthread_mutex_unlock(&rs->lock);
    key_release(&k);
    if (r)
        *out = r;
    return s;
}

leat_status leat_resources_find(leat_resources *rs, const char *container, const char *name,
                                const leat_resource_type *type, leat_resource **out)
{
    return find(rs, container, name, type, false, out);
}

leat_status leat_resources_find_or_make(leat_resources *rs, const char *container, const char *name,
                                        const leat_resource_type *type,
                                        leat_status (*make)(void *arg, leat_resource **out),
                                        void *arg, leat_resource **out)
{
    container = container_name(container);
    key k;
    key_init(&k, type, name);
    leat_map *c;
    leat_status s = NULL;
    pthread_mutex_lock(&rs->lock);
    leat_resource *r = look_up(rs, container, k.s, &c);
    if (!r) {
        s = make(arg, &r);
        if (!s && !c) {
            c = leat_new(leat_map);
            leat_map_put(&rs->containers, container, c);
        }
        if (!s)
            leat_map_put(c, k.s, r);
    }
    if (!s) {
        leat_resource_ref(r);
        *out = r;
    }
    pthread_mutex_unlock(&rs->lock);
    key_release(&k);
    return s;
}

leat_status leat_resources_remove(leat_resources *rs, const char *container, const char *name,
                                  const leat_resource_type *type)
{
    leat_resource *r;
    LEAT_TRY(find(rs, container, name, type, true, &r));
    leat_resource_unref(r);
    return NULL;
}

static void container_free(leat_map *c)
{
    size_t i = 0;
    const char *name;
    void *r;
    while (leat_map_next(c, &i, &name, &r))
        leat_resource_unref(r);
    leat_map_release(c);
    free(c);
}

void leat_resources_clear(leat_resources *rs, const char *container)
{
    leat_map gone = {0};
    pthread_mutex_lock(&rs->lock);
    if (!container) {
        gone = rs->containers;
        rs->containers = (leat_map){0};
    } else {
        leat_map *c = leat_map_remove(&rs->containers, container_name(container));
        if (c)
            leat_map_put(&gone, "", c);
    }
    pthread_mutex_unlock(&rs->lock);
    size_t i = 0;
    const char *name;
    void *c;
    while (leat_map_next(&gone, &i, &name, &c))
        container_free(c);
    leat_map_release(&gone);
}
