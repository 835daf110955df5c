/* bundle.h -- checkpoints (V2): PREFIX.index, a table from names to file positions, and the files
 * PREFIX.data-00000-of-00002 ... with the bytes of the tensors. The files are byte for byte those
 * that TensorFlow writes.
 *
 * 1. A new bundle's data and index are complete and on the disk before either gets its final name.
 * 2. The data files get their names first, the index last: data files that an index names exist. 3.
 * Where a bundle is overwritten, the data that the old index names stays, under a name that
 * contains the old index's CRC, until the new index is in place; a reader whose data does not fit
 * its index looks there. So whenever a writer dies, readers see the old bundle or the new one. 4.
 * Positions and sizes in an index are used, and memory is allocated, only after a check that the
 * data files are large enough.
 */
#ifndef LEAT_IO_BUNDLE_H
#define LEAT_IO_BUNDLE_H

#include "io/slice.h"
#include "io/table.h"

char *leat_bundle_index_path(const char *prefix); /* free with free() */
char *leat_bundle_data_path(const char *prefix, int shard, int n_shards);
/* The name that the data file at path has while an index with this CRC is being replaced. */
char *leat_bundle_old_path(const char *path, uint32_t index_crc);
/* True if there is an index. */
bool leat_bundle_exists(const char *prefix);

/* ---- Reading ---- */
typedef struct leat_bundle leat_bundle;
/* NOT_FOUND: there is no index; DATA_LOSS: the index is damaged. */
leat_status leat_bundle_open(const char *prefix, leat_bundle **out) LEAT_MUST_CHECK;
/* Opens a bundle from the bytes of an index, which are taken even on failure; for tests. */
leat_status leat_bundle_parse(char *index, size_t n, const char *prefix,
                              leat_bundle **out) LEAT_MUST_CHECK;
void leat_bundle_free(leat_bundle *b); /* of NULL does nothing */
/* The entries; the first is the header's, whose key is empty. Keys that begin with a NUL are those
 * of slices. */
const leat_table *leat_bundle_table(const leat_bundle *b);
int leat_bundle_shards(const leat_bundle *b);

/* Gives the message of a tensor, free with leat_proto_free; NOT_FOUND "Key x not found in
 * checkpoint". dtype and shape are valid. */
leat_status leat_bundle_entry(leat_bundle *b, const char *key, size_t n, leat_dtype *dtype,
                              leat_shape *shape, Leat__BundleEntryProto **out) LEAT_MUST_CHECK;

typedef struct leat_bundle_part { /* a tensor or slice that is stored in one piece */
    leat_slice slice;
    leat_shape shape;
    int shard;
    int64_t offset, size; /* position in the shard's file; checked */
    uint32_t crc;
} leat_bundle_part;
typedef struct leat_bundle_item { /* a tensor, or a part of one, to be read */
    leat_dtype dtype;
    leat_shape whole, shape; /* shapes of the whole tensor and of the part that is read */
    leat_slice slice;
    leat_bundle_part *parts; /* stored pieces that together cover it */
    size_t n_parts;
    void
        /* Set by the caller before leat_bundle_read: memory for the elements, strings empty. */
        *data;
} leat_bundle_item;
/* Finds the stored pieces of a tensor, or of a slice of it (NULL: all). Free with
 * leat_bundle_item_release. */
leat_status leat_bundle_find(leat_bundle *b, const char *key, size_t n, const leat_slice *slice,
                             leat_bundle_item *out) LEAT_MUST_CHECK;
void leat_bundle_item_release(leat_bundle_item *item);
/* Reads items into their data and checks the CRCs; uses threads of its own for large items. */
leat_status leat_bundle_read(leat_bundle *b, leat_bundle_item *items, size_t n) LEAT_MUST_CHECK;
/* Reads one whole tensor. Gives a reference. */
leat_status leat_bundle_tensor(leat_bundle *b, const char *key, size_t n,
                               leat_tensor **out) LEAT_MUST_CHECK;

/* ---- Writing ---- */
typedef struct leat_bundle_writer leat_bundle_writer;
leat_status leat_bundle_writer_open(const char *prefix, leat_bundle_writer **out) LEAT_MUST_CHECK;
leat_status leat_bundle_add(leat_bundle_writer *w, const char *key, size_t n,
                            const leat_tensor *t) LEAT_MUST_CHECK;
/* Adds t as a part of a tensor of the shape `whole`. */
leat_status leat_bundle_add_slice(leat_bundle_writer *w, const char *key, size_t n,
                                  const leat_shape *whole, const leat_slice *slice,
                                  const leat_tensor *t) LEAT_MUST_CHECK;
/* Gives the bundle its final name. */
leat_status leat_bundle_finish(leat_bundle_writer *w) LEAT_MUST_CHECK;
void leat_bundle_writer_free(leat_bundle_writer *w); /* removes a bundle that was not finished */

/* Merges several bundles into one: renames their data files and removes their indices. */
leat_status leat_bundle_merge(const char *const *prefixes, size_t n,
                              const char *merged) LEAT_MUST_CHECK;

/* ---- Shared by the files that implement bundles ---- */
/* The entries of an index that is being made, sorted by key; for bundle_write.c and
 * bundle_merge.c. */
typedef struct leat_index_entry {
    char *key;
    size_t n_key;
    Leat__BundleEntryProto *message;
} leat_index_entry;
/* Writes the bytes of an index into a file that does not have its final name yet. Sorts the
 * entries. */
struct leat_new_file;
leat_status leat_index_write(const char *prefix, const Leat__BundleHeaderProto *header,
                             leat_index_entry *entries, size_t n,
                             struct leat_new_file **out) LEAT_MUST_CHECK;

/* Replacing a bundle by another, according to rule 3. */
typedef struct leat_replacement {
    char *prefix;
    bool old;     /* there is an index already */
    uint32_t crc; /* CRC of the old index */
    char **kept;  /* paths of kept data files, to be removed when done */
    size_t n, cap;
} leat_replacement;
void leat_replace_begin(leat_replacement *r, const char *prefix);
void leat_replace_keep(leat_replacement *r,
                       const char *path); /* to be called before a data file gets this name */
/* To be called after the new index is in place. Takes s and gives it back: after an error the kept
 * files stay. */
leat_status leat_replace_end(leat_replacement *r, leat_status s) LEAT_MUST_CHECK;

#endif
