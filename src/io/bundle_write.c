/* bundle_write.c -- writes a bundle of one shard, tensor by tensor (see bundle.h). */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/element.h"
#include "core/map.h"
#include "io/bundle_int.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "proto/field.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

/* Bytes whose CRC is computed and that are then written, while they are in the cache. */
enum { PIECE = 256 * 1024 };

struct leat_bundle_writer {
    char *prefix;
    leat_new_file *data;
    leat_index_entry *entries;
    size_t n, cap;
    leat_map by_key; /* index + 1 */
};

leat_status leat_bundle_writer_open(const char *prefix, leat_bundle_writer **out)
{
    char *path = leat_bundle_data_path(prefix, 0, 1);
    leat_new_file *data;
    leat_status s = leat_new_file_open(path, &data);
    free(path);
    LEAT_TRY(s);
    leat_bundle_writer *w = leat_new(leat_bundle_writer);
    w->prefix = leat_xstrdup(prefix);
    w->data = data;
    w->by_key.seed = leat_hash_secret();
    *out = w;
    return NULL;
}

void leat_bundle_writer_free(leat_bundle_writer *w)
{
    if (!w)
        return;
    leat_new_file_free(w->data);
    for (size_t i = 0; i < w->n; i++) {
        free(w->entries[i].key);
        leat_proto_free(w->entries[i].message);
    }
    free(w->entries);
    leat_map_release(&w->by_key);
    free(w->prefix);
    free(w);
}

static Leat__BundleEntryProto *find(leat_bundle_writer *w, const char *key, size_t n)
{
    size_t at = (size_t)(uintptr_t)leat_map_get_n(&w->by_key, key, n);
    return at ? w->entries[at - 1].message : NULL;
}

static Leat__BundleEntryProto *add_entry(leat_bundle_writer *w, const char *key, size_t n,
                                         leat_dtype dtype, const leat_shape *shape)
{
    leat_grow(w->entries, w->n, w->cap);
    leat_index_entry *e = &w->entries[w->n++];
    e->key = memcpy(leat_xmalloc(n), key, n); /* keys of slices contain NULs */
    e->n_key = n;
    e->message = (Leat__BundleEntryProto *)leat_message_new(&leat__bundle_entry_proto__descriptor);
    e->message->dtype = (Leat__DataType)dtype;
    e->message->shape = leat_shape_to_proto(shape);
    leat_map_put_n(&w->by_key, key, n, (void *)(uintptr_t)w->n);
    return e->message;
}

static leat_status write_plain(leat_new_file *f, const char *p, size_t n, uint32_t *crc)
{
    while (n) {
        size_t piece = n < PIECE ? n : PIECE;
        *crc = leat_crc32c_extend(*crc, p, piece);
        LEAT_TRY(leat_new_file_write(f, p, piece));
        p += piece;
        n -= piece;
    }
    return NULL;
}

/* A string tensor: the lengths as varints, their CRC, the strings. The CRC is computed over the
 * lengths as numbers of 4 bytes (8 where needed). */
static leat_status write_strings(leat_new_file *f, const leat_string *v, int64_t n, uint32_t *crc)
{
    leat_strbuf lengths = {.checked = true};
    for (int64_t i = 0; i < n; i++) {
        uint64_t size = v[i].size;
        leat_put_varint(&lengths, size);
        *crc = leat_crc32c_extend(*crc, &size, size <= UINT32_MAX ? 4 : 8);
    }
    uint32_t masked = leat_crc32c_mask(*crc);
    leat_put_fixed32(&lengths, masked);
    *crc = leat_crc32c_extend(*crc, &masked, 4);
    leat_status s = leat_strbuf_check(&lengths);
    if (!s)
        s = leat_new_file_write(f, lengths.s, lengths.n);
    leat_strbuf_release(&lengths);
    for (int64_t i = 0; i < n && !s; i++)
        s = write_plain(f, v[i].data, v[i].size, crc);
    return s;
}

/* Takes the bytes. */
static leat_status write_variants(leat_new_file *f, leat_strbuf *bytes)
{
    leat_status s = bytes->n ? leat_new_file_write(f, bytes->s, bytes->n) : NULL;
    leat_strbuf_release(bytes);
    return s;
}

leat_status leat_bundle_add(leat_bundle_writer *w, const char *key, size_t n, const leat_tensor *t)
{
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "A tensor without a name cannot be saved");
    LEAT_REQUIRE(!find(w, key, n), INVALID_ARGUMENT, "Adding duplicate key: %.*s", (int)n, key);
    LEAT_REQUIRE(t->dtype != LEAT_RESOURCE, UNIMPLEMENTED,
                 "Saving data type %s not yet supported: %.*s", leat_dtype_name(t->dtype), (int)n,
                 key);
    leat_strbuf variants = {.checked = true};
    uint32_t crc = 0;
    if (t->dtype == LEAT_VARIANT) {
        leat_status s = leat_bundle_put_variants(t->data, t->count, &variants, &crc);
        if (s) {
            leat_strbuf_release(&variants);
            return leat_status_prefix(s, "%.*s: ", (int)n, key);
        }
    }
    Leat__BundleEntryProto *e = add_entry(w, key, n, t->dtype, &t->shape);
    e->offset = leat_new_file_size(w->data);
    if (t->dtype == LEAT_STRING)
        LEAT_TRY(write_strings(w->data, t->data, t->count, &crc));
    else if (t->dtype == LEAT_VARIANT)
        LEAT_TRY(write_variants(w->data, &variants));
    else
        LEAT_TRY(write_plain(w->data, t->data, leat_tensor_bytes(t), &crc));
    e->size = leat_new_file_size(w->data) - e->offset;
    e->crc32c = leat_crc32c_mask(crc);
    return NULL;
}

leat_status leat_bundle_add_slice(leat_bundle_writer *w, const char *key, size_t n,
                                  const leat_shape *whole, const leat_slice *slice,
                                  const leat_tensor *t)
{
    if (leat_slice_is_all(slice, whole))
        return leat_bundle_add(w, key, n, t);
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "A tensor without a name cannot be saved");
    Leat__BundleEntryProto *e = find(w, key, n);
    if (e) {
        leat_shape before;
        LEAT_TRY(leat_shape_from_proto(e->shape, &before));
        LEAT_REQUIRE(e->n_slices > 0 && (leat_dtype)e->dtype == t->dtype &&
                         leat_shape_equal(&before, whole),
                     INVALID_ARGUMENT,
                     "Slices of %.*s are of different tensors: %s of shape %s, and %s of shape %s",
                     (int)n, key, leat_dtype_name((leat_dtype)e->dtype), leat_shape_show(&before).s,
                     leat_dtype_name(t->dtype), leat_shape_show(whole).s);
    } else {
        e = add_entry(w, key, n, t->dtype, whole);
    }
    e->slices = leat_xrealloc(e->slices, (e->n_slices + 1) * sizeof(*e->slices));
    e->slices[e->n_slices++] = leat_slice_to_proto(slice);
    leat_strbuf part = {0};
    leat_slice_key(key, n, slice, &part);
    leat_status s = leat_bundle_add(w, part.s, part.n, t);
    leat_strbuf_release(&part);
    return s;
}

static leat_status publish(leat_bundle_writer *w, leat_new_file *index)
{
    leat_replacement r;
    leat_replace_begin(&r, w->prefix);
    char *path = leat_bundle_data_path(w->prefix, 0, 1);
    leat_replace_keep(&r, path);
    free(path);
    leat_status s = leat_new_file_publish(w->data);
    if (!s)
        s = leat_new_file_publish(index);
    return leat_replace_end(&r, s);
}

leat_status leat_bundle_finish(leat_bundle_writer *w)
{
    LEAT_TRY(leat_new_file_sync(w->data));
    Leat__VersionDef version = LEAT__VERSION_DEF__INIT;
    version.producer = 1;
    Leat__BundleHeaderProto header = LEAT__BUNDLE_HEADER_PROTO__INIT;
    header.num_shards = 1;
    header.version = &version;
    leat_new_file *index;
    LEAT_TRY(leat_index_write(w->prefix, &header, w->entries, w->n, &index));
    leat_status s = publish(w, index);
    leat_new_file_free(index);
    return s;
}
