/* field.c -- reading protobuf-c's structs by their descriptors; see field.h. */
#include "proto/field.h"
#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

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

/* A field of proto3 without presence: is it at its default? Floats by their bits: -0 is a value. */
static bool is_default(const leat_field *f, const void *at)
{
    static const char zero[8];
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        return !*(char *const *)at || !**(char *const *)at;
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)at)->len == 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return !*(void *const *)at;
    default:
        return memcmp(at, zero, leat_field_size(f->type)) == 0;
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

/* Strings compare by their bytes, numbers as numbers, as protobuf does. */
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
    size_t rank; /* where it stood: makes the sort stable */
} ranked;

static int ranked_compare(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int c = key_compare(x->entry, y->entry);
    return c ? c : (x->rank > y->rank) - (x->rank < y->rank);
}

size_t leat_map_sort(ProtobufCMessage **entries, size_t n, ProtobufCMessage **dropped)
{
    size_t i = 1, kept = 0;
    while (i < n && key_compare(entries[i - 1], entries[i]) < 0)
        i++;
    if (i >= n)
        return n;
    ranked *r = leat_new_array(ranked, n);
    for (i = 0; i < n; i++)
        r[i] = (ranked){entries[i], i};
    qsort(r, n, sizeof(*r), ranked_compare);
    for (i = 0; i < n; i++) {
        bool last = i + 1 == n || key_compare(r[i].entry, r[i + 1].entry) != 0;
        if (last)
            entries[kept++] = r[i].entry;
        else if (dropped)
            *dropped++ = r[i].entry;
    }
    free(r);
    return kept;
}

ProtobufCMessage *leat_message_new(const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = leat_xcalloc(1, d->sizeof_message);
    protobuf_c_message_init(d, m);
    return m;
}

static void settle_map(const leat_field *f, ProtobufCMessage *m)
{
    size_t *n = leat_field_quantifier(f, m);
    ProtobufCMessage **entries = *(ProtobufCMessage ***)leat_field_at(f, m);
    ProtobufCMessage **dropped = leat_new_array(ProtobufCMessage *, *n);
    size_t kept = leat_map_sort(entries, *n, dropped);
    for (size_t i = 0; i < *n - kept; i++)
        protobuf_c_message_free_unpacked(dropped[i], NULL);
    free(dropped);
    *n = kept;
    const leat_field *value = &leat_field_message(f)->fields[1];
    for (size_t i = 0; value->type == PROTOBUF_C_TYPE_MESSAGE && i < kept; i++) {
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
