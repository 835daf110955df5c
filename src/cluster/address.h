/* address.h -- the addresses that a listener binds, with errors that say why it cannot; the id of
 * this machine. */
#ifndef LEAT_CLUSTER_ADDRESS_H
#define LEAT_CLUSTER_ADDRESS_H

#include <leat/status.h>

enum { LEAT_BIND_MAX = 4 };
/* The numeric addresses of "host:port" on this machine: "127.0.0.1:2222", "[::1]:2222". Each one
 * could be bound a moment ago. */
typedef struct leat_bind_list {
    char text[LEAT_BIND_MAX][64];
    int n;
    bool loopback; /* all of them are loopback addresses */
} leat_bind_list;
leat_status leat_bind_find(const char *address, leat_bind_list *out) LEAT_MUST_CHECK;

/* A text of less than 96 bytes that is the same for processes that can share memory and abstract
 * Unix sockets: made of machine, boot and network namespace. "" if these are not known. */
const char *leat_machine_id(void);

#endif
