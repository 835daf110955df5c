/* api_iterator.c -- iterators for programs (leat/data.h). An iterator has a pool of its own,
 * because it belongs to no session. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "kernels/dataset/iteration.h"
#include "kernels/dataset/state.h"

struct leat_data_iterator {
    leat_object object;
    leat_pool *pool;
    leat_dataset *d;
    pthread_mutex_t lock; /* Guards `used`. */
    pthread_cond_t left;
    bool used;          /* A thread gets an element, or saves or sets the position. */
    leat_iteration *in; /* only for the thread that has set `used` */
};

/* One thread at a time is between enter and leave. It holds no lock meanwhile, because it works on
 * the pool's jobs while it waits. */
static void enter(leat_data_iterator *it)
{
    pthread_mutex_lock(&it->lock);
    while (it->used)
        pthread_cond_wait(&it->left, &it->lock);
    it->used = true;
    pthread_mutex_unlock(&it->lock);
}

static void leave(leat_data_iterator *it)
{
    pthread_mutex_lock(&it->lock);
    it->used = false;
    pthread_cond_signal(&it->left);
    pthread_mutex_unlock(&it->lock);
}

leat_status leat_data_iterator_open(leat_dataset *d, leat_data_iterator **out)
{
    leat_iteration *in;
    LEAT_CHECK(DATASET, d);
    int threads = leat_default_threads() - 1; /* The thread that wants an element works, too. */
    leat_pool *pool = leat_pool_new(threads > 0 ? threads : 1, "data");
    leat_status s = leat_iteration_new(pool, NULL, d, &in);
    if (s) {
        leat_pool_free(pool);
        return s;
    }
    leat_data_iterator *it = leat_new_object(leat_data_iterator, DATA_ITERATOR);
    it->pool = pool;
    it->d = leat_dataset_ref(d);
    it->in = in;
    pthread_mutex_init(&it->lock, NULL);
    pthread_cond_init(&it->left, NULL);
    *out = it;
    return NULL;
}

void leat_data_iterator_close(leat_data_iterator *it)
{
    if (!it || !LEAT_USABLE(DATA_ITERATOR, it))
        return;
    leat_iteration_unref(it->in);
    leat_pool_free(it->pool);
    leat_dataset_unref(it->d);
    pthread_cond_destroy(&it->left);
    pthread_mutex_destroy(&it->lock);
    leat_object_free(&it->object);
}

static void wake(leat_pull *p)
{
    leat_event_set(p->done_arg);
}

static leat_status pull(leat_iteration *in, leat_tensor **tensors, int n)
{
    leat_event done;
    leat_event_init(&done);
    leat_pull p = {.iteration = in, .done = wake, .done_arg = &done};
    if (!leat_pull_start(&p, in->root))
        leat_pool_wait(in->pool, &done, 0);
    leat_status s = p.status;
    p.status = NULL;
    if (!s && p.end)
        s = leat_error(OUT_OF_RANGE, "End of sequence");
    if (!s && p.element.n != n)
        s = leat_error(INVALID_ARGUMENT, "The element has %d tensors, not %d", p.element.n, n);
    for (int i = 0; i < n && !s; i++)
        tensors[i] = leat_tensor_ref(p.element.v[i]);
    leat_pull_release(&p);
    return s;
}

leat_status leat_data_iterator_next(leat_data_iterator *it, leat_tensor **tensors, int n)
{
    LEAT_CHECK(DATA_ITERATOR, it);
    LEAT_CHECK_ARG(tensors);
    enter(it);
    leat_status s = pull(it->in, tensors, n);
    leave(it);
    return s;
}

leat_status leat_data_iterator_save(leat_data_iterator *it, void **bytes, size_t *size)
{
    LEAT_CHECK(DATA_ITERATOR, it);
    leat_state_writer w = {.bytes = {.checked = true}};
    enter(it);
    leat_status s = leat_iteration_position(it->in, &w);
    leave(it);
    if (!s) {
        *size = w.bytes.n;
        *bytes = leat_strbuf_take(&w.bytes);
    }
    leat_strbuf_release(&w.bytes);
    return s;
}

leat_status leat_data_iterator_restore(leat_data_iterator *it, const void *bytes, size_t size)
{
    leat_iteration *in;
    LEAT_CHECK(DATA_ITERATOR, it);
    LEAT_CHECK_ARG(bytes);
    LEAT_TRY(leat_iteration_restore(it->pool, it->d, bytes, size, &in));
    enter(it);
    leat_iteration *old = it->in;
    it->in = in;
    leave(it);
    leat_iteration_unref(old);
    return NULL;
}
