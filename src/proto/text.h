/* text.h -- protobuf's text format, for any message, both ways.
 *
 *     node {
 *       name: "x"
 *       op: "Placeholder"
 *       attr { key: "dtype" value { type: DT_FLOAT } }
 *     }
 */
#ifndef LEAT_PROTO_TEXT_H
#define LEAT_PROTO_TEXT_H

#include "proto/wire.h"

/* Adds the text of a message to out, byte for byte as Python's text_format.MessageToString: a field
 * per line, two spaces per level, maps sorted by key, without unknown fields. */
void leat_proto_to_text(const void *message, leat_strbuf *out);

/* Gives the message of type d that the n bytes at text describe; free with leat_proto_free. Reads
 * everything that protobuf reads except extensions: comments, < > for { }, [lists], commas and
 * semicolons, strings in pieces. INVALID_ARGUMENT says what is wrong and where: "3:7: Message type
 * "tensorflow.NodeDef" has no field named "nmae"." */
leat_status leat_proto_from_text(const ProtobufCMessageDescriptor *d, const char *text, size_t n,
                                 ProtobufCMessage **out) LEAT_MUST_CHECK;
#define LEAT_FROM_TEXT(type, text, n, out)                                                         \
    leat_proto_from_text(&leat__##type##__descriptor, (text), (n), (ProtobufCMessage **)(out))

#endif
