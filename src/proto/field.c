/* field.c -- access to the fields of protobuf-c's structs by their descriptors; see field.h. */
#include "proto/field.h"
#include "core/alloc.h"
#include "proto/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static leat_text renamed(const char *name, const char *package)
{
    leat_text t;
    snprintf(t.s, sizeof(t.s), "tensorflow%s", name + strlen(package));
    return t;
}

leat_text leat_proto_name(const ProtobufCMessageDescriptor *d)
{
    return renamed(d->name, d->package_name);
}

leat_text leat_proto_enum_name(const ProtobufCEnumDescriptor *d)
{
    return renamed(d->name, d->package_name);
}

ProtobufCMessage *leat_message_new(const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = leat_xmalloc(d->sizeof_message);
    protobuf_c_message_init(d, m); /* writes all of it */
    return m;
}

void leat_proto_free(void *message)
{
    if (message)
        protobuf_c_message_free_unpacked(message, NULL);
}

/* ---- Reading fields ---- */

size_t leat_field_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default: /* 32-bit numbers, enums and booleans, which are ints */
        return 4;
    }
}

bool leat_message_is_entry(const ProtobufCMessageDescriptor *d)
{
    size_t n = strlen(d->short_name);
    return d->n_fields == 2 && n > 5 && memcmp(d->short_name + n - 5, "Entry", 5) == 0 &&
           d->fields[0].id == 1 && strcmp(d->fields[0].name, "key") == 0 && d->fields[1].id == 2 &&
           strcmp(d->fields[1].name, "value") == 0;
}

bool leat_field_is_map(const leat_field *f)
{
    return f->label == PROTOBUF_C_LABEL_REPEATED && f->type == PROTOBUF_C_TYPE_MESSAGE &&
           leat_message_is_entry(leat_field_message(f));
}

/* Whether a field of proto3 without presence has its default value. Floats are compared by their
 * bits: -0 is not the default. */
static bool is_default(const leat_field *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        return !*(char *const *)at || !**(char *const *)at;
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)at)->len == 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return !*(void *const *)at;
    default:
        return leat_field_size(f->type) == 8 ? !*(const uint64_t *)at : !*(const uint32_t *)at;
    }
}

size_t leat_field_count(const leat_field *f, const ProtobufCMessage *m)
{
    const void *at = leat_field_at(f, m), *q = leat_field_quantifier(f, m);
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)q;
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)q == f->id;
    if (f->label == PROTOBUF_C_LABEL_REQUIRED)
        return 1;
    if (f->label == PROTOBUF_C_LABEL_NONE)
        return !is_default(f, at);
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(void *const *)at && *(void *const *)at != f->default_value;
    return *(const protobuf_c_boolean *)q != 0;
}

const void *leat_field_value(const leat_field *f, const ProtobufCMessage *m, size_t i)
{
    const void *at = leat_field_at(f, m);
    if (f->label != PROTOBUF_C_LABEL_REPEATED)
        return at;
    return *(const char *const *)at + i * leat_field_size(f->type);
}

/* ---- Setting fields ---- */

static size_t power_of_two(size_t n) /* the least that is not below n; 0 for 0 */
{
    return n < 2 ? n : (size_t)1 << (64 - __builtin_clzl(n - 1));
}

void *leat_array_extend(void *array, size_t n, size_t more, size_t size)
{
    size_t room = power_of_two(n);
    return n + more <= room ? array : realloc(array, power_of_two(n + more) * size);
}

leat_status leat_field_extend(const leat_field *f, ProtobufCMessage *m, size_t n, void **out)
{
    size_t *count = leat_field_quantifier(f, m), size = leat_field_size(f->type);
    void **array = leat_field_at(f, m), *grown = leat_array_extend(*array, *count, n, size);
    LEAT_REQUIRE(grown, RESOURCE_EXHAUSTED, "no memory for %zu values of field '%s'", *count + n,
                 f->name);
    *array = grown;
    *out = (char *)grown + *count * size;
    *count += n;
    return NULL;
}

/* Frees what a field that is not repeated owns. */
static void release(const leat_field *f, void *at)
{
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        if (*(char **)at != f->default_value)
            free(*(char **)at);
    } else if (f->type == PROTOBUF_C_TYPE_BYTES) {
        free(((ProtobufCBinaryData *)at)->data);
    } else if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        leat_proto_free(*(ProtobufCMessage **)at);
    }
}

/* Makes room for another value of a repeated field, which the caller sets. */
static void set_present(const leat_field *f, ProtobufCMessage *m)
{
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint32_t *which = leat_field_quantifier(f, m);
        if (*which)
            release(protobuf_c_message_descriptor_get_field(m->descriptor, *which),
                    leat_field_at(f, m));
        *which = f->id;
        return;
    }
    release(f, leat_field_at(f, m));
    if (f->label == PROTOBUF_C_LABEL_OPTIONAL && f->type != PROTOBUF_C_TYPE_STRING &&
        f->type != PROTOBUF_C_TYPE_MESSAGE)
        *(protobuf_c_boolean *)leat_field_quantifier(f, m) = 1;
}

leat_status leat_field_store(const leat_field *f, ProtobufCMessage *m, const leat_value *v)
{
    void *at = leat_field_at(f, m);
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        leat_status s = leat_field_extend(f, m, 1, &at);
        if (s) {
            release(f, (void *)v);
            return s;
        }
    } else {
        set_present(f, m);
    }
    memcpy(at, v, leat_field_size(f->type));
    return NULL;
}

leat_status leat_field_child(const leat_field *f, ProtobufCMessage *m, ProtobufCMessage **out)
{
    ProtobufCMessage **at = leat_field_at(f, m);
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        LEAT_TRY(leat_field_extend(f, m, 1, (void **)&at));
        *at = leat_message_new(leat_field_message(f));
    } else if (leat_field_count(f, m) == 0 || !*at) {
        set_present(f, m);
        *at = leat_message_new(leat_field_message(f));
    }
    *out = *at;
    return NULL;
}

/* The length of the UTF-8 sequence at s; 0 if it is invalid (overlong forms and surrogates are). */
static size_t utf8_length(const uint8_t *s, size_t n)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (len <= 1)
        return len;
    if (s[0] > 0xf4 || len > n)
        return 0;
    uint32_t c = s[0] & (0x7f >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : len;
}

const char *leat_string_fault(const void *bytes, size_t n)
{
    const uint8_t *s = bytes;
    for (size_t i = 0, len; i < n; i += len) {
        len = utf8_length(s + i, n - i);
        if (!len)
            return "contains invalid UTF-8 data";
        if (!s[i])
            return "contains a NUL byte";
    }
    return NULL;
}

/* ---- Maps ---- */

/* The order of map keys: strings by their bytes, numbers by their values, as in protobuf. */
static int key_compare(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    const leat_field *key = &a->descriptor->fields[0];
    const void *x = leat_field_at(key, a), *y = leat_field_at(key, b);
    switch (key->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *s = *(char *const *)x, *t = *(char *const *)y;
        return strcmp(s ? s : "", t ? t : "");
    }
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return (*(const uint32_t *)x > *(const uint32_t *)y) -
               (*(const uint32_t *)x < *(const uint32_t *)y);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return (*(const uint64_t *)x > *(const uint64_t *)y) -
               (*(const uint64_t *)x < *(const uint64_t *)y);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return (*(const int64_t *)x > *(const int64_t *)y) -
               (*(const int64_t *)x < *(const int64_t *)y);
    default:
        return (*(const int32_t *)x > *(const int32_t *)y) -
               (*(const int32_t *)x < *(const int32_t *)y);
    }
}

typedef struct ranked {
    ProtobufCMessage *entry;
    size_t rank; /* the position before sorting: makes the sort stable */
} ranked;

static int ranked_compare(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int c = key_compare(x->entry, y->entry);
    return c ? c : (x->rank > y->rank) - (x->rank < y->rank);
}

bool leat_map_is_sorted(ProtobufCMessage *const *entries, size_t n)
{
    size_t i = 1;
    while (i < n && key_compare(entries[i - 1], entries[i]) < 0)
        i++;
    return i >= n;
}

size_t leat_map_sort(ProtobufCMessage **entries, size_t n, ProtobufCMessage **dropped)
{
    size_t kept = 0;
    ranked *r = leat_new_array(ranked, n);
    for (size_t i = 0; i < n; i++)
        r[i] = (ranked){entries[i], i};
    qsort(r, n, sizeof(*r), ranked_compare);
    for (size_t i = 0; i < n; i++) {
        bool last = i + 1 == n || key_compare(r[i].entry, r[i + 1].entry) != 0;
        if (last)
            entries[kept++] = r[i].entry;
        else if (dropped)
            *dropped++ = r[i].entry;
    }
    free(r);
    return kept;
}

static void settle_map(const leat_field *f, ProtobufCMessage *m)
{
    size_t *n = leat_field_quantifier(f, m);
    ProtobufCMessage **entries = *(ProtobufCMessage ***)leat_field_at(f, m);
    if (!leat_map_is_sorted(entries, *n)) {
        ProtobufCMessage **dropped = leat_new_array(ProtobufCMessage *, *n);
        size_t kept = leat_map_sort(entries, *n, dropped);
        for (size_t i = 0; i < *n - kept; i++)
            leat_proto_free(dropped[i]);
        free(dropped);
        *n = kept;
    }
    const leat_field *value = &leat_field_message(f)->fields[1];
    for (size_t i = 0; value->type == PROTOBUF_C_TYPE_MESSAGE && i < *n; i++) {
        ProtobufCMessage **v = leat_field_at(value, entries[i]);
        if (!*v)
            *v = leat_message_new(leat_field_message(value));
    }
}

void leat_message_settle(ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const leat_field *f = &m->descriptor->fields[i];
        if (f->type != PROTOBUF_C_TYPE_MESSAGE || leat_field_count(f, m) == 0)
            continue;
        if (leat_field_is_map(f))
            settle_map(f, m);
        for (size_t k = 0, n = leat_field_count(f, m); k < n; k++) {
            ProtobufCMessage *child = *(ProtobufCMessage *const *)leat_field_value(f, m, k);
            if (child)
                leat_message_settle(child);
        }
    }
}
