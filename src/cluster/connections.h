/* connections.h -- which TCP connections to a server are open. gRPC does not tell a server that a
 * connection without calls was closed; the system's table of sockets does. */
#ifndef LEAT_CLUSTER_CONNECTIONS_H
#define LEAT_CLUSTER_CONNECTIONS_H

#include <stdbool.h>

typedef struct leat_connections leat_connections;

/* Reads the connections that are open to this port of the machine (Linux: /proc/self/net). There
 * are none where the system has no such table. If it has one that cannot be read now, because
 * descriptors have run out, all connections count as open. Free with leat_connections_free. */
leat_connections *leat_connections_read(int port);
/* peer: a name from leat_server_call_peer. False for names that are not of a TCP connection. */
bool leat_connections_has(const leat_connections *c, const char *peer);
void leat_connections_free(leat_connections *c);

#endif
