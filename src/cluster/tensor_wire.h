/* tensor_wire.h -- what the codecs in messages/ are made of: fields, and tensors as fields. The
 * bytes of a tensor are not copied when they are sent, and at most once when they are received. */
#ifndef LEAT_CLUSTER_TENSOR_WIRE_H
#define LEAT_CLUSTER_TENSOR_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "cluster/messages/fields.h"
#include "cluster/transport.h"

/* ---- Writing fields ---- */
void leat_put_varint(leat_strbuf *b, uint64_t v);
void leat_put_tag(leat_strbuf *b, int field, int wire_type);
void leat_put_int(leat_strbuf *b, int field, int64_t v); /* 0 is left out */
void leat_put_fixed64(leat_strbuf *b, int field, uint64_t v);
void leat_put_length(leat_strbuf *b, int field, size_t n); /* tag and length; n bytes follow */
void leat_put_bytes(leat_strbuf *b, int field, const void *bytes, size_t n);
void leat_put_text(leat_strbuf *b, int field, const char *s); /* NULL and "" are left out */
/* All fields of a message of protobuf-c that a call of `method` sends. RESOURCE_EXHAUSTED, which
 * names the method and the size, for a message beyond 2 GB. */
leat_status leat_put_fields(leat_strbuf *b, const char *method,
                            const void *message) LEAT_MUST_CHECK;
/* A message of protobuf-c that holds only a few numbers, as a field. */
void leat_put_message(leat_strbuf *b, int field, const void *message);
/* A TensorProto as a field. */
leat_status leat_put_tensor(leat_outgoing *o, int field, leat_tensor *t) LEAT_MUST_CHECK;
/* A NamedTensorProto as a field. */
leat_status leat_put_named(leat_outgoing *o, int field, const char *name,
                           leat_tensor *t) LEAT_MUST_CHECK;

/* ---- Reading fields ---- */
typedef struct leat_wire_field {
    int number, type;
    uint64_t value;  /* the number; for WIRE_BYTES the length */
    leat_cursor sub; /* for WIRE_BYTES the bytes */
} leat_wire_field;
/* Reads the next field. False at the end, or with *s set where the bytes are no message. */
bool leat_next_field(leat_cursor *c, leat_wire_field *f, leat_status *s);
/* Stores a field in the struct of a message. Fields that it does not know it passes over. */
typedef leat_status (*leat_read_field_fn)(void *message, const leat_wire_field *f);
/* Calls read_field with every field of a message, up to the first error. */
leat_status leat_decode(const leat_incoming *in, leat_read_field_fn read_field,
                        void *message) LEAT_MUST_CHECK;
/* A string field; gives memory to be freed with free(). */
leat_status leat_get_text(const leat_wire_field *f, char **out) LEAT_MUST_CHECK;
/* The same for a field that is there once: of several the last one counts. Frees *out first. */
leat_status leat_replace_text(const leat_wire_field *f, char **out) LEAT_MUST_CHECK;
leat_status leat_no_number(const leat_wire_field *f) LEAT_MUST_CHECK; /* gives DATA_LOSS */
static inline leat_status leat_get_int(const leat_wire_field *f, int64_t *out)
{
    if (f->type != WIRE_VARINT)
        return leat_no_number(f);
    *out = (int64_t)f->value;
    return NULL;
}
static inline leat_status leat_get_bool(const leat_wire_field *f, bool *out)
{
    if (f->type != WIRE_VARINT)
        return leat_no_number(f);
    *out = f->value != 0;
    return NULL;
}
/* A field that is a message, not decoded. */
leat_status leat_get_part(const leat_wire_field *f, leat_cursor *out) LEAT_MUST_CHECK;
leat_status leat_get_tensor(const leat_wire_field *f, leat_tensor **out) LEAT_MUST_CHECK;
leat_status leat_get_named(const leat_wire_field *f, char **name_out,
                           leat_tensor **out) LEAT_MUST_CHECK;
/* The status that a response carries in its fields; message may be NULL. OK for code 0. */
leat_status leat_carried_error(int64_t code, const char *from, const char *message) LEAT_MUST_CHECK;
/* Decodes a message of a type in src/proto: LEAT_GET(run_options, &f.sub, &o). Free with
 * leat_proto_free. */
leat_status leat_get_message(const ProtobufCMessageDescriptor *d, const leat_cursor *sub,
                             ProtobufCMessage **out) LEAT_MUST_CHECK;
#define LEAT_GET(type, sub, out)                                                                   \
    leat_get_message(&leat__##type##__descriptor, (sub), (ProtobufCMessage **)(out))

#endif
