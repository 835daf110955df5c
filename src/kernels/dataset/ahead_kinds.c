/* ahead_kinds.c -- datasets that work ahead: Prefetch, ParallelMap, MapAndBatch. */
#include "kernels/dataset/ahead_kinds.h"

#include "kernels/dataset/ahead.h"
#include "kernels/dataset/batch.h"
#include "kernels/dataset/map.h"
#include "kernels/dataset/program.h"
#include "kernels/dataset/state.h"

enum {
    MOST_CALLS = 1024, /* calls of one dataset at the same time */
    MOST_TUNED = 64    /* elements that Prefetch keeps if the number is up to it */
};

typedef struct ahead {
    leat_dataset base;
    int64_t limit; /* of results; LEAT_AUTOTUNE, or 0 for Prefetch: elements are handed through */
    bool keeps_count, any_order;
    bool reports; /* statistics: the dataset is a node's, not part of another dataset */
} ahead;

typedef struct ahead_iterator {
    leat_iterator base;
    leat_ahead *stage;
} ahead_iterator;

static void ahead_close(leat_iterator *it)
{
    leat_ahead_close(((ahead_iterator *)it)->stage);
}

static int64_t same_cardinality(const leat_dataset *d)
{
    return leat_dataset_cardinality(d->in[0]);
}

static leat_status open_stage(leat_iterator *it, const leat_ahead_options *o)
{
    leat_iterator *input;
    LEAT_TRY(leat_iterator_new(it->iteration, it->d->in[0], it, 0, &input));
    leat_ahead_options with = *o;
    with.stats = ((const ahead *)it->d)->reports ? it->stats : NULL;
    ((ahead_iterator *)it)->stage = leat_ahead_new(it->iteration, it->d, input, &with);
    return NULL;
}

static leat_next ahead_next(leat_iterator *it, leat_pull *p)
{
    return leat_ahead_next(((ahead_iterator *)it)->stage, p);
}

static leat_status ahead_save(leat_iterator *it, leat_state_writer *w)
{
    return leat_ahead_save(((ahead_iterator *)it)->stage, w);
}

static leat_status ahead_restore(leat_iterator *it, leat_state_reader *r)
{
    return leat_ahead_restore(((ahead_iterator *)it)->stage, it->d->in[0], it, r);
}

#define AHEAD_KIND                                                                                 \
    .size = sizeof(ahead), .iterator_size = sizeof(ahead_iterator), .inputs = 1, .no_input = true, \
    .next = ahead_next, .close = ahead_close, .save = ahead_save, .restore = ahead_restore

/* ---- Prefetch ---- */

static leat_status check_buffer(int64_t n)
{
    LEAT_REQUIRE(n >= 0 || n == LEAT_AUTOTUNE, INVALID_ARGUMENT,
                 "buffer_size must be >= 0 or set buffer_size to be %d for auto-tuning",
                 LEAT_AUTOTUNE);
    return NULL;
}

static leat_status prefetch_open(leat_iterator *it)
{
    const int64_t n = ((const ahead *)it->d)->limit;
    return open_stage(
        it, &(leat_ahead_options){.limit = n < 0 ? 2 : n, .grows_to = n < 0 ? MOST_TUNED : 0});
}

static const leat_dataset_kind prefetch_kind = {
    AHEAD_KIND,
    .cardinality = same_cardinality,
    .open = prefetch_open,
};

leat_status leat_dataset_prefetched(leat_dataset *in, const char *name, int64_t n,
                                    leat_dataset **out)
{
    LEAT_TRY(check_buffer(n));
    if (n == 0) {
        *out = leat_dataset_ref(in);
        return NULL;
    }
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(&prefetch_kind, "PrefetchDataset", name, &in, 1, &d));
    ((ahead *)d)->limit = n;
    *out = d;
    return NULL;
}

void leat_prefetch_start(leat_iterator *it)
{
    if (it->d->kind == &prefetch_kind)
        leat_ahead_start(((ahead_iterator *)it)->stage);
}

static leat_status prefetch_run(leat_kernel *k)
{
    leat_dataset *in, *d;
    int64_t n;
    LEAT_TRY(leat_dataset_in(leat_kernel_in(k, 0), &in));
    LEAT_TRY(leat_data_int(k, 1, "buffer_size", &n));
    LEAT_TRY(leat_dataset_prefetched(in, leat_node_name(leat_kernel_node(k)), n, &d));
    if (d != in) {
        d->nodes++; /* buffer_size */
        ((ahead *)d)->reports = true;
    }
    return leat_dataset_give(k, 0, d);
}

/* ---- ParallelMap ---- */

/* TensorFlow 1 has an attribute `sloppy`, 2 has `deterministic`. */
static bool any_order(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    if (leat_node_has(n, "sloppy"))
        return leat_node_bool(n, "sloppy");
    return strcmp(leat_node_string(n, "deterministic"), "false") == 0;
}

static leat_status read_calls(leat_kernel *k, int i, leat_dataset *d)
{
    ahead *a = (ahead *)d;
    LEAT_TRY(leat_data_int(k, i, "num_parallel_calls", &a->limit));
    LEAT_REQUIRE(a->limit > 0 || a->limit == LEAT_AUTOTUNE, INVALID_ARGUMENT,
                 "num_parallel_calls must be greater than zero.");
    a->keeps_count = leat_node_bool(leat_kernel_node(k), "preserve_cardinality");
    a->reports = true;
    return NULL;
}

static leat_status map_make(leat_kernel *k, leat_dataset *d)
{
    LEAT_TRY(read_calls(k, leat_kernel_inputs(k) - 1, d));
    ((ahead *)d)->any_order = any_order(k);
    return leat_map_make(k, d);
}

static leat_status map_open(leat_iterator *it)
{
    const ahead *a = (const ahead *)it->d;
    int64_t n = a->limit < 0 ? leat_pool_size(it->iteration->pool) + 1 : a->limit;
    return open_stage(it, &(leat_ahead_options){.limit = n < MOST_CALLS ? n : MOST_CALLS,
                                                .fn = &it->d->fn[0],
                                                .keeps_count = a->keeps_count,
                                                .any_order = a->any_order});
}

static const leat_dataset_kind map_kind = {
    AHEAD_KIND,       .own_types = true, .make = map_make, .cardinality = same_cardinality,
    .open = map_open,
};
LEAT_DATASET_RUN(map_kind)

leat_status leat_dataset_mapped_ahead(leat_dataset *in, leat_program_fn *fn, int64_t n,
                                      leat_dataset **out)
{
    if (n <= 0 && n != LEAT_AUTOTUNE) {
        leat_program_free(fn);
        return leat_error(INVALID_ARGUMENT, "num_parallel_calls must be greater than zero.");
    }
    leat_dataset *d;
    LEAT_TRY(leat_program_over(&map_kind, "ParallelMapDataset", "map", in, fn, &d));
    ((ahead *)d)->limit = n;
    *out = d;
    return NULL;
}

/* ---- MapAndBatch: a batch of what a parallel map gives ---- */

static leat_status part_make(leat_kernel *k, leat_dataset *d)
{
    const leat_dtype *types;
    LEAT_TRY(read_calls(k, leat_kernel_inputs(k) - 2, d));
    LEAT_TRY(leat_data_fn_get(k, "f", 1, leat_data_count(k, "Targuments"), &d->fn[0]));
    LEAT_TRY(leat_data_fn_check(&d->fn[0], "f", d->in[0]->types, d->in[0]->n, d->types, d->n));
    int n = leat_callable_results(d->fn[0].f, &types);
    for (int i = 0; i < n; i++) { /* Attributes describe the batches. */
        leat_shape *s = &d->shapes[i];
        if (s->rank > 0)
            *s = leat_shape_make(s->rank - 1, s->dim + 1);
    }
    return NULL;
}

static const leat_dataset_kind part_kind = {
    AHEAD_KIND,       .own_types = true, .make = part_make, .cardinality = same_cardinality,
    .open = map_open,
};

static leat_status map_and_batch_run(leat_kernel *k)
{
    leat_dataset *mapped, *d;
    int64_t size;
    bool drop;
    const int n = leat_kernel_inputs(k);
    LEAT_TRY(leat_data_int(k, n - 3, "batch_size", &size));
    LEAT_REQUIRE(size > 0, INVALID_ARGUMENT, "batch_size must be greater than zero.");
    LEAT_TRY(leat_data_bool(k, n - 1, "drop_remainder", &drop));
    LEAT_TRY(leat_dataset_make(k, &part_kind, &mapped));
    leat_status s = leat_dataset_batched_failing(mapped, leat_node_op(leat_kernel_node(k)),
                                                 mapped->name, size, drop, &d);
    leat_dataset_unref(mapped);
    return s ? s : leat_dataset_give(k, 0, d);
}

/* ---- ParallelBatch: batches that are made ahead ---- */

static leat_status parallel_batch_run(leat_kernel *k)
{
    leat_dataset *in, *batches, *d;
    int64_t size, calls;
    bool drop;
    const char *name = leat_node_name(leat_kernel_node(k));
    LEAT_TRY(leat_dataset_in(leat_kernel_in(k, 0), &in));
    LEAT_TRY(leat_data_int(k, 1, "batch_size", &size));
    LEAT_TRY(leat_data_int(k, 2, "num_parallel_calls", &calls));
    LEAT_REQUIRE(calls > 0 || calls == LEAT_AUTOTUNE, INVALID_ARGUMENT,
                 "num_parallel_calls must be greater than zero.");
    LEAT_TRY(leat_data_bool(k, 3, "drop_remainder", &drop));
    LEAT_TRY(
        leat_dataset_batched(in, leat_node_op(leat_kernel_node(k)), name, size, drop, &batches));
    leat_status s = leat_dataset_prefetched(batches, name, calls, &d);
    leat_dataset_unref(batches);
    return s ? s : leat_dataset_give(k, 0, d);
}

const leat_kernel_def leat_data_kernels_ahead_kinds[] = {
    {.op = "PrefetchDataset", .run = prefetch_run},
    {.op = "ParallelMapDataset", .run = map_kind_run},
    {.op = "ParallelMapDatasetV2", .run = map_kind_run},
    {.op = "ParallelBatchDataset", .run = parallel_batch_run},
    {.op = "MapAndBatchDataset", .run = map_and_batch_run},
    {.op = "ExperimentalMapAndBatchDataset", .run = map_and_batch_run},
    {0},
};
