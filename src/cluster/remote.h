/* remote.h -- sessions whose master is a server in another process. */
#ifndef LEAT_CLUSTER_REMOTE_H
#define LEAT_CLUSTER_REMOTE_H

#include <leat/session.h>

leat_status leat_remote_open(leat_graph *g, const leat_session_options *o,
                             leat_session **out) LEAT_MUST_CHECK;

#endif
