/* api.c -- datasets for programs (leat/data.h). Those with functions of the program are in
 * api_functions.c, iterators in api_iterator.c. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "kernels/dataset/ahead_kinds.h"
#include "kernels/dataset/batch.h"
#include "kernels/dataset/cache.h"
#include "kernels/dataset/counts.h"
#include "kernels/dataset/files.h"
#include "kernels/dataset/join.h"
#include "kernels/dataset/shuffle.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/window.h"

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

leat_status leat_dataset_from_sparse(const leat_tensor *indices, const leat_tensor *values,
                                     const leat_tensor *shape, leat_dataset **out)
{
    const leat_tensor *const all[] = {indices, values, shape};
    LEAT_TRY(check_tensors(all, 3, __func__));
    return leat_dataset_of_sparse(indices, values, shape, out);
}

static leat_status of_files(const char *op, const char *const *paths, int n,
                            const char *compression, leat_file_sizes sizes, leat_dataset **out)
{
    LEAT_CHECK_ARG(paths);
    LEAT_CHECK_ARG(compression);
    for (int i = 0; i < n; i++)
        LEAT_CHECK_ARG(paths[i]);
    LEAT_REQUIRE(!*compression || strcmp(compression, "GZIP") == 0 ||
                     strcmp(compression, "ZLIB") == 0,
                 INVALID_ARGUMENT,
                 "The compression of files is \"\", \"GZIP\" or \"ZLIB\", not \"%s\"", compression);
    return leat_dataset_of_files(op, paths, n, compression, sizes, out);
}

leat_status leat_dataset_from_records(const char *const *paths, int n, const char *compression,
                                      leat_dataset **out)
{
    return of_files("TFRecordDataset", paths, n, compression, (leat_file_sizes){0}, out);
}

leat_status leat_dataset_from_lines(const char *const *paths, int n, const char *compression,
                                    leat_dataset **out)
{
    return of_files("TextLineDataset", paths, n, compression, (leat_file_sizes){0}, out);
}

leat_status leat_dataset_from_fixed(const char *const *paths, int n, const char *compression,
                                    int64_t header, int64_t record, int64_t footer,
                                    leat_dataset **out)
{
    return of_files("FixedLengthRecordDatasetV2", paths, n, compression,
                    (leat_file_sizes){header, record, footer}, out);
}

leat_status leat_dataset_from_variant(const leat_tensor *variant, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_tensor_check(variant, __func__));
    LEAT_TRY(leat_dataset_in(variant, &d));
    *out = leat_dataset_ref(d);
    return NULL;
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
    return taken(d, leat_dataset_shuffled(d, buffer_size, seed, 0, true, 1, out));
}

leat_status leat_dataset_prefetch(leat_dataset *d, int64_t n, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_prefetched(d, "prefetch", n, out));
}

leat_status leat_dataset_shuffle_and_repeat(leat_dataset *d, int64_t buffer_size, int64_t seed,
                                            int64_t count, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_shuffled(d, buffer_size, seed, 0, false, count, out));
}

leat_status leat_dataset_padded_batch(leat_dataset *d, int64_t size, const leat_shape *shapes,
                                      const leat_tensor *const *values, bool drop_remainder,
                                      leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_padded(d, size, shapes, values, drop_remainder, out));
}

leat_status leat_dataset_unbatch(leat_dataset *d, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_unbatched(d, out));
}

leat_status leat_dataset_window(leat_dataset *d, int64_t size, int64_t shift, int64_t stride,
                                bool drop_remainder, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    const leat_window_sizes sizes = {size, shift, stride};
    return taken(d, leat_dataset_windowed(d, &sizes, drop_remainder, out));
}

leat_status leat_dataset_shard(leat_dataset *d, int64_t shards, int64_t index, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_sharded(d, &(leat_sharded){"shard", shards, index, false}, out));
}

leat_status leat_dataset_cache(leat_dataset *d, const char *path, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    return taken(d, leat_dataset_cached(d, path ? path : "", out));
}

leat_status leat_dataset_zip(leat_dataset *const *datasets, int n, leat_dataset **out)
{
    LEAT_CHECK_ARG(datasets);
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "leat_dataset_zip: at least one dataset, not %d", n);
    for (int i = 0; i < n; i++)
        LEAT_CHECK(DATASET, datasets[i]);
    leat_status s = leat_dataset_zipped(datasets, n, out);
    for (int i = 0; i < n; i++)
        leat_dataset_unref(datasets[i]);
    return s;
}

leat_status leat_dataset_concatenate(leat_dataset *d, leat_dataset *next, leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    LEAT_CHECK(DATASET, next);
    leat_status s = leat_dataset_concatenated((leat_dataset *const[]){d, next}, out);
    leat_dataset_unref(next);
    return taken(d, s);
}
