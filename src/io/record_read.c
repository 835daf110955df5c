/* record_read.c -- TFRecord files: length, its CRC, bytes, their CRC. A record is read piece by
 * piece, so that a wrong length does not allocate more memory than the file can fill. After an
 * error the same record is read again by the next call: the file may have grown. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/object.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "io/record.h"
#include "io/stream.h"

enum { HEADER = 12, FOOTER = 4 };

struct leat_record_reader {
    leat_object object;
    leat_stream *stream;
    uint64_t offset; /* position of the next record in the uncompressed data */
    bool failed;     /* the stream is not at that position */
    leat_strbuf record;
};

/* A plain file begins with a length and its CRC; compressed ones with gzip's or zlib's magic
 * bytes. */
static leat_status find_form(leat_stream *s)
{
    const unsigned char *p;
    size_t n;
    LEAT_TRY(leat_stream_peek(s, &p, &n));
    bool plain = n < HEADER || leat_crc32c_unmask(leat_get_fixed32(p + 8)) == leat_crc32c(p, 8);
    leat_record_form form = LEAT_RECORD_PLAIN;
    if (n >= 2 && !plain && p[0] == 0x1f && p[1] == 0x8b)
        form = LEAT_RECORD_GZIP;
    else if (n >= 2 && !plain && p[0] == 0x78)
        form = LEAT_RECORD_ZLIB;
    return leat_stream_set_form(s, form);
}

/* Takes the stream. */
static leat_status reader_new(leat_stream *stream, leat_record_form form, leat_record_reader **out)
{
    leat_record_reader *r = leat_new_object(leat_record_reader, RECORD_READER);
    r->stream = stream;
    leat_status s = form == LEAT_RECORD_AUTO ? find_form(stream) : NULL;
    if (s)
        leat_record_reader_free(r);
    else
        *out = r;
    return s;
}

leat_record_reader *leat_record_reader_over(const void *bytes, size_t n, leat_record_form form)
{
    leat_stream *stream = NULL;
    leat_record_reader *r = NULL;
    leat_status s = leat_stream_over(bytes, n, form, &stream);
    if (!s)
        s = reader_new(stream, form, &r);
    leat_status_free(s);
    return r;
}

leat_status leat_record_reader_open(const char *path, leat_record_form form,
                                    leat_record_reader **out)
{
    LEAT_CHECK_ARG(path);
    leat_stream *stream;
    LEAT_TRY(leat_stream_open(path, form, &stream));
    return reader_new(stream, form, out);
}

void leat_record_reader_free(leat_record_reader *r)
{
    if (!r)
        return;
    if (!LEAT_USABLE(RECORD_READER, r))
        return;
    leat_stream_close(r->stream);
    leat_strbuf_release(&r->record);
    leat_object_free(&r->object);
}

const char *leat_record_path(const leat_record_reader *r)
{
    return leat_stream_path(r->stream);
}

uint64_t leat_record_offset(const leat_record_reader *r)
{
    return r->offset;
}

/* "truncated record at 24 in /tmp/x" */
static leat_status damaged(const leat_record_reader *r, const char *what, uint64_t offset)
{
    const char *path = leat_stream_path(r->stream);
    return leat_error(DATA_LOSS, "%s record at %llu%s%s", what, (unsigned long long)offset,
                      path ? " in " : "", path ? path : "");
}

/* Reads n bytes and the CRC after them, and checks it; the record then has these n bytes. */
static leat_status read_checked(leat_record_reader *r, uint64_t n, uint64_t offset)
{
    if (n > (uint64_t)INT64_MAX - FOOTER)
        return leat_status_suffix(damaged(r, "corrupted", offset), ": record size too large");
    leat_strbuf_clear(&r->record);
    LEAT_TRY(leat_stream_read(r->stream, n + FOOTER, &r->record));
    LEAT_REQUIRE(r->record.n > 0, OUT_OF_RANGE, "eof");
    if (r->record.n != n + FOOTER)
        return damaged(r, "truncated", offset);
    if (leat_crc32c_unmask(leat_get_fixed32(r->record.s + n)) !=
        leat_crc32c(r->record.s, (size_t)n))
        return damaged(r, "corrupted", offset);
    r->record.n = (size_t)n;
    r->record.s[n] = 0;
    return NULL;
}

static leat_status read_record(leat_record_reader *r, uint64_t *length_out)
{
    LEAT_TRY(read_checked(r, 8, r->offset));
    *length_out = leat_get_fixed64(r->record.s);
    leat_status s = read_checked(r, *length_out, r->offset + HEADER);
    if (leat_status_code(s) == LEAT_OUT_OF_RANGE) {
        leat_status_free(s);
        s = damaged(r, "truncated", r->offset);
    }
    return s;
}

/* The next record's length if all of the record is in the stream's window, and where it begins;
 * else -1. The length is not checked. */
static int64_t in_window(const leat_record_reader *r, const unsigned char **at)
{
    const size_t n = leat_stream_window(r->stream, at);
    if (r->failed || n < HEADER + FOOTER)
        return -1;
    const uint64_t length = leat_get_fixed64(*at);
    return length <= n - HEADER - FOOTER ? (int64_t)length : -1;
}

bool leat_record_ready(leat_record_reader *r)
{
    const unsigned char *at;
    return in_window(r, &at) >= 0 ||
           (!r->failed && leat_stream_extend(r->stream) && in_window(r, &at) >= 0);
}

static bool crc_fits(const unsigned char *p, size_t n)
{
    return leat_crc32c_unmask(leat_get_fixed32(p + n)) == leat_crc32c(p, n);
}

/* Gives the next record where it lies in the stream's window. False if it is not there as a whole,
 * or damaged: the record is then to be read by read_record, which has the errors. */
static bool next_in_window(leat_record_reader *r, const void **bytes, size_t *n)
{
    const unsigned char *at;
    const int64_t length = in_window(r, &at);
    if (length < 0 || !crc_fits(at, 8) || !crc_fits(at + HEADER, (size_t)length))
        return false;
    *bytes = at + HEADER;
    *n = (size_t)length;
    leat_stream_advance(r->stream, HEADER + (size_t)length + FOOTER);
    r->offset += HEADER + (uint64_t)length + FOOTER;
    return true;
}

leat_status leat_record_next(leat_record_reader *r, const void **bytes, size_t *n)
{
    LEAT_CHECK(RECORD_READER, r);
    uint64_t length = 0, skipped;
    if (next_in_window(r, bytes, n))
        return NULL;
    if (r->failed) {
        LEAT_TRY(leat_stream_rewind(r->stream));
        LEAT_TRY(leat_stream_skip(r->stream, r->offset, &skipped));
        r->failed = false;
    }
    leat_status s = read_record(r, &length);
    r->failed = s && leat_status_code(s) != LEAT_OUT_OF_RANGE;
    LEAT_TRY(s);
    r->offset += HEADER + length + FOOTER;
    *bytes = r->record.s;
    *n = r->record.n;
    return NULL;
}
