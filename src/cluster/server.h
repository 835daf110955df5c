/* server.h -- sessions whose target is a server of this process. */
#ifndef LEAT_CLUSTER_SERVER_H
#define LEAT_CLUSTER_SERVER_H

#include <leat/cluster.h>
#include <leat/session.h>

/* Opens a session that is driven by the server of this process whose target is o->target. Sets *out
 * to NULL if this process has no such server. */
leat_status leat_server_session(leat_graph *g, const leat_session_options *o,
                                leat_session **out) LEAT_MUST_CHECK;
/* Both are borrowed from s. */
struct leat_worker *leat_server_worker(const leat_server *s);
struct leat_service *leat_server_service(const leat_server *s);

#endif
