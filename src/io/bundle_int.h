/* bundle_int.h -- internals of bundles, for the files that implement them. */
#ifndef LEAT_IO_BUNDLE_INT_H
#define LEAT_IO_BUNDLE_INT_H

#include <pthread.h>

#include "io/bundle.h"
#include "io/file.h"

typedef struct leat_shard {
    leat_file *file; /* NULL until it is first used */
    leat_file *old;  /* the data kept while the bundle is replaced (rule 3); NULL: none */
} leat_shard;

struct leat_bundle {
    char *prefix;
    leat_table *table;
    uint32_t index_crc;
    int n_shards;
    /* Guards the opening of files in shards; no other lock is taken under it. */
    pthread_mutex_t lock;
    leat_shard *shards;
};

/* bundle_variant.c: adds n variants to out, and to *crc; reads n variants. */
leat_status leat_bundle_put_variants(const leat_variant *v, int64_t n, leat_strbuf *out,
                                     uint32_t *crc) LEAT_MUST_CHECK;
leat_status leat_bundle_get_variants(const unsigned char *p, const unsigned char *end, int64_t n,
                                     leat_variant *v, uint32_t *crc) LEAT_MUST_CHECK;

/* Checks that the part lies within its file. */
leat_status leat_shard_check(leat_bundle *b, const leat_bundle_part *part) LEAT_MUST_CHECK;

#endif
