/* bundle_files.c -- the files of a bundle: their names, the writing of an index, and the
 * replacement of a bundle by another (rule 3 of bundle.h). */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "io/bundle.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/path.h"
#include "proto/wire.h"

static char *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *fmt, ...)
{
    leat_strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    leat_strbuf_vprintf(&b, fmt, ap);
    va_end(ap);
    return leat_strbuf_take(&b);
}

char *leat_bundle_index_path(const char *prefix)
{
    return text("%s.index", prefix);
}

char *leat_bundle_data_path(const char *prefix, int shard, int n_shards)
{
    return text("%s.data-%05d-of-%05d", prefix, shard, n_shards);
}

char *leat_bundle_old_path(const char *path, uint32_t index_crc)
{
    return text("%s.of-%08x", path, index_crc);
}

bool leat_bundle_exists(const char *prefix)
{
    char *path = leat_bundle_index_path(prefix);
    bool there = leat_path_exists(path);
    free(path);
    return there;
}

static int by_key(const void *a, const void *b)
{
    const leat_index_entry *x = a, *y = b;
    int c = memcmp(x->key, y->key, x->n_key < y->n_key ? x->n_key : y->n_key);
    return c ? c : (x->n_key > y->n_key) - (x->n_key < y->n_key);
}

static leat_status add(leat_table_writer *w, const char *key, size_t n, const void *message)
{
    leat_strbuf value = {0};
    leat_status s = leat_proto_pack(message, &value);
    if (!s)
        leat_table_add(w, key, n, value.s, value.n);
    leat_strbuf_release(&value);
    return s;
}

leat_status leat_index_write(const char *prefix, const Leat__BundleHeaderProto *header,
                             leat_index_entry *entries, size_t n, leat_new_file **out)
{
    if (n)
        qsort(entries, n, sizeof(*entries), by_key);
    leat_table_writer w = {0};
    leat_new_file *f = NULL;
    leat_status s = add(&w, "", 0, header);
    for (size_t i = 0; i < n && !s; i++)
        s = add(&w, entries[i].key, entries[i].n_key, entries[i].message);
    char *path = leat_bundle_index_path(prefix);
    if (!s)
        s = leat_new_file_open(path, &f);
    free(path);
    if (!s)
        s = leat_table_finish(&w);
    if (!s)
        s = leat_new_file_write(f, w.out.s, w.out.n);
    if (!s)
        s = leat_new_file_sync(f);
    leat_table_writer_release(&w);
    if (s)
        leat_new_file_free(f);
    else
        *out = f;
    return s;
}

void leat_replace_begin(leat_replacement *r, const char *prefix)
{
    *r = (leat_replacement){.prefix = leat_xstrdup(prefix)};
    char *path = leat_bundle_index_path(prefix), *bytes;
    size_t n;
    leat_status s = leat_file_read(path, &bytes, &n);
    free(path);
    if (!s) {
        r->old = true;
        r->crc = leat_crc32c(bytes, n);
        free(bytes);
    }
    leat_status_free(s); /* an index that cannot be read need not be kept */
}

void leat_replace_keep(leat_replacement *r, const char *path)
{
    if (!r->old)
        return;
    char *kept = leat_bundle_old_path(path, r->crc);
    /* A kept file that already exists is right: a writer that died made it. If the file system has
     * no links, nothing is kept. */
    leat_status s = leat_path_link(path, kept);
    if (!s || leat_status_code(s) == LEAT_ALREADY_EXISTS) {
        leat_grow(r->kept, r->n, r->cap);
        r->kept[r->n++] = kept;
    } else {
        free(kept);
    }
    leat_status_free(s);
}

leat_status leat_replace_end(leat_replacement *r, leat_status s)
{
    if (!s) {
        char *dir = leat_path_dir(r->prefix);
        s = leat_dir_sync(dir);
        free(dir);
    }
    for (size_t i = 0; i < r->n; i++) {
        if (!s)
            leat_status_free(leat_path_remove(r->kept[i]));
        free(r->kept[i]);
    }
    free(r->kept);
    free(r->prefix);
    return s;
}
