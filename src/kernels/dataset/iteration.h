/* iteration.h -- an iterator in use, with all the iterators below it.
 *
 * 1. References are held by the iterator resource and by each kernel that waits for an element; the
 *    last one to be dropped closes the iteration. A kernel that uses a dataset while it runs
 *    (ReduceDataset) has an iteration of its own, whose calls are part of the kernel's step.
 * 2. `busy` counts what is under way: the pull for the waiting kernels, the pulls, jobs and calls
 * of stages, and 1 for the iteration itself. Whoever ends such work calls leat_iteration_idle,
 * after which it touches nothing of the iteration; only then it resumes others or ends kernels,
 * which may close the iteration in the same thread.
 * 3. Kernels that want an element wait in a list. One thing is done for them at a time: a pull, or
 *    saving the position. What a pull has given when nobody waits any more is held for the next
 * one.
 */
#ifndef LEAT_ITERATION_H
#define LEAT_ITERATION_H

#include <pthread.h>

#include "kernels/any/waiter.h"
#include "kernels/dataset/pull.h"

/* Seeds for the iterators of one dataset, each of which gets the next two numbers. */
typedef struct leat_seeds {
    atomic_int refs;
    pthread_mutex_t lock;
    int64_t seed, seed2;
    int64_t drawn; /* numbers so far; guarded by lock */
} leat_seeds;
leat_seeds *leat_seeds_new(int64_t seed, int64_t seed2);
leat_seeds *leat_seeds_ref(leat_seeds *s);
void leat_seeds_unref(leat_seeds *s); /* of NULL does nothing */
void leat_seeds_draw(leat_seeds *s, int64_t *seed, int64_t *seed2);

/* What belongs to a dataset at one place of an iteration, such as its seeds or its cache. */
typedef struct leat_shared {
    struct leat_shared *next;
    const leat_dataset *of;
    uint64_t path;
    void *object;
    void (*free)(void *object);
} leat_shared;

/* A set of callables that belongs to an iteration, in place of the one that datasets have. */
typedef struct leat_own_callables {
    struct leat_own_callables *next;
    struct leat_callables *from, *set; /* set has a reference to from */
} leat_own_callables;

struct leat_iteration {
    leat_resource base;
    leat_pool *pool;
    leat_kernel *kernel; /* NULL, or the kernel whose step the calls are part of */
    leat_cancellation *closing;
    atomic_bool closed;
    atomic_int busy;
    leat_event quiet; /* set when busy becomes 0 */
    leat_iterator *root;

    pthread_mutex_t lock; /* Guards what follows. */
    leat_waiters waiting;
    bool occupied; /* A pull or a save is under way. */
    bool held;     /* The pull has a result that nobody has got yet. */
    leat_pull pull;
    leat_shared *shared;
    leat_own_callables *own;
};

static inline bool leat_iteration_closed(const leat_iteration *in)
{
    return atomic_load_explicit(&((leat_iteration *)in)->closed, memory_order_relaxed);
}

/* Gives a new iteration over d. kernel may be NULL. */
leat_status leat_iteration_new(leat_pool *pool, leat_kernel *kernel, leat_dataset *d,
                               leat_iteration **out) LEAT_MUST_CHECK;
/* The same at a position that leat_iteration_save has given. */
leat_status leat_iteration_restore(leat_pool *pool, leat_dataset *d, const char *bytes, size_t n,
                                   leat_iteration **out) LEAT_MUST_CHECK;
void leat_iteration_unref(leat_iteration *in); /* of NULL does nothing */
/* Makes all that is under way end soon, with CANCELLED. */
void leat_iteration_cancel(leat_iteration *in);

/* Something is under way in the background, until leat_iteration_idle. */
static inline void leat_iteration_busy(leat_iteration *in)
{
    atomic_fetch_add_explicit(&in->busy, 1, memory_order_relaxed);
}
void leat_iteration_idle(leat_iteration *in);

/* The function that is called for f. Functions with seeds begin again in each iteration, so it has
 * kernels of its own for them. Borrowed from the iteration or from f's set. */
leat_status leat_iteration_function(leat_iteration *in, leat_callable *f,
                                    leat_callable **out) LEAT_MUST_CHECK;
/* What belongs to all iterators of one dataset at one place; made by make(arg) when it is first
 * asked for, and freed with the iteration. */
void *leat_iterator_shared(const leat_iterator *it, void *(*make)(void *arg), void *arg,
                           void (*free_fn)(void *object));

/* Ends the kernel k with the next element as its outputs, or as an optional in output 0. Takes the
 * caller's reference to `in`. */
void leat_iteration_get(leat_iteration *in, leat_kernel *k, bool optional);
/* Adds the position to w. Nothing may be pulled meanwhile. */
leat_status leat_iteration_position(leat_iteration *in, leat_state_writer *w) LEAT_MUST_CHECK;
/* Ends the kernel k with the position as output 0, a variant. Takes the reference. */
void leat_iteration_save(leat_iteration *in, leat_kernel *k);
/* Checks an element against the node's outputs, and sets them. Takes *e. */
leat_status leat_iteration_give(leat_kernel *k, leat_element *e) LEAT_MUST_CHECK;

#endif
