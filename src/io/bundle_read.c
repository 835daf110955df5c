/* bundle_read.c -- the contents of a bundle: the index, and the stored pieces that make up a tensor
 * or slice. bundle_load.c reads the data. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/element.h"
#include "io/bundle_int.h"
#include "io/crc32c.h"
#include "proto/field.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

enum { VERSION = 1, MAX_SHARDS = 99999 };

static leat_status corrupt(const char *prefix, const char *detail, leat_status s)
{
    const char *words = "Unable to read file (%s.index). Perhaps the file is corrupt or was "
                        "produced by a newer version of TensorFlow with format changes (%s)";
    if (!s)
        return leat_status_new(LEAT_INTERNAL, __FILE__, __LINE__, words, prefix, detail);
    s = leat_status_prefix(s, ": ");
    return leat_status_prefix(s, words, prefix, detail);
}

static leat_status check_version(const Leat__VersionDef *v)
{
    if (!v)
        return NULL;
    LEAT_REQUIRE(v->min_consumer <= VERSION, INVALID_ARGUMENT,
                 "Checkpoint min consumer version %d above current version %d for TensorFlow "
                 "1.15.  Please upgrade TensorFlow.",
                 v->min_consumer, VERSION);
    LEAT_REQUIRE(v->producer >= 0, INVALID_ARGUMENT,
                 "Checkpoint producer version %d below min producer 0 supported by TensorFlow "
                 "1.15.  Please regenerate your checkpoint.",
                 v->producer);
    for (size_t i = 0; i < v->n_bad_consumers; i++)
        LEAT_REQUIRE(v->bad_consumers[i] != VERSION, INVALID_ARGUMENT,
                     "Checkpoint disallows consumer version %d.  Please upgrade TensorFlow: this "
                     "version is likely buggy.",
                     VERSION);
    return NULL;
}

static leat_status read_header(leat_bundle *b)
{
    if (b->table->n == 0)
        return corrupt(b->prefix, "failed to seek to header entry", NULL);
    const leat_table_entry *e = &b->table->entries[0];
    Leat__BundleHeaderProto *h = NULL;
    leat_status s = e->n_key ? leat_error(DATA_LOSS, "there is none")
                             : LEAT_UNPACK(bundle_header_proto, e->value, e->n_value, &h);
    if (s)
        return leat_status_code(s) == LEAT_RESOURCE_EXHAUSTED
                   ? s
                   : corrupt(b->prefix, "unable to parse header", s);
    if (h->num_shards < 1 || h->num_shards > MAX_SHARDS)
        s = corrupt(b->prefix, "bad number of shards", NULL);
    else if (h->endianness != LEAT__BUNDLE_HEADER_PROTO__ENDIANNESS__LITTLE)
        s = leat_error(
            UNIMPLEMENTED,
            "TensorBundle at %s is of a different endianness than this machine's hardware",
            b->prefix);
    else
        s = check_version(h->version);
    b->n_shards = h->num_shards;
    leat_proto_free(h);
    return s;
}

leat_status leat_bundle_parse(char *index, size_t n, const char *prefix, leat_bundle **out)
{
    leat_table *t;
    uint32_t crc = leat_crc32c(index, n);
    LEAT_TRY(leat_table_parse(index, n, &t));
    leat_bundle *b = leat_new(leat_bundle);
    b->prefix = leat_xstrdup(prefix);
    b->table = t;
    b->index_crc = crc;
    pthread_mutex_init(&b->lock, NULL);
    leat_status s = read_header(b);
    if (s) {
        leat_bundle_free(b);
        return s;
    }
    b->shards = leat_new_array(leat_shard, b->n_shards);
    *out = b;
    return NULL;
}

leat_status leat_bundle_open(const char *prefix, leat_bundle **out)
{
    char *path = leat_bundle_index_path(prefix), *bytes;
    size_t n;
    leat_status s = leat_file_read(path, &bytes, &n);
    if (!s)
        s = leat_status_prefix(leat_bundle_parse(bytes, n, prefix, out), "%s: ", path);
    free(path);
    return s;
}

void leat_bundle_free(leat_bundle *b)
{
    if (!b)
        return;
    for (int i = 0; b->shards && i < b->n_shards; i++) {
        leat_file_close(b->shards[i].file);
        leat_file_close(b->shards[i].old);
    }
    free(b->shards);
    leat_table_free(b->table);
    pthread_mutex_destroy(&b->lock);
    free(b->prefix);
    free(b);
}

const leat_table *leat_bundle_table(const leat_bundle *b)
{
    return b->table;
}

int leat_bundle_shards(const leat_bundle *b)
{
    return b->n_shards;
}

static leat_status check_entry(const leat_bundle *b, const Leat__BundleEntryProto *e,
                               const char *key, size_t n, leat_shape *shape)
{
    leat_status s = leat_shape_from_proto(e->shape, shape);
    if (s || !leat_shape_known(shape) || leat_shape_count(shape) < 0) {
        leat_status_free(s);
        return leat_error(DATA_LOSS, "Invalid tensor shape: %.*s", (int)n, key);
    }
    LEAT_REQUIRE(leat_element_size((leat_dtype)e->dtype) > 0, DATA_LOSS,
                 "Invalid tensor type: %.*s has %d", (int)n, key, (int)e->dtype);
    LEAT_REQUIRE(e->shard_id >= 0 && e->shard_id < b->n_shards && e->offset >= 0 && e->size >= 0,
                 DATA_LOSS, "Invalid place in bundle entry: key %.*s", (int)n, key);
    return NULL;
}

leat_status leat_bundle_entry(leat_bundle *b, const char *key, size_t n, leat_dtype *dtype,
                              leat_shape *shape, Leat__BundleEntryProto **out)
{
    const leat_table_entry *at = n ? leat_table_find(b->table, key, n) : NULL;
    LEAT_REQUIRE(at, NOT_FOUND, "Key %.*s not found in checkpoint", (int)n, key);
    Leat__BundleEntryProto *e;
    leat_status s = LEAT_UNPACK(bundle_entry_proto, at->value, at->n_value, &e);
    if (s && leat_status_code(s) != LEAT_RESOURCE_EXHAUSTED) {
        leat_status_free(s);
        return leat_error(DATA_LOSS, "Entry for key %.*s not parseable.", (int)n, key);
    }
    LEAT_TRY(s);
    s = check_entry(b, e, key, n, shape);
    if (s) {
        leat_proto_free(e);
        return s;
    }
    *dtype = (leat_dtype)e->dtype;
    *out = e;
    return NULL;
}

/* The position of a stored piece; checks its size against its shape and its file. */
static leat_status place(leat_bundle *b, const Leat__BundleEntryProto *e, const char *key, size_t n,
                         const leat_shape *shape, leat_bundle_part *out)
{
    int64_t count = leat_shape_count(shape), want;
    LEAT_REQUIRE(e->dtype != LEAT__DATA_TYPE__DT_RESOURCE, UNIMPLEMENTED,
                 "Restoring data type %s not yet supported: %.*s",
                 leat_dtype_name((leat_dtype)e->dtype), (int)n, key);
    if (e->dtype == LEAT__DATA_TYPE__DT_STRING || e->dtype == LEAT__DATA_TYPE__DT_VARIANT) {
        LEAT_REQUIRE(
            e->size >= count, DATA_LOSS,
            "Invalid size in bundle entry: key %.*s; stored size %lld; expected size is at "
            "least %lld",
            (int)n, key, (long long)e->size, (long long)count);
    } else {
        bool fits = leat_mul_ok(count, (int64_t)leat_element_size((leat_dtype)e->dtype), &want);
        LEAT_REQUIRE(fits && e->size == want, DATA_LOSS,
                     "Invalid size in bundle entry: key %.*s; stored size %lld; expected size %lld",
                     (int)n, key, (long long)e->size, fits ? (long long)want : -1LL);
    }
    out->shape = *shape;
    out->shard = e->shard_id;
    out->offset = e->offset;
    out->size = e->size;
    out->crc = leat_crc32c_unmask(e->crc32c);
    return leat_shard_check(b, out);
}

static leat_status add_part(leat_bundle *b, const char *key, size_t n, const leat_slice *slice,
                            leat_bundle_item *item)
{
    leat_strbuf part_key = {0};
    leat_slice_key(key, n, slice, &part_key);
    leat_dtype dtype;
    leat_shape shape, want;
    Leat__BundleEntryProto *e = NULL;
    leat_status s = leat_slice_shape(slice, &item->whole, &want);
    if (!s)
        s = leat_bundle_entry(b, part_key.s, part_key.n, &dtype, &shape, &e);
    if (!s && (dtype != item->dtype || !leat_shape_equal(&shape, &want)))
        s = leat_error(DATA_LOSS, "Slice %s of %.*s has shape %s and type %s",
                       leat_slice_text(slice).s, (int)n, key, leat_shape_show(&shape).s,
                       leat_dtype_name(dtype));
    leat_bundle_part part = {.slice = *slice};
    if (!s)
        s = place(b, e, key, n, &shape, &part);
    if (!s)
        item->parts[item->n_parts++] = part;
    leat_proto_free(e);
    leat_strbuf_release(&part_key);
    return s;
}

/* The stored slices that cover the requested part. */
static leat_status cover(leat_bundle *b, const Leat__BundleEntryProto *e, const char *key, size_t n,
                         leat_bundle_item *item)
{
    int64_t missing = leat_shape_count(&item->shape);
    item->parts = leat_new_array(leat_bundle_part, e->n_slices);
    for (size_t i = 0; i < e->n_slices; i++) {
        leat_slice stored, both;
        leat_shape shape;
        LEAT_TRY(leat_slice_from_proto(e->slices[i], &stored));
        if (!leat_slice_intersect(&item->slice, &stored, &both))
            continue;
        LEAT_TRY(leat_slice_shape(&both, &item->whole, &shape));
        missing -= leat_shape_count(&shape);
        if (missing < 0)
            break; /* the slices overlap */
        LEAT_TRY(add_part(b, key, n, &stored, item));
    }
    LEAT_REQUIRE(missing == 0, INVALID_ARGUMENT,
                 "Does not have sufficient slices for partitioned tensor %.*s to restore in "
                 "slice_spec: %s",
                 (int)n, key, leat_slice_text(&item->slice).s);
    return NULL;
}

leat_status leat_bundle_find(leat_bundle *b, const char *key, size_t n, const leat_slice *slice,
                             leat_bundle_item *out)
{
    leat_bundle_item item = {0};
    Leat__BundleEntryProto *e;
    LEAT_TRY(leat_bundle_entry(b, key, n, &item.dtype, &item.whole, &e));
    item.slice = slice ? *slice : leat_slice_all(item.whole.rank);
    leat_status s = leat_slice_shape(&item.slice, &item.whole, &item.shape);
    if (!s && e->n_slices) {
        s = cover(b, e, key, n, &item);
    } else if (!s) {
        item.parts = leat_new(leat_bundle_part);
        item.n_parts = 1;
        item.parts[0].slice = leat_slice_all(item.whole.rank);
        s = place(b, e, key, n, &item.whole, &item.parts[0]);
    }
    leat_proto_free(e);
    if (s)
        leat_bundle_item_release(&item);
    else
        *out = item;
    return s;
}

void leat_bundle_item_release(leat_bundle_item *item)
{
    free(item->parts);
    *item = (leat_bundle_item){0};
}
