/* remote_int.h -- the requests that remote.c, a client's session on a server, sends before it runs
 * steps. remote_request.c makes them. */
#ifndef LEAT_CLUSTER_REMOTE_INT_H
#define LEAT_CLUSTER_REMOTE_INT_H

#include "core/strbuf.h"
#include "proto/cluster.pb-c.h"
#include "runtime/session_int.h"

/* A CreateSessionRequest with the whole graph. *end_out: how many nodes are in it. */
leat_status leat_remote_put_create_session(leat_strbuf *b, leat_graph *g,
                                           const leat_session_options *o,
                                           int *end_out) LEAT_MUST_CHECK;
/* Writes *request, whose graph_def is not set, with the graph's nodes from `first` on. *end_out:
 * how many nodes the graph has; nothing is written if that is not more than first. */
leat_status leat_remote_put_extend_session(leat_strbuf *b, leat_graph *g, int first,
                                           Leat__ExtendSessionRequest *request,
                                           int *end_out) LEAT_MUST_CHECK;
/* A PartialRunSetupRequest. */
leat_status leat_remote_put_partial_setup(leat_strbuf *b, char *handle,
                                          const leat_request *q) LEAT_MUST_CHECK;
/* "node:0", as masters name a tensor. */
void leat_remote_name(leat_out x, char *buf, size_t n);

#endif
