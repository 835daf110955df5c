/* plan_cache.c -- see plan_cache.h. */
#include "runtime/plan_cache.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/cond.h"
#include "core/later.h"
#include "runtime/session_int.h"

/* A signature that was compiled or is being compiled. An entry whose compilation failed is removed
 * from the map, and freed when the last thread that waited for it has read the error. */
typedef struct leat_cached_plan {
    leat_plan *plan; /* NULL: not compiled yet, or the compilation failed. */
    leat_status error;
    bool over;   /* The compilation has ended, with a plan or an error. */
    int waiting; /* The number of threads that wait for the compilation. */
    /* Signalled when `over` is set or a waiting thread's run is cancelled. */
    pthread_cond_t changed;
} entry;

void leat_plan_cache_init(leat_plan_cache *c)
{
    *c = (leat_plan_cache){0};
    pthread_mutex_init(&c->lock, NULL);
}

static entry *entry_new(void)
{
    entry *e = leat_new(entry);
    leat_cond_init(&e->changed);
    return e;
}

static void entry_free(entry *e)
{
    leat_plan_free(e->plan);
    leat_status_free(e->error);
    pthread_cond_destroy(&e->changed);
    free(e);
}

void leat_plan_cache_release(leat_plan_cache *c)
{
    size_t i = 0;
    const char *key;
    void *e;
    while (leat_map_next(&c->entries, &i, &key, &e))
        entry_free(e);
    leat_map_release(&c->entries);
    pthread_mutex_destroy(&c->lock);
}

leat_plan *leat_plan_cache_find(leat_plan_cache *c, const void *key, size_t n)
{
    pthread_mutex_lock(&c->lock);
    entry *e = leat_map_get_n(&c->entries, key, n);
    leat_plan *p = e ? e->plan : NULL;
    pthread_mutex_unlock(&c->lock);
    return p;
}

/* ---- Waiting for another thread's compilation ---- */

typedef struct waiter {
    leat_plan_cache *cache;
    entry *entry;
    bool cancelled; /* Guarded by the cache's lock. */
} waiter;

static void cancel_wait(void *arg)
{
    waiter *w = arg;
    pthread_mutex_lock(&w->cache->lock);
    w->cancelled = true;
    pthread_cond_broadcast(&w->entry->changed);
    pthread_mutex_unlock(&w->cache->lock);
}

static bool ended_by_its_run(leat_status s)
{
    return leat_status_code(s) == LEAT_CANCELLED || leat_status_code(s) == LEAT_DEADLINE_EXCEEDED;
}

/* Waits for the compilation of e by another thread. Called with the cache's lock held, which this
 * releases. *again_out becomes true if the other run was cancelled or timed out: the caller then
 * has to look the signature up again. */
static leat_status await(leat_plan_cache *c, entry *e, int64_t deadline_ns, leat_cancellation *stop,
                         leat_plan **out, bool *again_out)
{
    waiter w = {c, e, false};
    leat_cancel_watch watch = {.fn = cancel_wait, .arg = &w};
    bool late = false;
    e->waiting++;
    pthread_mutex_unlock(&c->lock);
    leat_later_now();
    leat_cancellation_watch(stop, &watch);
    pthread_mutex_lock(&c->lock);
    while (!e->over && !w.cancelled && !late)
        late = !leat_cond_wait_until(&e->changed, &c->lock, deadline_ns ? deadline_ns : INT64_MAX);
    leat_status s = NULL;
    if (e->plan)
        *out = e->plan;
    else if (w.cancelled)
        s = leat_error(CANCELLED, "The run was cancelled while another one compiled its graph");
    else if (!e->over)
        s = leat_error(DEADLINE_EXCEEDED,
                       "Timed out waiting for another run, which compiles the same graph");
    else if (ended_by_its_run(e->error))
        *again_out = true;
    else
        s = leat_status_copy(e->error);
    pthread_mutex_unlock(&c->lock);
    leat_cancellation_unwatch(stop, &watch); /* From here on cancel_wait does not use w and e. */
    pthread_mutex_lock(&c->lock);
    bool last = --e->waiting == 0 && e->error;
    pthread_mutex_unlock(&c->lock);
    if (last)
        entry_free(e);
    return s;
}

/* ---- Compiling ---- */

/* Called without a lock. e is in the map without a plan, so other threads wait for this thread. */
static leat_status compile_now(leat_plan_cache *c, entry *e, const void *key, size_t n,
                               leat_plan_compile_fn compile, void *arg, leat_plan **out)
{
    leat_plan *p = NULL;
    leat_status s = compile(arg, &p);
    pthread_mutex_lock(&c->lock);
    e->over = true;
    e->plan = p;
    if (s) {
        e->error = leat_status_copy(s);
        leat_map_remove_n(&c->entries, key, n);
    }
    bool alone = s && !e->waiting;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&c->lock);
    if (alone)
        entry_free(e);
    if (!s)
        *out = p;
    return s;
}

leat_status leat_plan_cache_get(leat_plan_cache *c, const void *key, size_t n, int64_t deadline_ns,
                                leat_cancellation *stop, leat_plan_compile_fn compile, void *arg,
                                leat_plan **out)
{
    for (bool again = true; again;) {
        again = false;
        pthread_mutex_lock(&c->lock);
        entry *e = leat_map_get_n(&c->entries, key, n);
        if (!e) {
            e = entry_new();
            leat_map_put_n(&c->entries, key, n, e);
            pthread_mutex_unlock(&c->lock);
            return compile_now(c, e, key, n, compile, arg, out);
        }
        if (e->plan) {
            *out = e->plan;
            pthread_mutex_unlock(&c->lock);
            return NULL;
        }
        LEAT_TRY(await(c, e, deadline_ns, stop, out, &again));
    }
    return NULL;
}
