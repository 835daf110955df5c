/* remote_hold.h -- leat_session_hold of a session on a server: by a call of Hold, which the server
 * replies to when a task of the session is about to end (service_hold.c). */
#ifndef LEAT_CLUSTER_REMOTE_HOLD_H
#define LEAT_CLUSTER_REMOTE_HOLD_H

#include <stdatomic.h>

#include "cluster/transport.h"

typedef struct leat_remote_hold {
    atomic_bool on;
    atomic_bool ending; /* task is set, and is about to end. */
    char task[128];
} leat_remote_hold;

/* Holds, or lets go. h lives until the channel c is freed. Does not wait. */
void leat_remote_hold_set(leat_remote_hold *h, leat_channel *c, char *handle, bool on);
/* As leat_session_ending. */
const char *leat_remote_hold_ending(const leat_remote_hold *h);

#endif
