/* bytes.h -- messages as gRPC has them: what is sent without a copy, what came as slices. */
#ifndef LEAT_CLUSTER_GRPC_BYTES_H
#define LEAT_CLUSTER_GRPC_BYTES_H

#include "cluster/grpc/library.h"
#include "cluster/transport.h"

/* Takes what is in o. References to tensors are given back when gRPC has sent their bytes. */
grpc_byte_buffer *leat_bytes_to_send(leat_outgoing *o);
/* Bytes of a tensor, sent without a copy. Takes the reference t, which is given back when they are
 * sent. */
grpc_slice leat_bytes_of_tensor(leat_tensor *t, const void *data, size_t n);

/* in.slices point into b, and are freed with free(). */
leat_incoming leat_bytes_received(grpc_byte_buffer *b);

#endif
