/* tensor_wire.c -- tensors in messages: see tensor_wire.h. */
#include "cluster/tensor_wire.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/messages/fields.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/element.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

enum { INLINE_BYTES = 2048 }; /* smaller tensors are copied into the text: cheaper than a piece */

/* ---- Writing ---- */

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v > 127; v >>= 7)
        n++;
    return n;
}

/* The size of a number, or of the length of bytes, with a tag of one byte: field numbers to 15. */
static size_t tagged_size(uint64_t v)
{
    return 1 + varint_size(v);
}

static size_t dim_size(int64_t d)
{
    return d ? tagged_size((uint64_t)d) : 0;
}

static size_t shape_size(const leat_shape *shape)
{
    size_t n = 0;
    for (int i = 0; i < shape->rank; i++)
        n += tagged_size(dim_size(shape->dim[i])) + dim_size(shape->dim[i]);
    return n;
}

/* The bytes of a TensorProto before its content: dtype, shape, and the content's tag and length. */
static size_t tensor_head_size(const leat_tensor *t)
{
    size_t shape = shape_size(&t->shape), content = leat_tensor_bytes(t);
    return tagged_size((uint64_t)t->dtype) + tagged_size(shape) + shape +
           (content ? tagged_size(content) : 0);
}

static void put_tensor_head(leat_strbuf *b, const leat_tensor *t)
{
    size_t content = leat_tensor_bytes(t);
    leat_put_int(b, TENSOR_PROTO_DTYPE, t->dtype);
    leat_put_length(b, TENSOR_PROTO_TENSOR_SHAPE, shape_size(&t->shape));
    for (int i = 0; i < t->shape.rank; i++) {
        leat_put_length(b, TENSOR_SHAPE_PROTO_DIM, dim_size(t->shape.dim[i]));
        leat_put_int(b, TENSOR_SHAPE_PROTO_DIM_SIZE, t->shape.dim[i]);
    }
    if (content)
        leat_put_length(b, TENSOR_PROTO_TENSOR_CONTENT, content);
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
    LEAT_REQUIRE(!leat_tensor_memory(t), INTERNAL,
                 "A tensor in the memory of %s cannot be sent: it was not copied to the host's",
                 leat_tensor_memory(t)->name);
    leat_strbuf packed = {0}, *b = &o->text;
    bool managed = leat_dtype_managed(t->dtype);
    if (managed)
        LEAT_TRY(managed_head(&packed, t));
    size_t content = managed ? 0 : leat_tensor_bytes(t);
    size_t size = managed ? packed.n : tensor_head_size(t) + content;
    if (name) {
        size_t n = strlen(name);
        leat_put_length(b, field, tagged_size(n) + n + tagged_size(size) + size);
        leat_put_bytes(b, NAMED_TENSOR_PROTO_NAME, name, n);
        field = NAMED_TENSOR_PROTO_TENSOR;
    }
    leat_put_length(b, field, size);
    if (managed)
        leat_strbuf_add(b, leat_strbuf_text(&packed), packed.n);
    else
        put_tensor_head(b, t);
    leat_strbuf_release(&packed);
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

static leat_status slow_tensor(const leat_wire_field *f, leat_tensor **out)
{
    Leat__TensorProto *p;
    LEAT_TRY(LEAT_GET(tensor_proto, &f->sub, &p));
    leat_status s = leat_tensor_from_proto(p, out);
    leat_proto_free(p);
    return s;
}

/* A dimension with a size and nothing else; false for all others. A size of 0 is left out. */
static bool plain_dim(const leat_wire_field *dim, int64_t *out)
{
    leat_cursor c = dim->sub;
    leat_wire_field size = {0};
    leat_status s = NULL;
    bool plain =
        !c.left || (leat_next_field(&c, &size, &s) && !c.left &&
                    size.number == TENSOR_SHAPE_PROTO_DIM_SIZE && size.type == WIRE_VARINT);
    leat_status_free(s);
    *out = (int64_t)size.value;
    return plain;
}

/* A shape of plain dimensions; false for all others. */
static bool plain_shape(const leat_wire_field *field, leat_shape *shape)
{
    leat_cursor c = field->sub;
    leat_wire_field dim;
    leat_status s;
    while (leat_next_field(&c, &dim, &s))
        if (dim.number != TENSOR_SHAPE_PROTO_DIM || dim.type != WIRE_BYTES ||
            shape->rank == LEAT_MAX_RANK || !plain_dim(&dim, &shape->dim[shape->rank++]))
            return false;
    bool whole = !s;
    leat_status_free(s);
    return whole;
}

/* The bytes at the cursor as a tensor: without a copy if the slice has an owner, the bytes are
 * aligned, and they are a good part of the memory that the tensor then keeps alive. */
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

/* Decodes a TensorProto of dtype, shape and tensor_content in this order, as all senders write it,
 * straight into the tensor. Leaves *out unset for all other messages, good or bad: the general
 * decoder reads them. */
static leat_status fast_tensor(const leat_wire_field *field, leat_tensor **out)
{
    leat_cursor c = field->sub;
    leat_wire_field f;
    leat_shape shape = {0};
    leat_dtype t = 0;
    bool has_shape = false;
    leat_status s;
    while (leat_next_field(&c, &f, &s)) {
        if (f.number == TENSOR_PROTO_DTYPE && f.type == WIRE_VARINT && f.value < 64) {
            t = (leat_dtype)f.value;
        } else if (f.number == TENSOR_PROTO_TENSOR_SHAPE && f.type == WIRE_BYTES && !has_shape) {
            has_shape = true;
            if (!plain_shape(&f, &shape))
                return NULL;
        } else if (f.number == TENSOR_PROTO_TENSOR_CONTENT && f.type == WIRE_BYTES && !c.left &&
                   t && !leat_dtype_managed(t) && leat_dtype_size(t)) {
            int64_t count = leat_shape_count(&shape);
            if (count <= 0 || (uint64_t)count > f.value / leat_dtype_size(t) ||
                (uint64_t)count * leat_dtype_size(t) != f.value)
                return NULL;
            return content_tensor(&f.sub, t, &shape, out);
        } else if (f.number != TENSOR_PROTO_VERSION_NUMBER) {
            return NULL;
        }
    }
    return s;
}

leat_status leat_get_tensor(const leat_wire_field *f, leat_tensor **out)
{
    leat_tensor *t = NULL;
    LEAT_REQUIRE(f->type == WIRE_BYTES, DATA_LOSS, "Field %d of a message is no tensor", f->number);
    LEAT_TRY(fast_tensor(f, &t));
    if (!t)
        LEAT_TRY(slow_tensor(f, &t));
    *out = t;
    return NULL;
}

leat_status leat_get_named(const leat_wire_field *field, char **name_out, leat_tensor **out)
{
    LEAT_REQUIRE(field->type == WIRE_BYTES, DATA_LOSS, "Field %d of a message is no tensor",
                 field->number);
    leat_cursor c = field->sub;
    leat_wire_field f;
    leat_status s;
    char *name = NULL;
    leat_tensor *t = NULL;
    while (leat_next_field(&c, &f, &s)) {
        if (f.number == NAMED_TENSOR_PROTO_NAME && !name)
            s = leat_get_text(&f, &name);
        else if (f.number == NAMED_TENSOR_PROTO_TENSOR && !t)
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
