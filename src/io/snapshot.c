/* snapshot.c -- see snapshot.h. */
#include "io/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "io/coding.h"
#include "io/file.h"
#include "io/path.h"
#include "io/stream.h"
#include "proto/snapshot.pb-c.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

enum { HEADER = 8 }; /* bytes of a record's length */

/* Adds a record with a message. */
static leat_status pack_record(const void *message, leat_strbuf *out)
{
    static const char none[HEADER];
    const size_t at = out->n;
    leat_strbuf_add(out, none, HEADER);
    LEAT_TRY(leat_proto_pack(message, out));
    LEAT_TRY(leat_strbuf_check(out));
    const uint64_t size = out->n - at - HEADER;
    for (int i = 0; i < HEADER; i++)
        out->s[at + (size_t)i] = (char)(size >> 8 * i);
    return NULL;
}

/* ---- Reading ---- */

struct leat_snapshot_reader {
    leat_stream *stream;
    uint64_t at; /* where the next record begins, in the decompressed bytes */
    leat_strbuf record;
};

static leat_status reader_of(leat_stream *stream, leat_snapshot_reader **out)
{
    leat_snapshot_reader *r = leat_new(leat_snapshot_reader);
    r->stream = stream;
    r->record.checked = true;
    *out = r;
    return NULL;
}

static leat_record_form form_of(bool gzip)
{
    return gzip ? LEAT_RECORD_GZIP : LEAT_RECORD_PLAIN;
}

leat_status leat_snapshot_reader_open(const char *path, bool gzip, leat_snapshot_reader **out)
{
    leat_stream *s;
    LEAT_TRY(leat_stream_open(path, form_of(gzip), &s));
    return reader_of(s, out);
}

leat_status leat_snapshot_reader_over(const void *bytes, size_t size, bool gzip,
                                      leat_snapshot_reader **out)
{
    leat_stream *s;
    LEAT_TRY(leat_stream_over(bytes, size, form_of(gzip), &s));
    return reader_of(s, out);
}

void leat_snapshot_reader_free(leat_snapshot_reader *r)
{
    if (!r)
        return;
    leat_stream_close(r->stream);
    leat_strbuf_release(&r->record);
    free(r);
}

/* Takes why. */
static leat_status damaged(const leat_snapshot_reader *r, leat_status why)
{
    const char *path = leat_stream_path(r->stream);
    leat_status s =
        leat_error(DATA_LOSS, "%s: the record at byte %llu is damaged: %s",
                   path ? path : "snapshot", (unsigned long long)r->at, leat_status_message(why));
    leat_status_free(why);
    return s;
}

static leat_status cut_off(const leat_snapshot_reader *r)
{
    const char *path = leat_stream_path(r->stream);
    return leat_error(DATA_LOSS, "%s: the record at byte %llu is cut off", path ? path : "snapshot",
                      (unsigned long long)r->at);
}

/* Reads the length of the next record. OUT_OF_RANGE: there is none. */
static leat_status read_length(leat_snapshot_reader *r, uint64_t *out)
{
    leat_strbuf_clear(&r->record);
    LEAT_TRY(leat_stream_read(r->stream, HEADER, &r->record));
    LEAT_TRY(leat_strbuf_check(&r->record));
    LEAT_REQUIRE(r->record.n > 0, OUT_OF_RANGE, "eof");
    if (r->record.n < HEADER)
        return cut_off(r);
    *out = 0;
    for (int i = 0; i < HEADER; i++)
        *out |= (uint64_t)(unsigned char)r->record.s[i] << 8 * i;
    return NULL;
}

/* Reads the next record into r->record. */
static leat_status read_record(leat_snapshot_reader *r, uint64_t *n)
{
    LEAT_TRY(read_length(r, n));
    leat_strbuf_clear(&r->record);
    LEAT_TRY(leat_stream_read(r->stream, *n, &r->record));
    LEAT_TRY(leat_strbuf_check(&r->record));
    return r->record.n < *n ? cut_off(r) : NULL;
}

static leat_status tensors_of(const Leat__SnapshotRecord *p, leat_tensor **out, int n)
{
    LEAT_REQUIRE(p->n_tensor == (size_t)n, DATA_LOSS, "it has %zu tensors, not %d", p->n_tensor, n);
    for (int i = 0; i < n; i++) {
        leat_status s = leat_tensor_from_proto(p->tensor[i], &out[i]);
        for (int j = 0; s && j < i; j++) {
            leat_tensor_unref(out[j]);
            out[j] = NULL;
        }
        LEAT_TRY(s);
    }
    return NULL;
}

leat_status leat_snapshot_next(leat_snapshot_reader *r, leat_tensor **out, int n)
{
    uint64_t size = 0;
    Leat__SnapshotRecord *p = NULL;
    LEAT_TRY(read_record(r, &size));
    leat_status s = LEAT_UNPACK(snapshot_record, leat_strbuf_text(&r->record), r->record.n, &p);
    if (!s)
        s = tensors_of(p, out, n);
    leat_proto_free(p);
    if (s)
        return leat_status_code(s) == LEAT_RESOURCE_EXHAUSTED ? s : damaged(r, s);
    r->at += HEADER + size;
    return NULL;
}

leat_status leat_snapshot_skip(leat_snapshot_reader *r)
{
    uint64_t size = 0, skipped;
    LEAT_TRY(read_length(r, &size));
    LEAT_TRY(leat_stream_skip(r->stream, size, &skipped));
    if (skipped < size)
        return cut_off(r);
    r->at += HEADER + size;
    return NULL;
}

/* ---- Metadata ---- */

static char *metadata_path(const char *dir)
{
    return leat_path_join(dir, "snapshot.metadata");
}

static leat_status metadata_of(const Leat__SnapshotMetadataRecord *p, leat_snapshot_metadata *out)
{
    *out = (leat_snapshot_metadata){.created_us = p->creation_timestamp, .finalized = p->finalized};
    LEAT_REQUIRE(strlen(p->run_id) < sizeof(out->run_id) && !strchr(p->run_id, '/'), DATA_LOSS,
                 "its run_id is not the name of a directory");
    snprintf(out->graph_hash, sizeof(out->graph_hash), "%s", p->graph_hash);
    snprintf(out->run_id, sizeof(out->run_id), "%s", p->run_id);
    return NULL;
}

leat_status leat_snapshot_metadata_read(const char *dir, leat_snapshot_metadata *out)
{
    leat_snapshot_reader *r;
    Leat__SnapshotMetadataRecord *p = NULL;
    uint64_t size;
    char *path = metadata_path(dir);
    leat_status s = leat_snapshot_reader_open(path, false, &r);
    free(path);
    LEAT_TRY(s);
    s = read_record(r, &size);
    if (leat_status_code(s) == LEAT_OUT_OF_RANGE) {
        leat_status_free(s);
        s = cut_off(r);
    }
    if (!s) {
        s = LEAT_UNPACK(snapshot_metadata_record, leat_strbuf_text(&r->record), r->record.n, &p);
        if (!s)
            s = metadata_of(p, out);
        if (s)
            s = damaged(r, s);
    }
    leat_proto_free(p);
    leat_snapshot_reader_free(r);
    return s;
}

leat_status leat_snapshot_metadata_write(const char *dir, const leat_snapshot_metadata *m)
{
    Leat__SnapshotMetadataRecord p;
    leat__snapshot_metadata_record__init(&p);
    p.graph_hash = (char *)m->graph_hash;
    p.run_id = (char *)m->run_id;
    p.creation_timestamp = m->created_us;
    p.finalized = m->finalized;
    leat_strbuf b = {.checked = true};
    char *path = metadata_path(dir);
    leat_status s = pack_record(&p, &b);
    if (!s)
        s = leat_file_write(path, b.s, b.n);
    leat_strbuf_release(&b);
    free(path);
    return s;
}

/* ---- Writing ---- */

struct leat_snapshot_writer {
    gzFile file; /* writes what it is given as it is, unless the file is compressed */
    char *path;
};

leat_status leat_snapshot_writer_open(const char *path, bool gzip, leat_snapshot_writer **out)
{
    char *dir = leat_path_dir(path);
    leat_status s = leat_dir_make(dir);
    int fd = -1;
    free(dir);
    LEAT_TRY(s);
    LEAT_TRY(leat_path_open(path, O_WRONLY | O_CREAT | O_TRUNC, &fd));
    gzFile f = gzdopen(fd, gzip ? "wb" : "wbT");
    if (!f) {
        close(fd);
        return leat_error(RESOURCE_EXHAUSTED, "%s; no memory to write the file", path);
    }
    gzbuffer(f, 256 * 1024);
    leat_snapshot_writer *w = leat_new(leat_snapshot_writer);
    w->file = f;
    w->path = leat_xstrdup(path);
    *out = w;
    return NULL;
}

static leat_status write_bytes(leat_snapshot_writer *w, const char *bytes, size_t n)
{
    while (n) {
        const unsigned piece = n < (1u << 30) ? (unsigned)n : 1u << 30;
        errno = 0;
        if (gzwrite(w->file, bytes, piece) != (int)piece)
            return leat_file_error(w->path, errno ? errno : EIO);
        bytes += piece;
        n -= piece;
    }
    return NULL;
}

leat_status leat_snapshot_write(leat_snapshot_writer *w, leat_tensor *const *tensors, int n)
{
    Leat__SnapshotRecord *p = leat_xmalloc(sizeof(*p));
    leat_strbuf b = {.checked = true};
    leat_status s = NULL;
    leat__snapshot_record__init(p);
    p->tensor = leat_new_array(Leat__TensorProto *, n + 1);
    for (int i = 0; i < n && !s; i++) {
        s = leat_tensor_to_proto(tensors[i], LEAT_TENSOR_CONTENT, &p->tensor[i]);
        p->n_tensor += !s;
    }
    if (!s)
        s = pack_record(p, &b);
    leat_proto_free(p);
    if (!s)
        s = write_bytes(w, b.s, b.n);
    leat_strbuf_release(&b);
    return s;
}

leat_status leat_snapshot_writer_close(leat_snapshot_writer *w)
{
    if (!w)
        return NULL;
    errno = 0;
    const bool failed = gzclose_w(w->file) != Z_OK;
    leat_status s = failed ? leat_file_error(w->path, errno ? errno : EIO) : NULL;
    free(w->path);
    free(w);
    return s;
}
