/* field.h -- reading protobuf-c's structs by their descriptors: for the writers of this room. */
#ifndef LEAT_PROTO_FIELD_H
#define LEAT_PROTO_FIELD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

typedef ProtobufCFieldDescriptor leat_field;

size_t leat_field_size(ProtobufCType type); /* bytes of one value in a struct */

static inline const ProtobufCMessageDescriptor *leat_field_message(const leat_field *f)
{
    return f->descriptor;
}
static inline const ProtobufCEnumDescriptor *leat_field_enum(const leat_field *f)
{
    return f->descriptor;
}
static inline void *leat_field_at(const leat_field *f, const ProtobufCMessage *m)
{
    return (char *)m + f->offset;
}
/* The has_x flag, the n_x count or the case of a oneof, whichever the field has. */
static inline void *leat_field_quantifier(const leat_field *f, const ProtobufCMessage *m)
{
    return (char *)m + f->quantifier_offset;
}

/* A map<> is to protobuf-c an array of messages FooEntry {key = 1; value = 2;}. */
bool leat_message_is_entry(const ProtobufCMessageDescriptor *d);
bool leat_field_is_map(const leat_field *f);

/* How many values there are to write: 0 or 1 unless repeated; 0 for a default that proto3 does not
 * tell from nothing. (In map entries, writers decide otherwise.) */
size_t leat_field_count(const leat_field *f, const ProtobufCMessage *m);
/* Value i of them: a pointer to an int32_t, a float, a char *, a ProtobufCMessage * ... */
const void *leat_field_value(const leat_field *f, const ProtobufCMessage *m, size_t i);

/* Sorts map entries by key; of several with one key keeps the last. Gives how many are left;
 * where dropped is not NULL, those that were not kept are stored there (room for n). */
size_t leat_map_sort(ProtobufCMessage **entries, size_t n, ProtobufCMessage **dropped);

/* After reading: sorts all maps below m, frees the entries dropped, and gives entries without a
 * value of a message type an empty one. */
void leat_message_settle(ProtobufCMessage *m);
/* Gives an empty message, to be freed with leat_proto_free. */
ProtobufCMessage *leat_message_new(const ProtobufCMessageDescriptor *d);

#endif
