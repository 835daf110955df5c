/* event.c -- event files, written and read. */
#define _GNU_SOURCE
#include "io/event.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "io/record.h"
#include "proto/wire.h"

struct leat_event_writer {
    leat_record_writer *records;
    leat_strbuf bytes; /* of the last event; its memory is used again */
};

double leat_wall_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)(t.tv_nsec / 1000) * 1e-6;
}

leat_status leat_event_writer_open(const char *dir, const char *suffix, leat_event_writer **out)
{
    char host[256] = "localhost";
    gethostname(host, sizeof(host) - 1);
    leat_record_writer *records;
    leat_status s;
    int again = 0; /* two writers in the same second get different names */
    do {
        leat_strbuf path = {0};
        leat_strbuf_printf(&path, "%s/events.out.tfevents.%010lld.%s", dir, (long long)time(NULL),
                           host);
        if (again)
            leat_strbuf_printf(&path, ".%d", again);
        leat_strbuf_puts(&path, suffix);
        s = leat_record_writer_create(path.s, LEAT_RECORD_PLAIN, &records);
        leat_strbuf_release(&path);
        if (leat_status_code(s) != LEAT_ALREADY_EXISTS)
            break;
        leat_status_free(s);
    } while (++again < INT_MAX);
    LEAT_TRY(s);
    leat_event_writer *w = leat_new(leat_event_writer);
    w->records = records;
    Leat__Event version = LEAT__EVENT__INIT;
    version.what_case = LEAT__EVENT__WHAT_FILE_VERSION;
    version.file_version = "brain.Event:2";
    s = leat_event_write(w, &version);
    if (!s)
        s = leat_event_flush(w);
    if (s)
        leat_status_free(leat_event_writer_close(w));
    else
        *out = w;
    return s;
}

const char *leat_event_writer_path(const leat_event_writer *w)
{
    return leat_record_writer_path(w->records);
}

leat_status leat_event_write_bytes(leat_event_writer *w, const void *bytes, size_t n)
{
    return leat_record_write(w->records, bytes, n);
}

leat_status leat_event_write(leat_event_writer *w, Leat__Event *e)
{
    if (e->wall_time == 0)
        e->wall_time = leat_wall_time();
    enum { KEEP = 64 * 1024 };
    leat_strbuf_clear(&w->bytes);
    leat_status s = leat_proto_pack(e, &w->bytes);
    if (!s)
        s = leat_event_write_bytes(w, w->bytes.s, w->bytes.n);
    if (w->bytes.n > KEEP)
        leat_strbuf_release(&w->bytes);
    return s;
}

leat_status leat_event_flush(leat_event_writer *w)
{
    return leat_record_flush(w->records);
}

leat_status leat_event_writer_close(leat_event_writer *w)
{
    if (!w)
        return NULL;
    leat_status s = leat_record_writer_close(w->records);
    leat_strbuf_release(&w->bytes);
    free(w);
    return s;
}

leat_status leat_event_next_message(leat_record_reader *r, Leat__Event **out)
{
    const void *bytes;
    size_t n;
    const uint64_t offset = leat_record_offset(r);
    LEAT_TRY(leat_record_next(r, &bytes, &n));
    leat_status s = LEAT_UNPACK(event, bytes, n, out);
    const char *path = leat_record_path(r);
    return s ? leat_status_prefix(s, "The record at %llu%s%s is no event: ",
                                  (unsigned long long)offset, path ? " in " : "", path ? path : "")
             : NULL;
}
