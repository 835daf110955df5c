/* example.c -- Examples and SequenceExamples for programs (leat/io.h). The graph's ops do not use
 * this: they read features where they lie (proto/example.h). */
#include "io/example.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/buffer.h"
#include "core/map.h"
#include "core/object.h"
#include "io/coding.h"
#include "proto/example.h"

typedef struct feature {
    leat_dtype kind;    /* STRING, FLOAT, INT64; INVALID: none yet */
    leat_strbuf values; /* floats, int64s, or the fields of a BytesList */
} feature;

typedef struct feature_list {
    feature **v;
    int64_t n, cap;
} feature_list;

/* Field 1 of both messages is the map of features, so that one encoding serves both. */
struct leat_example {
    leat_object object;
    leat_map features, lists;
};

enum { BYTES = 0x0a, FLOATS = 0x12, INTS = 0x1a, FIRST = 0x0a, SECOND = 0x12 }; /* tags */

leat_example *leat_example_new(void)
{
    return leat_new_object(leat_example, EXAMPLE);
}

static void feature_free(feature *f)
{
    leat_strbuf_release(&f->values);
    free(f);
}

void leat_example_free(leat_example *e)
{
    if (!e || !LEAT_USABLE(EXAMPLE, e))
        return;
    size_t i = 0;
    const char *key;
    void *value;
    while (leat_map_next(&e->features, &i, &key, &value))
        feature_free(value);
    i = 0;
    while (leat_map_next(&e->lists, &i, &key, &value)) {
        feature_list *l = value;
        for (int64_t j = 0; j < l->n; j++)
            feature_free(l->v[j]);
        free(l->v);
        free(l);
    }
    leat_map_release(&e->features);
    leat_map_release(&e->lists);
    leat_object_free(&e->object);
}

/* ---- Adding values ---- */

static feature *feature_new(void)
{
    feature *f = leat_new(feature);
    f->values.checked = true;
    return f;
}

static feature *feature_at(leat_example *e, const char *key, size_t n)
{
    feature *f = leat_map_get_n(&e->features, key, n);
    if (!f) {
        f = feature_new();
        leat_map_put_n(&e->features, key, n, f);
    }
    return f;
}

static const char *kind_name(leat_dtype kind)
{
    return kind == LEAT_STRING ? "byte strings" : kind == LEAT_FLOAT ? "floats" : "int64s";
}

static leat_status set_kind(feature *f, const char *key, leat_dtype kind)
{
    LEAT_REQUIRE(f->kind == LEAT_INVALID || f->kind == kind, INVALID_ARGUMENT,
                 "The feature '%s' has %s: no %s can be added to it", key, kind_name(f->kind),
                 kind_name(kind));
    f->kind = kind;
    return NULL;
}

leat_status leat_example_add_none(leat_example *e, const char *key, leat_dtype kind)
{
    return set_kind(feature_at(e, key, strlen(key)), key, kind);
}

static leat_status add(feature *f, const char *key, leat_dtype kind, const void *v, size_t size)
{
    LEAT_TRY(set_kind(f, key, kind));
    LEAT_TRY(leat_strbuf_reserve(&f->values, size + 16));
    if (kind == LEAT_STRING) {
        leat_strbuf_putc(&f->values, FIRST);
        leat_put_varint(&f->values, size);
    }
    leat_strbuf_add(&f->values, v, size);
    return NULL;
}

static leat_status check_count(int64_t n)
{
    LEAT_REQUIRE(n >= 0 && n < INT32_MAX, INVALID_ARGUMENT, "%lld values cannot be added",
                 (long long)n);
    return NULL;
}

leat_status leat_example_add_bytes(leat_example *e, const char *key, const void *bytes, size_t size)
{
    LEAT_CHECK(EXAMPLE, e);
    LEAT_CHECK_ARG(key);
    return add(feature_at(e, key, strlen(key)), key, LEAT_STRING, bytes, size);
}

leat_status leat_example_add_floats(leat_example *e, const char *key, const float *v, int64_t n)
{
    LEAT_CHECK(EXAMPLE, e);
    LEAT_CHECK_ARG(key);
    LEAT_TRY(check_count(n));
    return add(feature_at(e, key, strlen(key)), key, LEAT_FLOAT, v, sizeof(*v) * (size_t)n);
}

leat_status leat_example_add_ints(leat_example *e, const char *key, const int64_t *v, int64_t n)
{
    LEAT_CHECK(EXAMPLE, e);
    LEAT_CHECK_ARG(key);
    LEAT_TRY(check_count(n));
    return add(feature_at(e, key, strlen(key)), key, LEAT_INT64, v, sizeof(*v) * (size_t)n);
}

/* ---- Lists ---- */

static feature_list *list_at(leat_example *e, const char *key, size_t n)
{
    feature_list *l = leat_map_get_n(&e->lists, key, n);
    if (!l) {
        l = leat_new(feature_list);
        leat_map_put_n(&e->lists, key, n, l);
    }
    return l;
}

static feature *list_append(feature_list *l)
{
    leat_grow(l->v, l->n, l->cap);
    return l->v[l->n++] = feature_new();
}

leat_status leat_example_list_next(leat_example *e, const char *key)
{
    LEAT_CHECK(EXAMPLE, e);
    LEAT_CHECK_ARG(key);
    list_append(list_at(e, key, strlen(key)));
    return NULL;
}

static leat_status list_last(leat_example *e, const char *key, feature **out)
{
    LEAT_CHECK(EXAMPLE, e);
    LEAT_CHECK_ARG(key);
    const feature_list *l = leat_map_get(&e->lists, key);
    LEAT_REQUIRE(l && l->n, FAILED_PRECONDITION,
                 "The list '%s' has no feature yet: call leat_example_list_next first", key);
    *out = l->v[l->n - 1];
    return NULL;
}

leat_status leat_example_list_add_bytes(leat_example *e, const char *key, const void *bytes,
                                        size_t size)
{
    feature *f;
    LEAT_TRY(list_last(e, key, &f));
    return add(f, key, LEAT_STRING, bytes, size);
}

leat_status leat_example_list_add_floats(leat_example *e, const char *key, const float *v,
                                         int64_t n)
{
    feature *f;
    LEAT_TRY(list_last(e, key, &f));
    LEAT_TRY(check_count(n));
    return add(f, key, LEAT_FLOAT, v, sizeof(*v) * (size_t)n);
}

leat_status leat_example_list_add_ints(leat_example *e, const char *key, const int64_t *v,
                                       int64_t n)
{
    feature *f;
    LEAT_TRY(list_last(e, key, &f));
    LEAT_TRY(check_count(n));
    return add(f, key, LEAT_INT64, v, sizeof(*v) * (size_t)n);
}

/* ---- Encoding ---- */

/* A field of bytes. */
static void put_field(leat_strbuf *b, char tag, const void *bytes, size_t n)
{
    leat_strbuf_putc(b, tag);
    leat_put_varint(b, n);
    leat_strbuf_add(b, bytes, n);
}

static void put_field_of(leat_strbuf *b, char tag, leat_strbuf *inner)
{
    leat_status s = leat_strbuf_check(inner);
    if (s && !b->lacking)
        b->lacking = inner->lacking;
    leat_status_free(s);
    put_field(b, tag, inner->s, inner->n);
    leat_strbuf_release(inner);
}

static leat_strbuf packed_ints(const feature *f)
{
    leat_strbuf b = {.checked = true};
    for (size_t i = 0; i + 8 <= f->values.n; i += 8)
        leat_put_varint(&b, leat_get_fixed64(f->values.s + i));
    return b;
}

static leat_strbuf encode_feature(const feature *f)
{
    leat_strbuf b = {.checked = true}, list = {.checked = true};
    if (f->kind == LEAT_INVALID)
        return b;
    if (f->kind == LEAT_STRING) {
        leat_strbuf_add(&list, f->values.s, f->values.n);
    } else if (f->kind == LEAT_FLOAT && f->values.n) {
        put_field(&list, FIRST, f->values.s, f->values.n);
    } else if (f->values.n) {
        leat_strbuf ints = packed_ints(f);
        put_field_of(&list, FIRST, &ints);
    }
    put_field_of(&b, f->kind == LEAT_STRING ? BYTES : f->kind == LEAT_FLOAT ? FLOATS : INTS, &list);
    return b;
}

static leat_strbuf encode_list(const feature_list *l)
{
    leat_strbuf b = {.checked = true};
    for (int64_t i = 0; i < l->n; i++) {
        leat_strbuf f = encode_feature(l->v[i]);
        put_field_of(&b, FIRST, &f);
    }
    return b;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static leat_strbuf encode_map(const leat_map *m, bool lists)
{
    leat_strbuf b = {.checked = true};
    const char **keys = leat_new_array(const char *, m->n + 1);
    size_t i = 0, n = 0;
    void *value;
    while (leat_map_next(m, &i, &keys[n], &value))
        n++;
    qsort(keys, n, sizeof(*keys), by_name);
    for (i = 0; i < n; i++) {
        leat_strbuf entry = {.checked = true};
        value = leat_map_get(m, keys[i]);
        leat_strbuf v = lists ? encode_list(value) : encode_feature(value);
        put_field(&entry, FIRST, keys[i], strlen(keys[i]));
        put_field_of(&entry, SECOND, &v);
        put_field_of(&b, FIRST, &entry);
    }
    free(keys);
    return b;
}

leat_status leat_example_encode(const leat_example *e, void **bytes_out, size_t *size_out)
{
    LEAT_CHECK(EXAMPLE, e);
    leat_strbuf b = {.checked = true}, m;
    if (e->features.n) {
        m = encode_map(&e->features, false);
        put_field_of(&b, FIRST, &m);
    }
    if (e->lists.n) {
        m = encode_map(&e->lists, true);
        put_field_of(&b, SECOND, &m);
    }
    leat_status s = leat_strbuf_check(&b);
    if (!s)
        s = leat_strbuf_reserve(&b, 1); /* gives memory also for no bytes */
    if (s) {
        leat_strbuf_release(&b);
        return s;
    }
    *size_out = b.n;
    *bytes_out = leat_strbuf_take(&b);
    return NULL;
}

/* ---- Decoding ---- */

static leat_status decode_feature(leat_span bytes, feature *f)
{
    leat_span list;
    leat_dtype kind;
    LEAT_REQUIRE(leat_feature_open(bytes, &kind, &list), DATA_LOSS, "a feature is malformed");
    const int64_t n = leat_feature_count(kind, list);
    LEAT_REQUIRE(n >= 0, DATA_LOSS, "a list of %s is malformed", kind_name(kind));
    f->kind = kind;
    leat_strbuf_clear(&f->values);
    if (kind == LEAT_STRING || kind == LEAT_INVALID) {
        LEAT_TRY(leat_strbuf_reserve(&f->values, leat_span_size(list)));
        leat_strbuf_add(&f->values, list.p, leat_span_size(list));
        return NULL;
    }
    const size_t size = (size_t)n * (kind == LEAT_FLOAT ? sizeof(float) : sizeof(int64_t));
    LEAT_TRY(leat_strbuf_reserve(&f->values, size));
    leat_status s = leat_feature_copy(kind, list, f->values.s);
    if (!s)
        f->values.n = size;
    else if (leat_status_code(s) == LEAT_INVALID_ARGUMENT) {
        leat_status_free(s);
        s = leat_error(DATA_LOSS, "a list of %s is malformed", kind_name(kind));
    }
    return s;
}

static leat_status decode_list(leat_span rest, feature_list *l)
{
    leat_span one;
    bool bad = false;
    for (int64_t i = 0; i < l->n; i++) /* the last list of a key counts */
        feature_free(l->v[i]);
    l->n = 0;
    while (leat_feature_next(&rest, &one, &bad))
        LEAT_TRY(decode_feature(one, list_append(l)));
    LEAT_REQUIRE(!bad, DATA_LOSS, "a list of features is malformed");
    return NULL;
}

typedef struct decoding {
    leat_example *e;
    leat_status bad;
} decoding;

static void decode_entry(void *arg, int field, leat_span key, leat_span value)
{
    decoding *d = arg;
    const char *k = (const char *)key.p;
    const size_t n = leat_span_size(key);
    if (d->bad)
        return;
    leat_status s = memchr(k, 0, n) ? leat_error(DATA_LOSS, "a key has a NUL in it") : NULL;
    if (!s)
        s = field == LEAT_EXAMPLE_FEATURES ? decode_feature(value, feature_at(d->e, k, n))
                                           : decode_list(value, list_at(d->e, k, n));
    if (s)
        d->bad = leat_status_suffix(s, ", of the key '%.*s'", n > 100 ? 100 : (int)n, k);
}

leat_status leat_example_decode(const void *bytes, size_t size, leat_example **out)
{
    decoding d = {.e = leat_example_new()};
    const bool good = leat_example_walk(leat_span_of(bytes, size), true, decode_entry, &d);
    leat_status s = d.bad;
    if (!s && !good)
        s = leat_error(DATA_LOSS, "%zu bytes are neither an Example nor a SequenceExample", size);
    if (s)
        leat_example_free(d.e);
    else
        *out = d.e;
    return s;
}

/* ---- Values ---- */

static leat_status values_of(const feature *f, leat_tensor **out)
{
    const leat_dtype kind = f->kind == LEAT_INVALID ? LEAT_FLOAT : f->kind;
    const leat_span bytes = leat_span_of(f->values.s, f->values.n);
    if (kind != LEAT_STRING) {
        const int64_t n = (int64_t)(f->values.n / leat_dtype_size(kind));
        return leat_tensor_copy_of(kind, leat_shape(n), leat_strbuf_text(&f->values), out);
    }
    leat_tensor *t;
    LEAT_TRY(leat_tensor_new(LEAT_STRING, leat_shape(leat_feature_count(kind, bytes)), &t));
    leat_status s = leat_feature_copy(kind, bytes, t->data);
    if (s)
        leat_tensor_unref(t);
    else
        *out = t;
    return s;
}

leat_status leat_example_feature(const leat_example *e, const char *key, leat_tensor **out)
{
    LEAT_CHECK(EXAMPLE, e);
    LEAT_CHECK_ARG(key);
    const feature *f = leat_map_get(&e->features, key);
    LEAT_REQUIRE(f, NOT_FOUND, "The example has no feature '%s'", key);
    return values_of(f, out);
}

int64_t leat_example_list_size(const leat_example *e, const char *key)
{
    const feature_list *l = LEAT_USABLE(EXAMPLE, e) && key ? leat_map_get(&e->lists, key) : NULL;
    return l ? l->n : -1;
}

leat_status leat_example_list_feature(const leat_example *e, const char *key, int64_t i,
                                      leat_tensor **out)
{
    LEAT_CHECK(EXAMPLE, e);
    LEAT_CHECK_ARG(key);
    const feature_list *l = leat_map_get(&e->lists, key);
    LEAT_REQUIRE(l, NOT_FOUND, "The example has no list '%s'", key);
    LEAT_REQUIRE(i >= 0 && i < l->n, OUT_OF_RANGE,
                 "The list '%s' has %lld features, there is none of index %lld", key,
                 (long long)l->n, (long long)i);
    return values_of(l->v[i], out);
}
