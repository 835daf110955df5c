/* plan_cache.h -- the plans of a session by signature, or those of a callable by the devices of its
 * arguments, each compiled once.
 *
 * 1. The first thread that needs a signature compiles it, with no lock held. Other threads that
 *    need the same signature wait for that thread, each until its own deadline or cancellation.
 *    Threads that need other signatures do not wait.
 * 2. A compilation that failed is not kept. The threads that waited for it get its error. But if it
 *    failed because of the deadline or cancellation of the run that compiled, one of the waiting
 *    threads compiles next.
 */
#ifndef LEAT_PLAN_CACHE_H
#define LEAT_PLAN_CACHE_H

#include <leat/session.h>

#include "core/map.h"
#include "runtime/plan.h"

typedef struct leat_plan_cache {
    pthread_mutex_t lock; /* Guards the cache; taken after a cancellation's lock. */
    leat_map entries;     /* Signature -> struct leat_cached_plan. */
} leat_plan_cache;

/* Compiles the signature that arg describes, and gives the plan. */
typedef leat_status (*leat_plan_compile_fn)(void *arg, leat_plan **out);

void leat_plan_cache_init(leat_plan_cache *c);
void leat_plan_cache_release(leat_plan_cache *c); /* Frees the plans; no step may be under way. */
/* *out: the plan of the signature `key` of n bytes, borrowed from the cache. If there is
 * none, compile makes it. deadline_ns (CLOCK_MONOTONIC; 0: none) and stop, which may be NULL, end
 * the wait for another thread's compilation. */
leat_status leat_plan_cache_get(leat_plan_cache *c, const void *key, size_t n, int64_t deadline_ns,
                                leat_cancellation *stop, leat_plan_compile_fn compile, void *arg,
                                leat_plan **out) LEAT_MUST_CHECK;
/* Returns the plan if it has been compiled, else NULL. Does not wait. */
leat_plan *leat_plan_cache_find(leat_plan_cache *c, const void *key, size_t n);

#endif
