/* table_file.c -- InitializeTableFromTextFileV2: a HashTable gets its entries from the lines of a
 * file: a column, the whole line, or the line's number. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/cpu/table.h"

enum { LINE_NUMBER = -1, WHOLE_LINE = -2 };

typedef struct reader {
    const char *name;
    FILE *file;
    leat_strbuf line;
    int64_t at, number; /* bytes and lines read */
} reader;

/* The next line without its end; false at the end of the file. */
static bool next_line(reader *r)
{
    int c;
    bool any = false;
    leat_strbuf_clear(&r->line);
    while ((c = fgetc(r->file)) != EOF) {
        any = true;
        r->at++;
        if (c == '\n')
            break;
        if (c != '\r')
            leat_strbuf_putc(&r->line, (char)c);
    }
    return any;
}

static leat_status check_type(int64_t index, leat_dtype t, const char *what, bool is_key)
{
    if (index == LINE_NUMBER)
        LEAT_REQUIRE(t == LEAT_INT64, INVALID_ARGUMENT,
                     "%s index for line number requires table %s dtype of int64, got %s",
                     is_key ? "Key" : "Value", what, leat_dtype_name(t));
    if (index == WHOLE_LINE && is_key)
        LEAT_REQUIRE(t == LEAT_STRING || t == LEAT_INT32 || t == LEAT_INT64, INVALID_ARGUMENT,
                     "Key index for whole line requires string or integer table key, got %s",
                     leat_dtype_name(t));
    if (index == WHOLE_LINE && !is_key)
        LEAT_REQUIRE(t == LEAT_STRING, INVALID_ARGUMENT,
                     "Value index for whole line requires table value dtype of string, got %s",
                     leat_dtype_name(t));
    return NULL;
}

/* Column i of a line: its bytes, not terminated. */
static leat_status column(const reader *r, int64_t i, char delimiter, const char **text, size_t *n)
{
    const char *at = leat_strbuf_text(&r->line), *end = at + r->line.n;
    if (i == WHOLE_LINE) {
        *text = at;
        *n = r->line.n;
        return NULL;
    }
    for (int64_t c = 0;; c++) {
        const char *next = memchr(at, delimiter, (size_t)(end - at));
        if (c == i) {
            *text = at;
            *n = (size_t)((next ? next : end) - at);
            return NULL;
        }
        LEAT_REQUIRE(next, INVALID_ARGUMENT,
                     "Invalid number of columns in %s line %lld (%s) : expected %lld got %lld",
                     r->name, (long long)r->number, leat_strbuf_text(&r->line), (long long)i,
                     (long long)c + 1);
        at = next + 1;
    }
}

/* A tensor of one element, which the text says. */
static leat_status set(leat_tensor *x, const reader *r, int64_t index, char delimiter)
{
    const char *text = "";
    size_t n = 0;
    if (index == LINE_NUMBER) {
        AT(int64_t, x)[0] = r->number;
        return NULL;
    }
    LEAT_TRY(column(r, index, delimiter, &text, &n));
    if (x->dtype == LEAT_STRING) {
        LEAT_REQUIRE(leat_string_set(AT(leat_string, x), text, n), RESOURCE_EXHAUSTED,
                     "no memory for a string of %zu bytes", n);
        return NULL;
    }
    char *copy = leat_xstrndup(text, n), *end = copy;
    errno = 0;
    switch (x->dtype) {
    case LEAT_INT32: {
        long long v = strtoll(copy, &end, 10);
        AT(int32_t, x)[0] = (int32_t)v;
        end = v == (int32_t)v ? end : copy;
        break;
    }
    case LEAT_INT64:
        AT(int64_t, x)[0] = strtoll(copy, &end, 10);
        break;
    case LEAT_FLOAT:
        AT(float, x)[0] = strtof(copy, &end);
        break;
    case LEAT_DOUBLE:
        AT(double, x)[0] = strtod(copy, &end);
        break;
    default:
        free(copy);
        return leat_error(INVALID_ARGUMENT, "Data type %s not supported.",
                          leat_dtype_name(x->dtype));
    }
    bool good = end != copy && !*end && errno != ERANGE;
    free(copy);
    LEAT_REQUIRE(good, INVALID_ARGUMENT, "Field %.*s in line %lld is not a valid %s.",
                 n > 1000 ? 1000 : (int)n, text, (long long)r->number, leat_dtype_name(x->dtype));
    return NULL;
}

typedef struct entry { /* one line's, tensors of one element */
    leat_tensor *key, *value;
} entry;

static leat_status read_lines(leat_table *t, const leat_node *node, reader *r, const entry *e)
{
    int64_t most = leat_node_int(node, "vocab_size");
    char delimiter = leat_node_string(node, "delimiter")[0];
    for (; most < 0 || r->number < most; r->number++) {
        if (!next_line(r)) {
            LEAT_REQUIRE(most < 0, INVALID_ARGUMENT,
                         "Invalid vocab_size in %s: expected %lld but got %lld", r->name,
                         (long long)most, (long long)r->number);
            break;
        }
        LEAT_REQUIRE(r->line.n > 0, INVALID_ARGUMENT,
                     "Invalid content in %s: empty line found at position %lld.", r->name,
                     (long long)r->at);
        LEAT_TRY(set(e->key, r, leat_node_int(node, "key_index"), delimiter));
        LEAT_TRY(set(e->value, r, leat_node_int(node, "value_index"), delimiter));
        LEAT_TRY(leat_table_put(t, e->key, e->value, 0));
    }
    return NULL;
}

/* With the lock held. */
static leat_status fill(leat_table *t, const leat_node *node, const char *name)
{
    LEAT_REQUIRE(t->fixed, INVALID_ARGUMENT, "Table %s is not initializable", t->name);
    LEAT_TRY(check_type(leat_node_int(node, "key_index"), t->key, "key", true));
    LEAT_TRY(check_type(leat_node_int(node, "value_index"), t->value, "value", false));
    if (t->ready)
        return NULL;
    reader r = {.name = name, .file = fopen(name, "rb")};
    LEAT_REQUIRE(r.file, NOT_FOUND, "%s; %s", name, strerror(errno));
    entry e = {0};
    leat_status s = leat_tensor_new(t->key, leat_shape(), &e.key);
    if (!s)
        s = leat_tensor_new(t->value, leat_shape(), &e.value);
    if (!s)
        s = read_lines(t, node, &r, &e);
    fclose(r.file);
    leat_strbuf_release(&r.line);
    leat_tensor_unref(e.key);
    leat_tensor_unref(e.value);
    if (s)
        leat_table_clear(t);
    t->ready = !s;
    return s;
}

static leat_status file_run(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    const leat_tensor *name = leat_kernel_in(k, 1);
    LEAT_REQUIRE(strlen(leat_node_string(node, "delimiter")) == 1, INVALID_ARGUMENT,
                 "delimiter should be only 1 char");
    LEAT_REQUIRE(name->count == 1, INVALID_ARGUMENT,
                 "filename should be a single string, but got %s", leat_shape_show(&name->shape).s);
    const leat_string *s = AT(leat_string, name);
    LEAT_REQUIRE(s->size > 0, INVALID_ARGUMENT, "filename cannot be empty.");
    leat_table *t = NULL;
    LEAT_TRY(leat_table_of(k, &t));
    pthread_mutex_lock(&t->lock);
    leat_status bad = fill(t, node, s->data);
    pthread_mutex_unlock(&t->lock);
    leat_resource_unref(&t->base);
    return bad;
}

const leat_kernel_def leat_cpu_table_file[] = {
    {.op = "InitializeTableFromTextFileV2", .run = file_run},
    {0},
};
