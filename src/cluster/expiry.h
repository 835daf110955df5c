/* expiry.h -- a thread of a server that ends what nobody else ends: sessions of clients and masters
 * that have gone, and calls that wait for ever. */
#ifndef LEAT_CLUSTER_EXPIRY_H
#define LEAT_CLUSTER_EXPIRY_H

#include "cluster/service.h"

typedef struct leat_expiry leat_expiry;

/* port: the one that clients and masters connect to. Borrows s and w, until leat_expiry_stop. */
leat_status leat_expiry_start(const leat_server_options *o, int port, leat_service *s,
                              leat_worker *w, leat_expiry **out) LEAT_MUST_CHECK;
void leat_expiry_stop(leat_expiry *e); /* e may be NULL. */

#endif
