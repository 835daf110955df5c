/* counts.h -- datasets that count, for the C interface (api.c). */
#ifndef LEAT_DATASET_COUNTS_H
#define LEAT_DATASET_COUNTS_H

#include "kernels/dataset/dataset.h"

/* op is RepeatDataset, TakeDataset or SkipDataset. A count below 0 means all. */
leat_status leat_dataset_counted(leat_dataset *in, const char *op, int64_t count,
                                 leat_dataset **out) LEAT_MUST_CHECK;
typedef struct leat_sharded {
    const char *name;
    int64_t shards, index;
    bool require_non_empty; /* It is an error if a shard has no element. */
} leat_sharded;
/* Every shards-th element, from index on. */
leat_status leat_dataset_sharded(leat_dataset *in, const leat_sharded *o,
                                 leat_dataset **out) LEAT_MUST_CHECK;

#endif
