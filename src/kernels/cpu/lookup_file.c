/* lookup_file.c -- InitializeTableFromTextFile: a table from the lines of a file. A key, or a
 * value, is a column of a line, the whole line (-2), or its number (-1). */
#include <errno.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "io/file.h"
#include "kernels/cpu/lookup.h"

enum { LINE_NUMBER = -1, WHOLE_LINE = -2 };

typedef struct source {
    const char *path;
    int64_t lines; /* to be read; -1: all */
    char delimiter;
    int64_t key_index, value_index;
} source;

static leat_status check_indices(const source *f, leat_dtype key, leat_dtype value)
{
    LEAT_REQUIRE(f->key_index != LINE_NUMBER || key == LEAT_INT64, INVALID_ARGUMENT,
                 "Key index for line number requires table key dtype of int64, got %s",
                 leat_dtype_name(key));
    LEAT_REQUIRE(f->value_index != LINE_NUMBER || value == LEAT_INT64, INVALID_ARGUMENT,
                 "Value index for line number requires table value dtype of int64, got %s",
                 leat_dtype_name(value));
    LEAT_REQUIRE(f->value_index != WHOLE_LINE || value == LEAT_STRING, INVALID_ARGUMENT,
                 "Value index for whole line requires table value dtype of string, got %s",
                 leat_dtype_name(value));
    return NULL;
}

/* Element i of t, from the n bytes of a field, which end with a NUL. */
static leat_status set_field(leat_tensor *t, int64_t i, const char *field, size_t n)
{
    char *end = NULL;
    errno = 0;
    if (t->dtype == LEAT_STRING) {
        LEAT_REQUIRE(leat_string_set(AT(leat_string, t) + i, field, n), RESOURCE_EXHAUSTED,
                     "No memory for a field of %zu bytes", n);
        return NULL;
    }
    if (t->dtype == LEAT_INT32 || t->dtype == LEAT_INT64) {
        long long v = strtoll(field, &end, 10);
        bool fits = errno == 0 && (t->dtype == LEAT_INT64 || (v >= INT32_MIN && v <= INT32_MAX));
        if (t->dtype == LEAT_INT64)
            AT(int64_t, t)[i] = v;
        else
            AT(int32_t, t)[i] = fits ? (int32_t)v : 0;
        end = fits ? end : NULL;
    } else if (t->dtype == LEAT_FLOAT) {
        AT(float, t)[i] = strtof(field, &end);
    } else if (t->dtype == LEAT_DOUBLE) {
        AT(double, t)[i] = strtod(field, &end);
    } else {
        return leat_error(INVALID_ARGUMENT, "Data type %s not supported.",
                          leat_dtype_name(t->dtype));
    }
    LEAT_REQUIRE(end && end != field && *end == 0, INVALID_ARGUMENT,
                 "Field %s in line %lld is not a valid %s.", field, (long long)i,
                 leat_dtype_name(t->dtype));
    return NULL;
}

/* Column `index` of a line, which is temporarily terminated there. */
static leat_status set_column(const source *f, leat_tensor *t, int64_t i, char *line, int64_t index)
{
    if (index == LINE_NUMBER) {
        AT(int64_t, t)[i] = i;
        return NULL;
    }
    char *field = line;
    for (int64_t c = 0; c < index; c++)
        field = strchr(field, f->delimiter) + 1;
    char *end = index == WHOLE_LINE ? NULL : strchr(field, f->delimiter);
    if (end)
        *end = 0;
    leat_status s = set_field(t, i, field, strlen(field));
    if (end)
        *end = f->delimiter;
    return s;
}

static leat_status check_columns(const source *f, const char *line, int64_t i)
{
    int64_t need = f->key_index > f->value_index ? f->key_index : f->value_index, columns = 1;
    for (const char *p = line; (p = strchr(p, f->delimiter)); p++)
        columns++;
    LEAT_REQUIRE(need < columns, INVALID_ARGUMENT,
                 "Invalid number of columns in %s line %lld (%s) : expected %lld got %lld", f->path,
                 (long long)i, line, (long long)need, (long long)columns);
    return NULL;
}

/* The line that starts at *text and ends at its newline; NULL when there are no more. */
static char *next_line(char **text, const char *end)
{
    char *line = *text;
    if (line >= end)
        return NULL;
    char *stop = memchr(line, '\n', (size_t)(end - line));
    char *last = stop ? stop : line + (end - line);
    *last = 0;
    *text = last + 1;
    if (last > line && last[-1] == '\r')
        last[-1] = 0;
    return line;
}

static leat_status read_lines(const source *f, char *text, size_t n, leat_tensor *keys,
                              leat_tensor *values)
{
    char *at = text, *line;
    for (int64_t i = 0; i < keys->count && (line = next_line(&at, text + n)); i++) {
        LEAT_REQUIRE(*line, INVALID_ARGUMENT,
                     "Invalid content in %s: empty line found at position %lld.", f->path,
                     (long long)(at - text));
        LEAT_TRY(check_columns(f, line, i));
        LEAT_TRY(set_column(f, keys, i, line, f->key_index));
        LEAT_TRY(set_column(f, values, i, line, f->value_index));
    }
    return NULL;
}

static int64_t count_lines(const char *text, size_t n)
{
    int64_t lines = n && text[n - 1] != '\n';
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Gives a key and a value for each line. */
static leat_status read_pairs(const source *f, leat_dtype key, leat_dtype value,
                              leat_tensor **keys_out, leat_tensor **values_out)
{
    char *text;
    size_t n;
    LEAT_TRY(check_indices(f, key, value));
    LEAT_TRY(leat_file_read(f->path, &text, &n));
    int64_t lines = count_lines(text, n);
    leat_tensor *keys = NULL, *values = NULL;
    leat_status s = NULL;
    if (f->lines >= 0 && lines < f->lines)
        s = leat_error(INVALID_ARGUMENT, "Invalid vocab_size in %s: expected %lld but got %lld",
                       f->path, (long long)f->lines, (long long)lines);
    lines = f->lines >= 0 ? f->lines : lines;
    if (!s)
        s = leat_tensor_new(key, leat_shape(lines), &keys);
    if (!s)
        s = leat_tensor_new(value, leat_shape(lines), &values);
    if (!s)
        s = read_lines(f, text, n, keys, values);
    free(text);
    if (s) {
        leat_tensor_unref(keys);
        leat_tensor_unref(values);
        return s;
    }
    *keys_out = keys;
    *values_out = values;
    return NULL;
}

leat_status leat_vocabulary_read(const char *path, int64_t lines, leat_tensor **tokens_out)
{
    const source f = {path, lines, '\t', WHOLE_LINE, LINE_NUMBER};
    leat_tensor *numbers;
    LEAT_TRY(read_pairs(&f, LEAT_STRING, LEAT_INT64, tokens_out, &numbers));
    leat_tensor_unref(numbers);
    return NULL;
}

static leat_status fill(const source *f, leat_resource *table, leat_dtype key, leat_dtype value)
{
    leat_tensor *keys, *values;
    LEAT_TRY(read_pairs(f, key, value, &keys, &values));
    leat_status s = leat_lookup_fill(table, keys, values);
    leat_tensor_unref(keys);
    leat_tensor_unref(values);
    return s;
}

static leat_status from_file(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *name = leat_kernel_in(k, 1);
    const char *delimiter = leat_node_string(n, "delimiter");
    LEAT_REQUIRE(name->count == 1, INVALID_ARGUMENT,
                 "filename should be a single string, but got %s", leat_shape_show(&name->shape).s);
    LEAT_REQUIRE(strlen(delimiter) == 1, INVALID_ARGUMENT, "delimiter should be only 1 char");
    const char *path = AT(leat_string, name)[0].data;
    LEAT_REQUIRE(path, INVALID_ARGUMENT, "filename cannot be empty.");
    source f = {path, leat_node_int(n, "vocab_size"), delimiter[0], leat_node_int(n, "key_index"),
                leat_node_int(n, "value_index")};
    leat_dtype key, value;
    leat_resource *table;
    LEAT_TRY(leat_lookup_find(k, &key, &value, &table));
    leat_status s = fill(&f, table, key, value);
    leat_resource_unref(table);
    return s;
}

const leat_kernel_def leat_cpu_lookup_file[] = {
    {.op = "InitializeTableFromTextFile", .run = from_file, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "InitializeTableFromTextFileV2", .run = from_file, .flags = LEAT_KERNEL_BLOCKS},
    {0},
};
