/* table_read.c -- reads tables into memory. Every offset and length is checked against the size of
 * the file, and the memory for keys and decompressed blocks is limited by that size, so that a
 * small file cannot use much memory. */
#include <stdlib.h>

#include "core/alloc.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/snappy.h"
#include "io/table.h"

enum {
    FOOTER = 48, /* two handles of up to 20 bytes, padding, and the magic number */
    TRAILER = 5, /* of a block: its compression and its CRC */
    GROWTH = 64, /* limit of bytes in memory for each byte of the file: Snappy reaches 21 */
};
static const uint64_t magic = UINT64_C(0xdb4775248b80fb57);

typedef struct block {
    const unsigned char *p;
    size_t n; /* bytes of entries, without the restarts */
} block;

static leat_status take_memory(leat_table *t, size_t n)
{
    LEAT_REQUIRE(n <= t->n_bytes * GROWTH && t->in_arena <= t->n_bytes * GROWTH - n, DATA_LOSS,
                 "table holds more than its size allows");
    t->in_arena += n;
    return NULL;
}

static leat_status decompress(leat_table *t, const unsigned char *p, size_t n, block *out)
{
    size_t size;
    LEAT_REQUIRE(leat_snappy_size(p, n, &size) && size / GROWTH <= n, DATA_LOSS,
                 "corrupted compressed block contents");
    LEAT_TRY(take_memory(t, size));
    unsigned char *bytes = leat_arena_alloc(&t->arena, size ? size : 1);
    LEAT_REQUIRE(leat_snappy_decode(p, n, bytes, size), DATA_LOSS,
                 "corrupted compressed block contents");
    *out = (block){bytes, size};
    return NULL;
}

static leat_status read_block(leat_table *t, uint64_t offset, uint64_t size, block *out)
{
    LEAT_REQUIRE(offset <= t->n_bytes && size <= t->n_bytes - offset &&
                     TRAILER <= t->n_bytes - offset - size,
                 DATA_LOSS, "truncated block read");
    const unsigned char *p = (const unsigned char *)t->bytes + offset;
    LEAT_REQUIRE(leat_crc32c_unmask(leat_get_fixed32(p + size + 1)) == leat_crc32c(p, size + 1),
                 DATA_LOSS, "block checksum mismatch");
    if (p[size] == 1) {
        LEAT_TRY(decompress(t, p, size, out));
    } else {
        LEAT_REQUIRE(p[size] == 0, DATA_LOSS, "bad block type");
        *out = (block){p, size};
    }
    LEAT_REQUIRE(out->n >= 4, DATA_LOSS, "bad block contents");
    uint32_t restarts = leat_get_fixed32(out->p + out->n - 4);
    LEAT_REQUIRE(restarts <= (out->n - 4) / 4, DATA_LOSS, "bad block contents");
    out->n -= 4 + (size_t)restarts * 4;
    return NULL;
}

/* Reads the next entry of a block; its key is assembled in `key`. */
static bool next_entry(block *b, leat_strbuf *key, const unsigned char **value, size_t *n_value)
{
    const unsigned char *end = b->p + b->n, *p = b->p;
    uint32_t shared, own, n;
    if (!leat_get_varint32(&p, end, &shared) || !leat_get_varint32(&p, end, &own) ||
        !leat_get_varint32(&p, end, &n) || shared > key->n || own > (size_t)(end - p) ||
        n > (size_t)(end - p) - own)
        return false;
    key->n = shared;
    leat_strbuf_add(key, p, own);
    *value = p + own;
    *n_value = n;
    b->n = (size_t)(end - (*value + n));
    b->p = *value + n;
    return true;
}

static int compare(const void *a, size_t na, const void *b, size_t nb)
{
    size_t n = na < nb ? na : nb;
    int c = n ? memcmp(a, b, n) : 0;
    return c ? c : (na > nb) - (na < nb);
}

static leat_status add_entries(leat_table *t, block b, leat_strbuf *key)
{
    leat_strbuf_clear(key);
    while (b.n) {
        const unsigned char *value;
        size_t n_value;
        LEAT_REQUIRE(next_entry(&b, key, &value, &n_value), DATA_LOSS, "bad entry in block");
        const leat_table_entry *last = t->n ? &t->entries[t->n - 1] : NULL;
        LEAT_REQUIRE(!last || compare(last->key, last->n_key, key->s, key->n) < 0, DATA_LOSS,
                     "keys of a table are not in order");
        LEAT_TRY(take_memory(t, key->n));
        leat_grow(t->entries, t->n, t->cap);
        t->entries[t->n++] =
            (leat_table_entry){key->n ? leat_arena_memdup(&t->arena, key->s, key->n) : "",
                               (const char *)value, key->n, n_value};
    }
    return NULL;
}

static leat_status read_all(leat_table *t, leat_strbuf *index_key, leat_strbuf *key)
{
    LEAT_REQUIRE(t->n_bytes >= FOOTER, DATA_LOSS, "file is too short to be an sstable");
    const unsigned char *end = (const unsigned char *)t->bytes + t->n_bytes;
    LEAT_REQUIRE(leat_get_fixed64(end - 8) == magic, DATA_LOSS,
                 "not an sstable (bad magic number)");
    const unsigned char *p = end - FOOTER;
    uint64_t offset, size;
    /* Handles of the metaindex block, which is not used, and of the index block. */
    for (int i = 0; i < 2; i++)
        LEAT_REQUIRE(leat_get_varint(&p, end - 8, &offset) && leat_get_varint(&p, end - 8, &size),
                     DATA_LOSS, "bad block handle");
    block index, b;
    uint64_t behind = 0; /* blocks must be in ascending order, so that none is read twice */
    LEAT_TRY(read_block(t, offset, size, &index));
    while (index.n) {
        const unsigned char *handle;
        size_t n;
        LEAT_REQUIRE(next_entry(&index, index_key, &handle, &n), DATA_LOSS, "bad entry in block");
        LEAT_REQUIRE(leat_get_varint(&handle, index.p, &offset) &&
                         leat_get_varint(&handle, index.p, &size) && offset >= behind,
                     DATA_LOSS, "bad block handle");
        LEAT_TRY(read_block(t, offset, size, &b));
        behind = offset + size + TRAILER;
        LEAT_TRY(add_entries(t, b, key));
    }
    return NULL;
}

leat_status leat_table_parse(char *bytes, size_t n, leat_table **out)
{
    leat_table *t = leat_new(leat_table);
    t->bytes = bytes;
    t->n_bytes = n;
    leat_arena_init(&t->arena);
    leat_strbuf index_key = {0}, key = {0};
    leat_status s = read_all(t, &index_key, &key);
    leat_strbuf_release(&index_key);
    leat_strbuf_release(&key);
    if (s)
        leat_table_free(t);
    else
        *out = t;
    return s;
}

leat_status leat_table_open(const char *path, leat_table **out)
{
    char *bytes;
    size_t n;
    LEAT_TRY(leat_file_read(path, &bytes, &n));
    return leat_table_parse(bytes, n, out);
}

const leat_table_entry *leat_table_find(const leat_table *t, const void *key, size_t n)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const leat_table_entry *e = &t->entries[mid];
        int c = compare(e->key, e->n_key, key, n);
        if (c == 0)
            return e;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

void leat_table_free(leat_table *t)
{
    if (!t)
        return;
    free(t->entries);
    free(t->bytes);
    leat_arena_release(&t->arena);
    free(t);
}
