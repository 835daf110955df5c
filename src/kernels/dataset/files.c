/* files.c -- datasets that read files one after the other: TFRecord, TextLine, FixedLengthRecord.
 * Files are read on threads that may block. */
#include "kernels/dataset/files.h"

#include <leat/io.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "io/path.h"
#include "io/record.h"
#include "io/stream.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/state.h"
#include "kernels/dataset/window.h"

typedef struct files {
    leat_dataset base;
    char **names;
    int64_t n;
    char *compression;
    enum { RECORDS, LINES, FIXED } form;
    int64_t header, record, footer; /* FIXED: sizes in bytes */
} files;

typedef struct reader {
    leat_iterator base;
    int64_t file;  /* the one that is read, or the next one */
    int64_t given; /* elements of that file */
    leat_record_reader *records;
    leat_stream *stream;
    leat_strbuf ahead; /* FIXED: bytes that were read and not given */
} reader;

/* ---- One file ---- */

static void close_file(reader *x)
{
    leat_record_reader_free(x->records);
    leat_stream_close(x->stream);
    leat_strbuf_release(&x->ahead);
    x->records = NULL;
    x->stream = NULL;
    x->ahead = (leat_strbuf){0};
}

static leat_status open_fixed(reader *x, const files *d)
{
    int64_t body;
    if (!*d->compression) {
        body = leat_stream_stored(x->stream) - d->header - d->footer;
        LEAT_REQUIRE(body >= 0 && body % d->record == 0, INVALID_ARGUMENT,
                     "Excluding the header (%lld bytes) and footer (%lld bytes), input file \"%s\" "
                     "has body length %lld bytes, which is not an exact multiple of the record "
                     "length (%lld bytes).",
                     (long long)d->header, (long long)d->footer, d->names[x->file], (long long)body,
                     (long long)d->record);
    }
    leat_strbuf skipped = {0};
    leat_status s = leat_stream_read(x->stream, (uint64_t)d->header, &skipped);
    bool whole = (int64_t)skipped.n == d->header;
    leat_strbuf_release(&skipped);
    LEAT_TRY(s);
    LEAT_REQUIRE(whole, DATA_LOSS, "File \"%s\" ends in its header of %lld bytes",
                 d->names[x->file], (long long)d->header);
    return NULL;
}

static leat_status open_file(reader *x)
{
    const files *d = (const files *)x->base.d;
    const char *name = d->names[x->file];
    const leat_record_form form = strcmp(d->compression, "GZIP") == 0   ? LEAT_RECORD_GZIP
                                  : strcmp(d->compression, "ZLIB") == 0 ? LEAT_RECORD_ZLIB
                                                                        : LEAT_RECORD_PLAIN;
    if (d->form == RECORDS)
        return leat_record_reader_open(name, form, &x->records);
    LEAT_REQUIRE(!*d->compression || form != LEAT_RECORD_PLAIN, INVALID_ARGUMENT,
                 "Unsupported compression_type.");
    LEAT_TRY(leat_stream_open(name, form, &x->stream));
    return d->form == FIXED ? open_fixed(x, d) : NULL;
}

static leat_status next_record(reader *x, const void **bytes, size_t *n, bool *more)
{
    leat_status s = leat_record_next(x->records, bytes, n);
    *more = !s;
    if (leat_status_code(s) != LEAT_OUT_OF_RANGE)
        return s;
    leat_status_free(s);
    return NULL;
}

/* As in TensorFlow, lines of datasets have no carriage returns; those of readers keep the ones
 * within a line. */
static leat_status next_line(reader *x, leat_strbuf *out, bool *more)
{
    bool end = true;
    LEAT_TRY(leat_stream_line(x->stream, out, &end));
    *more = !end;
    size_t n = 0;
    for (size_t i = 0; i < out->n; i++)
        if (out->s[i] != '\r')
            out->s[n++] = out->s[i];
    out->n = n;
    return NULL;
}

/* A record is given only if as many bytes as the footer has follow it. */
static leat_status next_fixed(reader *x, leat_strbuf *out, bool *more)
{
    const files *d = (const files *)x->base.d;
    const int64_t want = d->record + d->footer;
    LEAT_TRY(leat_stream_read(x->stream, (uint64_t)want - x->ahead.n, &x->ahead));
    *more = (int64_t)x->ahead.n == want;
    if (!*more) {
        LEAT_REQUIRE((int64_t)x->ahead.n == d->footer, DATA_LOSS,
                     "File \"%s\" has %lld bytes after record %lld, where it should end with a "
                     "footer of %lld bytes",
                     d->names[x->file], (long long)x->ahead.n, (long long)x->given,
                     (long long)d->footer);
        return NULL;
    }
    leat_strbuf_add(out, x->ahead.s, (size_t)d->record);
    memmove(x->ahead.s, x->ahead.s + d->record, (size_t)d->footer);
    x->ahead.n = (size_t)d->footer;
    return NULL;
}

/* Makes the bytes the element that p gives. */
static leat_status put(const reader *x, leat_pull *p, const void *bytes, size_t n)
{
    leat_packed *packed = x->base.packs ? leat_string_pack(bytes, n, &p->spares) : NULL;
    if (packed) {
        leat_pull_give_packed(p, packed);
        return NULL;
    }
    leat_tensor *t;
    LEAT_TRY(leat_tensor_of_bytes(bytes, n, &t));
    leat_element e = leat_element_new(1);
    e.v[0] = t;
    leat_pull_give(p, e);
    return NULL;
}

/* Gives the next element of the file to p; *more is false at its end. p may be NULL: the element is
 * skipped. */
static leat_status next_in_file(reader *x, leat_pull *p, bool *more)
{
    const files *d = (const files *)x->base.d;
    leat_strbuf text = {0};
    const void *bytes = NULL;
    size_t n = 0;
    leat_status s;
    if (d->form == RECORDS) {
        s = next_record(x, &bytes, &n, more);
    } else {
        s = d->form == LINES ? next_line(x, &text, more) : next_fixed(x, &text, more);
        bytes = leat_strbuf_text(&text);
        n = text.n;
    }
    if (!s && *more && p)
        s = put(x, p, bytes, n);
    leat_strbuf_release(&text);
    return s;
}

/* ---- The iterator ---- */

static leat_status find_next(reader *x, leat_pull *p, bool *found)
{
    const files *d = (const files *)x->base.d;
    while (x->file < d->n) {
        bool more = false;
        leat_status s = x->records || x->stream ? NULL : open_file(x);
        if (!s)
            s = next_in_file(x, p, &more);
        if (!s && more) {
            x->given++;
            *found = true;
            return NULL;
        }
        if (s && !strstr(leat_status_message(s), d->names[x->file]))
            s = leat_status_prefix(s, "%s: ", d->names[x->file]);
        /* After an error, the next pull goes on with the next file. */
        close_file(x);
        x->file++;
        x->given = 0;
        LEAT_TRY(s);
    }
    return NULL;
}

static bool in_window(const reader *x)
{
    const files *d = (const files *)x->base.d;
    const unsigned char *bytes;
    const size_t n = leat_stream_window(x->stream, &bytes);
    return d->form == LINES ? memchr(bytes, '\n', n) != NULL
                            : x->ahead.n + n >= (size_t)(d->record + d->footer);
}

/* Whether the next element is in memory, so that nothing has to be waited for. */
static bool in_memory(reader *x)
{
    if (x->records)
        return leat_record_ready(x->records);
    return x->stream && (in_window(x) || (leat_stream_extend(x->stream) && in_window(x)));
}

static leat_next files_next(leat_iterator *it, leat_pull *p)
{
    bool found = false;
    if (p->why == LEAT_WHY_START && !in_memory((reader *)it))
        return LEAT_NEXT_BLOCK;
    leat_status s = find_next((reader *)it, p, &found);
    if (s)
        return leat_pull_fail(p, s);
    return found ? LEAT_NEXT_ELEMENT : LEAT_NEXT_END;
}

static void files_close(leat_iterator *it)
{
    close_file((reader *)it);
}

static leat_status files_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, ((reader *)it)->file);
    leat_state_put_int(w, ((reader *)it)->given);
    return NULL;
}

static leat_status files_restore(leat_iterator *it, leat_state_reader *r)
{
    reader *x = (reader *)it;
    const files *d = (const files *)it->d;
    int64_t given;
    LEAT_TRY(leat_state_get_within(r, 0, d->n, &x->file));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &given));
    if (x->file == d->n || given == 0)
        return NULL;
    LEAT_TRY(open_file(x));
    for (bool more = true; x->given < given; x->given++) {
        LEAT_TRY(next_in_file(x, NULL, &more));
        LEAT_REQUIRE(more, DATA_LOSS,
                     "File \"%s\" has changed: it has %lld elements; the position that is to be "
                     "restored is after element %lld",
                     d->names[x->file], (long long)x->given, (long long)given);
    }
    return NULL;
}

/* ---- The datasets ---- */

static void files_release(leat_dataset *base)
{
    files *d = (files *)base;
    for (int64_t i = 0; i < d->n; i++)
        free(d->names[i]);
    free(d->names);
    free(d->compression);
}

static leat_status read_names(leat_kernel *k, files *d)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->shape.rank <= 1, INVALID_ARGUMENT, "`filenames` must be a scalar or a vector.");
    LEAT_TRY(leat_try_array(t->count + 1, &d->names));
    for (; d->n < t->count; d->n++) {
        const leat_string *x = &AT(leat_string, t)[d->n];
        LEAT_REQUIRE(!x->size || !memchr(x->data, 0, x->size), INVALID_ARGUMENT,
                     "File name %lld has a NUL", (long long)d->n);
        d->names[d->n] = leat_xstrndup(x->data ? x->data : "", x->size);
    }
    leat_dataset_types(&d->base, 1, (leat_dtype[]){LEAT_STRING}, (leat_shape[]){leat_shape()});
    return NULL;
}

/* Input i is the name of the compression. */
static leat_status read_compression(leat_kernel *k, int i, files *d)
{
    LEAT_TRY(leat_data_string(k, i, "compression_type", &d->compression));
    LEAT_REQUIRE(!*d->compression || strcmp(d->compression, "GZIP") == 0 ||
                     strcmp(d->compression, "ZLIB") == 0,
                 INVALID_ARGUMENT,
                 "Unsupported compression_type: \"%s\"; it may be \"\", \"GZIP\" "
                 "or \"ZLIB\"",
                 d->compression);
    return NULL;
}

/* The size of a buffer, which is not used; TensorFlow 2 has -1 for its default. `zero` is what 0
 * means. */
static leat_status read_buffer(leat_kernel *k, int i, const char *zero)
{
    int64_t size;
    LEAT_TRY(leat_data_int(k, i, "buffer_size", &size));
    LEAT_REQUIRE(size >= -1, INVALID_ARGUMENT, "`buffer_size` must be >= 0 (0 == %s)", zero);
    return NULL;
}

static leat_status compressed_make(leat_kernel *k, leat_dataset *base, int form)
{
    files *d = (files *)base;
    d->form = form;
    LEAT_TRY(read_names(k, d));
    LEAT_TRY(read_compression(k, 1, d));
    return read_buffer(k, 2, form == RECORDS ? "no buffering" : "default");
}

static leat_status records_make(leat_kernel *k, leat_dataset *d)
{
    return compressed_make(k, d, RECORDS);
}

static leat_status lines_make(leat_kernel *k, leat_dataset *d)
{
    return compressed_make(k, d, LINES);
}

static leat_status check_sizes(const files *d)
{
    int64_t sum;
    LEAT_REQUIRE(d->header >= 0, INVALID_ARGUMENT, "`header_bytes` must be >= 0");
    LEAT_REQUIRE(d->record > 0, INVALID_ARGUMENT, "`record_bytes` must be > 0");
    LEAT_REQUIRE(d->footer >= 0, INVALID_ARGUMENT, "`footer_bytes` must be >= 0");
    LEAT_REQUIRE(leat_add_ok(d->record, d->footer, &sum) && leat_add_ok(sum, d->header, &sum),
                 INVALID_ARGUMENT, "header, record and footer are too large");
    return NULL;
}

static leat_status fixed_make(leat_kernel *k, leat_dataset *base)
{
    files *d = (files *)base;
    d->form = FIXED;
    LEAT_TRY(read_names(k, d));
    LEAT_TRY(leat_data_int(k, 1, "header_bytes", &d->header));
    LEAT_TRY(leat_data_int(k, 2, "record_bytes", &d->record));
    LEAT_TRY(leat_data_int(k, 3, "footer_bytes", &d->footer));
    LEAT_TRY(check_sizes(d));
    LEAT_TRY(read_buffer(k, 4, "default"));
    if (leat_kernel_inputs(k) > 5)
        return read_compression(k, 5, d);
    d->compression = leat_xstrdup("");
    return NULL;
}

#define FILES_KIND                                                                                 \
    .size = sizeof(files), .iterator_size = sizeof(reader), .release = files_release,              \
    .next = files_next, .close = files_close, .save = files_save, .restore = files_restore
static const leat_dataset_kind records_kind = {FILES_KIND, .make = records_make};
LEAT_DATASET_RUN(records_kind)
static const leat_dataset_kind lines_kind = {FILES_KIND, .make = lines_make};
LEAT_DATASET_RUN(lines_kind)
static const leat_dataset_kind fixed_kind = {FILES_KIND, .make = fixed_make};
LEAT_DATASET_RUN(fixed_kind)

static const struct {
    const char *op, *name;
    const leat_dataset_kind *kind;
    int form;
} by_op[] = {
    {"TFRecordDataset", "records", &records_kind, RECORDS},
    {"TextLineDataset", "lines", &lines_kind, LINES},
    {"FixedLengthRecordDatasetV2", "fixed", &fixed_kind, FIXED},
};

leat_status leat_dataset_of_files(const char *op, const char *const *paths, int n,
                                  const char *compression, leat_file_sizes sizes,
                                  leat_dataset **out)
{
    leat_dataset *d;
    int i = 0;
    while (strcmp(by_op[i].op, op) != 0)
        i++;
    LEAT_TRY(leat_dataset_over(by_op[i].kind, op, by_op[i].name, NULL, 0, &d));
    files *f = (files *)d;
    f->form = by_op[i].form;
    f->header = sizes.header;
    f->record = sizes.record;
    f->footer = sizes.footer;
    f->names = leat_new_array(char *, n + 1);
    for (; f->n < n; f->n++)
        f->names[f->n] = leat_xstrdup(paths[f->n]);
    f->compression = leat_xstrdup(compression);
    leat_dataset_types(d, 1, (leat_dtype[]){LEAT_STRING}, (leat_shape[]){leat_shape()});
    leat_status s = f->form == FIXED ? check_sizes(f) : NULL;
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

/* ---- MatchingFiles: the names of the files that fit patterns ---- */

/* If there is no such file, the first element is an error. */
static leat_next nothing_next(leat_iterator *it, leat_pull *p)
{
    return leat_pull_fail(p, leat_error(NOT_FOUND, "Don't find any matched files"));
}

static const leat_dataset_kind nothing_kind = {
    .size = sizeof(leat_dataset), .iterator_size = sizeof(leat_iterator), .next = nothing_next};

static leat_status give_nothing(leat_kernel *k)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_make(k, &nothing_kind, &d));
    leat_dataset_types(d, 1, (leat_dtype[]){LEAT_STRING}, (leat_shape[]){leat_shape()});
    return leat_dataset_give(k, 0, d);
}

static leat_status matching_run(leat_kernel *k)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    leat_elements found = {0};
    leat_tensor *names = NULL;
    LEAT_REQUIRE(t->shape.rank <= 1, INVALID_ARGUMENT, "patterns must be a scalar or a vector");
    leat_status s = NULL;
    for (int64_t i = 0; i < t->count && !s; i++) {
        const leat_string *x = &AT(leat_string, t)[i];
        char **paths, *pattern = leat_xstrndup(x->data ? x->data : "", x->size);
        size_t n = 0;
        s = leat_path_match(pattern, &paths, &n);
        free(pattern);
        for (size_t j = 0; j < n && !s; j++) {
            leat_element e = leat_element_new(1);
            s = leat_tensor_of_string(paths[j], strlen(paths[j]), &e.v[0]);
            if (!s)
                leat_elements_add(&found, &e);
            leat_element_clear(&e);
        }
        if (n)
            leat_paths_free(paths, n);
    }
    const leat_dtype type = LEAT_STRING;
    const leat_shape shape = leat_shape();
    if (!s && !found.n)
        return give_nothing(k);
    if (!s)
        s = leat_dataset_of_window(&found, -1, 1, &type, &shape, &names);
    leat_elements_clear(&found);
    if (!s)
        leat_kernel_set(k, 0, names);
    return s;
}

const leat_kernel_def leat_data_kernels_files[] = {
    {.op = "TFRecordDataset", .run = records_kind_run},
    {.op = "TextLineDataset", .run = lines_kind_run},
    {.op = "FixedLengthRecordDataset", .run = fixed_kind_run},
    {.op = "FixedLengthRecordDatasetV2", .run = fixed_kind_run},
    {.op = "MatchingFilesDataset", .run = matching_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "ExperimentalMatchingFilesDataset", .run = matching_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
