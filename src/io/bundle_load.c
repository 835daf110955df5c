/* bundle_load.c -- the data of a bundle into memory. Large tensors are read in pieces by several
 * threads, which compute CRCs while the bytes are in the cache; the CRCs are combined at the
 * end. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/element.h"
#include "core/thread.h"
#include "io/bundle_int.h"
#include "io/coding.h"
#include "io/crc32c.h"

enum {
    PIECE = 256 * 1024,              /* bytes read at a time */
    TASK = 16 * PIECE,               /* bytes that a thread reads as one task */
    THREADS_FROM = 16 * 1024 * 1024, /* bytes from which on several threads are faster */
    MAX_THREADS = 4,
};

static leat_status open_shard(leat_bundle *b, int i)
{
    leat_shard *s = &b->shards[i];
    if (s->file)
        return NULL;
    char *path = leat_bundle_data_path(b->prefix, i, b->n_shards);
    char *old = leat_bundle_old_path(path, b->index_crc);
    leat_status status = leat_file_open(path, &s->file);
    leat_status_free(leat_file_open(old, &s->old)); /* mostly there is none */
    if (status && s->old) { /* the data file is just being replaced by another of the same name */
        leat_status_free(status);
        status = leat_file_open(old, &s->file);
    }
    free(old);
    free(path);
    return status;
}

static bool holds(const leat_file *f, const leat_bundle_part *part)
{
    return f && part->offset <= leat_file_size(f) && part->size <= leat_file_size(f) - part->offset;
}

leat_status leat_shard_check(leat_bundle *b, const leat_bundle_part *part)
{
    pthread_mutex_lock(&b->lock);
    leat_status s = open_shard(b, part->shard);
    leat_shard *shard = &b->shards[part->shard];
    if (!s && !holds(shard->file, part) && !holds(shard->old, part))
        s = leat_error(DATA_LOSS, "%s; has %lld bytes, the index says %lld at byte %lld",
                       leat_file_path(shard->file), (long long)leat_file_size(shard->file),
                       (long long)part->size, (long long)part->offset);
    pthread_mutex_unlock(&b->lock);
    return s;
}

/* Reads bytes and computes their CRC. */
static leat_status read_plain(leat_file *f, char *p, int64_t n, int64_t offset, uint32_t *crc)
{
    while (n) {
        int64_t piece = n < PIECE ? n : PIECE;
        LEAT_TRY(leat_file_read_at(f, p, (size_t)piece, offset));
        *crc = leat_crc32c_extend(*crc, p, (size_t)piece);
        p += piece;
        offset += piece;
        n -= piece;
    }
    return NULL;
}

static leat_status set_strings(leat_string *v, int64_t count, const unsigned char *p,
                               const unsigned char *end, uint32_t *crc)
{
    const unsigned char *lengths = p;
    uint64_t size;
    for (int64_t i = 0; i < count; i++) {
        LEAT_REQUIRE(leat_get_varint(&p, end, &size), DATA_LOSS, "String lengths are cut off");
        *crc = leat_crc32c_extend(*crc, &size, size <= UINT32_MAX ? 4 : 8);
    }
    LEAT_REQUIRE(end - p >= 4, DATA_LOSS, "String lengths longer than expected");
    uint32_t stored = leat_crc32c_unmask(leat_get_fixed32(p));
    LEAT_REQUIRE(stored == *crc, DATA_LOSS,
                 "The length checksum does not match: expected %08u but actual is %08u", stored,
                 *crc);
    *crc = leat_crc32c_extend(*crc, p, 4);
    p += 4;
    *crc = leat_crc32c_extend(*crc, p, (size_t)(end - p));
    for (int64_t i = 0; i < count; i++) {
        leat_get_varint(&lengths, end, &size);
        LEAT_REQUIRE(size <= (uint64_t)(end - p), DATA_LOSS, "Strings are cut off");
        LEAT_REQUIRE(leat_string_set(&v[i], (const char *)p, (size_t)size), RESOURCE_EXHAUSTED,
                     "No memory for a string of %llu bytes", (unsigned long long)size);
        p += size;
    }
    return NULL;
}

/* Strings or variants. */
static leat_status read_managed(leat_file *f, leat_dtype dtype, const leat_bundle_part *part,
                                void *v, uint32_t *crc)
{
    if (part->size == 0)
        return NULL;
    unsigned char *bytes = malloc((size_t)part->size);
    LEAT_REQUIRE(bytes, RESOURCE_EXHAUSTED, "No memory for %lld bytes", (long long)part->size);
    leat_status s = leat_file_read_at(f, bytes, (size_t)part->size, part->offset);
    if (!s)
        s = dtype == LEAT_STRING
                ? set_strings(v, leat_shape_count(&part->shape), bytes, bytes + part->size, crc)
                : leat_bundle_get_variants(bytes, bytes + part->size,
                                           leat_shape_count(&part->shape), v, crc);
    free(bytes);
    return s;
}

static leat_status crc_error(const leat_bundle_part *part, uint32_t crc)
{
    return leat_error(
        DATA_LOSS, "Checksum does not match: stored %08u vs. calculated on the restored bytes %u",
        part->crc, crc);
}

static leat_status read_from(leat_file *f, leat_dtype dtype, const leat_bundle_part *part,
                             void *data)
{
    uint32_t crc = 0;
    LEAT_REQUIRE(holds(f, part), DATA_LOSS, "%s; is shorter than its index says",
                 leat_file_path(f));
    if (leat_dtype_managed(dtype))
        LEAT_TRY(read_managed(f, dtype, part, data, &crc));
    else
        LEAT_TRY(read_plain(f, data, part->size, part->offset, &crc));
    return crc == part->crc ? NULL : crc_error(part, crc);
}

/* Reads one part; if the data file does not fit the index, from the kept file that it replaced. */
static leat_status read_part(leat_bundle *b, leat_dtype dtype, const leat_bundle_part *part,
                             void *data)
{
    leat_shard *shard = &b->shards[part->shard];
    leat_status s = read_from(shard->file, dtype, part, data);
    if (s && shard->old) {
        leat_status_free(s);
        s = read_from(shard->old, dtype, part, data);
    }
    return s ? leat_status_suffix(s, " (%s)", leat_file_path(shard->file)) : NULL;
}

/* True if the part that is read is exactly one stored piece. */
static bool direct(const leat_bundle_item *item)
{
    return item->n_parts == 1 && (leat_slice_equal(&item->parts[0].slice, &item->slice) ||
                                  (leat_slice_is_all(&item->slice, &item->whole) &&
                                   leat_slice_is_all(&item->parts[0].slice, &item->whole)));
}

static leat_status read_item(leat_bundle *b, leat_bundle_item *item)
{
    if (direct(item))
        return read_part(b, item->dtype, &item->parts[0], item->data);
    size_t n = (size_t)leat_shape_count(&item->shape);
    if (!leat_dtype_managed(item->dtype) && n) /* overlapping parts may leave a hole */
        memset(item->data, 0, n * leat_element_size(item->dtype));
    for (size_t i = 0; i < item->n_parts; i++) {
        leat_tensor *t;
        LEAT_TRY(leat_tensor_alloc(NULL, item->dtype, &item->parts[i].shape, &t));
        leat_status s = read_part(b, item->dtype, &item->parts[i], t->data);
        if (!s)
            s = leat_slice_copy(item->dtype, &item->whole, &item->parts[i].slice, t->data,
                                &item->slice, item->data);
        leat_tensor_unref(t);
        LEAT_TRY(s);
    }
    return NULL;
}

/* ---- Several threads: tasks are pieces of the items that are read directly ---- */
typedef struct task {
    leat_file *file;
    char *data;
    int64_t offset, size;
    uint32_t crc;
    leat_status status;
} task;

typedef struct work {
    task *tasks;
    size_t n;
    atomic_size_t next;
} work;

static void *run_tasks(void *arg)
{
    work *w = arg;
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
        task *t = &w->tasks[i];
        t->status = read_plain(t->file, t->data, t->size, t->offset, &t->crc);
    }
    return NULL;
}

static void run_with_threads(work *w)
{
    pthread_t threads[MAX_THREADS];
    int n = 0;
    while (n < MAX_THREADS - 1 && (size_t)n + 1 < w->n &&
           leat_thread_start(&threads[n], run_tasks, w) == 0)
        n++;
    run_tasks(w);
    while (n)
        pthread_join(threads[--n], NULL);
}

static bool in_tasks(leat_bundle *b, const leat_bundle_item *item)
{
    return direct(item) && !leat_dtype_managed(item->dtype) &&
           holds(b->shards[item->parts[0].shard].file, &item->parts[0]);
}

static void add_tasks(leat_bundle *b, leat_bundle_item *item, work *w, size_t *cap)
{
    const leat_bundle_part *part = &item->parts[0];
    for (int64_t at = 0; at < part->size; at += TASK) {
        leat_grow(w->tasks, w->n, *cap);
        w->tasks[w->n++] = (task){.file = b->shards[part->shard].file,
                                  .data = (char *)item->data + at,
                                  .offset = part->offset + at,
                                  .size = part->size - at < TASK ? part->size - at : TASK};
    }
}

/* Combines the results of an item's tasks. After an error the item is read again in one piece,
 * which gives the error, or finds kept data of an older bundle. */
static leat_status settle(leat_bundle *b, leat_bundle_item *item, task **next)
{
    const leat_bundle_part *part = &item->parts[0];
    uint32_t crc = 0;
    bool ok = true;
    for (int64_t at = 0; at < part->size; at += TASK, (*next)++) {
        task *t = *next;
        ok &= !t->status;
        leat_status_free(t->status);
        crc = leat_crc32c_join(crc, t->crc, (uint64_t)t->size);
    }
    return ok && crc == part->crc ? NULL : read_part(b, item->dtype, part, item->data);
}

leat_status leat_bundle_read(leat_bundle *b, leat_bundle_item *items, size_t n)
{
    int64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += in_tasks(b, &items[i]) ? items[i].parts[0].size : 0;
    bool threads = total >= THREADS_FROM;
    work w = {0};
    size_t cap = 0;
    for (size_t i = 0; i < n && threads; i++)
        if (in_tasks(b, &items[i]))
            add_tasks(b, &items[i], &w, &cap);
    if (threads)
        run_with_threads(&w);
    leat_status s = NULL;
    task *next = w.tasks;
    for (size_t i = 0; i < n; i++) {
        leat_status one = NULL;
        if (threads && in_tasks(b, &items[i]))
            one = settle(b, &items[i], &next);
        else if (!s)
            one = read_item(b, &items[i]);
        s = leat_status_first(s, one);
    }
    free(w.tasks);
    return s;
}

leat_status leat_bundle_tensor(leat_bundle *b, const char *key, size_t n, leat_tensor **out)
{
    leat_bundle_item item;
    leat_tensor *t = NULL;
    LEAT_TRY(leat_bundle_find(b, key, n, NULL, &item));
    leat_status s = leat_tensor_alloc(NULL, item.dtype, &item.shape, &t);
    if (!s) {
        item.data = t->data;
        s = leat_bundle_read(b, &item, 1);
    }
    leat_bundle_item_release(&item);
    if (s)
        leat_tensor_unref(t);
    else
        *out = t;
    return s;
}
