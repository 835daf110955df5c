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
    pthread_mutex_t lock; /* held while an element is got: one at a time */
    leat_iteration *in;   /* guarded by lock */
};

leat_status leat_data_iterator_open(leat_dataset *d, leat_data_iterator **out)
{
    leat_iteration *in;
    LEAT_CHECK(DATASET, d);
    /* The thread that wants an element parks meanwhile. */
    leat_pool *pool = leat_pool_new(leat_default_threads(), "data");
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
    pthread_mutex_destroy(&it->lock);
    leat_object_free(&it->object);
}

static void wake(leat_pull *p)
{
    leat_event_set(p->done_arg);
}

/* With the lock held. */
static leat_status pull(leat_iteration *in, leat_tensor **tensors, int n)
{
    leat_event done;
    leat_event_init(&done);
    leat_pull p = {.iteration = in, .done = wake, .done_arg = &done};
    if (!leat_pull_start(&p, in->root))
        leat_event_wait(&done, 0);
    leat_status s = p.status;
    if (!s && p.end)
        s = leat_error(OUT_OF_RANGE, "End of sequence");
    if (!s && p.element.n != n)
        s = leat_error(INVALID_ARGUMENT, "The element has %d tensors, not %d", p.element.n, n);
    for (int i = 0; i < n && !s; i++)
        tensors[i] = leat_tensor_ref(p.element.v[i]);
    leat_element_clear(&p.element);
    return s;
}

leat_status leat_data_iterator_next(leat_data_iterator *it, leat_tensor **tensors, int n)
{
    LEAT_CHECK(DATA_ITERATOR, it);
    LEAT_CHECK_ARG(tensors);
    pthread_mutex_lock(&it->lock);
    leat_status s = pull(it->in, tensors, n);
    pthread_mutex_unlock(&it->lock);
    return s;
}

leat_status leat_data_iterator_save(leat_data_iterator *it, void **bytes, size_t *size)
{
    LEAT_CHECK(DATA_ITERATOR, it);
    leat_state_writer w = {.bytes = {.checked = true}};
    pthread_mutex_lock(&it->lock);
    leat_status s = leat_iteration_position(it->in, &w);
    pthread_mutex_unlock(&it->lock);
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
    pthread_mutex_lock(&it->lock);
    leat_iteration *old = it->in;
    it->in = in;
    pthread_mutex_unlock(&it->lock);
    leat_iteration_unref(old);
    return NULL;
}
