/* field.h -- protobuf-c's structs by their descriptors: for the readers and writers of this room.
 */
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

/* Any value but a message's, as structs have it. */
typedef union leat_value {
    uint32_t u32; /* and int32_t */
    uint64_t u64; /* and int64_t */
    float f;
    double d;
    int number; /* of an enum */
    protobuf_c_boolean boolean;
    char *string;
    ProtobufCBinaryData bytes;
} leat_value;
/* Appends to a repeated field or sets another, taking what v owns. What a value, or another
 * member of the same oneof, had before is freed. */
void leat_field_store(const leat_field *f, ProtobufCMessage *m, const leat_value *v);
/* The message to read a field of a message type into: a new one if it is repeated or not there. */
ProtobufCMessage *leat_field_child(const leat_field *f, ProtobufCMessage *m);
/* Room for n more values of a repeated field, which are counted; gives the first. */
void *leat_field_extend(const leat_field *f, ProtobufCMessage *m, size_t n);
/* An array of n elements with room for `more`. Arrays that grow by this alone always have room for
 * the next power of two, so that most calls have nothing to do. */
void *leat_array_extend(void *array, size_t n, size_t more, size_t size);

/* What is wrong with the bytes of a string field: NULL if nothing is. */
const char *leat_string_fault(const void *bytes, size_t n);

bool leat_map_is_sorted(ProtobufCMessage *const *entries, size_t n); /* no key twice */
/* Sorts map entries by key; of several with one key keeps the last. Gives how many are left;
 * where dropped is not NULL, those that were not kept are stored there (room for n). */
size_t leat_map_sort(ProtobufCMessage **entries, size_t n, ProtobufCMessage **dropped);

/* After reading: sorts all maps below m, frees the entries dropped, and gives entries without a
 * value of a message type an empty one. */
void leat_message_settle(ProtobufCMessage *m);
/* Gives an empty message, to be freed with leat_proto_free. */
ProtobufCMessage *leat_message_new(const ProtobufCMessageDescriptor *d);

#endif
