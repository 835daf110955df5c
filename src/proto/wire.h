/* wire.h -- messages to bytes and back.
 *
 * Reader and writer are our own, for limits and errors on the one side, and on the other for maps
 * as TensorFlow writes them: entries in the order of their keys, both fields always there. The
 * bytes equal those of SerializeToString(deterministic=True).
 *
 * Messages are the structs that protoc-c makes ("proto/graph.pb-c.h"). A map field is an array of
 * entries with key and value. Strings end with a NUL and hold none.
 */
#ifndef LEAT_PROTO_WIRE_H
#define LEAT_PROTO_WIRE_H

#include <leat/tensor.h>
#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>
#include "core/strbuf.h"

enum {
    LEAT_PROTO_MAX_DEPTH = 100,       /* messages inside messages, as in TensorFlow */
    LEAT_PROTO_MAX_SIZE = 2147483647, /* bytes, as in TensorFlow */
};

/* Gives a message of type d; free with leat_proto_free. In it map entries are sorted by key, of
 * several with one key the last is kept, and values that are messages are there. Unknown fields are
 * kept and written again. DATA_LOSS: the bytes are cut off or no message at all; INVALID_ARGUMENT:
 * they break a rule (nesting, size, a field's type, UTF-8). Both name the message type and the
 * place. */
leat_status leat_proto_unpack(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
                              ProtobufCMessage **out) LEAT_MUST_CHECK;
/* For any of the messages' own types: LEAT_UNPACK(graph_def, bytes, n, &g) */
#define LEAT_UNPACK(type, bytes, n, out)                                                           \
    leat_proto_unpack(&leat__##type##__descriptor, (bytes), (n), (ProtobufCMessage **)(out))

void leat_proto_free(void *message); /* one from leat_proto_unpack; NULL does nothing */

/* Adds the bytes of a message to out. Fields at their default are left out. INVALID_ARGUMENT for a
 * message beyond leat_proto_pack_max bytes, RESOURCE_EXHAUSTED without memory for it. */
leat_status leat_proto_pack(const void *message, leat_strbuf *out) LEAT_MUST_CHECK;

/* LEAT_PROTO_MAX_SIZE. Tests lower it while threads of servers pack messages. */
extern atomic_size_t leat_proto_pack_max;

/* The same, as memory that free() frees. */
leat_status leat_proto_bytes(const void *message, void **bytes_out,
                             size_t *size_out) LEAT_MUST_CHECK;

/* "tensorflow.AttrValue.ListValue": the type's name as TensorFlow knows it, for messages. */
leat_text leat_proto_name(const ProtobufCMessageDescriptor *d);
leat_text leat_proto_enum_name(const ProtobufCEnumDescriptor *d);

#endif
