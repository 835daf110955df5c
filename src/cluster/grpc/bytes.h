/* bytes.h -- messages as gRPC has them: what is sent without a copy, what came as slices. */
#ifndef LEAT_CLUSTER_GRPC_BYTES_H
#define LEAT_CLUSTER_GRPC_BYTES_H

#include <grpc/grpc.h>

#include "cluster/transport.h"

/* Takes what is in o. Tensors are let go when gRPC has sent their bytes. */
grpc_byte_buffer *leat_bytes_to_send(leat_outgoing *o);

/* in.slices point into b, and are freed with free(). */
leat_incoming leat_bytes_received(grpc_byte_buffer *b);

#endif
