/* security.h -- TLS and tokens, as gRPC wants them. */
#ifndef LEAT_CLUSTER_GRPC_SECURITY_H
#define LEAT_CLUSTER_GRPC_SECURITY_H

#include <leat/cluster.h>

#include "cluster/grpc/library.h"

/* For a channel to that address: TLS if a certificate or an authority is given. NOT_FOUND and
 * INVALID_ARGUMENT name the file; a token that would be sent without TLS causes a warning. s may be
 * NULL. */
leat_status leat_security_client(const leat_security *s, const char *address,
                                 grpc_channel_credentials **out) LEAT_MUST_CHECK;
/* For a listener: TLS if a certificate is given. Logs a warning if TLS or a token is missing and
 * the address is no loopback address. */
leat_status leat_security_server(const leat_security *s, const char *address, bool loopback,
                                 grpc_server_credentials **out) LEAT_MUST_CHECK;

/* "Bearer TOKEN" as metadata "authorization". */
#define LEAT_TOKEN_KEY "authorization"
grpc_slice leat_security_bearer(const leat_security *s);
/* True if there is no token, or the call carries it; the time it takes does not depend on how much
 * of a wrong token is right. */
bool leat_security_allows(const leat_security *s, const grpc_metadata_array *metadata);

#endif
