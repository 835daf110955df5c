/* wire_check.c -- a walk over a message's bytes by its descriptor, before protobuf-c reads them.
 *
 * protobuf-c recurses as deep as its input says and answers only "no" to bad input. This walk
 * allocates nothing, bounds the depth, and says what is wrong, in which message, at which byte.
 * It also refuses strings that are not UTF-8, as TensorFlow does, and strings with a NUL inside,
 * which a char * cannot hold.
 */
#include "proto/wire_check.h"
#include "proto/field.h"
#include "proto/wire.h"

#include <string.h>

typedef struct reader {
    const ProtobufCMessageDescriptor *type; /* of the message being walked, for messages */
    const uint8_t *start, *p, *end;
    int depth;
} reader;

#define FAIL(r, code, ...)                                                                         \
    leat_status_suffix(leat_error(code, __VA_ARGS__), " (%s at byte %zu)",                         \
                       leat_proto_name((r)->type).s, (size_t)((r)->p - (r)->start))

/* A base-128 number of at most max bytes. */
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

/* The length of the UTF-8 sequence at s, 0 if there is none: no overlong forms, no surrogates. */
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

static leat_status check_string(reader *r, const leat_field *f, size_t n)
{
    const char *fault = leat_string_fault(r->p, n);
    if (fault)
        return FAIL(r, INVALID_ARGUMENT, "string field '%s' %s", f->name, fault);
    r->p += n;
    return NULL;
}

static int wire_type_of(ProtobufCType t)
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

static leat_status check_packed(reader *r, const leat_field *f, size_t n)
{
    int w = wire_type_of(f->type);
    size_t unit = w == PROTOBUF_C_WIRE_TYPE_32BIT ? 4 : w == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 1;
    if (n % unit)
        return FAIL(r, DATA_LOSS, "field '%s' has %zu bytes, no multiple of %zu", f->name, n, unit);
    if (w != PROTOBUF_C_WIRE_TYPE_VARINT) {
        r->p += n;
        return NULL;
    }
    const uint8_t *outer = r->end;
    uint64_t v;
    for (r->end = r->p + n; r->p < r->end;)
        LEAT_TRY(read_varint(r, 10, &v));
    r->end = outer;
    return NULL;
}

static leat_status check_message(reader *r, size_t n);

static leat_status check_length_prefixed(reader *r, const leat_field *f)
{
    size_t n = 0;
    LEAT_TRY(read_length(r, &n));
    if (!f || f->type == PROTOBUF_C_TYPE_BYTES) {
        r->p += n;
        return NULL;
    }
    if (f->type == PROTOBUF_C_TYPE_STRING)
        return check_string(r, f, n);
    if (f->type != PROTOBUF_C_TYPE_MESSAGE)
        return check_packed(r, f, n);
    if (r->depth >= LEAT_PROTO_MAX_DEPTH)
        return FAIL(r, INVALID_ARGUMENT, "messages are nested deeper than %d levels",
                    LEAT_PROTO_MAX_DEPTH);
    const ProtobufCMessageDescriptor *outer = r->type;
    r->type = f->descriptor;
    r->depth++;
    LEAT_TRY(check_message(r, n));
    r->depth--;
    r->type = outer;
    return NULL;
}

static leat_status check_field(reader *r)
{
    uint64_t tag = 0, v;
    LEAT_TRY(read_varint(r, 5, &tag));
    unsigned wire = tag & 7;
    if (tag >> 32 || tag >> 3 == 0)
        return FAIL(r, DATA_LOSS, "malformed field number");
    const leat_field *f = protobuf_c_message_descriptor_get_field(r->type, (unsigned)(tag >> 3));
    bool packed =
        f && wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED && f->label == PROTOBUF_C_LABEL_REPEATED;
    if (f && (int)wire != wire_type_of(f->type) && !packed)
        return FAIL(r, INVALID_ARGUMENT, "field '%s' has wire type %u, want %d", f->name, wire,
                    wire_type_of(f->type));
    switch (wire) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        return read_varint(r, 10, &v);
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        return check_length_prefixed(r, f);
    case PROTOBUF_C_WIRE_TYPE_32BIT:
    case PROTOBUF_C_WIRE_TYPE_64BIT: {
        size_t n = wire == PROTOBUF_C_WIRE_TYPE_32BIT ? 4 : 8;
        if (n > (size_t)(r->end - r->p))
            return FAIL(r, DATA_LOSS, "message ends inside a number");
        r->p += n;
        return NULL;
    }
    default:
        return FAIL(r, INVALID_ARGUMENT, "field %u has wire type %u, which is not supported",
                    (unsigned)(tag >> 3), wire);
    }
}

static leat_status check_message(reader *r, size_t n)
{
    const uint8_t *outer = r->end;
    r->end = r->p + n;
    while (r->p < r->end)
        LEAT_TRY(check_field(r));
    r->end = outer;
    return NULL;
}

leat_status leat_proto_check(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n)
{
    reader r = {.type = d, .start = bytes, .p = bytes};
    if (n > LEAT_PROTO_MAX_SIZE)
        return FAIL(&r, INVALID_ARGUMENT,
                    "message of %zu bytes is larger than the limit (%d bytes)", n,
                    LEAT_PROTO_MAX_SIZE);
    r.end = r.p + n;
    return check_message(&r, n);
}
