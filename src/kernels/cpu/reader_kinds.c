/* reader_kinds.c -- the kinds of readers: whole files, lines, pieces of equal length, TFRecords,
 * and the names themselves. Each makes keys and records of a unit of work, the file r->work. */
#include <stdlib.h>

#include "core/alloc.h"
#include "io/file.h"
#include "kernels/cpu/reader.h"

void leat_reader_close(leat_reader *r)
{
    leat_stream_close(r->stream);
    leat_record_reader_free(r->records);
    r->stream = NULL;
    r->records = NULL;
}

/* The name of the unit's file, which the system takes as a string that ends with a NUL. */
static leat_status path_of(const leat_reader *r, const char **out)
{
    LEAT_REQUIRE(strlen(leat_strbuf_text(&r->work)) == r->work.n, INVALID_ARGUMENT,
                 "The file name \"%s...\" has a NUL in it", leat_strbuf_text(&r->work));
    *out = leat_strbuf_text(&r->work);
    return NULL;
}

/* "file:7" */
static void set_key(leat_reader *r, uint64_t number)
{
    leat_strbuf_add(&r->key, r->work.s, r->work.n);
    leat_strbuf_printf(&r->key, ":%llu", (unsigned long long)number);
}

static leat_status set_form(leat_reader *r, const leat_node *n, const char *attr)
{
    const char *form = leat_node_string(n, attr);
    r->form = strcmp(form, "GZIP") == 0   ? LEAT_RECORD_GZIP
              : strcmp(form, "ZLIB") == 0 ? LEAT_RECORD_ZLIB
                                          : LEAT_RECORD_PLAIN;
    LEAT_REQUIRE(r->form != LEAT_RECORD_PLAIN || !*form, INVALID_ARGUMENT,
                 "%s must be \"\", \"GZIP\" or \"ZLIB\", not \"%s\"", attr, form);
    return NULL;
}

static leat_status open_stream(leat_reader *r)
{
    const char *path = NULL;
    LEAT_TRY(path_of(r, &path));
    return leat_stream_open(path, r->form, &r->stream);
}

/* ---- IdentityReader, WholeFileReader ---- */

static leat_status name_next(leat_reader *r, bool *end)
{
    (void)end;
    leat_strbuf_add(&r->key, r->work.s, r->work.n);
    leat_strbuf_add(&r->value, r->work.s, r->work.n);
    return NULL;
}

static leat_status whole_next(leat_reader *r, bool *end)
{
    (void)end;
    const char *path = NULL;
    LEAT_TRY(path_of(r, &path));
    leat_strbuf_release(&r->value);
    leat_strbuf_add(&r->key, r->work.s, r->work.n);
    LEAT_TRY(leat_file_read(path, &r->value.s, &r->value.n));
    r->value.cap = r->value.n + 1;
    return NULL;
}

/* ---- TextLineReader ---- */

static leat_status lines_configure(leat_reader *r, const leat_node *n)
{
    r->skip_header_lines = leat_node_int(n, "skip_header_lines");
    LEAT_REQUIRE(r->skip_header_lines >= 0, INVALID_ARGUMENT,
                 "skip_header_lines must be >= 0 not %lld", (long long)r->skip_header_lines);
    return NULL;
}

static leat_status lines_start(leat_reader *r)
{
    LEAT_TRY(open_stream(r));
    bool end = false;
    for (; !end && r->number < r->skip_header_lines; r->number++) {
        leat_strbuf_clear(&r->value);
        LEAT_TRY(leat_stream_line(r->stream, &r->value, &end));
    }
    return NULL;
}

static leat_status lines_next(leat_reader *r, bool *end)
{
    LEAT_TRY(leat_stream_line(r->stream, &r->value, end));
    if (!*end)
        set_key(r, (uint64_t)++r->number);
    return NULL;
}

/* ---- FixedLengthRecordReader ---- */

static leat_status fixed_configure(leat_reader *r, const leat_node *n)
{
    const struct {
        const char *attr;
        int64_t *to;
    } sizes[] = {{"header_bytes", &r->header_bytes},
                 {"record_bytes", &r->record_bytes},
                 {"footer_bytes", &r->footer_bytes},
                 {"hop_bytes", &r->hop_bytes}};
    for (int i = 0; i < 4; i++) {
        *sizes[i].to = leat_node_int(n, sizes[i].attr);
        LEAT_REQUIRE(*sizes[i].to >= 0, INVALID_ARGUMENT, "%s must be >= 0 not %lld", sizes[i].attr,
                     (long long)*sizes[i].to);
    }
    int64_t sum;
    LEAT_REQUIRE(leat_add_ok(r->record_bytes, r->footer_bytes, &sum), INVALID_ARGUMENT,
                 "record_bytes %lld and footer_bytes %lld are too large",
                 (long long)r->record_bytes, (long long)r->footer_bytes);
    if (!r->hop_bytes)
        r->hop_bytes = r->record_bytes;
    LEAT_REQUIRE(r->hop_bytes, INVALID_ARGUMENT,
                 "record_bytes and hop_bytes are 0: a file would have records without end");
    return leat_node_has(n, "encoding") ? set_form(r, n, "encoding") : NULL;
}

static leat_status fixed_start(leat_reader *r)
{
    uint64_t skipped;
    LEAT_TRY(open_stream(r));
    LEAT_TRY(leat_stream_skip(r->stream, (uint64_t)r->header_bytes, &skipped));
    LEAT_REQUIRE(skipped == (uint64_t)r->header_bytes, OUT_OF_RANGE,
                 "reached end of file: %s has %llu bytes, fewer than the %lld of a header",
                 leat_strbuf_text(&r->work), (unsigned long long)skipped,
                 (long long)r->header_bytes);
    return NULL;
}

/* Goes on by hop_bytes, over the bytes that were read ahead first. */
static leat_status hop(leat_reader *r, bool *end)
{
    const uint64_t hop = (uint64_t)r->hop_bytes;
    if (hop <= r->ahead.n) {
        r->ahead.n -= hop;
        memmove(r->ahead.s, r->ahead.s + hop, r->ahead.n);
        return NULL;
    }
    uint64_t left = hop - r->ahead.n, skipped;
    leat_strbuf_clear(&r->ahead);
    LEAT_TRY(leat_stream_skip(r->stream, left, &skipped));
    *end = skipped < left;
    return NULL;
}

static leat_status fixed_next(leat_reader *r, bool *end)
{
    if (r->number)
        LEAT_TRY(hop(r, end));
    if (*end)
        return NULL;
    const uint64_t want = (uint64_t)r->record_bytes + (uint64_t)r->footer_bytes;
    if (r->ahead.n < want)
        LEAT_TRY(leat_stream_read(r->stream, want - r->ahead.n, &r->ahead));
    *end = r->ahead.n < want;
    if (*end)
        return NULL;
    LEAT_TRY(leat_strbuf_reserve(&r->value, (size_t)r->record_bytes));
    leat_strbuf_add(&r->value, r->ahead.s, (size_t)r->record_bytes);
    set_key(r, (uint64_t)r->number++);
    return NULL;
}

/* ---- TFRecordReader ---- */

static leat_status records_configure(leat_reader *r, const leat_node *n)
{
    return set_form(r, n, "compression_type");
}

static leat_status records_start(leat_reader *r)
{
    const char *path = NULL;
    LEAT_TRY(path_of(r, &path));
    return leat_record_reader_open(path, r->form, &r->records);
}

static leat_status records_next(leat_reader *r, bool *end)
{
    const void *bytes;
    size_t n;
    const uint64_t offset = leat_record_offset(r->records);
    leat_status s = leat_record_next(r->records, &bytes, &n);
    *end = leat_status_code(s) == LEAT_OUT_OF_RANGE;
    if (*end) {
        leat_status_free(s);
        return NULL;
    }
    LEAT_TRY(s);
    LEAT_TRY(leat_strbuf_reserve(&r->value, n));
    leat_strbuf_add(&r->value, bytes, n);
    set_key(r, offset);
    return NULL;
}

/* ---- Making ---- */

static const leat_reader_kind kinds[] = {
    {.op = "IdentityReader", .next = name_next, .once = true, .saves_state = true},
    {.op = "WholeFileReader", .next = whole_next, .once = true, .saves_state = true},
    {.op = "TextLineReader", lines_configure, lines_start, lines_next},
    {.op = "FixedLengthRecordReader", fixed_configure, fixed_start, fixed_next},
    {.op = "TFRecordReader", records_configure, records_start, records_next},
};

static const leat_reader_kind *kind_of(const leat_node *n)
{
    size_t i = 0;
    while (strncmp(leat_node_op(n), kinds[i].op, strlen(kinds[i].op)) != 0)
        i++;
    return &kinds[i];
}

static void reader_free(void *resource)
{
    leat_reader *r = resource;
    leat_reader_close(r);
    leat_strbuf_release(&r->work);
    leat_strbuf_release(&r->key);
    leat_strbuf_release(&r->value);
    leat_strbuf_release(&r->ahead);
    pthread_mutex_destroy(&r->lock);
    free(r->name);
    free(r);
}

const leat_resource_type leat_reader_type = {"N10tensorflow15ReaderInterfaceE", reader_free};

static leat_status make(leat_kernel *k, const char *name, leat_resource **out)
{
    const leat_node *n = leat_kernel_node(k);
    (void)name;
    leat_reader *r = leat_new(leat_reader);
    leat_resource_init(&r->base, &leat_reader_type);
    pthread_mutex_init(&r->lock, NULL);
    r->kind = kind_of(n);
    r->form = LEAT_RECORD_PLAIN;
    r->name = leat_xstrdup(leat_node_name(n));
    leat_status s = r->kind->configure ? r->kind->configure(r, n) : NULL;
    if (s)
        leat_resource_unref(&r->base);
    else
        *out = &r->base;
    return s;
}

const leat_resource_maker leat_reader_maker = {&leat_reader_type, make, NULL};
