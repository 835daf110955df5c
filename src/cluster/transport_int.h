/* transport_int.h -- what a transport is: the seam between transport.c, which chooses among them,
 * and the folders that each hold one.
 *
 * A transport exports one leat_transport and has one line in transports.c. Nothing outside its
 * folder knows it by name. One of them is spoken by every address; the others are offered over it:
 * a task tells its peers, by GetStatus, what they need to open a link by each transport that it
 * listens on (leat_offer). A channel holds the links that were opened, and a call takes the most
 * preferred one that lives.
 */
#ifndef LEAT_CLUSTER_TRANSPORT_INT_H
#define LEAT_CLUSTER_TRANSPORT_INT_H

#include "cluster/transport.h"

typedef struct leat_transport leat_transport;

/* ---- Calling: one transport's part of a channel ---- */
typedef enum leat_link_state {
    LEAT_LINK_OPENING, /* not to be used yet */
    LEAT_LINK_LIVES,
    LEAT_LINK_DEAD, /* for good */
} leat_link_state;
typedef struct leat_link leat_link;
typedef struct leat_link_ops {
    /* As leat_channel_call. A link that is not alive any more fails the call, UNAVAILABLE. */
    void (*call)(leat_link *l, const char *method, leat_outgoing *request,
                 const leat_call_options *options, leat_reply_fn fn, void *arg,
                 leat_call **call_out);
    void (*free)(leat_link *l); /* as leat_channel_free */
    /* Optional. NULL: it always lives, and connects again by itself. */
    leat_link_state (*state)(const leat_link *l);
    /* Optional: the next call is to use a new connection, unless calls are under way. The channel
     * calls it when another link to the same peer has died: the network may have been cut, and the
     * peer may have closed an idle connection meanwhile, of which this task heard nothing. */
    void (*renew)(leat_link *l);
    /* Optional: the channel has another link by this transport now. A link that is still OPENING
     * does not go on trying. */
    void (*replaced)(leat_link *l);
} leat_link_ops;
struct leat_link {
    const leat_link_ops *ops;
    leat_link *next;     /* the next one in the channel's list of replaced links */
    uint32_t death_seen; /* atomic: the links that renew were told that this one died */
};

/* A peer with open calls is pinged when nothing has come from it for so long, and given up after
 * twice this time. Tests shorten it. */
extern int64_t leat_ping_after_ns;

struct leat_call {
    void (*cancel)(leat_call *call);
};

/* ---- Serving: one transport's part of a listener, and its calls ---- */
typedef struct leat_endpoint {
    const leat_transport *transport;
} leat_endpoint;

typedef struct leat_server_call_ops {
    void (*reply)(leat_server_call *c, leat_status s, leat_outgoing *reply);
    bool (*on_cancel)(leat_server_call *c, void (*fn)(void *arg), void *arg);
    const char *(*peer)(const leat_server_call *c);
    void (*will_block)(leat_server_call *c);         /* optional */
    int64_t (*max_reply)(const leat_server_call *c); /* optional; NULL: LEAT_MESSAGE_MAX */
} leat_server_call_ops;
struct leat_server_call {
    const leat_server_call_ops *ops;
};

/* ---- A transport ---- */
/* Where a link leads to. */
typedef struct leat_link_target {
    const char *address, *peer;    /* as leat_channel_open has them */
    const leat_security *security; /* NULL: none */
    const leat_offer *offer;       /* of this transport; NULL for the one that needs none */
} leat_link_target;

struct leat_transport {
    const char *name; /* in offers, options and logs: "grpc", "shm" */
    /* Every address speaks it, so that links are opened without an offer. True of one transport. */
    bool by_address;
    /* Calls are handled as those of leat_listen. offer_out: what peers need to open a link, there
     * before the first of them can come; not used if by_address. An error means that this transport
     * cannot be had here: the others go on without it, unless by_address. */
    leat_status (*listen)(const char *address, const leat_listen_options *options,
                          leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                          leat_endpoint **out);
    void (*stop)(leat_endpoint *e, int64_t deadline_ns); /* as leat_listener_stop; frees it */
    /* Must not wait for a peer that is slow or cannot be reached for longer than some seconds, and
     * only for one of this machine: else the link is given in state OPENING. FAILED_PRECONDITION:
     * this peer cannot be reached that way, from here. */
    leat_status (*open)(const leat_link_target *to, leat_link **out);
    int (*port)(const leat_endpoint *e); /* of the one that is by_address; else optional */
    /* Optional: as leat_pool_wait, but reads what comes from peers meanwhile and works on it: a
     * handler or a reply function may run in this thread. p is NULL if the step has no nodes on
     * this task. -1, at once: nothing comes this way. */
    int (*wait)(leat_pool *p, leat_event *e, int64_t deadline_ns);
};

/* A channel that goes by this transport alone; once its link has died all calls fail. */
leat_status leat_channel_open_link(const leat_transport *t, const leat_link_target *to,
                                   leat_channel **out) LEAT_MUST_CHECK;

/* Of its most preferred link. */
leat_link_state leat_channel_state(leat_channel *c);

/* All transports in order of preference, NULL at the end. Tests put a list of their own here. */
extern const leat_transport *const *leat_transports;
/* INTERNAL if a transport lacks what it must have; says which. */
leat_status leat_transports_check(void) LEAT_MUST_CHECK;

#endif
