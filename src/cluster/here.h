/* here.h -- calls to a server of this very process: its handler runs in the caller's thread, and
 * tensors go by reference, so a client's step on its own task's server costs no change of threads.
 *
 * Listeners make themselves known by their address; whoever calls one that is not here, or no
 * longer, goes by its channel.
 */
#ifndef LEAT_CLUSTER_HERE_H
#define LEAT_CLUSTER_HERE_H

#include "cluster/transport.h"

/* A call to the listener of that address ("host:port", as the listener was given it, with its real
 * port), or NULL if it is not in this process. It may be cancelled from now on until fn begins. */
leat_call *leat_here_new(const char *address);
/* Takes what is in request. The handler runs before this returns, and fn(arg) then or later, as
 * leat_channel_call has it. The handler alone sees to deadlines. */
void leat_here_call(leat_call *call, const char *method, leat_outgoing *request, leat_reply_fn fn,
                    void *arg);

typedef struct leat_here_door leat_here_door;
leat_here_door *leat_here_open(const char *address, leat_handler_fn handler, void *arg);
/* As leat_listener_stop. */
void leat_here_close(leat_here_door *d, int64_t deadline_ns);

#endif
