/* bundle_merge.c -- several bundles become one: their data files are renamed, their indices merged.
 * Slices of one tensor may come from several of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/map.h"
#include "io/bundle.h"
#include "io/file.h"
#include "io/path.h"
#include "proto/field.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

typedef struct merge {
    Leat__BundleHeaderProto *header; /* the first bundle's header */
    leat_index_entry *entries;
    size_t n, cap;
    leat_map by_key; /* index of entry + 1 */
    char **shards;   /* paths of data files, by their future number */
    size_t n_shards, cap_shards;
    leat_map shard_ids; /* path -> number + 1 */
} merge;

static void merge_release(merge *m)
{
    leat_proto_free(m->header);
    for (size_t i = 0; i < m->n; i++) {
        free(m->entries[i].key);
        leat_proto_free(m->entries[i].message);
    }
    free(m->entries);
    for (size_t i = 0; i < m->n_shards; i++)
        free(m->shards[i]);
    free(m->shards);
    leat_map_release(&m->by_key);
    leat_map_release(&m->shard_ids);
}

static bool same_version(const Leat__VersionDef *a, const Leat__VersionDef *b)
{
    leat_strbuf x = {0}, y = {0};
    leat_status s = a ? leat_proto_pack(a, &x) : NULL;
    if (!s && b)
        s = leat_proto_pack(b, &y);
    bool same = !s && x.n == y.n && (x.n == 0 || memcmp(x.s, y.s, x.n) == 0);
    leat_status_free(s);
    leat_strbuf_release(&x);
    leat_strbuf_release(&y);
    return same;
}

static leat_status merge_header(merge *m, const leat_table_entry *e)
{
    Leat__BundleHeaderProto *h;
    LEAT_TRY(LEAT_UNPACK(bundle_header_proto, e->value, e->n_value, &h));
    if (!m->header) {
        m->header = h;
        return NULL;
    }
    leat_status s = NULL;
    if (h->endianness != m->header->endianness)
        s = leat_error(INVALID_ARGUMENT,
                       "Merging bundles with conflicting endianness; inputs corrupted?");
    else if (!same_version(h->version, m->header->version))
        s = leat_error(INVALID_ARGUMENT, "Merging bundles with different format versions");
    leat_proto_free(h);
    return s;
}

/* The number that a data file will get. */
static int shard_id(merge *m, const char *prefix, int shard, int n_shards)
{
    char *path = leat_bundle_data_path(prefix, shard, n_shards);
    size_t id = (size_t)(uintptr_t)leat_map_get(&m->shard_ids, path);
    if (id) {
        free(path);
        return (int)id - 1;
    }
    leat_grow(m->shards, m->n_shards, m->cap_shards);
    m->shards[m->n_shards++] = path;
    leat_map_put(&m->shard_ids, path, (void *)(uintptr_t)m->n_shards);
    return (int)m->n_shards - 1;
}

/* Adds slices of a tensor that already has an entry. Moves them from `more`. */
static leat_status merge_slices(Leat__BundleEntryProto *e, Leat__BundleEntryProto *more,
                                const leat_table_entry *at)
{
    leat_shape a, b;
    LEAT_REQUIRE(more->n_slices > 0, INTERNAL,
                 "Duplicate tensor keyed by %.*s; attempting to merge in a non-slice bundle entry",
                 (int)at->n_key, at->key);
    LEAT_TRY(leat_shape_from_proto(e->shape, &a));
    LEAT_TRY(leat_shape_from_proto(more->shape, &b));
    LEAT_REQUIRE(e->dtype == more->dtype && leat_shape_equal(&a, &b), INVALID_ARGUMENT,
                 "Slices of %.*s are of tensors of different types or shapes: %s and %s",
                 (int)at->n_key, at->key, leat_shape_show(&a).s, leat_shape_show(&b).s);
    e->slices = leat_xrealloc(e->slices, (e->n_slices + more->n_slices) * sizeof(*e->slices));
    memcpy(e->slices + e->n_slices, more->slices, more->n_slices * sizeof(*e->slices));
    e->n_slices += more->n_slices;
    more->n_slices = 0;
    return NULL;
}

static leat_status merge_entry(merge *m, const char *prefix, leat_bundle *b,
                               const leat_table_entry *at)
{
    size_t known = (size_t)(uintptr_t)leat_map_get_n(&m->by_key, at->key, at->n_key);
    LEAT_REQUIRE(!known || m->entries[known - 1].message->n_slices > 0, INVALID_ARGUMENT,
                 "Duplicate tensor keyed by %.*s encountered, when merging prefix: %s",
                 (int)at->n_key, at->key, prefix);
    leat_dtype dtype;
    leat_shape shape;
    Leat__BundleEntryProto *e;
    LEAT_TRY(leat_bundle_entry(b, at->key, at->n_key, &dtype, &shape, &e));
    if (known) {
        leat_status s = merge_slices(m->entries[known - 1].message, e, at);
        leat_proto_free(e);
        return s;
    }
    e->shard_id = shard_id(m, prefix, e->shard_id, leat_bundle_shards(b));
    leat_grow(m->entries, m->n, m->cap);
    m->entries[m->n++] =
        (leat_index_entry){memcpy(leat_xmalloc(at->n_key + 1), at->key, at->n_key), at->n_key, e};
    leat_map_put_n(&m->by_key, at->key, at->n_key, (void *)(uintptr_t)m->n);
    return NULL;
}

static leat_status merge_bundle(merge *m, const char *prefix)
{
    leat_bundle *b;
    LEAT_TRY(leat_bundle_open(prefix, &b));
    const leat_table *t = leat_bundle_table(b);
    leat_status s = merge_header(m, &t->entries[0]);
    for (size_t i = 1; i < t->n && !s; i++)
        s = merge_entry(m, prefix, b, &t->entries[i]);
    leat_bundle_free(b);
    return s;
}

static leat_status publish(merge *m, const char *merged, leat_new_file *index)
{
    leat_replacement r;
    leat_replace_begin(&r, merged);
    leat_status s = NULL;
    for (size_t i = 0; i < m->n_shards && !s; i++) {
        char *path = leat_bundle_data_path(merged, (int)i, (int)m->n_shards);
        if (strcmp(path, m->shards[i]) != 0) {
            leat_replace_keep(&r, path);
            s = leat_path_rename(m->shards[i], path);
        }
        free(path);
    }
    if (!s)
        s = leat_new_file_publish(index);
    return leat_replace_end(&r, s);
}

leat_status leat_bundle_merge(const char *const *prefixes, size_t n, const char *merged)
{
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "There is no checkpoint to merge into %s", merged);
    merge m = {0};
    leat_new_file *index = NULL;
    leat_status s = NULL;
    for (size_t i = 0; i < n && !s; i++)
        s = merge_bundle(&m, prefixes[i]);
    if (!s) {
        /* The number of data files of the result. */
        m.header->num_shards = m.n_shards ? (int)m.n_shards : 1;
        s = leat_index_write(merged, m.header, m.entries, m.n, &index);
    }
    if (!s)
        s = publish(&m, merged, index);
    for (size_t i = 0; i < n && !s; i++)
        if (strcmp(prefixes[i], merged) != 0) {
            char *path = leat_bundle_index_path(prefixes[i]);
            leat_status_free(leat_path_remove(path));
            free(path);
        }
    leat_new_file_free(index);
    merge_release(&m);
    return s;
}
