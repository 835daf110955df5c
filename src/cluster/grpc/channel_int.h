/* channel_int.h -- the inside of a channel over gRPC, for the files that make one up: channel.c
 * (calls), ping.c (peers that fell silent), words.c (what failed, in words). */
#ifndef LEAT_CLUSTER_GRPC_CHANNEL_INT_H
#define LEAT_CLUSTER_GRPC_CHANNEL_INT_H

#include <pthread.h>

#include "cluster/grpc/bytes.h"
#include "cluster/grpc/parts.h"
#include "cluster/grpc/pump.h"
#include "cluster/transport_int.h"

typedef struct leat_rpc leat_rpc;
typedef struct leat_rpc_channel {
    leat_channel base;
    struct leat_rpc_channel *next, **link; /* among all of the process: ping.c */
    char *address, *peer;
    grpc_channel_credentials *credentials;
    char *tls_name;    /* that the peer's certificate carries, if not its host */
    grpc_slice bearer; /* what every call carries; empty: nothing */
    grpc_completion_queue *queue;
    pthread_mutex_t lock; /* what follows; taken last */
    pthread_cond_t no_calls;
    grpc_channel *inner;
    leat_rpc *calls;   /* under way */
    int64_t heard_ns;  /* when the peer was last heard of, or the first of calls began */
    int64_t pinged_ns; /* when the ping began that is under way; 0: none is */
    enum { LEAT_PARTS_UNKNOWN, LEAT_PARTS_NO, LEAT_PARTS_YES } parts; /* whether it takes them */
} leat_rpc_channel;

struct leat_rpc {
    leat_call base;
    leat_tag sent, came, ended;
    int pending;            /* of these */
    leat_rpc *next, **link; /* among the channel's */
    leat_rpc_channel *channel;
    grpc_call *inner;
    const char *method;
    leat_reply_fn fn;
    void *arg;
    int64_t started_ns, deadline_ns;
    bool wait_ready;
    bool cancelled;     /* under the channel's lock */
    bool asks_parts;    /* a first call is to tell whether the peer takes them */
    bool asks_why;      /* its time is up: a second call is to tell why */
    leat_outgoing kept; /* what is sent after the first call */
    leat_parts *parts;  /* what is being sent, or */
    grpc_byte_buffer *request, *reply;
    leat_gather *gather; /* a reply in parts */
    leat_status broken;  /* what was wrong with it */
    grpc_metadata_array initial, trailing;
    grpc_status_code code;
    grpc_slice details;
    const char *error; /* gRPC's own words, to be freed with gpr_free */
};

/* A call without a handler, which every listener answers itself. */
#define LEAT_PING "/leat.Transport/Ping"

/* Metadata that comes with an error which a listener's handler, or the listener, decided. */
#define LEAT_SAYS "leat-says"

grpc_channel *leat_rpc_connect(const leat_rpc_channel *c); /* starts nothing yet */
bool leat_rpc_connected(leat_rpc_channel *c);

void leat_ping_watch(leat_rpc_channel *c); /* from open to free */
void leat_ping_unwatch(leat_rpc_channel *c);
/* An open call is pinged for after this time without a word, and given up after twice of it. Tests
 * shorten it. */
extern int64_t leat_ping_after_ns;
#define LEAT_SILENT "silent" /* what calls are cancelled with then */

/* The status of a call that ended; NULL if it went well. */
leat_status leat_rpc_status(const leat_rpc *c) LEAT_MUST_CHECK;

#endif
