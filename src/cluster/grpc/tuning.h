/* tuning.h -- settings that gRPC's public interface does not have: see tuning.c. Without the build
 * option LEAT_GRPC_TUNING these functions do nothing and give false. */
#ifndef LEAT_CLUSTER_GRPC_TUNING_H
#define LEAT_CLUSTER_GRPC_TUNING_H

#include <stdbool.h>

#include "cluster/grpc/library.h"

/* Called once, before gRPC is started. */
void leat_tuning_start(void);
/* An argument for the sockets of a channel to this address, or of any server. False: none. */
bool leat_tuning_channel(const char *address, grpc_arg *out);
bool leat_tuning_server(grpc_arg *out);

#endif
