/* plan_cache.h -- the plans of a session by signature, or those of a callable by the devices of its
 * arguments, each compiled once.
 *
 * 1. The first thread that wants a signature compiles it, with no lock held. Other threads that
 *    want the same one wait for that thread, each by its own deadline and cancellation; other
 *    signatures do not wait.
 * 2. A compilation that failed is not kept. The threads that waited for it get its error; but if it
 *    ended by the deadline or cancellation of the run that compiled, one of the waiting threads
 *    compiles next.
 */
#ifndef LEAT_PLAN_CACHE_H
#define LEAT_PLAN_CACHE_H

#include <leat/session.h>

#include "core/map.h"
#include "runtime/plan.h"

typedef struct leat_plan_cache {
    pthread_mutex_t lock; /* guards all of it; a cancellation's lock comes before it */
    leat_map entries;     /* signature -> struct leat_cached_plan */
} leat_plan_cache;

/* Makes the plan: leat_plan_new with what arg knows. */
typedef leat_status (*leat_plan_compile_fn)(void *arg, leat_plan **out);

void leat_plan_cache_init(leat_plan_cache *c);
void leat_plan_cache_release(leat_plan_cache *c); /* when no run is under way; frees the plans */
/* The plan of the signature key, of n bytes, which stays the cache's. deadline_ns and stop, which
 * may be NULL, end the wait for another thread's compilation. */
leat_status leat_plan_cache_get(leat_plan_cache *c, const void *key, size_t n, int64_t deadline_ns,
                                leat_cancellation *stop, leat_plan_compile_fn compile, void *arg,
                                leat_plan **out) LEAT_MUST_CHECK;
/* The plan if it has been compiled, else NULL. */
leat_plan *leat_plan_cache_find(leat_plan_cache *c, const void *key, size_t n);

#endif
