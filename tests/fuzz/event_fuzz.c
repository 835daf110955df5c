/* Any bytes as an event, in a file of records whose checksums are right, by leat_event_next. */
#define _GNU_SOURCE
#include <leat/io.h>
#include <string.h>

#include "core/strbuf.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "memory_file.h"

static void add_crc(leat_strbuf *b, const void *bytes, size_t n)
{
    const uint32_t crc = leat_crc32c_mask(leat_crc32c(bytes, n));
    leat_strbuf_add(b, bytes, n);
    leat_strbuf_add(b, &crc, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    leat_strbuf b = {0};
    const uint64_t length = n;
    leat_event_reader *r;
    const leat_event_record *e;
    add_crc(&b, &length, 8);
    add_crc(&b, data, n);
    LEAT_DIE_ON_ERROR(leat_event_reader_open(memory_file(b.s, b.n), &r));
    leat_status s = leat_event_next(r, &e);
    size_t sum = 0; /* reads what the event points to */
    for (int i = 0; !s && i < e->n_values; i++) {
        sum += strlen(e->values[i].tag);
        for (int j = 0; j < e->values[i].n_buckets; j++)
            sum += e->values[i].counts[j] > e->values[i].limits[j];
    }
    if (!s)
        sum += strlen(e->text);
    leat_status_free(s);
    leat_event_reader_free(r);
    leat_strbuf_release(&b);
    return sum == SIZE_MAX;
}
