/* decode_csv.c -- DecodeCSV: the fields of records of comma-separated values (RFC 4180), each field
 * as a tensor. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/cpu/parse_number.h"

typedef struct csv {
    char delimiter;
    bool quotes;
    const char *na_value;
    const int64_t *select; /* columns, in ascending order; NULL: all */
    int n;                 /* outputs */
    leat_strbuf text;      /* the fields of a record that are wanted, each with a NUL at its end */
    size_t *begin, *end;   /* where they are in text */
    int64_t found;         /* fields of the record that are wanted, maybe more than n */
} csv;

/* ---- The fields of a record ---- */

typedef struct cursor {
    const char *p, *end;
} cursor;

static leat_status read_plain(const csv *c, cursor *r, leat_strbuf *to)
{
    const char *start = r->p;
    for (; r->p < r->end && *r->p != c->delimiter; r->p++)
        LEAT_REQUIRE((!c->quotes || *r->p != '"') && *r->p != '\n' && *r->p != '\r',
                     INVALID_ARGUMENT, "Unquoted fields cannot have quotes/CRLFs inside");
    if (to)
        leat_strbuf_add(to, start, (size_t)(r->p - start));
    r->p++; /* the delimiter, or past the end */
    return NULL;
}

/* r is after the first quote. */
static leat_status read_quoted(const csv *c, cursor *r, leat_strbuf *to)
{
    while (r->p < r->end - 1 && (*r->p != '"' || r->p[1] != c->delimiter)) {
        const bool quote = *r->p == '"';
        LEAT_REQUIRE(!quote || r->p[1] == '"', INVALID_ARGUMENT,
                     "Quote inside a string has to be escaped by another quote");
        if (to)
            leat_strbuf_putc(to, *r->p);
        r->p += 1 + quote;
    }
    LEAT_REQUIRE(r->p < r->end && *r->p == '"' && (r->p == r->end - 1 || r->p[1] == c->delimiter),
                 INVALID_ARGUMENT, "Quoted field has to end with quote followed by delim or end");
    r->p += 2;
    return NULL;
}

static bool is_wanted(const csv *c, int64_t column)
{
    return !c->select || c->select[c->found] == column;
}

static void end_field(csv *c, size_t begin)
{
    if (c->found < c->n) {
        c->begin[c->found] = begin;
        c->end[c->found] = c->text.n;
    }
    leat_strbuf_putc(&c->text, 0);
    c->found++;
}

static leat_status read_record(csv *c, const leat_string *record)
{
    const char *text = record->size ? record->data : "";
    cursor r = {text, text + record->size};
    int64_t column = 0;
    leat_strbuf_clear(&c->text);
    c->found = 0;
    while (r.p < r.end) {
        if (*r.p == '\n' || *r.p == '\r') {
            r.p++;
            continue;
        }
        const bool wanted = is_wanted(c, column++), quoted = c->quotes && *r.p == '"';
        const size_t begin = c->text.n;
        r.p += quoted;
        LEAT_TRY((quoted ? read_quoted : read_plain)(c, &r, wanted ? &c->text : NULL));
        if (wanted)
            end_field(c, begin);
        if (c->select && c->found == c->n)
            return NULL;
    }
    if (record->size && record->data[record->size - 1] == c->delimiter && is_wanted(c, column))
        end_field(c, c->text.n); /* the last field is empty */
    return NULL;
}

/* ---- Values ---- */

static leat_status set_field(const csv *c, leat_kernel *k, int f, int64_t i, leat_tensor *y)
{
    const char *text = c->text.s + c->begin[f];
    const size_t n = c->end[f] - c->begin[f];
    if (!n || (n == strlen(c->na_value) && memcmp(text, c->na_value, n) == 0)) {
        const leat_tensor *d = leat_kernel_in(k, 1 + f);
        LEAT_REQUIRE(d->count == 1, INVALID_ARGUMENT,
                     "Field %d is required but missing in record %lld!", f, (long long)i);
        const size_t size = leat_dtype_size(y->dtype);
        return leat_elements_copy(y->dtype, (char *)y->data + size * (size_t)i, d->data, 1);
    }
    if (y->dtype == LEAT_STRING) {
        LEAT_REQUIRE(leat_string_set(AT(leat_string, y) + i, text, n), RESOURCE_EXHAUSTED,
                     "No memory for a field of %zu bytes", n);
        return NULL;
    }
    LEAT_REQUIRE(leat_parse_number(text, n, y, i), INVALID_ARGUMENT,
                 "Field %d in record %lld is not a valid %s: %.*s", f, (long long)i,
                 leat_dtype_name(y->dtype), n > 1000 ? 1000 : (int)n, text);
    return NULL;
}

static leat_status decode(csv *c, leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor **y;
    LEAT_TRY(leat_try_array(c->n, &y));
    leat_status s = NULL;
    for (int f = 0; f < c->n && !s; f++)
        s = leat_kernel_out(k, f, &x->shape, &y[f]);
    for (int64_t i = 0; i < x->count && !s; i++) {
        s = read_record(c, AT(leat_string, x) + i);
        if (!s)
            s = leat_strbuf_check(&c->text);
        else
            s = leat_status_suffix(s, " (in record %lld)", (long long)i);
        if (!s && c->found != c->n)
            s = leat_error(INVALID_ARGUMENT, "Expect %d fields but have %lld in record %lld", c->n,
                           (long long)c->found, (long long)i);
        for (int f = 0; f < c->n && !s; f++)
            s = set_field(c, k, f, i, y[f]);
        if (!s && i % 1024 == 0)
            s = leat_kernel_check(k);
    }
    free(y);
    return s;
}

static leat_status check_select(const int64_t *select, int n, int outputs)
{
    LEAT_REQUIRE(n == 0 || n == outputs, INVALID_ARGUMENT, "select_cols should match output size");
    for (int i = 1; i < n; i++)
        LEAT_REQUIRE(select[i - 1] < select[i], INVALID_ARGUMENT,
                     "select_cols should be strictly increasing indices");
    LEAT_REQUIRE(n == 0 || select[0] >= 0, INVALID_ARGUMENT,
                 "select_cols should be non-negative indices");
    return NULL;
}

static leat_status csv_run(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    const char *delimiter = leat_node_string(node, "field_delim");
    int n_select, n = leat_node_outputs(node);
    const int64_t *select = leat_node_ints(node, "select_cols", &n_select);
    LEAT_TRY(check_select(select, n_select, n));
    LEAT_REQUIRE(strlen(delimiter) == 1, INVALID_ARGUMENT, "field_delim should be only 1 char");
    for (int i = 0; i < n; i++) {
        const leat_tensor *d = leat_kernel_in(k, 1 + i);
        LEAT_REQUIRE(d->shape.rank <= 1, INVALID_ARGUMENT,
                     "Each record default should be at most rank 1");
        LEAT_REQUIRE(d->count < 2, INVALID_ARGUMENT,
                     "There should only be 1 default per field but field %d has %lld", i,
                     (long long)d->count);
    }
    csv c = {.delimiter = *delimiter,
             .quotes = leat_node_bool(node, "use_quote_delim"),
             .na_value = leat_node_string(node, "na_value"),
             .select = n_select ? select : NULL,
             .n = n,
             .text = {.checked = true}};
    leat_status s = leat_try_array(n, &c.begin);
    if (!s)
        s = leat_try_array(n, &c.end);
    if (!s)
        s = decode(&c, k);
    leat_strbuf_release(&c.text);
    free(c.begin);
    free(c.end);
    return s;
}

const leat_kernel_def leat_cpu_decode_csv[] = {
    {.op = "DecodeCSV", .run = csv_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
