/* listener_int.h -- the inside of a listener on gRPC, for listener.c (start and stop) and
 * server_call.c (calls). */
#ifndef LEAT_CLUSTER_GRPC_LISTENER_INT_H
#define LEAT_CLUSTER_GRPC_LISTENER_INT_H

#include <pthread.h>

#include "cluster/grpc/channel_int.h"

typedef struct leat_receiving {
    struct leat_receiving *next, **link; /* link is NULL if it is in no list. */
    int64_t since_ns;                    /* When a part of the message came last. */
} leat_receiving;

typedef struct leat_rpc_listener {
    leat_endpoint base;
    leat_handler_fn handler;
    void *arg;
    const leat_security *security;
    int64_t max_message; /* Bytes, in parts or not. */
    int max_calls;       /* Under way in all. */
    int max_calls_one;   /* Under way on one connection. */
    bool takes_parts;
    int port;
    grpc_server *server;
    grpc_completion_queue *queue;
    leat_tag stopped_tag;
    pthread_mutex_t lock; /* Guards what follows; taken last. */
    pthread_cond_t changed;
    int waiting; /* grpc_server_request_call was called, and its event has not come. */
    int calls;   /* Calls that came, and whose grpc_call was not given back. */
    bool stopping, stopped;
    /* Calls whose message has not come as a whole; the one that has brought nothing for the longest
     * time first. */
    struct leat_receiving *receiving, **receiving_end;
} leat_rpc_listener;

void leat_server_call_await(leat_rpc_listener *l); /* Lets gRPC deliver one more call. */

#endif
