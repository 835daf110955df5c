/* transport_int.h -- the interface between transport.c, which chooses a transport for each call,
 * and the transports, which have a folder each.
 *
 * A transport exports one leat_transport and has one line in transports.c. Nothing outside its
 * folder knows a transport by name. One transport, gRPC, is available at every address. The other
 * ones are offered over gRPC: a task's reply to GetStatus tells its peers what they need to open a
 * link by each transport that the task listens on (leat_offer). A channel holds the links that were
 * opened, and a call goes by the most preferred link that lives.
 */
#ifndef LEAT_CLUSTER_TRANSPORT_INT_H
#define LEAT_CLUSTER_TRANSPORT_INT_H

#include "cluster/transport.h"

typedef struct leat_transport leat_transport;

/* ---- Making calls: a link is one transport's part of a channel ---- */
typedef enum leat_link_state {
    LEAT_LINK_OPENING, /* Not to be used yet. */
    LEAT_LINK_LIVES,
    LEAT_LINK_DEAD, /* Never lives again. */
} leat_link_state;
typedef struct leat_link leat_link;
typedef struct leat_link_ops {
    /* As leat_channel_call. If the link is dead, the call ends with UNAVAILABLE. */
    void (*call)(leat_link *l, const char *method, leat_outgoing *request,
                 const leat_call_options *options, leat_reply_fn fn, void *arg,
                 leat_call **call_out);
    void (*free)(leat_link *l); /* As leat_channel_free. */
    /* Optional; NULL: the link always lives, and connects again by itself. */
    leat_link_state (*state)(const leat_link *l);
    /* Optional. Makes the link's next call use a new connection, unless calls are under way on the
     * present one. The channel calls renew when another link to the same peer has died: the network
     * may have been cut, and the peer may have closed the idle connection without this task
     * noticing. */
    void (*renew)(leat_link *l);
    /* Optional. The channel calls replaced when it has a newer link by the same transport. A link
     * that is still OPENING stops trying to connect. */
    void (*replaced)(leat_link *l);
} leat_link_ops;
struct leat_link {
    const leat_link_ops *ops;
    leat_link *next;     /* In the channel's list of replaced links. */
    uint32_t death_seen; /* Atomic: 1 once the channel has renewed its links after this one died. */
};

/* A peer with calls under way that has sent nothing for leat_ping_after_ns is pinged. If it sends
 * nothing for that time again, its calls end with UNAVAILABLE. Tests shorten the time. */
extern int64_t leat_ping_after_ns;

struct leat_call {
    void (*cancel)(leat_call *call);
};

/* ---- Serving: an endpoint is one transport's part of a listener ---- */
typedef struct leat_endpoint {
    const leat_transport *transport;
} leat_endpoint;

typedef struct leat_server_call_ops {
    void (*reply)(leat_server_call *c, leat_status s, leat_outgoing *reply);
    bool (*on_cancel)(leat_server_call *c, void (*fn)(void *arg), void *arg);
    const char *(*peer)(const leat_server_call *c);
    void (*will_block)(leat_server_call *c);         /* Optional. */
    int64_t (*max_reply)(const leat_server_call *c); /* Optional; NULL: LEAT_MESSAGE_MAX. */
} leat_server_call_ops;
struct leat_server_call {
    const leat_server_call_ops *ops;
};

/* ---- A transport ---- */
typedef struct leat_link_target {
    const char *address, *peer;    /* As in leat_channel_open. */
    const leat_security *security; /* NULL: no TLS and no token. */
    const leat_offer *offer;       /* The peer's offer of the transport; NULL if by_address. */
} leat_link_target;

struct leat_transport {
    const char *name; /* Used in offers, options and logs: "grpc", "shm". */
    /* The transport is available at every address: its links need no offer. True of exactly one. */
    bool by_address;
    /* As leat_listen. Appends to offer_out what peers need to open a link, before a peer can
     * connect; offer_out is NULL if by_address. After an error the listener goes on without this
     * transport, unless by_address. */
    leat_status (*listen)(const char *address, const leat_listen_options *options,
                          leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                          leat_endpoint **out);
    void (*stop)(leat_endpoint *e, int64_t deadline_ns); /* As leat_listener_stop; frees e. */
    /* May wait for a peer on this machine, for some seconds at most. A link to another machine is
     * given at once, in state OPENING. FAILED_PRECONDITION: this transport does not lead to the
     * peer from here, which is normal and is not logged. */
    leat_status (*open)(const leat_link_target *to, leat_link **out);
    int (*port)(const leat_endpoint *e); /* Optional unless by_address. */
    /* Optional. As leat_pool_wait, but may read messages of peers while it waits, and run handlers
     * and reply functions in the waiting thread. p is NULL if the step has no nodes on this task.
     * Gives -1 at once if the process has no connections by this transport, or if the thread is not
     * to read them. */
    int (*wait)(leat_pool *p, leat_event *e, int64_t deadline_ns);
};

/* Opens a channel with a single link, by transport t. Once the link is dead all calls fail. */
leat_status leat_channel_open_link(const leat_transport *t, const leat_link_target *to,
                                   leat_channel **out) LEAT_MUST_CHECK;

/* Gives the state of the channel's most preferred link. */
leat_link_state leat_channel_state(leat_channel *c);

/* All transports in order of preference, with NULL at the end. Tests set a list of their own. */
extern const leat_transport *const *leat_transports;
/* INTERNAL: a transport lacks a mandatory field, which the message names. */
leat_status leat_transports_check(void) LEAT_MUST_CHECK;

#endif
