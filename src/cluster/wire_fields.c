/* wire_fields.c -- fields of messages that are written and read by hand: see tensor_wire.h. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/tensor_wire.h"
#include "proto/wire.h"

/* ---- Writing ---- */

enum { VARINT_MAX = 10 }; /* bytes of a varint */

/* Writes a varint at p; returns where it ends. */
static char *varint(char *p, uint64_t v)
{
    for (; v > 127; v >>= 7)
        *p++ = (char)(v | 128);
    *p++ = (char)v;
    return p;
}

static char *tag(char *p, int field, int wire_type)
{
    return varint(p, (uint64_t)field << 3 | (uint64_t)wire_type);
}

void leat_put_varint(leat_strbuf *b, uint64_t v)
{
    char buf[VARINT_MAX];
    leat_strbuf_add(b, buf, (size_t)(varint(buf, v) - buf));
}

void leat_put_tag(leat_strbuf *b, int field, int wire_type)
{
    char buf[VARINT_MAX];
    leat_strbuf_add(b, buf, (size_t)(tag(buf, field, wire_type) - buf));
}

void leat_put_int(leat_strbuf *b, int field, int64_t v)
{
    char buf[2 * VARINT_MAX];
    if (v)
        leat_strbuf_add(b, buf, (size_t)(varint(tag(buf, field, WIRE_VARINT), (uint64_t)v) - buf));
}

void leat_put_length(leat_strbuf *b, int field, size_t n)
{
    char buf[2 * VARINT_MAX];
    leat_strbuf_add(b, buf, (size_t)(varint(tag(buf, field, WIRE_BYTES), n) - buf));
}

void leat_put_fixed64(leat_strbuf *b, int field, uint64_t v)
{
    leat_put_tag(b, field, WIRE_FIXED64);
    for (int i = 0; i < 8; i++)
        leat_strbuf_putc(b, (char)(v >> 8 * i));
}

void leat_put_bytes(leat_strbuf *b, int field, const void *bytes, size_t n)
{
    leat_put_length(b, field, n);
    leat_strbuf_add(b, bytes, n);
}

void leat_put_text(leat_strbuf *b, int field, const char *s)
{
    if (s && s[0])
        leat_put_bytes(b, field, s, strlen(s));
}

leat_status leat_put_fields(leat_strbuf *b, const char *method, const void *message)
{
    leat_status s = leat_proto_pack(message, b);
    if (!s)
        return NULL;
    leat_status named =
        leat_error(RESOURCE_EXHAUSTED, "%s: %s", strrchr(method, '/') + 1, leat_status_message(s));
    leat_status_free(s);
    return named;
}

void leat_put_message(leat_strbuf *b, int field, const void *message)
{
    enum { NUMBERS_MAX = 256 }; /* bytes of a message that holds only a few numbers */
    uint8_t bytes[NUMBERS_MAX];
    size_t n = protobuf_c_message_get_packed_size(message);
    assert(n <= NUMBERS_MAX);
    protobuf_c_message_pack(message, bytes);
    leat_put_bytes(b, field, bytes, n);
}

/* ---- Reading ---- */

static leat_status read_field(leat_cursor *c, leat_wire_field *f)
{
    uint64_t tag;
    LEAT_TRY(leat_cursor_varint(c, &tag));
    f->number = (int)(tag >> 3 & 0x1fffffff);
    f->type = (int)(tag & 7);
    f->value = 0;
    f->sub = (leat_cursor){.in = c->in};
    LEAT_REQUIRE(f->number && tag >> 32 == 0, DATA_LOSS, "A message has a field of number %llu",
                 (unsigned long long)(tag >> 3));
    if (f->type == WIRE_VARINT)
        return leat_cursor_varint(c, &f->value);
    if (f->type == WIRE_FIXED64 || f->type == WIRE_FIXED32)
        return leat_cursor_copy(c, &f->value, f->type == WIRE_FIXED64 ? 8 : 4);
    LEAT_REQUIRE(f->type == WIRE_BYTES, DATA_LOSS, "A message has a field of wire type %d",
                 f->type);
    LEAT_TRY(leat_cursor_varint(c, &f->value));
    LEAT_REQUIRE(f->value <= c->left, DATA_LOSS,
                 "A message is cut off: field %d has %llu bytes, %zu are left", f->number,
                 (unsigned long long)f->value, c->left);
    f->sub = *c;
    f->sub.left = (size_t)f->value;
    return leat_cursor_skip(c, (size_t)f->value);
}

bool leat_next_field(leat_cursor *c, leat_wire_field *f, leat_status *s)
{
    *s = NULL;
    if (!c->left)
        return false;
    *s = read_field(c, f);
    return !*s;
}

leat_status leat_decode(const leat_incoming *in, leat_read_field_fn read_field, void *message)
{
    leat_cursor c = leat_cursor_of(in);
    leat_wire_field f;
    leat_status s;
    while (leat_next_field(&c, &f, &s))
        LEAT_TRY(read_field(message, &f));
    return s;
}

/* Gives the bytes of a field as one string that free() frees, with a NUL behind them. */
static leat_status flat(const leat_cursor *sub, char **out)
{
    leat_cursor c = *sub;
    char *p = malloc(c.left + 1);
    LEAT_REQUIRE(p, RESOURCE_EXHAUSTED, "No memory for %zu bytes of a message", c.left);
    size_t n = c.left;
    p[n] = 0;
    leat_status s = leat_cursor_copy(&c, p, n);
    if (s)
        free(p);
    else
        *out = p;
    return s;
}

leat_status leat_get_text(const leat_wire_field *f, char **out)
{
    LEAT_REQUIRE(f->type == WIRE_BYTES, DATA_LOSS, "Field %d of a message is no string", f->number);
    char *text;
    LEAT_TRY(flat(&f->sub, &text));
    if (strlen(text) == f->sub.left) {
        *out = text;
        return NULL;
    }
    free(text);
    return leat_error(INVALID_ARGUMENT, "Field %d of a message, a name, holds a NUL", f->number);
}

leat_status leat_replace_text(const leat_wire_field *f, char **out)
{
    free(*out);
    *out = NULL;
    return leat_get_text(f, out);
}

leat_status leat_no_number(const leat_wire_field *f)
{
    return leat_error(DATA_LOSS, "Field %d of a message is no number", f->number);
}

leat_status leat_get_part(const leat_wire_field *f, leat_cursor *out)
{
    LEAT_REQUIRE(f->type == WIRE_BYTES, DATA_LOSS, "Field %d of a message is no message",
                 f->number);
    *out = f->sub;
    return NULL;
}

leat_status leat_get_message(const ProtobufCMessageDescriptor *d, const leat_cursor *sub,
                             ProtobufCMessage **out)
{
    char *bytes;
    LEAT_TRY(flat(sub, &bytes));
    leat_status s = leat_proto_unpack(d, bytes, sub->left, out);
    free(bytes);
    return s;
}

leat_status leat_carried_error(int64_t code, const char *from, const char *message)
{
    if (!code)
        return NULL;
    bool known = code > 0 && code <= LEAT_UNAUTHENTICATED;
    return leat_status_new(known ? (leat_code)code : LEAT_UNKNOWN, __FILE__, __LINE__, "%s%s%s%s",
                           from[0] ? "From " : "", from, from[0] ? ":\n" : "",
                           message ? message : "");
}
