/* object.c -- magic numbers of objects, and the memory of those that were freed last. */
#include "core/object.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"

enum { KIND = 0xffff }; /* The bits of a magic number that are the kind. */

static const struct {
    const char *name, *end;
} kinds[] = {
#define X(kind, name, end) {name, end},
    LEAT_OBJECTS(X)
#undef X
};

/* The last N_FREED objects that were freed. Their memory is kept. */
#ifdef LEAT_CHECK_HANDLES
enum { N_FREED = 65536 }; /* More, because tensors and statuses are checked, too. */
#else
enum { N_FREED = 256 };
#endif
static void *_Atomic freed[N_FREED];
static atomic_uint n_freed;

void leat_object_init(leat_object *o, leat_object_kind kind)
{
    __atomic_store_n(&o->magic, LEAT_OBJECT_ALIVE + (uint32_t)kind, __ATOMIC_RELEASE);
}

void *leat_object_new(size_t size, leat_object_kind kind)
{
    leat_object *o = leat_xcalloc(1, size);
    leat_object_init(o, kind);
    return o;
}

void leat_object_free(leat_object *o)
{
    uint32_t kind = leat_object_magic(o) & KIND;
    __atomic_store_n(&o->magic, LEAT_OBJECT_FREED + kind, __ATOMIC_RELEASE);
    unsigned i = atomic_fetch_add(&n_freed, 1) % N_FREED;
    free(atomic_exchange(&freed[i], o));
}

leat_status leat_object_check(const void *p, leat_object_kind kind, const char *function)
{
    const char *name = kinds[kind].name;
    LEAT_REQUIRE(p, INVALID_ARGUMENT, "%s: the %s is NULL", function, name);
    if (leat_object_alive(p, kind))
        return NULL;
    uint32_t magic = leat_object_magic(p), other = magic & KIND;
    LEAT_REQUIRE(magic != LEAT_OBJECT_FREED + (uint32_t)kind, FAILED_PRECONDITION,
                 "%s: the %s has already been %s", function, name, kinds[kind].end);
    LEAT_REQUIRE(magic != LEAT_OBJECT_ALIVE + other || other >= LEAT_N_OBJECTS, INVALID_ARGUMENT,
                 "%s: wants a %s, and was given a %s", function, name, kinds[other].name);
    return leat_error(INVALID_ARGUMENT, "%s: %p is not a %s", function, p, name);
}

bool leat_object_report(const void *p, leat_object_kind kind, const char *function)
{
    leat_status s = leat_object_check(p, kind, function);
    fprintf(stderr, "leat: %s\n", leat_status_message(s));
    leat_status_free(s);
    return false;
}
