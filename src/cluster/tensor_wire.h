/* tensor_wire.h -- messages around tensors, by hand: a tensor's bytes are not copied when it is
 * sent, and once when it comes. */
#ifndef LEAT_CLUSTER_TENSOR_WIRE_H
#define LEAT_CLUSTER_TENSOR_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "cluster/transport.h"

/* ---- Writing fields ---- */
void leat_put_varint(leat_strbuf *b, uint64_t v);
void leat_put_tag(leat_strbuf *b, int field, int wire_type);
void leat_put_int(leat_strbuf *b, int field, int64_t v); /* left out if 0 */
void leat_put_fixed64(leat_strbuf *b, int field, uint64_t v);
void leat_put_bytes(leat_strbuf *b, int field, const void *bytes, size_t n);
void leat_put_text(leat_strbuf *b, int field, const char *s); /* left out if "" */
/* A TensorProto as a field. In a message inside a message, put_named does it. */
leat_status leat_put_tensor(leat_outgoing *o, int field, leat_tensor *t) LEAT_MUST_CHECK;
/* A NamedTensorProto as a field. */
leat_status leat_put_named(leat_outgoing *o, int field, const char *name,
                           leat_tensor *t) LEAT_MUST_CHECK;

/* ---- Reading fields ---- */
typedef struct leat_wire_field {
    int number, type;
    uint64_t value;  /* of numbers */
    leat_cursor sub; /* the bytes of what has a length; the cursor goes on behind them */
} leat_wire_field;
/* False at the end, or with *s set where the bytes are no message. */
bool leat_next_field(leat_cursor *c, leat_wire_field *f, leat_status *s);
/* A string field; gives memory to be freed with free(). */
leat_status leat_get_text(const leat_wire_field *f, char **out) LEAT_MUST_CHECK;
leat_status leat_get_tensor(const leat_wire_field *f, leat_tensor **out) LEAT_MUST_CHECK;
leat_status leat_get_named(const leat_wire_field *f, char **name_out,
                           leat_tensor **out) LEAT_MUST_CHECK;
/* An error that an answer carries in fields of its own; takes message (NULL: ""). OK for code 0. */
leat_status leat_carried_error(uint64_t code, const char *from, char *message) LEAT_MUST_CHECK;
/* A message of a type of ours: LEAT_GET(run_options, &f, &o); free with leat_proto_free. */
leat_status leat_get_message(const ProtobufCMessageDescriptor *d, const leat_cursor *sub,
                             ProtobufCMessage **out) LEAT_MUST_CHECK;
#define LEAT_GET(type, field, out)                                                                 \
    leat_get_message(&leat__##type##__descriptor, &(field)->sub, (ProtobufCMessage **)(out))

#endif
