/* generator.c -- the generators of random numbers. A node's generator continues from run to run,
 * also if other tensors are fetched: it is a resource of the session, found by the node's name and
 * seeds. In a function of a dataset it is the kernel's alone, and begins with the iterator. Seeds
 * of 0 and 0 mean random seeds. */
#define _GNU_SOURCE /* asprintf */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "core/alloc.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/shapes.h"
#include "runtime/callable.h"

typedef struct generator {
    leat_resource base;
    pthread_mutex_t lock; /* guards next */
    leat_philox next;
} generator;

static void generator_free(void *resource)
{
    generator *g = resource;
    pthread_mutex_destroy(&g->lock);
    free(g);
}
static const leat_resource_type generator_type = {"Philox", generator_free};

uint64_t leat_random_by_chance(void)
{
    uint64_t x;
    if (getrandom(&x, sizeof(x), 0) == sizeof(x))
        return x;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000003 ^ (uint64_t)t.tv_nsec << 20 ^ (uint64_t)(uintptr_t)&x;
}

static leat_status generator_make(void *arg, leat_resource **out)
{
    const leat_node *n = arg;
    uint64_t seed = (uint64_t)leat_node_int(n, "seed"), seed2 = (uint64_t)leat_node_int(n, "seed2");
    if (seed == 0 && seed2 == 0) {
        seed = leat_random_by_chance();
        seed2 = leat_random_by_chance();
    }
    generator *g = leat_new(generator);
    leat_resource_init(&g->base, &generator_type);
    pthread_mutex_init(&g->lock, NULL);
    g->next = leat_philox_of(seed, seed2);
    *out = &g->base;
    return NULL;
}

typedef struct random_state {
    _Atomic(leat_resource *) gen; /* found on the first run */
} random_state;
_Static_assert(sizeof(random_state) == LEAT_RANDOM_STATE, "kernels' state holds a generator");

void leat_random_release(void *state)
{
    leat_resource *g = atomic_load(&((random_state *)state)->gen);
    if (g)
        leat_resource_unref(g);
}

/* Shares the resource. */
static leat_status resource_of_node(leat_kernel *k, const char *container,
                                    const leat_resource_type *type, leat_random_make_fn *make,
                                    leat_resource **out)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_device *d = leat_kernel_device(k);
    char *name;
    if (leat_kernel_again(k))
        return make((void *)n, out);
    if (asprintf(&name, "%s %lld %lld", leat_node_name(n), (long long)leat_node_int(n, "seed"),
                 (long long)leat_node_int(n, "seed2")) < 0)
        return leat_error(RESOURCE_EXHAUSTED, "no memory for the name of a resource");
    leat_status s = leat_resources_find_or_make(d->own ? d->own : d->resources, container, name,
                                                type, make, (void *)n, out);
    free(name);
    return s;
}

leat_status leat_random_resource(leat_kernel *k, _Atomic(leat_resource *) *slot,
                                 const char *container, const leat_resource_type *type,
                                 leat_random_make_fn *make, leat_resource **out)
{
    leat_resource *r = atomic_load_explicit(slot, memory_order_acquire), *none = NULL;
    if (!r) {
        LEAT_TRY(resource_of_node(k, container, type, make, &r));
        if (!atomic_compare_exchange_strong(slot, &none, r)) {
            leat_resource_unref(r); /* another step has made it meanwhile */
            r = none;
        }
    }
    *out = r;
    return NULL;
}

leat_status leat_random_reserve(leat_kernel *k, uint64_t n, leat_philox *out)
{
    random_state *state = leat_kernel_state(k);
    leat_resource *r;
    LEAT_TRY(
        leat_random_resource(k, &state->gen, "_generators", &generator_type, generator_make, &r));
    generator *g = (generator *)r;
    pthread_mutex_lock(&g->lock);
    *out = g->next;
    leat_philox_skip(&g->next, n);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

leat_status leat_random_output(leat_kernel *k, leat_tensor **y)
{
    const leat_tensor *shape = leat_kernel_in(k, 0);
    leat_shape s;
    LEAT_REQUIRE(shape->shape.rank == 1, INVALID_ARGUMENT,
                 "shape must be a vector of {int32,int64}, got shape %s",
                 leat_shape_show(&shape->shape).s);
    LEAT_TRY(leat_shape_from_tensor(shape, &s));
    return leat_kernel_out(k, 0, &s, y);
}

leat_philox leat_random_seeded(const leat_tensor *seed)
{
    uint64_t a = (uint64_t)leat_index_at(seed, 0), b = (uint64_t)leat_index_at(seed, 1);
    leat_philox mixer = {{(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)},
                         {0x3ec8f720, 0x02461e29}};
    uint32_t mix[4];
    leat_philox_next(&mixer, mix);
    return (leat_philox){{0, 0, mix[2], mix[3]}, {mix[0], mix[1]}};
}
