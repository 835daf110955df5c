/* usage.h -- when a session that a peer opened on this server was last used, and over which
 * connection: what decides whether it is idle. A session with a call under way is not idle, nor is
 * one whose peer's connection is open. */
#ifndef LEAT_CLUSTER_USAGE_H
#define LEAT_CLUSTER_USAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cluster/connections.h"
#include "cluster/transport.h"

typedef struct leat_usage {
    atomic_int calls; /* Calls and steps under way. */
    /* When the last call ended, or when the peer was last known to be there (CLOCK_MONOTONIC). */
    _Atomic int64_t last_ns;
    pthread_mutex_t lock; /* Guards peer. */
    char peer[96];        /* The caller of the last call; "" if it is not known. */
} leat_usage;

void leat_usage_init(leat_usage *u);
void leat_usage_release(leat_usage *u);
/* A call begins, and ends. peer is from leat_server_call_peer; NULL: the peer stays what it was. */
void leat_usage_begin(leat_usage *u, const char *peer);
void leat_usage_end(leat_usage *u);
/* The peer is there now: begins the idle time anew. */
void leat_usage_seen(leat_usage *u);
bool leat_usage_connected(leat_usage *u, const leat_connections *open);
/* For how long the session was not used; 0 while a call is under way. */
int64_t leat_usage_idle_ns(const leat_usage *u, int64_t now_ns);

#endif
