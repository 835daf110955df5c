/* remote_request.c -- the requests that a client sends to a master before steps: the graph, nodes
 * that were added to it, the names of a partial run. */
#include "cluster/remote_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "cluster/messages/methods.h"
#include "cluster/tensor_wire.h"
#include "core/alloc.h"
#include "graph/graphdef.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

/* ---- The graph ---- */

/* Nodes of the graph, and all its functions, as a message. */
typedef struct graph_part {
    Leat__GraphDef def;
    Leat__VersionDef versions;
} graph_part;

static void part_release(graph_part *p)
{
    for (size_t i = 0; i < p->def.n_node; i++)
        leat_proto_free(p->def.node[i]);
    free(p->def.node);
    leat_proto_free(p->def.library);
}

/* part_release must follow, also after a failure. */
static leat_status part_init(graph_part *p, const leat_graph *g, int first, int end)
{
    enum { PRODUCER = 134 }; /* the version of GraphDef that TensorFlow 1.15 writes */
    leat__graph_def__init(&p->def);
    leat__version_def__init(&p->versions);
    p->versions.producer = PRODUCER;
    p->def.versions = &p->versions;
    p->def.node = leat_new_array(Leat__NodeDef *, end - first + 1);
    for (int i = first; i < end; i++) {
        LEAT_TRY(leat_node_to_proto(g->nodes[i], &p->def.node[p->def.n_node]));
        p->def.n_node++;
    }
    return g->n_functions ? leat_functions_export(g, &p->def.library) : NULL;
}

/* A ConfigProto with the messages inside it. */
typedef struct config {
    Leat__ConfigProto proto;
    Leat__GraphOptions graph;
    Leat__OptimizerOptions optimizer;
    leat_device_count counts[LEAT_DEVICE_COUNTS];
    Leat__ConfigProto__DeviceCountEntry entries[LEAT_DEVICE_COUNTS], *entry[LEAT_DEVICE_COUNTS];
} config;

/* device_count, a map from a kind to the number of its devices; a kind without a number is left
 * out. */
static leat_status put_counts(config *c, const char *devices)
{
    int n;
    LEAT_TRY(leat_device_counts_read(devices, c->counts, &n));
    for (int i = 0; i < n; i++) {
        if (c->counts[i].n < 0)
            continue;
        Leat__ConfigProto__DeviceCountEntry *e = &c->entries[i];
        leat__config_proto__device_count_entry__init(e);
        e->key = c->counts[i].type;
        e->value = c->counts[i].n;
        c->entry[c->proto.n_device_count++] = e;
    }
    c->proto.device_count = c->entry;
    return NULL;
}

static leat_status config_init(config *c, const leat_session_options *o)
{
    leat__config_proto__init(&c->proto);
    leat__graph_options__init(&c->graph);
    leat__optimizer_options__init(&c->optimizer);
    c->proto.device_filters = (char **)o->device_filters;
    while (o->device_filters && o->device_filters[c->proto.n_device_filters])
        c->proto.n_device_filters++;
    c->proto.allow_soft_placement = o->allow_soft_placement;
    c->proto.log_device_placement = o->log_device_placement;
    c->proto.operation_timeout_in_ms = o->timeout_ms;
    if (o->no_optimization) {
        c->optimizer.opt_level = LEAT__OPTIMIZER_OPTIONS__LEVEL__L0;
        c->graph.optimizer_options = &c->optimizer;
        c->proto.graph_options = &c->graph;
    }
    return put_counts(c, o->devices);
}

leat_status leat_remote_put_create_session(leat_strbuf *b, leat_graph *g,
                                           const leat_session_options *o, int *end_out)
{
    Leat__CreateSessionRequest request = LEAT__CREATE_SESSION_REQUEST__INIT;
    graph_part part;
    config config;
    pthread_mutex_lock(&g->lock);
    *end_out = g->n_nodes;
    leat_status s = part_init(&part, g, 0, *end_out);
    pthread_mutex_unlock(&g->lock);
    s = leat_status_first(s, config_init(&config, o));
    request.graph_def = &part.def;
    request.config = &config.proto;
    request.target = (char *)o->target;
    if (!s)
        s = leat_put_fields(b, LEAT_METHOD_CREATE_SESSION, &request);
    part_release(&part);
    return s;
}

leat_status leat_remote_put_extend_session(leat_strbuf *b, leat_graph *g, int first,
                                           Leat__ExtendSessionRequest *request, int *end_out)
{
    graph_part part;
    pthread_mutex_lock(&g->lock);
    *end_out = g->n_nodes;
    bool grown = *end_out > first;
    leat_status s = grown ? part_init(&part, g, first, *end_out) : NULL;
    pthread_mutex_unlock(&g->lock);
    if (!grown)
        return NULL;
    request->graph_def = &part.def;
    if (!s)
        s = leat_put_fields(b, LEAT_METHOD_EXTEND_SESSION, request);
    request->graph_def = NULL;
    part_release(&part);
    return s;
}

/* ---- Partial runs ---- */

void leat_remote_name(leat_out x, char *buf, size_t n)
{
    snprintf(buf, n, "%s:%d", x.node->name, x.index);
}

/* Gives the names of tensors, each one from malloc. */
static leat_status name_all(const leat_out *v, int n, char **names)
{
    char name[1024];
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(v[i].node, INVALID_ARGUMENT,
                     "A tensor of a partial run is none of the graph's");
        leat_remote_name(v[i], name, sizeof(name));
        names[i] = leat_xstrdup(name);
    }
    return NULL;
}

leat_status leat_remote_put_partial_setup(leat_strbuf *b, char *handle, const leat_request *q)
{
    Leat__PartialRunSetupRequest request = LEAT__PARTIAL_RUN_SETUP_REQUEST__INIT;
    int n = q->n_feeds + q->n_fetches;
    char **names = leat_new_array(char *, n + 1);
    char **targets = leat_new_array(char *, q->n_targets + 1);
    leat_status s = name_all(q->feeds, q->n_feeds, names);
    if (!s)
        s = name_all(q->fetches, q->n_fetches, names + q->n_feeds);
    for (int i = 0; i < q->n_targets && !s; i++) {
        if (q->targets[i].node)
            targets[request.n_target++] = (char *)q->targets[i].node->name;
        else
            s = leat_error(INVALID_ARGUMENT, "A target is none of the graph's");
    }
    request.session_handle = handle;
    request.feed = names;
    request.n_feed = (size_t)q->n_feeds;
    request.fetch = names + q->n_feeds;
    request.n_fetch = (size_t)q->n_fetches;
    request.target = targets;
    if (!s)
        s = leat_put_fields(b, LEAT_METHOD_PARTIAL_RUN_SETUP, &request);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    free(targets);
    return s;
}
