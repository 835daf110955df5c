/* tensor_wire.c -- see tensor_wire.h. */
#include "cluster/tensor_wire.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/element.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { INLINE_BYTES = 2048 }; /* smaller tensors are copied: cheaper than a piece of their own */

/* ---- Writing ---- */

void leat_put_varint(leat_strbuf *b, uint64_t v)
{
    char buf[10];
    int n = 0;
    for (; v > 127; v >>= 7)
        buf[n++] = (char)(v | 128);
    buf[n++] = (char)v;
    leat_strbuf_add(b, buf, (size_t)n);
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v > 127; v >>= 7)
        n++;
    return n;
}

void leat_put_tag(leat_strbuf *b, int field, int wire_type)
{
    leat_put_varint(b, (uint64_t)field << 3 | (uint64_t)wire_type);
}

void leat_put_int(leat_strbuf *b, int field, int64_t v)
{
    if (!v)
        return;
    leat_put_tag(b, field, VARINT);
    leat_put_varint(b, (uint64_t)v);
}

void leat_put_fixed64(leat_strbuf *b, int field, uint64_t v)
{
    leat_put_tag(b, field, FIXED64);
    for (int i = 0; i < 8; i++)
        leat_strbuf_putc(b, (char)(v >> 8 * i));
}

void leat_put_bytes(leat_strbuf *b, int field, const void *bytes, size_t n)
{
    leat_put_tag(b, field, BYTES);
    leat_put_varint(b, n);
    leat_strbuf_add(b, bytes, n);
}

void leat_put_text(leat_strbuf *b, int field, const char *s)
{
    if (s[0])
        leat_put_bytes(b, field, s, strlen(s));
}

/* Everything of a TensorProto before its content: dtype, shape, and the content's tag and length.
 */
static void tensor_head(leat_strbuf *b, const leat_tensor *t)
{
    leat_strbuf shape = {0};
    for (int i = 0; i < t->shape.rank; i++) {
        int64_t d = t->shape.dim[i];
        leat_put_tag(&shape, 2, BYTES);
        leat_put_varint(&shape, d ? 1 + varint_size((uint64_t)d) : 0);
        leat_put_int(&shape, 1, d);
    }
    leat_put_int(b, 1, t->dtype);
    leat_put_bytes(b, 2, leat_strbuf_text(&shape), shape.n);
    leat_strbuf_release(&shape);
    size_t n = leat_tensor_bytes(t);
    if (n) {
        leat_put_tag(b, 4, BYTES);
        leat_put_varint(b, n);
    }
}

/* Strings and handles have no bytes of their own to send. */
static leat_status managed_head(leat_strbuf *b, const leat_tensor *t)
{
    Leat__TensorProto *p;
    LEAT_TRY(leat_tensor_to_proto(t, LEAT_TENSOR_CONTENT, &p));
    leat_status s = leat_proto_pack(p, b);
    leat_proto_free(p);
    return s;
}

/* name NULL: a TensorProto; else a NamedTensorProto. */
static leat_status put(leat_outgoing *o, int field, const char *name, leat_tensor *t)
{
    leat_strbuf head = {0};
    bool managed = leat_dtype_managed(t->dtype);
    if (managed)
        LEAT_TRY(managed_head(&head, t));
    else
        tensor_head(&head, t);
    size_t content = managed ? 0 : leat_tensor_bytes(t), size = head.n + content;
    size_t name_n = name ? strlen(name) : 0;
    leat_strbuf *b = &o->text;
    leat_put_tag(b, field, BYTES);
    if (name) {
        leat_put_varint(b, 1 + varint_size(name_n) + name_n + 1 + varint_size(size) + size);
        leat_put_bytes(b, 1, name, name_n);
        leat_put_tag(b, 2, BYTES);
    }
    leat_put_varint(b, size);
    leat_strbuf_add(b, leat_strbuf_text(&head), head.n);
    leat_strbuf_release(&head);
    if (content > INLINE_BYTES)
        leat_outgoing_tensor(o, t);
    else if (content)
        leat_strbuf_add(b, t->data, content);
    return NULL;
}

leat_status leat_put_tensor(leat_outgoing *o, int field, leat_tensor *t)
{
    return put(o, field, NULL, t);
}

leat_status leat_put_named(leat_outgoing *o, int field, const char *name, leat_tensor *t)
{
    return put(o, field, name, t);
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
    if (f->type == VARINT)
        return leat_cursor_varint(c, &f->value);
    if (f->type == FIXED64 || f->type == FIXED32)
        return leat_cursor_copy(c, &f->value, f->type == FIXED64 ? 8 : 4);
    LEAT_REQUIRE(f->type == BYTES, DATA_LOSS, "A message has a field of wire type %d", f->type);
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
    LEAT_REQUIRE(f->type == BYTES, DATA_LOSS, "Field %d of a message is no string", f->number);
    char *text;
    LEAT_TRY(flat(&f->sub, &text));
    if (strlen(text) == f->sub.left) {
        *out = text;
        return NULL;
    }
    free(text);
    return leat_error(INVALID_ARGUMENT, "Field %d of a message, a name, holds a NUL", f->number);
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

leat_status leat_carried_error(uint64_t code, const char *from, char *message)
{
    leat_status s = NULL;
    if (code)
        s = leat_status_new(code <= LEAT_UNAUTHENTICATED ? (leat_code)code : LEAT_UNKNOWN, __FILE__,
                            __LINE__, "%s%s%s%s", from[0] ? "From " : "", from,
                            from[0] ? ":\n" : "", message ? message : "");
    free(message);
    return s;
}

static leat_status slow_tensor(const leat_wire_field *f, leat_tensor **out)
{
    Leat__TensorProto *p;
    LEAT_TRY(LEAT_GET(tensor_proto, f, &p));
    leat_status s = leat_tensor_from_proto(p, out);
    leat_proto_free(p);
    return s;
}

static leat_status read_shape(const leat_wire_field *f, leat_shape *shape)
{
    Leat__TensorShapeProto *p;
    LEAT_TRY(LEAT_GET(tensor_shape_proto, f, &p));
    leat_status s = leat_shape_from_proto(p, shape);
    leat_proto_free(p);
    return s;
}

/* The bytes at the cursor as a tensor: right where they are if they may stay there, are aligned,
 * and are a good part of the memory that they then keep. */
static leat_status content_tensor(leat_cursor *c, leat_dtype t, const leat_shape *shape,
                                  leat_tensor **out)
{
    const leat_slice *slice = &c->in->slices[c->slice];
    leat_buffer *owner = slice->owner ? slice->owner : c->in->owner;
    if (owner && slice->n - c->at >= c->left && c->left * 4 >= owner->size &&
        (uintptr_t)(slice->data + c->at) % LEAT_ALIGN == 0) {
        leat_buffer_ref(owner);
        *out = leat_tensor_over(owner, (void *)(slice->data + c->at), t, shape);
        return NULL;
    }
    leat_tensor *x;
    LEAT_TRY(leat_tensor_alloc(NULL, t, shape, &x));
    leat_status s = leat_cursor_copy(c, x->data, c->left);
    if (s)
        leat_tensor_unref(x);
    else
        *out = x;
    return s;
}

/* Numbers in tensor_content, behind dtype and shape, as all senders write them, are copied straight
 * into the tensor. Sets *out only if it was that. */
static leat_status fast_tensor(const leat_wire_field *field, leat_tensor **out)
{
    leat_cursor c = field->sub;
    leat_wire_field f;
    leat_shape shape = {0};
    leat_dtype t = 0;
    leat_status s;
    while (leat_next_field(&c, &f, &s)) {
        if (f.number == 1 && f.type == VARINT && f.value < 64) {
            t = (leat_dtype)f.value;
        } else if (f.number == 2 && f.type == BYTES) {
            LEAT_TRY(read_shape(&f, &shape));
        } else if (f.number == 4 && f.type == BYTES && !c.left && t && !leat_dtype_managed(t) &&
                   leat_dtype_size(t) && leat_shape_known(&shape)) {
            int64_t count = leat_shape_count(&shape);
            if (count <= 0 || (uint64_t)count > f.value / leat_dtype_size(t) ||
                (uint64_t)count * leat_dtype_size(t) != f.value)
                return NULL;
            return content_tensor(&f.sub, t, &shape, out);
        } else if (f.number != 3) {
            return NULL;
        }
    }
    return s;
}

leat_status leat_get_tensor(const leat_wire_field *f, leat_tensor **out)
{
    leat_tensor *t = NULL;
    LEAT_REQUIRE(f->type == BYTES, DATA_LOSS, "Field %d of a message is no tensor", f->number);
    LEAT_TRY(fast_tensor(f, &t));
    if (!t)
        LEAT_TRY(slow_tensor(f, &t));
    *out = t;
    return NULL;
}

leat_status leat_get_named(const leat_wire_field *field, char **name_out, leat_tensor **out)
{
    leat_cursor c = field->sub;
    leat_wire_field f;
    leat_status s;
    char *name = NULL;
    leat_tensor *t = NULL;
    while (leat_next_field(&c, &f, &s)) {
        if (f.number == 1 && !name)
            s = leat_get_text(&f, &name);
        else if (f.number == 2 && !t)
            s = leat_get_tensor(&f, &t);
        if (s)
            break;
    }
    if (!s && (!name || !t))
        s = leat_error(INVALID_ARGUMENT, "A named tensor lacks its %s", name ? "tensor" : "name");
    if (s) {
        free(name);
        leat_tensor_unref(t);
        return s;
    }
    *name_out = name;
    *out = t;
    return NULL;
}
