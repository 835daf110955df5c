/* wire_write.c -- messages to bytes; see wire.h.
 *
 * The writer goes from the last field to the first and fills its memory from the end, so that the
 * length of a message is known when the writer comes to the bytes in front of the message, which
 * hold its length.
 */
#include "proto/wire.h"
#include "core/alloc.h"
#include "proto/field.h"

#include <stdlib.h>
#include <string.h>

atomic_size_t leat_proto_pack_max = LEAT_PROTO_MAX_SIZE;

typedef struct writer {
    /* NULL from where the message is beyond the limit or memory has run out: the bytes of the rest
     * of the message are only counted. */
    uint8_t *buf;
    size_t size; /* of buf */
    size_t used; /* bytes of the message so far; the last `used` bytes of buf hold them */
    size_t max;  /* leat_proto_pack_max when the message was begun */
} writer;

static void resize(writer *w, size_t size)
{
    uint8_t *buf = malloc(size);
    if (buf)
        memcpy(buf + size - w->used, w->buf + w->size - w->used, w->used);
    free(w->buf);
    w->buf = buf;
    w->size = size;
}

static void put(writer *w, const void *bytes, size_t n)
{
    if (w->buf && n > w->size - w->used)
        resize(w, w->size * 2 + n);
    w->used += n;
    if (w->used > w->max) {
        free(w->buf);
        w->buf = NULL;
    }
    if (w->buf && n)
        memcpy(w->buf + w->size - w->used, bytes, n);
}

static void put_varint(writer *w, uint64_t v)
{
    uint8_t b[10];
    size_t n = 0;
    while (v >= 0x80) {
        b[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    b[n++] = (uint8_t)v;
    put(w, b, n);
}

static void put_message(writer *w, const ProtobufCMessage *m);

static void put_bytes(writer *w, const void *bytes, size_t n)
{
    put(w, bytes, n);
    put_varint(w, n);
}

/* Writes one value without its tag. Gives its wire type. */
static unsigned put_value(writer *w, const leat_field *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        put_varint(w, (uint64_t)(int64_t) * (const int32_t *)at);
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    case PROTOBUF_C_TYPE_SINT32: {
        int32_t v = *(const int32_t *)at;
        put_varint(w, ((uint32_t)v << 1) ^ (uint32_t)(v < 0 ? -1 : 0));
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
    case PROTOBUF_C_TYPE_SINT64: {
        int64_t v = *(const int64_t *)at;
        put_varint(w, ((uint64_t)v << 1) ^ (uint64_t)(v < 0 ? -1 : 0));
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        put_varint(w, *(const uint64_t *)at);
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    case PROTOBUF_C_TYPE_UINT32:
        put_varint(w, *(const uint32_t *)at);
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    case PROTOBUF_C_TYPE_BOOL:
        put_varint(w, *(const protobuf_c_boolean *)at != 0);
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        put(w, at, 4);
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        put(w, at, 8);
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_STRING: {
        const char *s = *(char *const *)at;
        put_bytes(w, s, s ? strlen(s) : 0);
        break;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *b = at;
        put_bytes(w, b->data, b->len);
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE: {
        size_t before = w->used;
        if (*(ProtobufCMessage *const *)at)
            put_message(w, *(ProtobufCMessage *const *)at);
        put_varint(w, w->used - before);
        break;
    }
    }
    return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
}

static void put_packed(writer *w, const leat_field *f, const void *values, size_t n)
{
    size_t size = leat_field_size(f->type), before = w->used;
    if (f->type == PROTOBUF_C_TYPE_FLOAT || f->type == PROTOBUF_C_TYPE_DOUBLE)
        put(w, values, n * size); /* the byte order in memory is that of the wire */
    else
        for (size_t i = n; i-- > 0;)
            put_value(w, f, (const char *)values + i * size);
    put_varint(w, w->used - before);
    put_varint(w, f->id << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
}

static void put_map(writer *w, const leat_field *f, const ProtobufCMessage *m, size_t n)
{
    ProtobufCMessage **entries = *(ProtobufCMessage ***)leat_field_at(f, m), **sorted = NULL;
    if (!leat_map_is_sorted(entries, n)) {
        entries = sorted =
            memcpy(leat_new_array(ProtobufCMessage *, n), entries, n * sizeof(*entries));
        n = leat_map_sort(sorted, n, NULL);
    }
    while (n-- > 0) {
        put_value(w, f, &entries[n]);
        put_varint(w, f->id << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    }
    free(sorted);
}

static void put_message(writer *w, const ProtobufCMessage *m)
{
    bool entry =
        leat_message_is_entry(m->descriptor); /* an entry always has both fields, and no others */
    for (size_t i = entry ? 0 : m->n_unknown_fields; i-- > 0;) {
        const ProtobufCMessageUnknownField *u = &m->unknown_fields[i];
        put(w, u->data, u->len);
        put_varint(w, (uint64_t)u->tag << 3 | u->wire_type);
    }
    for (unsigned i = m->descriptor->n_fields; i-- > 0;) {
        const leat_field *f = &m->descriptor->fields[i];
        size_t n = entry ? 1 : leat_field_count(f, m);
        if (n == 0)
            continue;
        if (f->flags & PROTOBUF_C_FIELD_FLAG_PACKED)
            put_packed(w, f, leat_field_value(f, m, 0), n);
        else if (n > 1 && leat_field_is_map(f))
            put_map(w, f, m, n);
        else
            while (n-- > 0) {
                unsigned wire = put_value(w, f, leat_field_value(f, m, n));
                put_varint(w, f->id << 3 | wire);
            }
    }
}

leat_status leat_proto_pack(const void *message, leat_strbuf *out)
{
    enum { FIRST_SIZE = 1024 };
    const ProtobufCMessage *m = message;
    writer w = {.buf = leat_xmalloc(FIRST_SIZE),
                .size = FIRST_SIZE,
                .max = atomic_load(&leat_proto_pack_max)};
    put_message(&w, m);
    const bool written = w.buf;
    leat_status s = written ? leat_strbuf_reserve(out, w.used) : NULL;
    if (written && !s)
        leat_strbuf_add(out, w.buf + w.size - w.used, w.used);
    free(w.buf);
    LEAT_TRY(s);
    LEAT_REQUIRE(w.used <= w.max, INVALID_ARGUMENT,
                 "Cannot serialize protocol buffer of type %s as the serialized size (%zu bytes) "
                 "would be larger than the limit (%zu bytes)",
                 leat_proto_name(m->descriptor).s, w.used, w.max);
    LEAT_REQUIRE(written, RESOURCE_EXHAUSTED, "No memory to serialize %zu bytes of type %s", w.used,
                 leat_proto_name(m->descriptor).s);
    return NULL;
}

leat_status leat_proto_bytes(const void *message, void **bytes_out, size_t *size_out)
{
    leat_strbuf b = {0};
    leat_status s = leat_proto_pack(message, &b);
    if (s) {
        leat_strbuf_release(&b);
        return s;
    }
    *size_out = b.n;
    *bytes_out = leat_strbuf_take(&b);
    return NULL;
}
