/* server.h -- servers of this process, for sessions whose target is one of them. */
#ifndef LEAT_CLUSTER_SERVER_H
#define LEAT_CLUSTER_SERVER_H

#include <leat/cluster.h>
#include <leat/session.h>

/* Opens a session driven from the server of this process that listens on the target; NULL in *out
 * if there is none. */
leat_status leat_server_session(leat_graph *g, const leat_session_options *o,
                                leat_session **out) LEAT_MUST_CHECK;
/* The worker of a server; borrowed. */
struct leat_worker *leat_server_worker(const leat_server *s);

#endif
