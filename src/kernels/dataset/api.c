/* api.c -- datasets and iterators for programs (leat/data.h). An iterator has a pool of its own,
 * because it belongs to no session. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "kernels/dataset/ahead_kinds.h"
#include "kernels/dataset/batch.h"
#include "kernels/dataset/counts.h"
#include "kernels/dataset/files.h"
#include "kernels/dataset/iteration.h"
#include "kernels/dataset/map.h"
#include "kernels/dataset/shuffle.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/state.h"

/* ---- Datasets ---- */

static leat_status check_tensors(const leat_tensor *const *tensors, int n, const char *function)
{
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "%s: an element has at least one tensor, not %d",
                 function, n);
    for (int i = 0; i < n; i++)
        LEAT_TRY(leat_tensor_check(tensors[i], function));
    return NULL;
}

leat_status leat_dataset_from_tensors(const leat_tensor *const *tensors, int n, leat_dataset **out)
{
    LEAT_CHECK_ARG(tensors);
    LEAT_TRY(check_tensors(tensors, n, __func__));
    return leat_dataset_of_tensors(tensors, n, false, out);
}

leat_status leat_dataset_from_slices(const leat_tensor *const *tensors, int n, leat_dataset **out)
{
    LEAT_CHECK_ARG(tensors);
    LEAT_TRY(check_tensors(tensors, n, __func__));
    return leat_dataset_of_tensors(tensors, n, true, out);
}

leat_status leat_dataset_from_range(int64_t start, int64_t stop, int64_t step, leat_dataset **out)
{
    return leat_dataset_of_range(start, stop, step, out);
}

leat_status leat_dataset_from_records(const char *const *paths, int n, const char *compression,
                                      leat_dataset **out)
{
    LEAT_CHECK_ARG(paths);
    LEAT_CHECK_ARG(compression);
    for (int i = 0; i < n; i++)
        LEAT_CHECK_ARG(paths[i]);
    LEAT_REQUIRE(
        !*compression || strcmp(compression, "GZIP") == 0 || strcmp(compression, "ZLIB") == 0,
        INVALID_ARGUMENT, "The compression of records is \"\", \"GZIP\" or \"ZLIB\", not \"%s\"",
        compression);
    return leat_dataset_of_records(paths, n, compression, out);
}

void leat_dataset_free(leat_dataset *d)
{
    if (d && LEAT_USABLE(DATASET, d))
        leat_dataset_unref(d);
}

/* Drops d, which a function has taken, and gives back s. */
static leat_status taken(leat_dataset *d, leat_status s)
{
    leat_dataset_unref(d);
    return s;
}

leat_status leat_dataset_repeat(leat_dataset *d, int64_t count, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_counted(d, "RepeatDataset", count, out));
}

leat_status leat_dataset_take(leat_dataset *d, int64_t count, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_counted(d, "TakeDataset", count, out));
}

leat_status leat_dataset_skip(leat_dataset *d, int64_t count, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_counted(d, "SkipDataset", count < 0 ? -1 : count, out));
}

leat_status leat_dataset_batch(leat_dataset *d, int64_t size, bool drop_remainder,
                               leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_batched(d, "BatchDatasetV2", "batch", size, drop_remainder, out));
}

leat_status leat_dataset_shuffle(leat_dataset *d, int64_t buffer_size, int64_t seed,
                                 leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_shuffled(d, buffer_size, seed, 0, true, out));
}

leat_status leat_dataset_prefetch(leat_dataset *d, int64_t n, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_prefetched(d, "prefetch", n, out));
}

/* ---- A map by a function of the program ---- */

typedef struct program_map {
    leat_dataset base;
    leat_dataset_fn fn;
    void *arg;
} program_map;

static leat_status check_results(const leat_dataset *d, const leat_element *e)
{
    for (int i = 0; i < e->n; i++) {
        LEAT_REQUIRE(e->v[i], INVALID_ARGUMENT, "The function has not written tensor %d of %d", i,
                     e->n);
        LEAT_REQUIRE(e->v[i]->dtype == d->types[i], INVALID_ARGUMENT,
                     "Tensor %d of the function is %s, not %s", i, leat_dtype_name(e->v[i]->dtype),
                     leat_dtype_name(d->types[i]));
    }
    return NULL;
}

static leat_next program_map_next(leat_iterator *it, leat_pull *p)
{
    const program_map *m = (const program_map *)it->d;
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->end)
        return LEAT_NEXT_END;
    leat_element e = leat_element_new(it->d->n);
    p->status = m->fn(m->arg, p->element.v, p->element.n, e.v, e.n);
    if (!p->status)
        p->status = check_results(it->d, &e);
    if (!p->status)
        return leat_pull_give(p, e);
    leat_element_clear(&e);
    return leat_map_failed(p, false);
}

static const leat_dataset_kind program_map_kind = {
    .size = sizeof(program_map),
    .iterator_size = sizeof(leat_iterator),
    .inputs = 1,
    .next = program_map_next,
};

static leat_status map_over(leat_dataset *in, leat_dataset_fn fn, void *arg,
                            const leat_dtype *types, int n, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_CHECK_ARG(fn);
    LEAT_CHECK_ARG(types);
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "An element has at least one tensor, not %d", n);
    LEAT_TRY(leat_dataset_over(&program_map_kind, "MapDataset", "map", &in, 1, &d));
    ((program_map *)d)->fn = fn;
    ((program_map *)d)->arg = arg;
    leat_dataset_types(d, n, types, NULL);
    *out = d;
    return NULL;
}

leat_status leat_dataset_map(leat_dataset *d, leat_dataset_fn fn, void *arg,
                             const leat_dtype *types, int n_out, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, map_over(d, fn, arg, types, n_out, out));
}

/* ---- Iterators ---- */

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
    int threads = leat_default_threads() - 1;
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
