/* local.h -- connections within a machine, and what gRPC's sockets need to know of them. */
#ifndef LEAT_CLUSTER_GRPC_LOCAL_H
#define LEAT_CLUSTER_GRPC_LOCAL_H

#include <grpc/grpc.h>
#include <stdbool.h>

/* Whether this "host:port" is a loopback address by its looks: nothing is resolved. */
bool leat_local_address(const char *address);

/* The argument by which a channel to a local address, and any server, sets its sockets up. False
 * if this gRPC is none that is known here. */
bool leat_local_arg(grpc_arg *out);

#endif
