/* decode_json.c -- DecodeJSONExample: tensorflow.Example from the JSON that protobuf defines for
 * it:
 *
 *     {"features": {"feature": {"a": {"floatList": {"value": [1, "NaN"]}},
 *                               "b": {"bytesList": {"value": ["aGk="]}},
 *                               "c": {"int64List": {"value": ["5", 6]}}}}}
 *
 * Names of fields may also be written as in the .proto file ("float_list"), and a null is as good
 * as nothing. A text is at most LEAT_JSON_MAX_SIZE bytes long. */
#include <errno.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/strbuf.h"
#include "io/example.h"
#include "kernels/cpu/cpu.h"

#define WRONG(v, ...)                                                                              \
    leat_status_prefix(leat_error(INVALID_ARGUMENT, __VA_ARGS__),                                  \
                       "line %d, column %d: ", (v)->line, (v)->column)

static bool is_null(const leat_json *v)
{
    return v->kind == LEAT_JSON_NULL;
}

static leat_status want_object(const leat_json *v, const char *what)
{
    return v->kind == LEAT_JSON_OBJECT
               ? NULL
               : WRONG(v, "%s must be an object, but is %s", what, leat_json_kind_name(v));
}

/* ---- Values ---- */

/* The six bits of a character of base64, in its usual or its URL-safe form; -1: none. */
static int bits(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' || c == '-' ? 62
           : c == '/' || c == '_' ? 63
                                  : -1;
}

static leat_status add_bytes(leat_example *e, const char *key, const leat_json *v)
{
    if (v->kind != LEAT_JSON_STRING)
        return WRONG(v, "bytes must be a string, but are %s", leat_json_kind_name(v));
    size_t n = strlen(v->text);
    while (n && v->text[n - 1] == '=')
        n--;
    leat_strbuf b = {.checked = true};
    unsigned acc = 0;
    leat_status s = n % 4 == 1 ? WRONG(v, "the string is not base64") : NULL;
    for (size_t i = 0; i < n && !s; i++) {
        const int six = bits(v->text[i]);
        if (six < 0)
            s = WRONG(v, "'%c' is not a character of base64", v->text[i]);
        acc = acc << 6 | (unsigned)six;
        if (i % 4)
            leat_strbuf_putc(&b, (char)(acc >> (6 - 2 * (i % 4))));
    }
    if (!s)
        s = leat_strbuf_check(&b);
    if (!s)
        s = leat_example_add_bytes(e, key, b.s, b.n);
    leat_strbuf_release(&b);
    return s;
}

static leat_status want_number(const leat_json *v)
{
    return v->kind == LEAT_JSON_NUMBER || v->kind == LEAT_JSON_STRING
               ? NULL
               : WRONG(v, "a number is expected, but there is %s", leat_json_kind_name(v));
}

static leat_status add_float(leat_example *e, const char *key, const leat_json *v)
{
    char *end;
    LEAT_TRY(want_number(v));
    const float f = strtof(v->text, &end);
    const bool word = isnan(f) || isinf(f);
    if (end == v->text || *end ||
        (word && strcmp(v->text, "NaN") != 0 && strcmp(v->text, "Infinity") != 0 &&
         strcmp(v->text, "-Infinity") != 0))
        return WRONG(v, "\"%.100s\" is not a float", v->text);
    return leat_example_add_floats(e, key, &f, 1);
}

static leat_status add_int(leat_example *e, const char *key, const leat_json *v)
{
    char *end;
    LEAT_TRY(want_number(v));
    errno = 0;
    int64_t i = strtoll(v->text, &end, 10);
    bool good = end != v->text && !*end && !errno;
    if (!good && v->kind == LEAT_JSON_NUMBER) { /* 1e3 is an integer, too */
        const double d = strtod(v->text, &end);
        good = d >= -0x1p63 && d < 0x1p63 && d == (double)(int64_t)d;
        i = good ? (int64_t)d : 0;
    }
    if (!good)
        return WRONG(v, "\"%.100s\" is not an int64", v->text);
    return leat_example_add_ints(e, key, &i, 1);
}

/* ---- Messages ---- */

typedef struct list_kind {
    const char *names[2];
    leat_status (*add)(leat_example *e, const char *key, const leat_json *v);
    leat_dtype kind;
} list_kind;

static const list_kind kinds[] = {
    {{"bytesList", "bytes_list"}, add_bytes, LEAT_STRING},
    {{"floatList", "float_list"}, add_float, LEAT_FLOAT},
    {{"int64List", "int64_list"}, add_int, LEAT_INT64},
};

/* {"value": [...]} */
static leat_status read_list(leat_example *e, const char *key, const leat_json *v,
                             const list_kind *k)
{
    LEAT_TRY(want_object(v, k->names[0]));
    LEAT_TRY(leat_example_add_none(e, key, k->kind)); /* an empty list has a kind, too */
    for (const leat_json *f = v->first; f; f = f->next) {
        if (strcmp(f->key, "value") != 0)
            return WRONG(f, "%s: Cannot find field.", f->key);
        if (is_null(f))
            continue;
        if (f->kind != LEAT_JSON_LIST)
            return WRONG(f, "value must be a list, but is %s", leat_json_kind_name(f));
        for (const leat_json *x = f->first; x; x = x->next)
            LEAT_TRY(k->add(e, key, x));
    }
    return NULL;
}

/* {"floatList": ...} */
static leat_status read_feature(leat_example *e, const leat_json *v)
{
    const leat_json *set = NULL;
    LEAT_TRY(want_object(v, "a feature"));
    LEAT_TRY(leat_example_add_none(e, v->key, LEAT_INVALID));
    for (const leat_json *f = v->first; f; f = f->next) {
        const list_kind *k = NULL;
        for (int i = 0; i < 3; i++)
            if (strcmp(f->key, kinds[i].names[0]) == 0 || strcmp(f->key, kinds[i].names[1]) == 0)
                k = &kinds[i];
        if (!k)
            return WRONG(f, "%s: Cannot find field.", f->key);
        if (is_null(f))
            continue;
        if (set)
            return WRONG(f, "a feature has a %s and a %s", set->key, f->key);
        set = f;
        LEAT_TRY(read_list(e, v->key, f, k));
    }
    return NULL;
}

/* The member of this name, the only one that v may have; NULL: there is none. */
static leat_status only_member(const leat_json *v, const char *what, const char *name,
                               const leat_json **out)
{
    *out = NULL;
    LEAT_TRY(want_object(v, what));
    for (const leat_json *f = v->first; f; f = f->next) {
        if (strcmp(f->key, name) != 0)
            return WRONG(f, "%s: Cannot find field.", f->key);
        *out = is_null(f) ? NULL : f;
    }
    return NULL;
}

static leat_status read_example(leat_example *e, const leat_json *v)
{
    const leat_json *features, *map = NULL;
    LEAT_TRY(only_member(v, "an Example", "features", &features));
    if (features)
        LEAT_TRY(only_member(features, "features", "feature", &map));
    if (map)
        LEAT_TRY(want_object(map, "feature"));
    for (const leat_json *f = map ? map->first : NULL; f; f = f->next)
        LEAT_TRY(read_feature(e, f));
    return NULL;
}

static leat_status decode(const leat_string *x, leat_string *y)
{
    const char *text = x->data ? x->data : "";
    LEAT_REQUIRE(strlen(text) == x->size, INVALID_ARGUMENT, "the text has a NUL in it");
    leat_arena arena;
    leat_example *e = leat_example_new();
    const leat_json *v = NULL;
    leat_arena_init(&arena);
    leat_status s = leat_json_read(&arena, text, &v);
    if (!s)
        s = read_example(e, v);
    void *bytes = NULL;
    size_t n = 0;
    if (!s)
        s = leat_example_encode(e, &bytes, &n);
    leat_arena_release(&arena);
    leat_example_free(e);
    LEAT_TRY(s);
    free(y->data);
    if (!n)
        free(bytes);
    *y = (leat_string){n ? bytes : NULL, n};
    return NULL;
}

static leat_status decode_json(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    for (int64_t i = 0; i < x->count; i++) {
        LEAT_TRY(leat_kernel_check(k));
        leat_status s = decode(AT(leat_string, x) + i, AT(leat_string, y) + i);
        if (s)
            return leat_status_prefix(s, "Error while parsing JSON: ");
    }
    return NULL;
}

const leat_kernel_def leat_cpu_decode_json[] = {
    {.op = "DecodeJSONExample", .run = decode_json, .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
