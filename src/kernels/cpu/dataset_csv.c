/* dataset_csv.c -- CSVDataset: the records of files of comma-separated values (RFC 4180), each
 * field as a scalar. A record that has an error is read to its end, so that the next element is the
 * next record. Files are read on threads that may block. */
#include <stdlib.h>

#include "core/alloc.h"
#include "io/stream.h"
#include "kernels/cpu/parse_number.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/state.h"

typedef struct csv {
    leat_dataset base;
    char **names;
    int64_t n_names;
    leat_record_form form;
    bool header, quotes;
    int delimiter;
    char *na_value;
    /* Columns to give, or to leave out, in ascending order. */
    int64_t *select, *exclude;
    int64_t n_select, n_exclude;
    leat_tensor **defaults; /* one for each tensor of an element, with one element or none */
} csv;

typedef struct csv_reader {
    leat_iterator base;
    int64_t file;  /* the one that is read, or the next one */
    int64_t given; /* records of that file, but for the header */
    leat_stream *stream;
    const unsigned char *at; /* bytes in memory that were not used */
    size_t left, taken;      /* their number, and that of the bytes before them */
    leat_strbuf field;
} csv_reader;

/* ---- Characters ---- */

enum { END = -1 };

/* Sets *out to the next character, which is not used, or to END. */
static leat_status look(csv_reader *x, int *out)
{
    if (x->left == 0) {
        uint64_t skipped;
        LEAT_TRY(leat_stream_skip(x->stream, x->taken, &skipped));
        x->taken = 0;
        LEAT_TRY(leat_stream_peek(x->stream, &x->at, &x->left));
    }
    *out = x->left ? *x->at : END;
    return NULL;
}

static void use(csv_reader *x)
{
    x->at++;
    x->left--;
    x->taken++;
}

/* ---- Fields ---- */

/* Keeps the first error of a record. */
static void note(leat_status *first, leat_status s)
{
    if (*first)
        leat_status_free(s);
    else
        *first = s;
}

static bool ends_record(int c)
{
    return c == '\n' || c == '\r' || c == END;
}

/* Uses the end of a line: "\n", "\r" or "\r\n". */
static leat_status use_line_end(csv_reader *x, int c)
{
    if (c == END)
        return NULL;
    use(x);
    if (c != '\r')
        return NULL;
    LEAT_TRY(look(x, &c));
    if (c == '\n')
        use(x);
    return NULL;
}

/* Reads a field that begins with a quote into x->field. *c is the character that ends it; *bad the
 * error of the record. */
static leat_status read_quoted(csv_reader *x, int *c, leat_status *bad)
{
    const csv *d = (const csv *)x->base.d;
    use(x);
    for (;;) {
        LEAT_TRY(look(x, c));
        if (*c == END) {
            note(bad, leat_error(INVALID_ARGUMENT,
                                 "Reached end of file without closing quoted field in record"));
            return NULL;
        }
        use(x);
        if (*c != '"') {
            leat_strbuf_putc(&x->field, (char)*c);
            continue;
        }
        LEAT_TRY(look(x, c));
        if (*c == d->delimiter || ends_record(*c))
            return NULL;
        if (*c != '"')
            note(bad, leat_error(INVALID_ARGUMENT,
                                 "Quote inside a string has to be escaped by another quote"));
        leat_strbuf_putc(&x->field, (char)*c);
        use(x);
    }
}

static leat_status read_plain(csv_reader *x, int *c, leat_status *bad)
{
    const csv *d = (const csv *)x->base.d;
    for (;; use(x)) {
        LEAT_TRY(look(x, c));
        if (*c == d->delimiter || ends_record(*c))
            return NULL;
        if (d->quotes && *c == '"')
            note(bad, leat_error(INVALID_ARGUMENT, "Unquoted fields cannot have quotes inside"));
        leat_strbuf_putc(&x->field, (char)*c);
    }
}

/* The tensor of output i from the text in x->field. */
static leat_status field_tensor(csv_reader *x, int i, leat_tensor **out)
{
    const csv *d = (const csv *)x->base.d;
    const char *text = leat_strbuf_text(&x->field);
    const bool missing = x->field.n == 0 || (x->field.n == strlen(d->na_value) &&
                                             memcmp(text, d->na_value, x->field.n) == 0);
    LEAT_TRY(leat_strbuf_check(&x->field));
    if (missing) {
        LEAT_REQUIRE(d->defaults[i]->count == 1, INVALID_ARGUMENT,
                     "Field %d is required but missing in record!", i);
        *out = leat_tensor_ref(d->defaults[i]);
        return NULL;
    }
    if (d->base.types[i] == LEAT_STRING)
        return leat_tensor_of_string(text, x->field.n, out);
    leat_tensor *y;
    LEAT_TRY(leat_tensor_new(d->base.types[i], leat_shape(), &y));
    if (!leat_parse_number(text, x->field.n, y, 0)) {
        leat_tensor_unref(y);
        return leat_error(INVALID_ARGUMENT, "Field %d in record is not a valid %s: %s", i,
                          leat_dtype_name(d->base.types[i]), text);
    }
    *out = y;
    return NULL;
}

/* ---- Records ---- */

static bool is_wanted(const csv *d, int64_t column, int found)
{
    if (d->n_exclude)
        return column - found >= d->n_exclude || d->exclude[column - found] != column;
    return d->n_select == 0 || (found < d->n_select && d->select[found] == column);
}

/* Reads a record to its end. e has a place for each output, or none: the record is skipped. *bad is
 * what is wrong with the record; other errors are returned. */
static leat_status read_fields(csv_reader *x, leat_element *e, leat_status *bad)
{
    const csv *d = (const csv *)x->base.d;
    int c = 0, found = 0;
    for (int64_t column = 0;; column++) {
        leat_strbuf_clear(&x->field);
        LEAT_TRY(look(x, &c));
        LEAT_TRY(d->quotes && c == '"' ? read_quoted(x, &c, bad) : read_plain(x, &c, bad));
        if (e->v && is_wanted(d, column, found)) {
            if (found >= e->n)
                note(bad, leat_error(INVALID_ARGUMENT, "Expect %d fields but have more in record",
                                     e->n));
            else if (!*bad)
                note(bad, field_tensor(x, found, &e->v[found]));
            found++;
        }
        if (c != d->delimiter)
            break;
        use(x);
    }
    if (e->v && found < e->n)
        note(bad,
             leat_error(INVALID_ARGUMENT, "Expect %d fields but have %d in record", e->n, found));
    return use_line_end(x, c);
}

static leat_status read_record(csv_reader *x, leat_element *e)
{
    leat_status bad = NULL, s = read_fields(x, e, &bad);
    if (s)
        leat_status_free(bad);
    return s ? s : bad;
}

/* ---- Files ---- */

static void close_file(csv_reader *x)
{
    leat_stream_close(x->stream);
    x->stream = NULL;
    x->left = x->taken = 0;
}

static leat_status open_file(csv_reader *x)
{
    const csv *d = (const csv *)x->base.d;
    int c = END;
    LEAT_TRY(leat_stream_open(d->names[x->file], d->form, &x->stream));
    if (!d->header)
        return NULL;
    leat_status s = look(x, &c);
    if (!s && c != END)
        s = read_record(x, &(leat_element){0});
    if (!s && c != END)
        return NULL;
    leat_status_free(s);
    return leat_error(INVALID_ARGUMENT, "Can't read header of file %s", d->names[x->file]);
}

/* Sets *e to the next record; e->v is NULL at the end. */
static leat_status find_next(csv_reader *x, leat_element *e)
{
    const csv *d = (const csv *)x->base.d;
    while (x->file < d->n_names) {
        int c;
        if (!x->stream)
            LEAT_TRY(open_file(x));
        LEAT_TRY(look(x, &c));
        if (c != END) {
            *e = leat_element_new(d->base.n);
            x->given++;
            return read_record(x, e);
        }
        close_file(x);
        x->file++;
        x->given = 0;
    }
    return NULL;
}

static leat_next csv_next(leat_iterator *it, leat_pull *p)
{
    leat_element e = {0};
    if (p->why == LEAT_WHY_START)
        return LEAT_NEXT_BLOCK;
    leat_status s = find_next((csv_reader *)it, &e);
    if (!s && e.v)
        return leat_pull_give(p, e);
    leat_element_clear(&e);
    return s ? leat_pull_fail(p, s) : LEAT_NEXT_END;
}

static void csv_close(leat_iterator *it)
{
    csv_reader *x = (csv_reader *)it;
    close_file(x);
    leat_strbuf_release(&x->field);
}

static leat_status csv_open(leat_iterator *it)
{
    ((csv_reader *)it)->field.checked = true;
    return NULL;
}

static leat_status csv_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, ((csv_reader *)it)->file);
    leat_state_put_int(w, ((csv_reader *)it)->given);
    return NULL;
}

static leat_status csv_restore(leat_iterator *it, leat_state_reader *r)
{
    csv_reader *x = (csv_reader *)it;
    const csv *d = (const csv *)it->d;
    int64_t given;
    LEAT_TRY(leat_state_get_within(r, 0, d->n_names, &x->file));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &given));
    if (x->file == d->n_names || given == 0)
        return NULL;
    LEAT_TRY(open_file(x));
    for (; x->given < given; x->given++) {
        int c;
        LEAT_TRY(look(x, &c));
        LEAT_REQUIRE(c != END, DATA_LOSS,
                     "File \"%s\" has changed: it has %lld records; the position that is to be "
                     "restored is after record %lld",
                     d->names[x->file], (long long)x->given, (long long)given);
        leat_status bad = NULL, s = read_fields(x, &(leat_element){0}, &bad);
        leat_status_free(bad); /* was reported when the record was given */
        LEAT_TRY(s);
    }
    return NULL;
}

/* ---- The dataset ---- */

static void csv_release(leat_dataset *base)
{
    csv *d = (csv *)base;
    for (int64_t i = 0; i < d->n_names; i++)
        free(d->names[i]);
    for (int i = 0; d->defaults && i < base->n; i++)
        leat_tensor_unref(d->defaults[i]);
    free(d->names);
    free(d->defaults);
    free(d->select);
    free(d->exclude);
    free(d->na_value);
}

static leat_status read_names(leat_kernel *k, csv *d)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->shape.rank <= 1, INVALID_ARGUMENT, "`filenames` must be a scalar or a vector.");
    LEAT_TRY(leat_try_array(t->count + 1, &d->names));
    for (; d->n_names < t->count; d->n_names++) {
        const leat_string *x = &AT(leat_string, t)[d->n_names];
        LEAT_REQUIRE(!x->size || !memchr(x->data, 0, x->size), INVALID_ARGUMENT,
                     "File name %lld has a NUL", (long long)d->n_names);
        d->names[d->n_names] = leat_xstrndup(x->data ? x->data : "", x->size);
    }
    return NULL;
}

static leat_status read_defaults(leat_kernel *k, csv *d, int first, int n)
{
    LEAT_REQUIRE(n == d->base.n, INVALID_ARGUMENT,
                 "There are %d record_defaults for %d output_types", n, d->base.n);
    d->defaults = leat_new_array(leat_tensor *, n + 1);
    for (int i = 0; i < n; i++) {
        const leat_tensor *t = leat_kernel_in(k, first + i);
        LEAT_REQUIRE(t->shape.rank <= 1, INVALID_ARGUMENT,
                     "Each record default should be at most rank 1");
        LEAT_REQUIRE(t->count < 2, INVALID_ARGUMENT,
                     "There should only be 1 default per field but field %d has %lld", i,
                     (long long)t->count);
        if (t->count == 1)
            LEAT_TRY(leat_tensor_reshape(t, leat_shape(), &d->defaults[i]));
        else
            d->defaults[i] = leat_tensor_ref((leat_tensor *)t);
    }
    return NULL;
}

static leat_status read_form(leat_kernel *k, csv *d)
{
    char *text;
    LEAT_TRY(leat_data_string(k, 1, "compression_type", &text));
    const bool gzip = strcmp(text, "GZIP") == 0, zlib = strcmp(text, "ZLIB") == 0;
    leat_status s = NULL;
    if (*text && !gzip && !zlib)
        s = leat_error(INVALID_ARGUMENT, "Unsupported compression_type: %s.", text);
    d->form = gzip ? LEAT_RECORD_GZIP : zlib ? LEAT_RECORD_ZLIB : LEAT_RECORD_PLAIN;
    free(text);
    return s;
}

/* A list of columns, in ascending order. */
static leat_status read_columns(const leat_tensor *t, const char *name, int64_t **out, int64_t *n)
{
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "`%s` must be a vector.", name);
    LEAT_TRY(leat_try_array(t->count + 1, out));
    for (; *n < t->count; ++*n) {
        const int64_t column = AT(int64_t, t)[*n];
        LEAT_REQUIRE(*n == 0 || (*out)[*n - 1] < column, INVALID_ARGUMENT,
                     "%s should be strictly increasing indices", name);
        LEAT_REQUIRE(column >= 0, INVALID_ARGUMENT, "%s should be non-negative indices", name);
        (*out)[*n] = column;
    }
    return NULL;
}

/* The second version has exclude_cols as its last input. */
static leat_status read_select(leat_kernel *k, csv *d, bool second)
{
    const leat_tensor *t = leat_kernel_in(k, 7);
    LEAT_REQUIRE(t->count == 0 || t->count == d->base.n, INVALID_ARGUMENT,
                 "select_cols should match output size");
    LEAT_TRY(read_columns(t, "select_cols", &d->select, &d->n_select));
    if (second)
        LEAT_TRY(read_columns(leat_kernel_in(k, leat_kernel_inputs(k) - 1), "exclude_cols",
                              &d->exclude, &d->n_exclude));
    LEAT_REQUIRE(!d->n_select || !d->n_exclude, INVALID_ARGUMENT,
                 "Either select_cols or exclude_cols should be empty");
    return NULL;
}

static leat_status csv_make(leat_kernel *k, leat_dataset *base)
{
    csv *d = (csv *)base;
    int64_t buffer;
    char *delimiter;
    const bool second = strcmp(leat_node_op(leat_kernel_node(k)), "CSVDatasetV2") == 0;
    LEAT_TRY(read_names(k, d));
    LEAT_TRY(read_form(k, d));
    LEAT_TRY(read_defaults(k, d, 8, leat_kernel_inputs(k) - 8 - second));
    LEAT_TRY(leat_data_int(k, 2, "buffer_size", &buffer));
    LEAT_REQUIRE(buffer > 0, INVALID_ARGUMENT, "buffer_size should be positive");
    LEAT_TRY(leat_data_string(k, 4, "field_delim", &delimiter));
    d->delimiter = (unsigned char)delimiter[0];
    const bool one = delimiter[0] && !delimiter[1];
    free(delimiter);
    LEAT_REQUIRE(one, INVALID_ARGUMENT, "field_delim should be only 1 char");
    LEAT_TRY(leat_data_bool(k, 3, "header", &d->header));
    LEAT_TRY(leat_data_bool(k, 5, "use_quote_delim", &d->quotes));
    LEAT_TRY(leat_data_string(k, 6, "na_value", &d->na_value));
    return read_select(k, d, second);
}

static const leat_dataset_kind csv_kind = {
    .size = sizeof(csv),
    .iterator_size = sizeof(csv_reader),
    .own_types = true,
    .make = csv_make,
    .release = csv_release,
    .open = csv_open,
    .next = csv_next,
    .close = csv_close,
    .save = csv_save,
    .restore = csv_restore,
};
LEAT_DATASET_RUN(csv_kind)

const leat_kernel_def leat_cpu_dataset_csv[] = {
    {.op = "CSVDataset", .run = csv_kind_run},
    {.op = "ExperimentalCSVDataset", .run = csv_kind_run},
    {.op = "CSVDatasetV2", .run = csv_kind_run},
    {0},
};
