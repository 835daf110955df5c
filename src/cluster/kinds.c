/* kinds.c -- the kinds of sessions that are chosen by the prefix of leat_session_options.target. A
 * "grpc://" target that is a server of this process is driven in place, without calls to it. */
#include "cluster/remote.h"
#include "cluster/server.h"
#include "runtime/session_int.h"

static leat_status open_grpc(leat_graph *g, const leat_session_options *o, leat_session **out)
{
    LEAT_TRY(leat_server_session(g, o, out));
    return *out ? NULL : leat_remote_open(g, o, out);
}

static const leat_session_kind grpc = {"grpc://", open_grpc};

const leat_session_kind *const leat_session_kinds[] = {&grpc, NULL};
