/* bundle_int.h -- a bundle that is being read, from the inside; for bundle_read.c, bundle_load.c.
 */
#ifndef LEAT_IO_BUNDLE_INT_H
#define LEAT_IO_BUNDLE_INT_H

#include <pthread.h>

#include "io/bundle.h"
#include "io/file.h"

typedef struct leat_shard {
    leat_file *file; /* NULL until something in it is looked for */
    leat_file *old;  /* what was kept while it was replaced: rule 3; NULL: there is none */
} leat_shard;

struct leat_bundle {
    char *prefix;
    leat_table *table;
    uint32_t index_crc;
    int n_shards;
    pthread_mutex_t lock; /* guards what opens in shards; innermost */
    leat_shard *shards;
};

/* The part lies within its file. */
leat_status leat_shard_check(leat_bundle *b, const leat_bundle_part *part) LEAT_MUST_CHECK;

#endif
