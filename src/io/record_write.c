/* record_write.c -- writing TFRecord files, plain or compressed. Records are gathered and written
 * together; after a write that failed half-way (a full disk), the file is truncated to the last
 * whole record, or, if it is compressed, to what was there before. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/object.h"
#include "core/strbuf.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/path.h"
#include "io/record.h"

enum {
    FLUSH_AT = 256 * 1024,   /* bytes gathered before they are written */
    MOST = 64 * 1024 * 1024, /* bytes gathered while they cannot be written */
    FRAME = 16,              /* bytes of a record's length and checksums */
    HELD_BACK = 256 * 1024,  /* bytes of earlier records that deflate may still write */
};

struct leat_record_writer {
    leat_object object;
    int fd;
    char *path;
    int64_t size; /* size of the file: whole records, or their compressed form */
    leat_strbuf gathered;
    z_stream z;
    bool compressed;
};

static leat_status writer_open(const char *path, leat_record_form form, int flags,
                               leat_record_writer **out)
{
    char *dir = leat_path_dir(path);
    leat_status s = leat_dir_make(dir);
    free(dir);
    LEAT_TRY(s);
    int fd;
    LEAT_TRY(leat_path_open(path, O_WRONLY | O_CREAT | flags, &fd));
    leat_record_writer *w = leat_new_object(leat_record_writer, RECORD_WRITER);
    w->fd = fd;
    w->path = leat_xstrdup(path);
    w->compressed = form == LEAT_RECORD_GZIP || form == LEAT_RECORD_ZLIB;
    int bits = form == LEAT_RECORD_ZLIB ? 15 : 15 + 16;
    if (w->compressed && deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, 8,
                                      Z_DEFAULT_STRATEGY) != Z_OK) {
        w->compressed = false;
        leat_status_free(leat_record_writer_close(w));
        return leat_error(RESOURCE_EXHAUSTED, "%s; no memory to compress", path);
    }
    *out = w;
    return NULL;
}

leat_status leat_record_writer_open(const char *path, leat_record_form form,
                                    leat_record_writer **out)
{
    LEAT_CHECK_ARG(path);
    return writer_open(path, form, O_TRUNC, out);
}

leat_status leat_record_writer_create(const char *path, leat_record_form form,
                                      leat_record_writer **out)
{
    return writer_open(path, form, O_EXCL, out);
}

const char *leat_record_writer_path(const leat_record_writer *w)
{
    return w->path;
}

static void deflate_more(leat_record_writer *w, const void *bytes, size_t n, int flush)
{
    const unsigned char *p = bytes;
    do {
        uInt piece = n < (1u << 30) ? (uInt)n : 1u << 30;
        w->z.next_in = (unsigned char *)p;
        w->z.avail_in = piece;
        p += piece;
        n -= piece;
        unsigned char out[16 * 1024];
        do {
            w->z.next_out = out;
            w->z.avail_out = sizeof(out);
            deflate(&w->z, n ? Z_NO_FLUSH : flush);
            leat_strbuf_add(&w->gathered, out, sizeof(out) - w->z.avail_out);
        } while (w->z.avail_out == 0);
    } while (n);
}

static void gather(leat_record_writer *w, const void *bytes, size_t n)
{
    if (w->compressed)
        deflate_more(w, bytes, n, Z_NO_FLUSH);
    else
        leat_strbuf_add(&w->gathered, bytes, n);
}

/* Of the first `done` bytes of gathered records, those that whole records have. */
static size_t whole_records(const leat_record_writer *w, size_t done)
{
    size_t at = 0;
    while (!w->compressed && done - at >= FRAME) {
        uint64_t length;
        memcpy(&length, w->gathered.s + at, sizeof(length));
        if (length > done - at - FRAME)
            break;
        at += FRAME + (size_t)length;
    }
    return at;
}

/* After `done` bytes were written and no more could be: keeps the records that are not whole in the
 * file for the next time, and truncates the file. */
static leat_status cut_back(leat_record_writer *w, size_t done, leat_status s)
{
    const size_t whole = whole_records(w, done);
    w->size += (int64_t)whole;
    w->gathered.n -= whole;
    memmove(w->gathered.s, w->gathered.s + whole, w->gathered.n);
    /* Otherwise readers report the end of the file as truncated. */
    if (ftruncate(w->fd, w->size) != 0)
        s = leat_status_suffix(s, " (and the file could not be cut back)");
    return s;
}

static leat_status write_gathered(leat_record_writer *w)
{
    size_t done = 0;
    while (done < w->gathered.n) {
        ssize_t put =
            pwrite(w->fd, w->gathered.s + done, w->gathered.n - done, w->size + (int64_t)done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return cut_back(w, done, leat_file_error(w->path, errno));
        done += (size_t)put;
    }
    w->size += (int64_t)done;
    leat_strbuf_clear(&w->gathered);
    return NULL;
}

leat_status leat_record_write(leat_record_writer *w, const void *bytes, size_t n)
{
    LEAT_CHECK(RECORD_WRITER, w);
    if (w->gathered.n > MOST)
        LEAT_TRY(write_gathered(w));
    /* A record is gathered as a whole or not at all. */
    LEAT_TRY(leat_strbuf_reserve(&w->gathered,
                                 FRAME + (w->compressed ? deflateBound(&w->z, n) + HELD_BACK : n)));
    uint64_t length = n;
    uint32_t crc = leat_crc32c_mask(leat_crc32c(&length, 8));
    gather(w, &length, 8);
    gather(w, &crc, 4);
    crc = leat_crc32c_mask(leat_crc32c(bytes, n));
    gather(w, bytes, n);
    gather(w, &crc, 4);
    return w->gathered.n >= FLUSH_AT ? write_gathered(w) : NULL;
}

leat_status leat_record_flush(leat_record_writer *w)
{
    LEAT_CHECK(RECORD_WRITER, w);
    if (w->compressed)
        deflate_more(w, "", 0, Z_SYNC_FLUSH);
    return write_gathered(w);
}

leat_status leat_record_writer_close(leat_record_writer *w)
{
    if (!w)
        return NULL;
    LEAT_CHECK(RECORD_WRITER, w);
    if (w->compressed) {
        deflate_more(w, "", 0, Z_FINISH);
        deflateEnd(&w->z);
    }
    leat_status s = write_gathered(w);
    if (close(w->fd) != 0 && !s)
        s = leat_file_error(w->path, errno);
    leat_strbuf_release(&w->gathered);
    free(w->path);
    leat_object_free(&w->object);
    return s;
}
