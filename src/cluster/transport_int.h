/* transport_int.h -- what the ways between tasks have in common: a channel and a call that came
 * begin with a table of functions, so that callers need not know which way it is. */
#ifndef LEAT_CLUSTER_TRANSPORT_INT_H
#define LEAT_CLUSTER_TRANSPORT_INT_H

#include "cluster/transport.h"

typedef struct leat_channel_ops {
    void (*call)(leat_channel *c, const char *method, leat_outgoing *request,
                 const leat_call_options *options, leat_reply_fn fn, void *arg,
                 leat_call **call_out);
    void (*free)(leat_channel *c);
    void (*wait)(leat_event *done); /* NULL: leat_event_wait */
} leat_channel_ops;
struct leat_channel {
    const leat_channel_ops *ops;
    leat_channel *fast; /* by shared memory, or NULL: calls go there while it lives; atomic */
    leat_channel *was;  /* of a fast one: what was in its place before */
};

struct leat_call {
    void (*cancel)(leat_call *call);
};

typedef struct leat_asked_ops {
    void (*reply)(leat_asked *a, leat_status s, leat_outgoing *reply);
    bool (*on_gone)(leat_asked *a, void (*fn)(void *arg), void *arg);
    const char *(*peer)(const leat_asked *a);
    void (*leave)(leat_asked *a);         /* NULL: nothing to do */
    int64_t (*most)(const leat_asked *a); /* NULL: LEAT_MESSAGE_MAX */
} leat_asked_ops;
struct leat_asked {
    const leat_asked_ops *ops;
};

#endif
