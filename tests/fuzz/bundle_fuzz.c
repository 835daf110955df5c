/* Checkpoints of hostile files: each tensor is an error or is read. The last byte says how the
 * others are used, because no mutation gets past a checksum: as an index file as it stands (0), as
 * a block of one (1), or as its entries, key and value in turn, a length in front of each (2). They
 * are the data file, too; and Snappy, and a checkpoint of the older format. */
#include "io/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/coding.h"
#include "io/crc32c.h"
#include "io/slice_table.h"
#include "io/snappy.h"

/* A table of one block with these contents. */
static void table_of_block(leat_strbuf *out, const uint8_t *data, size_t n)
{
    for (int i = 0; i < 2; i++) { /* the block, and the index, whose one entry is its handle */
        size_t begin = out->n;
        if (i == 0) {
            leat_strbuf_add(out, data, n);
        } else {
            leat_strbuf handle = {0};
            leat_put_varint(&handle, 0);
            leat_put_varint(&handle, n);
            leat_strbuf_add(out, "\0\1", 2);
            leat_put_varint(out, handle.n);
            leat_strbuf_putc(out, '\xff');
            leat_strbuf_add(out, handle.s, handle.n);
            leat_strbuf_release(&handle);
            leat_put_fixed32(out, 0);
            leat_put_fixed32(out, 1);
        }
        leat_strbuf_putc(out, 0);
        leat_put_fixed32(out, leat_crc32c_mask(leat_crc32c(out->s + begin, out->n - begin)));
    }
    size_t footer = out->n, index = n + 5;
    leat_put_varint(out, 0);
    leat_put_varint(out, 0);
    leat_put_varint(out, index);
    leat_put_varint(out, footer - index - 5);
    while (out->n < footer + 40)
        leat_strbuf_putc(out, 0);
    leat_put_fixed64(out, UINT64_C(0xdb4775248b80fb57));
}

static void table_of_entries(leat_strbuf *out, const uint8_t *data, size_t n)
{
    leat_table_writer w = {0};
    while (n) {
        const uint8_t *part[2];
        size_t size[2];
        for (int i = 0; i < 2; i++) {
            size[i] = n && data[0] < n ? data[0] : n ? n - 1 : 0;
            part[i] = n ? data + 1 : data;
            data += n ? size[i] + 1 : 0;
            n -= n ? size[i] + 1 : 0;
        }
        leat_table_add(&w, part[0], size[0], part[1], size[1]);
    }
    leat_status_free(leat_table_finish(&w));
    leat_strbuf_add(out, w.out.s, w.out.n);
    leat_table_writer_release(&w);
}

static char *copy_of(const leat_strbuf *b)
{
    return memcpy(malloc(b->n + 1), leat_strbuf_text(b), b->n);
}

static void read_v2(const leat_strbuf *file, const char *prefix)
{
    leat_bundle *b = NULL;
    leat_status s = leat_bundle_parse(copy_of(file), file->n, prefix, &b);
    const leat_table *t = s ? NULL : leat_bundle_table(b);
    leat_status_free(s);
    for (size_t i = 0; t && i < t->n && i < 100; i++) {
        leat_tensor *x = NULL;
        leat_status_free(leat_bundle_tensor(b, t->entries[i].key, t->entries[i].n_key, &x));
        leat_tensor_unref(x);
    }
    leat_bundle_free(b);
}

static void read_v1(const leat_strbuf *file)
{
    leat_slice_reader *r = NULL;
    leat_status s = leat_slice_reader_parse(copy_of(file), file->n, &r);
    const char *name;
    for (size_t i = 0; !s && i < 100 && (name = leat_slice_reader_name(r, i)); i++) {
        leat_dtype dtype;
        leat_shape shape;
        leat_tensor *x = NULL;
        leat_slice_reader_has(r, name, strlen(name), &dtype, &shape);
        leat_slice all = leat_slice_all(shape.rank);
        leat_status_free(leat_slice_reader_read(r, name, strlen(name), &all, &x));
        leat_tensor_unref(x);
    }
    leat_status_free(s);
    leat_slice_reader_free(r);
}

static void read_snappy(const uint8_t *data, size_t n)
{
    size_t size;
    if (!leat_snappy_size(data, n, &size) || size >= 1 << 20)
        return;
    char *out = malloc(size + 1);
    leat_snappy_decode(data, n, out, size);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char prefix[64], path[96];
    if (n == 0)
        return 0;
    if (!*path) {
        snprintf(prefix, sizeof(prefix), "/tmp/leat_bundle_fuzz.%d", (int)getpid());
        snprintf(path, sizeof(path), "%s.data-00000-of-00001", prefix);
    }
    n--;
    FILE *f = fopen(path, "wb");
    if (f) {
        fwrite(data, 1, n, f);
        fclose(f);
    }
    leat_strbuf file = {0};
    if (data[n] % 3 == 0)
        leat_strbuf_add(&file, data, n);
    else if (data[n] % 3 == 1)
        table_of_block(&file, data, n);
    else
        table_of_entries(&file, data, n);
    read_v2(&file, prefix);
    read_v1(&file);
    read_snappy(data, n);
    leat_strbuf_release(&file);
    unlink(path);
    return 0;
}
