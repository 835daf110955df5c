/* field.h -- access to the fields of protobuf-c's structs by their descriptors; for the readers and
 * writers of this folder. */
#ifndef LEAT_PROTO_FIELD_H
#define LEAT_PROTO_FIELD_H

#include <leat/status.h>

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
/* The has_x flag, the n_x count or the case of a oneof: the field of the struct that says whether x
 * is set. */
static inline void *leat_field_quantifier(const leat_field *f, const ProtobufCMessage *m)
{
    return (char *)m + f->quantifier_offset;
}

/* protobuf-c represents a map<> as an array of messages FooEntry {key = 1; value = 2;}. */
bool leat_message_is_entry(const ProtobufCMessageDescriptor *d);
bool leat_field_is_map(const leat_field *f);

/* The number of values to write: 0 or 1 unless the field is repeated; 0 for a default, which proto3
 * does not distinguish from a field that is not set. (In map entries, writers write both fields
 * always.) */
size_t leat_field_count(const leat_field *f, const ProtobufCMessage *m);
/* Value i of a field: a pointer to an int32_t, a float, a char *, a ProtobufCMessage * ... */
const void *leat_field_value(const leat_field *f, const ProtobufCMessage *m, size_t i);

/* A value of any type but a message. */
typedef union leat_value {
    uint32_t u32; /* also int32_t */
    uint64_t u64; /* also int64_t */
    float f;
    double d;
    int number; /* the number of an enum's value */
    protobuf_c_boolean boolean;
    char *string;
    ProtobufCBinaryData bytes;
} leat_value;
/* Appends to a repeated field or sets another field; takes what v owns, even on failure. Frees the
 * previous value, or that of another member of the same oneof. */
leat_status leat_field_store(const leat_field *f, ProtobufCMessage *m,
                             const leat_value *v) LEAT_MUST_CHECK;
/* The message to read a field of a message type into: a new one if the field is repeated or not
 * set. */
leat_status leat_field_child(const leat_field *f, ProtobufCMessage *m,
                             ProtobufCMessage **out) LEAT_MUST_CHECK;
/* Adds n values to a repeated field, which the caller sets; gives a pointer to the first. */
leat_status leat_field_extend(const leat_field *f, ProtobufCMessage *m, size_t n,
                              void **out) LEAT_MUST_CHECK;
/* Grows an array of n elements by `more`; NULL if there is no memory, and the array stays. Arrays
 * that grow only by this function always have room for the next power of two, so that most calls do
 * nothing. */
void *leat_array_extend(void *array, size_t n, size_t more, size_t size);

/* What is wrong with the bytes of a string field; NULL if they are valid. */
const char *leat_string_fault(const void *bytes, size_t n);

/* Sorted and without duplicates. */
bool leat_map_is_sorted(ProtobufCMessage *const *entries, size_t n);
/* Sorts map entries by key; of several with one key keeps the last. Gives the number of entries
 * left; if dropped is not NULL, the others are stored there (room for n). */
size_t leat_map_sort(ProtobufCMessage **entries, size_t n, ProtobufCMessage **dropped);

/* After reading: sorts all maps below m, frees duplicates, and adds an empty message to entries
 * that have no value but should have a message. */
void leat_message_settle(ProtobufCMessage *m);
/* Gives an empty message, to be freed with leat_proto_free. */
ProtobufCMessage *leat_message_new(const ProtobufCMessageDescriptor *d);

#endif
