/* stream.c -- see stream.h. Stored bytes are read by the buffer; in a compressed file they are
 * decompressed into a second buffer. The window is the part of the last of these buffers that was
 * not given to the caller yet. */
#include "io/stream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "io/file.h"

enum { BUFFER = 256 * 1024, INFLATED = 64 * 1024 };

struct leat_stream {
    leat_file *file;            /* set when reading from a file */
    const unsigned char *bytes; /* set when reading from memory */
    int64_t size, at; /* size of the stored bytes, and the position of the next to be read */
    bool inflates;
    z_stream z;                   /* its next_in and avail_in are the stored bytes in the buffer */
    bool member_ended;            /* a gzip member has ended; another may follow */
    unsigned char *buffer;        /* stored bytes */
    unsigned char *inflated;      /* decompressed bytes; NULL unless inflates */
    const unsigned char *p, *end; /* the window */
};

/* Reads stored bytes into the buffer; *n_out is 0 at the end. */
static leat_status fill(leat_stream *s, size_t *n_out)
{
    if (s->at >= s->size && s->file) /* The file may have grown since it was opened. */
        s->size = leat_file_measure(s->file);
    int64_t n = s->size - s->at < BUFFER ? s->size - s->at : BUFFER;
    *n_out = 0;
    if (n <= 0)
        return NULL;
    if (s->file)
        LEAT_TRY(leat_file_read_at(s->file, s->buffer, (size_t)n, s->at));
    else
        memcpy(s->buffer, s->bytes + s->at, (size_t)n);
    s->at += n;
    *n_out = (size_t)n;
    return NULL;
}

/* Decompresses some bytes of the buffer into the window. */
static leat_status inflate_some(leat_stream *s)
{
    if (s->member_ended) { /* a file may consist of several members */
        if (inflateReset(&s->z) != Z_OK)
            return leat_error(INTERNAL, "inflate failed");
        s->member_ended = false;
    }
    s->z.next_out = s->inflated;
    s->z.avail_out = INFLATED;
    int rc = inflate(&s->z, Z_NO_FLUSH);
    s->p = s->inflated;
    s->end = s->inflated + (INFLATED - s->z.avail_out);
    s->member_ended = rc == Z_STREAM_END;
    LEAT_REQUIRE(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR, DATA_LOSS,
                 "inflate() failed with error %d: %s%s%s", rc, s->z.msg ? s->z.msg : "bad data",
                 s->file ? " in " : "", s->file ? leat_file_path(s->file) : "");
    return NULL;
}

/* Fills the window, which is empty; it stays empty at the end of the file. */
static leat_status more(leat_stream *s)
{
    size_t n;
    if (!s->inflates) {
        LEAT_TRY(fill(s, &n));
        s->p = s->buffer;
        s->end = s->buffer + n;
        return NULL;
    }
    while (s->p == s->end) {
        if (!s->z.avail_in) {
            LEAT_TRY(fill(s, &n));
            if (!n)
                return NULL;
            s->z.next_in = s->buffer;
            s->z.avail_in = (uInt)n;
        }
        LEAT_TRY(inflate_some(s));
    }
    return NULL;
}

static leat_status begin(leat_stream *s, leat_record_form form)
{
    s->buffer = leat_xmalloc(BUFFER);
    s->p = s->end = s->buffer;
    return leat_stream_set_form(s, form);
}

leat_status leat_stream_set_form(leat_stream *s, leat_record_form form)
{
    if (form != LEAT_RECORD_GZIP && form != LEAT_RECORD_ZLIB)
        return NULL;
    s->z.next_in = (unsigned char *)s->p;
    s->z.avail_in = (uInt)(s->end - s->p);
    LEAT_REQUIRE(inflateInit2(&s->z, form == LEAT_RECORD_ZLIB ? 15 : 15 + 16) == Z_OK,
                 RESOURCE_EXHAUSTED, "No memory to inflate");
    s->inflates = true;
    s->inflated = leat_xmalloc(INFLATED);
    s->p = s->end = s->inflated;
    return NULL;
}

static leat_status finish_open(leat_stream *s, leat_record_form form, leat_stream **out)
{
    leat_status bad = begin(s, form);
    if (bad)
        leat_stream_close(s);
    else
        *out = s;
    return bad;
}

leat_status leat_stream_open(const char *path, leat_record_form form, leat_stream **out)
{
    leat_file *f;
    LEAT_TRY(leat_file_open(path, &f));
    leat_stream *s = leat_new(leat_stream);
    s->file = f;
    s->size = leat_file_size(f);
    return finish_open(s, form, out);
}

leat_status leat_stream_over(const void *bytes, size_t n, leat_record_form form, leat_stream **out)
{
    leat_stream *s = leat_new(leat_stream);
    s->bytes = bytes;
    s->size = (int64_t)n;
    return finish_open(s, form, out);
}

void leat_stream_close(leat_stream *s)
{
    if (!s)
        return;
    if (s->inflates)
        inflateEnd(&s->z);
    leat_file_close(s->file);
    free(s->buffer);
    free(s->inflated);
    free(s);
}

const char *leat_stream_path(const leat_stream *s)
{
    return s->file ? leat_file_path(s->file) : NULL;
}

leat_status leat_stream_rewind(leat_stream *s)
{
    if (s->file) {
        leat_file *f;
        LEAT_TRY(leat_file_open(leat_file_path(s->file), &f));
        leat_file_close(s->file);
        s->file = f;
        s->size = leat_file_size(f);
    }
    s->at = 0;
    s->p = s->end = s->buffer;
    if (s->inflates) {
        s->z.avail_in = 0;
        s->member_ended = true;
    }
    return NULL;
}

/* Reads n bytes, which the file has, past the window and the buffer. */
static leat_status read_directly(leat_stream *s, size_t n, leat_strbuf *to)
{
    LEAT_TRY(leat_strbuf_reserve(to, n));
    LEAT_TRY(leat_file_read_at(s->file, to->s + to->n, n, s->at));
    to->n += n;
    to->s[to->n] = '\0';
    s->at += (int64_t)n;
    return NULL;
}

leat_status leat_stream_read(leat_stream *s, uint64_t n, leat_strbuf *to)
{
    while (n) {
        if (s->p == s->end) {
            const uint64_t left = s->size > s->at ? (uint64_t)(s->size - s->at) : 0;
            const uint64_t piece = n < left ? n : left;
            if (!s->inflates && s->file && piece >= BUFFER) {
                LEAT_TRY(read_directly(s, (size_t)piece, to));
                n -= piece;
                continue;
            }
            LEAT_TRY(more(s));
            if (s->p == s->end)
                return NULL;
        }
        const uint64_t there = (uint64_t)(s->end - s->p);
        const size_t piece = (size_t)(there < n ? there : n);
        LEAT_TRY(leat_strbuf_reserve(to, piece));
        leat_strbuf_add(to, s->p, piece);
        s->p += piece;
        n -= piece;
    }
    return NULL;
}

leat_status leat_stream_skip(leat_stream *s, uint64_t n, uint64_t *skipped_out)
{
    *skipped_out = 0;
    while (*skipped_out < n) {
        uint64_t wanted = n - *skipped_out, step;
        if (s->p == s->end && !s->inflates) { /* stored bytes need not be read */
            const uint64_t left = s->size > s->at ? (uint64_t)(s->size - s->at) : 0;
            step = wanted < left ? wanted : left;
            s->at += (int64_t)step;
            *skipped_out += step;
            return NULL;
        }
        if (s->p == s->end) {
            LEAT_TRY(more(s));
            if (s->p == s->end)
                return NULL;
        }
        const uint64_t there = (uint64_t)(s->end - s->p);
        step = there < wanted ? there : wanted;
        s->p += step;
        *skipped_out += step;
    }
    return NULL;
}

leat_status leat_stream_line(leat_stream *s, leat_strbuf *to, bool *end_out)
{
    const size_t before = to->n;
    const unsigned char *newline = NULL;
    bool any = false;
    while (!newline) {
        if (s->p == s->end)
            LEAT_TRY(more(s));
        if (s->p == s->end)
            break;
        any = true;
        newline = memchr(s->p, '\n', (size_t)(s->end - s->p));
        const size_t piece = (size_t)((newline ? newline : s->end) - s->p);
        LEAT_TRY(leat_strbuf_reserve(to, piece));
        leat_strbuf_add(to, s->p, piece);
        s->p += piece + (newline != NULL);
    }
    if (to->n > before && to->s[to->n - 1] == '\r')
        to->s[--to->n] = '\0';
    /* A last line without an end is a line unless it is empty, as in TensorFlow. */
    *end_out = !any || (!newline && to->n == before);
    return NULL;
}

int64_t leat_stream_stored(const leat_stream *s)
{
    return s->size;
}

leat_status leat_stream_peek(leat_stream *s, const unsigned char **bytes_out, size_t *n_out)
{
    if (s->p == s->end)
        LEAT_TRY(more(s));
    *bytes_out = s->p;
    *n_out = (size_t)(s->end - s->p);
    return NULL;
}

size_t leat_stream_window(const leat_stream *s, const unsigned char **bytes_out)
{
    *bytes_out = s->p;
    return (size_t)(s->end - s->p);
}

bool leat_stream_extend(leat_stream *s)
{
    const size_t left = (size_t)(s->end - s->p);
    if (s->inflates || !s->file || s->at >= s->size || left == BUFFER)
        return false;
    const int64_t room = (int64_t)(BUFFER - left), more = s->size - s->at;
    memmove(s->buffer, s->p, left);
    s->p = s->buffer;
    const size_t n = leat_file_read_cached(s->file, s->buffer + left,
                                           (size_t)(more < room ? more : room), s->at);
    s->end = s->p + left + n;
    s->at += (int64_t)n;
    return n > 0;
}

void leat_stream_advance(leat_stream *s, size_t n)
{
    s->p += n;
}
