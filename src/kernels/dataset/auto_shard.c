/* auto_shard.c -- AutoShard: a worker's part of a dataset. Where files are read, each worker gets
 * some of the files: a Shard is put before the FlatMap or Interleave whose function reads them, as
 * TensorFlow's rewriting does. A Shuffle before it would give each worker other files, so it is
 * moved behind the Shard. Elsewhere each worker gets some of the elements.
 *
 * Datasets do not change. An AutoShard has a list of swaps, which take place when iterators below
 * it are opened (leat_iterator_new). */
#include "kernels/dataset/auto_shard.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "kernels/dataset/counts.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/shuffle.h"
#include "runtime/callable_int.h"

/* Below `parent`, `input` is replaced. The first two are borrowed from the datasets below. */
typedef struct swap {
    const leat_dataset *parent, *input;
    leat_dataset *instead; /* a reference */
} swap;

typedef struct auto_shard {
    leat_dataset base;
    int64_t workers, index;
    swap *swaps;
    int n, cap;
} auto_shard;

static bool is_one_of(const char *op, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(op, *list) == 0)
            return true;
    return false;
}

static bool is_reader(const char *op)
{
    static const char *const ops[] = {"FixedLengthRecordDataset", "FixedLengthRecordDatasetV2",
                                      "TextLineDataset", "TFRecordDataset", NULL};
    return is_one_of(op, ops);
}

static bool calls_function(const char *op)
{
    static const char *const ops[] = {"ExperimentalParallelInterleaveDataset",
                                      "FlatMapDataset",
                                      "InterleaveDataset",
                                      "ParallelInterleaveDataset",
                                      "ParallelInterleaveDatasetV2",
                                      "ParallelInterleaveDatasetV3",
                                      "ParallelInterleaveDatasetV4",
                                      "LegacyParallelInterleaveDatasetV2",
                                      NULL};
    return is_one_of(op, ops);
}

static bool has_several(const char *op)
{
    static const char *const ops[] = {"ConcatenateDataset", "ZipDataset", NULL};
    return is_one_of(op, ops);
}

/* Datasets whose input is looked at. */
static bool passes_on(const char *op)
{
    static const char *const ops[] = {"BatchDataset",
                                      "BatchDatasetV2",
                                      "ExperimentalMapAndBatchDataset",
                                      "PaddedBatchDataset",
                                      "PaddedBatchDatasetV2",
                                      "ParallelBatchDataset",
                                      "CacheDataset",
                                      "CacheDatasetV2",
                                      "FilterDataset",
                                      "MapAndBatchDataset",
                                      "MapDataset",
                                      "ParallelMapDataset",
                                      "ParallelMapDatasetV2",
                                      "PrefetchDataset",
                                      "RepeatDataset",
                                      "ShardDataset",
                                      "ShuffleAndRepeatDataset",
                                      "ShuffleDataset",
                                      "ShuffleDatasetV2",
                                      "ShuffleDatasetV3",
                                      "SkipDataset",
                                      "TakeDataset",
                                      "WindowDataset",
                                      NULL};
    return is_one_of(op, ops);
}

/* ---- Functions ---- */

/* Whether a function reads the file that its first argument names. */
static bool reads_files(const leat_graph *library, const char *name, int depth)
{
    const leat_function *f = leat_function_find(library, name);
    for (size_t i = 0; f && depth < 16 && i < f->def->n_node_def; i++) {
        const Leat__NodeDef *n = f->def->node_def[i];
        if (is_reader(n->op) && n->n_input && strncmp(n->input[0], "args_0", 6) == 0)
            return true;
        for (size_t j = 0; calls_function(n->op) && j < n->n_attr; j++)
            if (strcmp(n->attr[j]->key, "f") == 0 && n->attr[j]->value &&
                n->attr[j]->value->value_case == LEAT__ATTR_VALUE__VALUE_FUNC &&
                reads_files(library, n->attr[j]->value->func->name, depth + 1))
                return true;
    }
    return false;
}

static bool is_source_of_files(const leat_dataset *d)
{
    return calls_function(d->op) && d->fn[0].f &&
           reads_files(d->fn[0].f->set->library, d->fn[0].f->f.func->name, 0);
}

/* ---- Finding where to shard ---- */

static bool is_shuffle(const leat_dataset *d)
{
    return strncmp(d->op, "ShuffleDataset", 14) == 0;
}

/* Takes `instead`. */
static void add_swap(auto_shard *a, const leat_dataset *parent, const leat_dataset *input,
                     leat_dataset *instead)
{
    leat_grow(a->swaps, a->n, a->cap);
    a->swaps[a->n++] = (swap){parent, input, instead};
}

/* The first dataset from d on that is no Shuffle. *shuffle is the last Shuffle before it, if there
 * is one. Below it, Shuffles are left out by swaps. */
static leat_dataset *without_shuffles(auto_shard *a, leat_dataset *d, const leat_dataset **shuffle)
{
    for (; is_shuffle(d); d = d->in[0])
        *shuffle = d;
    for (int i = 0; i < d->n_in; i++) {
        leat_dataset *in = without_shuffles(a, d->in[i], shuffle);
        if (in != d->in[i])
            add_swap(a, d, d->in[i], leat_dataset_ref(in));
    }
    return d;
}

/* The input of d, a source of files, is sharded. */
static leat_status shard_source(auto_shard *a, const leat_dataset *d)
{
    const leat_dataset *shuffle = NULL;
    leat_dataset *files = without_shuffles(a, d->in[0], &shuffle), *part, *shuffled;
    LEAT_TRY(
        leat_dataset_sharded(files, &(leat_sharded){d->name, a->workers, a->index, true}, &part));
    if (shuffle) {
        leat_status s = leat_dataset_shuffled_like(shuffle, part, &shuffled);
        leat_dataset_unref(part);
        LEAT_TRY(s);
        part = shuffled;
    }
    add_swap(a, d, d->in[0], part);
    return NULL;
}

/* *found is false if a branch has no source of files. */
static leat_status find_sources(auto_shard *a, const leat_dataset *d, bool *found)
{
    if (is_source_of_files(d))
        return shard_source(a, d);
    if (!has_several(d->op) && !passes_on(d->op)) {
        *found = false;
        return NULL;
    }
    for (int i = 0; i < d->n_in && *found && (i == 0 || has_several(d->op)); i++)
        LEAT_TRY(find_sources(a, d->in[i], found));
    return NULL;
}

/* ---- The dataset ---- */

static leat_status auto_shard_make(leat_kernel *k, leat_dataset *d)
{
    auto_shard *a = (auto_shard *)d;
    LEAT_TRY(leat_data_int(k, 1, "num_workers", &a->workers));
    LEAT_REQUIRE(a->workers > 0, INVALID_ARGUMENT, "num_workers must be greater than zero.");
    LEAT_TRY(leat_data_int(k, 2, "index", &a->index));
    LEAT_REQUIRE(a->index >= 0 && a->index < a->workers, INVALID_ARGUMENT,
                 "index must be between 0 and %lld", (long long)a->workers - 1);
    return NULL;
}

static void auto_shard_release(leat_dataset *d)
{
    auto_shard *a = (auto_shard *)d;
    for (int i = 0; i < a->n; i++)
        leat_dataset_unref(a->swaps[i].instead);
    free(a->swaps);
}

static leat_next auto_shard_next(leat_iterator *it, leat_pull *p)
{
    if (p->why == LEAT_WHY_START)
        return leat_pull_through(p, it);
    return p->end ? LEAT_NEXT_END : LEAT_NEXT_ELEMENT;
}

static const leat_dataset_kind auto_shard_kind = {
    .size = sizeof(auto_shard),
    .iterator_size = sizeof(leat_iterator),
    .inputs = 1,
    .make = auto_shard_make,
    .release = auto_shard_release,
    .next = auto_shard_next,
};

bool leat_is_auto_shard(const leat_dataset *d)
{
    return d->kind == &auto_shard_kind;
}

leat_dataset *leat_auto_shard_instead(const leat_dataset *d, const leat_dataset *parent,
                                      leat_dataset *input)
{
    const auto_shard *a = (const auto_shard *)d;
    for (int i = 0; i < a->n; i++)
        if (a->swaps[i].parent == parent && a->swaps[i].input == input)
            return a->swaps[i].instead;
    return input;
}

static leat_status auto_shard_run(leat_kernel *k)
{
    leat_dataset *d, *part;
    bool found = true;
    LEAT_TRY(leat_dataset_make(k, &auto_shard_kind, &d));
    auto_shard *a = (auto_shard *)d;
    leat_status s = a->workers > 1 ? find_sources(a, d->in[0], &found) : NULL;
    if (!s && found)
        return leat_dataset_give(k, 0, d);
    if (!s)
        s = leat_dataset_sharded(d->in[0], &(leat_sharded){d->name, a->workers, a->index, true},
                                 &part);
    leat_dataset_unref(d);
    return s ? s : leat_dataset_give(k, 0, part);
}

const leat_kernel_def leat_data_kernels_auto_shard[] = {
    {.op = "AutoShardDataset", .run = auto_shard_run},
    {.op = "ExperimentalAutoShardDataset", .run = auto_shard_run},
    {0},
};
