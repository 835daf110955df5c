/* address.h -- which addresses a listener binds, and why it cannot; which machine this is. */
#ifndef LEAT_CLUSTER_ADDRESS_H
#define LEAT_CLUSTER_ADDRESS_H

#include <leat/status.h>

enum { LEAT_BIND_MAX = 4 };
/* What "host:port" stands for on this machine, as numbers: "127.0.0.1:2222", "[::1]:2222". Each one
 * could be bound a moment ago. */
typedef struct leat_bind_list {
    char text[LEAT_BIND_MAX][64];
    int n;
    bool loopback; /* all of them */
} leat_bind_list;
leat_status leat_bind_find(const char *address, leat_bind_list *out) LEAT_MUST_CHECK;

/* The machine, its boot, and the network in which names of Unix sockets live; less than 96 bytes.
 * "" if the machine does not say. */
const char *leat_machine_id(void);

#endif
