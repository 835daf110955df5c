/* security.h -- TLS and tokens, as gRPC wants them. */
#ifndef LEAT_CLUSTER_GRPC_SECURITY_H
#define LEAT_CLUSTER_GRPC_SECURITY_H

#include <leat/cluster.h>

#include "cluster/grpc/library.h"

/* For a channel to that address: TLS if a certificate or an authority is given. NOT_FOUND and
 * INVALID_ARGUMENT name the file; a token that would travel in the clear gets a warning. s may be
 * NULL. */
leat_status leat_security_client(const leat_security *s, const char *address,
                                 grpc_channel_credentials **out) LEAT_MUST_CHECK;
/* For a listener: TLS if a certificate is given. Warns of what is open to everybody, but not on
 * loopback addresses. */
leat_status leat_security_server(const leat_security *s, const char *address, bool loopback,
                                 grpc_server_credentials **out) LEAT_MUST_CHECK;

/* "Bearer TOKEN" as metadata "authorization". */
#define LEAT_TOKEN_KEY "authorization"
grpc_slice leat_security_bearer(const leat_security *s);
/* True if there is no token, or the call carries it; takes the same time for all wrong ones. */
bool leat_security_allows(const leat_security *s, const grpc_metadata_array *metadata);

#endif
