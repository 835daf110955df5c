/* resource.h -- what outlives a step on a device: variables, queues, iterators, found by
 * container and name. */
#ifndef LEAT_RESOURCE_H
#define LEAT_RESOURCE_H

#include <leat/tensor.h>
#include <stdatomic.h>

typedef struct leat_resource_type {
    const char *name; /* as in handles, "Var" */
    void (*free)(void *resource);
} leat_resource_type;

/* The first member of every resource. */
typedef struct leat_resource {
    atomic_int refs;
    const leat_resource_type *type;
} leat_resource;

void leat_resource_init(leat_resource *r, const leat_resource_type *type); /* one reference */
void leat_resource_ref(leat_resource *r);
void leat_resource_unref(leat_resource *r); /* NULL does nothing */

typedef struct leat_resources
    leat_resources; /* all resources of one device; thread-safe, reference-counted */

leat_resources *leat_resources_new(void);
void leat_resources_ref(leat_resources *rs);
void leat_resources_unref(leat_resources *rs);
/* "" is the default container, "localhost". Shares the resource found. NOT_FOUND names it:
 * "Resource localhost/w/Var does not exist." */
leat_status leat_resources_find(leat_resources *rs, const char *container, const char *name,
                                const leat_resource_type *type,
                                leat_resource **out) LEAT_MUST_CHECK;
/* The same, but a resource that is missing is made by make(arg), with the lock of rs held. */
leat_status leat_resources_find_or_make(leat_resources *rs, const char *container, const char *name,
                                        const leat_resource_type *type,
                                        leat_status (*make)(void *arg, leat_resource **out),
                                        void *arg, leat_resource **out) LEAT_MUST_CHECK;
leat_status leat_resources_remove(leat_resources *rs, const char *container, const char *name,
                                  const leat_resource_type *type) LEAT_MUST_CHECK;
void leat_resources_clear(leat_resources *rs, const char *container); /* NULL: all containers */

#endif
