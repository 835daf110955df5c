/* channel_int.h -- the inside of a channel over gRPC, for channel.c (calls), connect.c (gRPC's
 * channel and its options), ping.c (peers that do not reply any more) and errors.c (why a call
 * failed). */
#ifndef LEAT_CLUSTER_GRPC_CHANNEL_INT_H
#define LEAT_CLUSTER_GRPC_CHANNEL_INT_H

#include <pthread.h>

#include "cluster/grpc/bytes.h"
#include "cluster/grpc/parts.h"
#include "cluster/grpc/poller.h"
#include "cluster/transport_int.h"

typedef struct leat_rpc leat_rpc;
typedef struct leat_rpc_channel {
    leat_link base;
    struct leat_rpc_channel *next, **link; /* In ping.c's list of all channels. */
    char *address, *peer;
    grpc_channel_credentials *credentials;
    char *tls_name;    /* The name in the peer's certificate; NULL: its host's. */
    grpc_slice bearer; /* The token as metadata of every call; empty: none. */
    grpc_completion_queue *queue;
    pthread_mutex_t lock; /* Guards what follows; taken last. */
    pthread_cond_t no_calls;
    grpc_channel *inner;
    leat_rpc *calls;   /* The calls under way, linked. */
    int64_t alive_ns;  /* When the peer last replied, or the first of `calls` began. */
    int64_t pinged_ns; /* When the ping under way began; 0: none is under way. */
    /* Whether the peer takes messages in parts. */
    enum { LEAT_PARTS_UNKNOWN, LEAT_PARTS_NO, LEAT_PARTS_YES } parts;
} leat_rpc_channel;

struct leat_rpc {
    leat_call base;
    leat_tag sent, came, ended;
    int pending;            /* Number of events of these three tags that have not come. */
    leat_rpc *next, **link; /* In the channel's calls. */
    leat_rpc_channel *channel;
    grpc_call *inner;
    const char *method;
    leat_reply_fn fn;
    void *arg;
    int64_t started_ns, deadline_ns;
    bool wait_ready;
    bool cancelled;     /* Guarded by the channel's lock. */
    bool over;          /* Nothing is sent or received any more. Guarded by the channel's lock. */
    bool probes_parts;  /* A ping goes first, whose reply says whether the peer takes parts. */
    bool probes_reason; /* The deadline passed without a connection: a ping finds out why. */
    leat_outgoing kept; /* The request, until it is sent after the first ping. */
    leat_parts *parts;  /* A request that is sent in parts, or NULL. */
    grpc_byte_buffer *request, *reply;
    leat_gather *gather; /* A reply that comes in parts. */
    leat_status broken;  /* The error in a reply in parts. */
    grpc_metadata_array initial, trailing;
    grpc_status_code code;
    grpc_slice details;
    const char *error; /* gRPC's description, to be freed with gpr_free. */
};

/* A method that every listener of Leat replies to itself, without a handler. */
#define LEAT_PING "/leat.Transport/Ping"

/* Metadata of an error that a listener of Leat, or its handler, decided; errors without it come
 * from gRPC. Part of the wire protocol: it must not change. */
#define LEAT_STATUS_MARK "leat-says"

leat_status leat_rpc_open(const leat_link_target *to, leat_link **out) LEAT_MUST_CHECK;
grpc_channel *leat_rpc_connect(const leat_rpc_channel *c); /* Connects with the first call. */
bool leat_rpc_connected(leat_rpc_channel *c);
void leat_rpc_renew(leat_link *l); /* as renew of leat_link_ops */

void leat_ping_watch(leat_rpc_channel *c); /* From open to free. */
void leat_ping_unwatch(leat_rpc_channel *c);
/* Pings the peers that have not replied for long. The thread that polls calls it after each event,
 * and, if no event comes before, at the time that it has returned (CLOCK_MONOTONIC). */
int64_t leat_ping_check(void);
#define LEAT_SILENT "silent" /* The details with which ping.c cancels calls. */

/* The status of a call that ended; NULL if it went well. */
leat_status leat_rpc_status(const leat_rpc *c) LEAT_MUST_CHECK;

#endif
