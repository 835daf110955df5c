/* wire_read.c -- messages from bytes; see wire.h.
 *
 * Leat does not use protobuf-c's reader because that recurses as deeply as its input demands, does
 * not say what is wrong with bad input, and loses numbers when it merges two occurrences of one
 * message. This reader makes one pass, and stores every value as soon as it is read, so that the
 * message can be freed at any time.
 *
 * Strings that are not UTF-8 are refused, as TensorFlow does, and strings with a NUL inside, which
 * a char * cannot hold.
 */
#include "proto/wire.h"
#include "proto/field.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const ProtobufCMessageDescriptor *type; /* type of the message that is read, for errors */
    const uint8_t *start, *p, *end;
    int depth;
} reader;

#define FAIL(r, code, ...)                                                                         \
    leat_status_suffix(leat_error(code, __VA_ARGS__), " (%s at byte %zu)",                         \
                       leat_proto_name((r)->type).s, (size_t)((r)->p - (r)->start))

/* ---- Numbers ---- */

/* A varint of at most max bytes. */
static leat_status read_varint(reader *r, int max, uint64_t *out)
{
    uint64_t v = 0;
    for (int i = 0; i < max; i++) {
        if (r->p + i >= r->end)
            return FAIL(r, DATA_LOSS, "message ends inside a number");
        v |= (uint64_t)(r->p[i] & 0x7f) << (7 * i);
        if (r->p[i] < 0x80) {
            r->p += i + 1;
            *out = v;
            return NULL;
        }
    }
    return FAIL(r, DATA_LOSS, "malformed number");
}

static leat_status read_fixed(reader *r, size_t n, void *out)
{
    if (n > (size_t)(r->end - r->p))
        return FAIL(r, DATA_LOSS, "message ends inside a number");
    memcpy(out, r->p, n);
    r->p += n;
    return NULL;
}

static leat_status read_length(reader *r, size_t *out)
{
    uint64_t n = 0;
    LEAT_TRY(read_varint(r, 5, &n));
    if (n > (size_t)(r->end - r->p))
        return FAIL(r, DATA_LOSS, "message is truncated: a field of %llu bytes, %zu are left",
                    (unsigned long long)n, (size_t)(r->end - r->p));
    *out = n;
    return NULL;
}

static unsigned wire_type_of(ProtobufCType t)
{
    switch (t) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

static leat_status read_number(reader *r, ProtobufCType type, leat_value *out)
{
    uint64_t u;
    if (wire_type_of(type) != PROTOBUF_C_WIRE_TYPE_VARINT)
        return read_fixed(r, leat_field_size(type), out);
    LEAT_TRY(read_varint(r, 10, &u));
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        out->u64 = u;
        break;
    case PROTOBUF_C_TYPE_SINT64:
        out->u64 = u >> 1 ^ (0 - (u & 1));
        break;
    case PROTOBUF_C_TYPE_SINT32:
        out->u32 = (uint32_t)u >> 1 ^ (0 - ((uint32_t)u & 1));
        break;
    case PROTOBUF_C_TYPE_BOOL:
        out->boolean = u != 0;
        break;
    default: /* the upper half of a 32-bit number is its sign or zero */
        out->u32 = (uint32_t)u;
    }
    return NULL;
}

/* All numbers of a packed repeated field. */
static leat_status read_packed(reader *r, const leat_field *f, ProtobufCMessage *m)
{
    size_t bytes = 0, unit = leat_field_size(f->type), n = 0;
    LEAT_TRY(read_length(r, &bytes));
    if (wire_type_of(f->type) != PROTOBUF_C_WIRE_TYPE_VARINT) {
        if (bytes % unit)
            return FAIL(r, DATA_LOSS, "field '%s' has %zu bytes, no multiple of %zu", f->name,
                        bytes, unit);
        void *to = NULL;
        if (bytes > 0) {
            LEAT_TRY(leat_field_extend(f, m, bytes / unit, &to));
            memcpy(to, r->p, bytes);
        }
        r->p += bytes;
        return NULL;
    }
    const uint8_t *outer = r->end;
    r->end = r->p + bytes;
    for (size_t i = 0; i < bytes; i++)
        n += r->p[i] < 0x80;
    if (bytes > 0 && r->end[-1] >= 0x80)
        return FAIL(r, DATA_LOSS, "field '%s' ends inside a number", f->name);
    void *first = NULL;
    if (n)
        LEAT_TRY(leat_field_extend(f, m, n, &first));
    for (char *to = first; r->p < r->end; to += unit) {
        leat_value v;
        LEAT_TRY(read_number(r, f->type, &v));
        memcpy(to, &v, unit);
    }
    r->end = outer;
    return NULL;
}

/* ---- Strings, messages, unknown fields ---- */

/* Copies the next n bytes, and appends a NUL. */
static leat_status copy_bytes(reader *r, size_t n, void *out)
{
    char *copy = malloc(n + 1);
    if (!copy)
        return FAIL(r, RESOURCE_EXHAUSTED, "no memory for a field of %zu bytes", n);
    if (n)
        memcpy(copy, r->p, n);
    copy[n] = 0;
    memcpy(out, &copy, sizeof(copy));
    return NULL;
}

static leat_status read_string(reader *r, const leat_field *f, leat_value *out)
{
    size_t n = 0;
    LEAT_TRY(read_length(r, &n));
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        const char *fault = leat_string_fault(r->p, n);
        if (fault)
            return FAIL(r, INVALID_ARGUMENT, "string field '%s' %s", f->name, fault);
        LEAT_TRY(copy_bytes(r, n, &out->string));
    } else {
        out->bytes = (ProtobufCBinaryData){.len = n};
        if (n)
            LEAT_TRY(copy_bytes(r, n, &out->bytes.data));
    }
    r->p += n;
    return NULL;
}

static leat_status read_body(reader *r, ProtobufCMessage *m, size_t n);

static leat_status read_message(reader *r, const leat_field *f, ProtobufCMessage *m)
{
    size_t n = 0;
    LEAT_TRY(read_length(r, &n));
    if (r->depth >= LEAT_PROTO_MAX_DEPTH)
        return FAIL(r, INVALID_ARGUMENT, "messages are nested deeper than %d levels",
                    LEAT_PROTO_MAX_DEPTH);
    ProtobufCMessage *child;
    LEAT_TRY(leat_field_child(f, m, &child));
    r->type = child->descriptor;
    r->depth++;
    LEAT_TRY(read_body(r, child, n));
    r->depth--;
    r->type = m->descriptor;
    return NULL;
}

static leat_status read_unknown(reader *r, uint64_t tag, ProtobufCMessage *m)
{
    const uint8_t *start = r->p;
    uint64_t v;
    size_t n = 0;
    switch (tag & 7) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        LEAT_TRY(read_varint(r, 10, &v));
        break;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        LEAT_TRY(read_fixed(r, 4, &v));
        break;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        LEAT_TRY(read_fixed(r, 8, &v));
        break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        LEAT_TRY(read_length(r, &n));
        r->p += n;
        break;
    default:
        return FAIL(r, INVALID_ARGUMENT, "field %u has wire type %u, which is not supported",
                    (unsigned)(tag >> 3), (unsigned)(tag & 7));
    }
    ProtobufCMessageUnknownField u = {.tag = (uint32_t)(tag >> 3),
                                      .wire_type = (ProtobufCWireType)(tag & 7),
                                      .len = (size_t)(r->p - start)};
    void *grown = leat_array_extend(m->unknown_fields, m->n_unknown_fields, 1, sizeof(u));
    if (!grown)
        return FAIL(r, RESOURCE_EXHAUSTED, "no memory for %u fields that are not known",
                    m->n_unknown_fields + 1);
    m->unknown_fields = grown;
    r->p = start;
    LEAT_TRY(copy_bytes(r, u.len, &u.data));
    r->p = start + u.len;
    m->unknown_fields[m->n_unknown_fields++] = u;
    return NULL;
}

/* ---- Fields ---- */

static leat_status read_field(reader *r, ProtobufCMessage *m)
{
    uint64_t tag = 0;
    LEAT_TRY(read_varint(r, 5, &tag));
    if (tag >> 32 || tag >> 3 == 0)
        return FAIL(r, DATA_LOSS, "malformed field number");
    unsigned wire = tag & 7;
    const leat_field *f =
        protobuf_c_message_descriptor_get_field(m->descriptor, (unsigned)(tag >> 3));
    if (f && f->label == PROTOBUF_C_LABEL_REPEATED && wire != wire_type_of(f->type) &&
        wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        return read_packed(r, f, m);
    if (!f || wire != wire_type_of(f->type))
        return read_unknown(r, tag, m);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return read_message(r, f, m);
    leat_value v;
    if (wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        LEAT_TRY(read_string(r, f, &v));
    else
        LEAT_TRY(read_number(r, f->type, &v));
    return leat_field_store(f, m, &v);
}

static leat_status read_body(reader *r, ProtobufCMessage *m, size_t n)
{
    const uint8_t *outer = r->end;
    r->end = r->p + n;
    while (r->p < r->end)
        LEAT_TRY(read_field(r, m));
    r->end = outer;
    return NULL;
}

leat_status leat_proto_unpack(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
                              ProtobufCMessage **out)
{
    const uint8_t *p = n ? bytes : (const void *)"";
    reader r = {.type = d, .start = p, .p = p, .end = p};
    if (n > LEAT_PROTO_MAX_SIZE)
        return FAIL(&r, INVALID_ARGUMENT,
                    "message of %zu bytes is larger than the limit (%d bytes)", n,
                    LEAT_PROTO_MAX_SIZE);
    r.end = p + n;
    ProtobufCMessage *m = leat_message_new(d);
    leat_status s = read_body(&r, m, n);
    if (s) {
        leat_proto_free(m);
        return s;
    }
    leat_message_settle(m);
    *out = m;
    return NULL;
}
