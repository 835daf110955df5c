/* wire_check.h -- a walk over a message's bytes before they are read; for wire.c. */
#ifndef LEAT_PROTO_WIRE_CHECK_H
#define LEAT_PROTO_WIRE_CHECK_H

#include <leat/status.h>
#include <protobuf-c/protobuf-c.h>

/* After it, protobuf-c's reader cannot run out of stack, or fail but for want of memory. */
leat_status leat_proto_check(const ProtobufCMessageDescriptor *d, const void *bytes,
                             size_t n) LEAT_MUST_CHECK;

/* What is wrong with the bytes of a string field: NULL if nothing is. */
const char *leat_string_fault(const void *bytes, size_t n);

#endif
