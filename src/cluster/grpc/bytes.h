/* bytes.h -- messages as gRPC's byte buffers: tensors are sent without a copy, and received
 * messages are read in place. */
#ifndef LEAT_CLUSTER_GRPC_BYTES_H
#define LEAT_CLUSTER_GRPC_BYTES_H

#include "cluster/grpc/library.h"
#include "cluster/transport.h"

/* Takes the contents of o. References to tensors are dropped when gRPC has sent their bytes. */
grpc_byte_buffer *leat_bytes_to_send(leat_outgoing *o);
/* Bytes of a tensor, sent without a copy. Takes a reference to t, which is dropped when the bytes
 * are sent. */
grpc_slice leat_bytes_of_tensor(leat_tensor *t, const void *data, size_t n);

/* A view of b. The caller frees its array `slices` with free(). */
leat_incoming leat_bytes_received(grpc_byte_buffer *b);

#endif
