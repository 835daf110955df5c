/* late.c -- see late.h. */
#include "runtime/late.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/later.h"

struct leat_late {
    pthread_mutex_t lock; /* guards all below; kernels are called back without it */
    pthread_cond_t came;  /* signalled when a fetch has come or the step has ended */
    leat_tensor **feeds, **fetches;
    bool *fetched;         /* for each fetch: its tensor has come */
    leat_kernel **waiting; /* for each feed: the kernel that waits for it, or NULL */
    int n_feeds, n_fetches;
    bool ended;
};

leat_late *leat_late_new(int n_feeds, int n_fetches)
{
    leat_late *l = leat_new(leat_late);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->came, NULL);
    l->n_feeds = n_feeds;
    l->n_fetches = n_fetches;
    l->feeds = leat_new_array(leat_tensor *, n_feeds + 1);
    l->waiting = leat_new_array(leat_kernel *, n_feeds + 1);
    l->fetches = leat_new_array(leat_tensor *, n_fetches + 1);
    l->fetched = leat_new_array(bool, n_fetches + 1);
    return l;
}

void leat_late_free(leat_late *l)
{
    for (int i = 0; i < l->n_feeds; i++)
        leat_tensor_unref(l->feeds[i]);
    for (int i = 0; i < l->n_fetches; i++)
        leat_tensor_unref(l->fetches[i]);
    free(l->feeds);
    free(l->waiting);
    free(l->fetches);
    free(l->fetched);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->came);
    free(l);
}

void leat_late_wait(leat_late *l, int index, leat_kernel *k)
{
    pthread_mutex_lock(&l->lock);
    leat_tensor *t = leat_tensor_ref(l->feeds[index]);
    bool ended = l->ended;
    if (!t && !ended)
        l->waiting[index] = k;
    pthread_mutex_unlock(&l->lock);
    if (t) {
        leat_kernel_set(k, 0, t);
        leat_kernel_done(k, NULL);
    } else if (ended) {
        leat_kernel_done(k, leat_error(CANCELLED, "The partial run has ended"));
    }
}

void leat_late_fetched(leat_late *l, int index, leat_tensor *t)
{
    pthread_mutex_lock(&l->lock);
    l->fetches[index] = t;
    l->fetched[index] = true;
    pthread_cond_broadcast(&l->came);
    pthread_mutex_unlock(&l->lock);
}

bool leat_late_was_fed(leat_late *l, int index)
{
    pthread_mutex_lock(&l->lock);
    bool fed = l->feeds[index] != NULL;
    pthread_mutex_unlock(&l->lock);
    return fed;
}

leat_status leat_late_feed(leat_late *l, int index, leat_tensor *t)
{
    pthread_mutex_lock(&l->lock);
    bool again = l->feeds[index] != NULL;
    leat_kernel *k = again ? NULL : l->waiting[index];
    if (!again) {
        l->feeds[index] = leat_tensor_ref(t);
        l->waiting[index] = NULL;
    }
    pthread_mutex_unlock(&l->lock);
    LEAT_REQUIRE(!again, INVALID_ARGUMENT, "has already been fed.");
    if (k) {
        leat_kernel_set(k, 0, leat_tensor_ref(t));
        leat_kernel_done(k, NULL);
    }
    return NULL;
}

leat_tensor *leat_late_fetch(leat_late *l, int index)
{
    leat_later_now();
    pthread_mutex_lock(&l->lock);
    while (!l->fetched[index] && !l->ended)
        pthread_cond_wait(&l->came, &l->lock);
    leat_tensor *t = l->fetches[index];
    l->fetches[index] = NULL;
    pthread_mutex_unlock(&l->lock);
    return t;
}

void leat_late_end(leat_late *l, leat_status s)
{
    pthread_mutex_lock(&l->lock);
    l->ended = true;
    for (int i = 0; i < l->n_feeds; i++) {
        leat_kernel *k = l->waiting[i];
        l->waiting[i] = NULL;
        if (!k)
            continue;
        pthread_mutex_unlock(&l->lock);
        leat_kernel_done(k, s ? leat_status_copy(s)
                              : leat_error(CANCELLED, "The partial run has ended"));
        pthread_mutex_lock(&l->lock);
    }
    pthread_cond_broadcast(&l->came);
    pthread_mutex_unlock(&l->lock);
}
