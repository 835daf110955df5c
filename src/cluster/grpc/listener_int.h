/* listener_int.h -- a listener on gRPC from the inside: listener.c (its life), asked.c (calls). */
#ifndef LEAT_CLUSTER_GRPC_LISTENER_INT_H
#define LEAT_CLUSTER_GRPC_LISTENER_INT_H

#include <pthread.h>

#include "cluster/grpc/channel_int.h"

struct leat_listener {
    leat_handler_fn handler;
    void *arg;
    const leat_security *security;
    int64_t max_message; /* in parts or as a whole */
    int max_calls;
    bool takes_parts;
    int port;
    grpc_server *server;
    grpc_completion_queue *queue;
    leat_tag stopped_tag;
    pthread_mutex_t lock; /* what follows; taken last */
    pthread_cond_t changed;
    int waiting; /* requests for calls that gRPC still has */
    int calls;   /* that came, and whose gRPC object lives */
    bool stopping, stopped;
};

void leat_asked_request(leat_listener *l); /* asks gRPC for one more call */

#endif
