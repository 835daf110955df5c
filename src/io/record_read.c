/* record_read.c -- TFRecord files: length, its CRC, bytes, their CRC. A record is read piece by
 * piece, so that a wrong length does not allocate more memory than the file can fill. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/object.h"
#include "core/strbuf.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/record.h"

enum { BUFFER = 256 * 1024, HEADER = 12, FOOTER = 4 };

struct leat_record_reader {
    leat_object object;
    leat_file *file;            /* set when reading from a file */
    const unsigned char *bytes; /* set when reading from memory */
    int64_t size, at; /* size of the stored bytes, and the position of the next to be read */
    leat_record_form form;
    uint64_t offset; /* position of the next record in the uncompressed data */
    leat_strbuf record;
    z_stream z;
    bool z_open, z_end;              /* z_end: a gzip member has ended; another may follow */
    unsigned char *buffer, *p, *end; /* stored bytes that were read but not decompressed */
};

/* Reads more stored bytes into the buffer; sets *more to false at the end. */
static leat_status fill(leat_record_reader *r, bool *more)
{
    int64_t n = r->size - r->at < BUFFER ? r->size - r->at : BUFFER;
    *more = n > 0;
    if (n <= 0)
        return NULL;
    if (r->file)
        LEAT_TRY(leat_file_read_at(r->file, r->buffer, (size_t)n, r->at));
    else
        memcpy(r->buffer, r->bytes + r->at, (size_t)n);
    r->at += n;
    r->p = r->buffer;
    r->end = r->buffer + n;
    return NULL;
}

static leat_status inflate_some(leat_record_reader *r, unsigned char *to, size_t n, size_t *got)
{
    if (r->z_end) { /* a file may consist of several members */
        if (inflateReset(&r->z) != Z_OK)
            return leat_error(INTERNAL, "inflate failed");
        r->z_end = false;
    }
    r->z.next_in = r->p;
    r->z.avail_in = (uInt)(r->end - r->p);
    r->z.next_out = to;
    r->z.avail_out = (uInt)n;
    int rc = inflate(&r->z, Z_NO_FLUSH);
    r->p = r->z.next_in;
    *got = n - r->z.avail_out;
    r->z_end = rc == Z_STREAM_END;
    LEAT_REQUIRE(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR, DATA_LOSS,
                 "inflate() failed with error %d: %s", rc, r->z.msg ? r->z.msg : "bad data");
    return NULL;
}

/* Adds up to n bytes to the record; fewer at the end of the file. */
static leat_status read_bytes(leat_record_reader *r, uint64_t n)
{
    while (n) {
        if (r->p == r->end) {
            bool more;
            LEAT_TRY(fill(r, &more));
            if (!more)
                return NULL;
        }
        if (!r->z_open) {
            size_t piece = (uint64_t)(r->end - r->p) < n ? (size_t)(r->end - r->p) : (size_t)n;
            LEAT_TRY(leat_strbuf_reserve(&r->record, piece));
            leat_strbuf_add(&r->record, r->p, piece);
            r->p += piece;
            n -= piece;
            continue;
        }
        unsigned char out[16 * 1024];
        size_t got = 0;
        LEAT_TRY(inflate_some(r, out, n < sizeof(out) ? (size_t)n : sizeof(out), &got));
        LEAT_TRY(leat_strbuf_reserve(&r->record, got));
        leat_strbuf_add(&r->record, out, got);
        n -= got;
    }
    return NULL;
}

static leat_status begin_inflate(leat_record_reader *r)
{
    int bits = r->form == LEAT_RECORD_ZLIB ? 15 : 15 + 16;
    LEAT_REQUIRE(inflateInit2(&r->z, bits) == Z_OK, RESOURCE_EXHAUSTED, "No memory to inflate");
    r->z_open = true;
    return NULL;
}

/* A plain file begins with a length and its CRC; compressed ones with gzip's or zlib's magic
 * bytes. */
static leat_status find_form(leat_record_reader *r)
{
    bool more;
    LEAT_TRY(fill(r, &more));
    size_t n = (size_t)(r->end - r->p);
    bool plain =
        n < HEADER || leat_crc32c_unmask(leat_get_fixed32(r->p + 8)) == leat_crc32c(r->p, 8);
    if (n >= 2 && !plain && r->p[0] == 0x1f && r->p[1] == 0x8b)
        r->form = LEAT_RECORD_GZIP;
    else if (n >= 2 && !plain && r->p[0] == 0x78)
        r->form = LEAT_RECORD_ZLIB;
    else
        r->form = LEAT_RECORD_PLAIN;
    return NULL;
}

static leat_status begin(leat_record_reader *r)
{
    r->buffer = r->p = r->end = leat_xmalloc(BUFFER);
    if (r->form == LEAT_RECORD_AUTO)
        LEAT_TRY(find_form(r));
    return r->form == LEAT_RECORD_PLAIN ? NULL : begin_inflate(r);
}

leat_record_reader *leat_record_reader_over(const void *bytes, size_t n, leat_record_form form)
{
    leat_record_reader *r = leat_new_object(leat_record_reader, RECORD_READER);
    r->bytes = bytes;
    r->size = (int64_t)n;
    r->form = form;
    leat_status s = begin(r);
    if (!s)
        return r;
    leat_status_free(s);
    leat_record_reader_free(r);
    return NULL;
}

leat_status leat_record_reader_open(const char *path, leat_record_form form,
                                    leat_record_reader **out)
{
    LEAT_CHECK_ARG(path);
    leat_file *f;
    LEAT_TRY(leat_file_open(path, &f));
    leat_record_reader *r = leat_new_object(leat_record_reader, RECORD_READER);
    r->file = f;
    r->size = leat_file_size(f);
    r->form = form;
    leat_status s = begin(r);
    if (s)
        leat_record_reader_free(r);
    else
        *out = r;
    return s;
}

void leat_record_reader_free(leat_record_reader *r)
{
    if (!r)
        return;
    if (!LEAT_USABLE(RECORD_READER, r))
        return;
    if (r->z_open)
        inflateEnd(&r->z);
    leat_file_close(r->file);
    leat_strbuf_release(&r->record);
    free(r->buffer);
    leat_object_free(&r->object);
}

/* Reads n bytes and the CRC after them, and checks it; the record then has these n bytes. */
static leat_status read_checked(leat_record_reader *r, uint64_t n, uint64_t offset)
{
    LEAT_REQUIRE(n <= (uint64_t)INT64_MAX - FOOTER, DATA_LOSS, "record size too large");
    leat_strbuf_clear(&r->record);
    LEAT_TRY(read_bytes(r, n + FOOTER));
    LEAT_REQUIRE(r->record.n > 0, OUT_OF_RANGE, "eof");
    LEAT_REQUIRE(r->record.n == n + FOOTER, DATA_LOSS, "truncated record at %llu",
                 (unsigned long long)offset);
    LEAT_REQUIRE(leat_crc32c_unmask(leat_get_fixed32(r->record.s + n)) ==
                     leat_crc32c(r->record.s, (size_t)n),
                 DATA_LOSS, "corrupted record at %llu", (unsigned long long)offset);
    r->record.n = (size_t)n;
    r->record.s[n] = 0;
    return NULL;
}

leat_status leat_record_next(leat_record_reader *r, const void **bytes, size_t *n)
{
    LEAT_CHECK(RECORD_READER, r);
    LEAT_TRY(read_checked(r, 8, r->offset));
    uint64_t length = leat_get_fixed64(r->record.s);
    leat_status s = read_checked(r, length, r->offset + HEADER);
    if (leat_status_code(s) == LEAT_OUT_OF_RANGE) {
        leat_status_free(s);
        s = leat_error(DATA_LOSS, "truncated record at %llu", (unsigned long long)r->offset);
    }
    LEAT_TRY(s);
    r->offset += HEADER + length + FOOTER;
    *bytes = r->record.s;
    *n = r->record.n;
    return NULL;
}
