/* table_write.c -- tables as TensorFlow's TableBuilder writes them, byte for byte. */
#include <stdlib.h>

#include "core/alloc.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "io/table.h"

enum { BLOCK_SIZE = 262144, RESTART_INTERVAL = 16, HANDLES = 40 };
static const uint64_t magic = UINT64_C(0xdb4775248b80fb57);

static void block_begin(leat_block_writer *b)
{
    leat_strbuf_clear(&b->bytes);
    leat_strbuf_clear(&b->last_key);
    b->n_restarts = 0;
    leat_grow(b->restarts, b->n_restarts, b->cap);
    b->restarts[b->n_restarts++] = 0;
    b->since = 0;
}

static void block_add(leat_block_writer *b, const char *key, size_t n_key, const void *value,
                      size_t n_value)
{
    size_t shared = 0;
    if (b->since < b->interval) {
        while (shared < b->last_key.n && shared < n_key && b->last_key.s[shared] == key[shared])
            shared++;
    } else {
        leat_grow(b->restarts, b->n_restarts, b->cap);
        b->restarts[b->n_restarts++] = (uint32_t)b->bytes.n;
        b->since = 0;
    }
    leat_put_varint(&b->bytes, shared);
    leat_put_varint(&b->bytes, n_key - shared);
    leat_put_varint(&b->bytes, n_value);
    leat_strbuf_add(&b->bytes, key + shared, n_key - shared);
    leat_strbuf_add(&b->bytes, value, n_value);
    leat_strbuf_clear(&b->last_key);
    leat_strbuf_add(&b->last_key, key, n_key);
    b->since++;
}

/* Writes the block with its restarts and trailer, and starts the next one. */
static void write_block(leat_table_writer *w, leat_block_writer *b, uint64_t *offset,
                        uint64_t *size)
{
    for (size_t i = 0; i < b->n_restarts; i++)
        leat_put_fixed32(&b->bytes, b->restarts[i]);
    leat_put_fixed32(&b->bytes, (uint32_t)b->n_restarts);
    *offset = w->out.n;
    *size = b->bytes.n;
    leat_strbuf_putc(&b->bytes, 0); /* not compressed */
    if (b->bytes.lacking)           /* Then the file lacks it, too. */
        w->out.lacking = b->bytes.lacking;
    uint32_t crc = leat_crc32c(b->bytes.s, b->bytes.n);
    leat_strbuf_add(&w->out, b->bytes.s, b->bytes.n);
    leat_put_fixed32(&w->out, leat_crc32c_mask(crc));
    block_begin(b);
}

static void flush(leat_table_writer *w)
{
    if (w->data.bytes.n == 0)
        return;
    write_block(w, &w->data, &w->pending_offset, &w->pending_size);
    w->pending = 1;
}

/* Adds the index entry of the last block, with the key w->last_key. */
static void add_handle(leat_table_writer *w)
{
    leat_strbuf handle = {0};
    leat_put_varint(&handle, w->pending_offset);
    leat_put_varint(&handle, w->pending_size);
    block_add(&w->index, leat_strbuf_text(&w->last_key), w->last_key.n, handle.s, handle.n);
    leat_strbuf_release(&handle);
    w->pending = 0;
}

/* A short key k with last <= k < next. */
static void shorten_below(leat_strbuf *last, const char *next, size_t n)
{
    size_t i = 0;
    while (i < last->n && i < n && last->s[i] == next[i])
        i++;
    if (i >= last->n || i >= n)
        return;
    unsigned char byte = (unsigned char)last->s[i];
    if (byte < 255 && byte + 1 < (unsigned char)next[i]) {
        last->s[i]++;
        last->n = i + 1;
    }
}

/* A short key k with k >= last. */
static void shorten_above(leat_strbuf *last)
{
    for (size_t i = 0; i < last->n; i++)
        if ((unsigned char)last->s[i] != 255) {
            last->s[i]++;
            last->n = i + 1;
            return;
        }
}

static void begin(leat_table_writer *w)
{
    w->out.checked = w->data.bytes.checked = w->index.bytes.checked = true;
    w->data.interval = RESTART_INTERVAL;
    w->index.interval = 1;
    block_begin(&w->data);
    block_begin(&w->index);
}

void leat_table_add(leat_table_writer *w, const void *key, size_t n_key, const void *value,
                    size_t n_value)
{
    if (w->n == 0)
        begin(w);
    else if (n_key + n_value >= 2 * BLOCK_SIZE)
        flush(w);
    if (w->pending) {
        shorten_below(&w->last_key, key, n_key);
        add_handle(w);
    }
    leat_strbuf_clear(&w->last_key);
    leat_strbuf_add(&w->last_key, key, n_key);
    w->n++;
    block_add(&w->data, key, n_key, value, n_value);
    if (w->data.bytes.n + w->data.n_restarts * 4 + 4 >= BLOCK_SIZE)
        flush(w);
}

leat_status leat_table_finish(leat_table_writer *w)
{
    if (w->n == 0)
        begin(w);
    flush(w);
    uint64_t meta_offset, meta_size, offset, size;
    write_block(w, &w->data, &meta_offset, &meta_size); /* an empty metaindex block */
    if (w->pending) {
        shorten_above(&w->last_key);
        add_handle(w);
    }
    write_block(w, &w->index, &offset, &size);
    LEAT_TRY(leat_strbuf_reserve(&w->out, HANDLES + 8));
    size_t footer = w->out.n;
    leat_put_varint(&w->out, meta_offset);
    leat_put_varint(&w->out, meta_size);
    leat_put_varint(&w->out, offset);
    leat_put_varint(&w->out, size);
    while (w->out.n < footer + HANDLES)
        leat_strbuf_putc(&w->out, 0);
    leat_put_fixed64(&w->out, magic);
    return NULL;
}

static void block_release(leat_block_writer *b)
{
    leat_strbuf_release(&b->bytes);
    leat_strbuf_release(&b->last_key);
    free(b->restarts);
}

void leat_table_writer_release(leat_table_writer *w)
{
    leat_strbuf_release(&w->out);
    leat_strbuf_release(&w->last_key);
    block_release(&w->data);
    block_release(&w->index);
}
