/* service_run.c -- RunStep: feeds in, a step, fetches out. */
#include <stdlib.h>
#include <string.h>

#include "cluster/service_int.h"
#include "core/alloc.h"
#include "proto/wire.h"

/* ---- Names ---- */

void leat_run_names_release(leat_run_names *a)
{
    free(a->outs);
    a->outs = NULL;
}

static bool find(const leat_client *c, const char *name, leat_out *out)
{
    leat_status s = leat_graph_find_out(c->graph, name, out);
    leat_status_free(s);
    return !s;
}

static leat_status resolve(const leat_client *c, leat_run_names *a)
{
    int n = 0;
    a->outs = leat_new_array(leat_out, a->n_feeds + a->n_fetches + a->n_targets + 1);
    for (int i = 0; i < a->n_feeds; i++)
        LEAT_REQUIRE(find(c, a->feeds[i], &a->outs[n++]), NOT_FOUND,
                     "FeedInputs: unable to find feed output %s", a->feeds[i]);
    for (int i = 0; i < a->n_fetches; i++) {
        const char *name = a->fetches[i];
        LEAT_REQUIRE(find(c, name, &a->outs[n++]), NOT_FOUND, "FetchOutputs node %s: not found",
                     name);
    }
    for (int i = 0; i < a->n_targets; i++) {
        LEAT_REQUIRE(find(c, a->targets[i], &a->outs[n]), NOT_FOUND,
                     "PruneForTargets: Some target nodes not found: %s", a->targets[i]);
        a->outs[n++].index = -1;
    }
    return NULL;
}

/* The lock keeps ExtendSession from adding names meanwhile. */
leat_status leat_run_names_resolve(leat_client *c, leat_run_names *a)
{
    pthread_mutex_lock(&c->lock);
    leat_status s = resolve(c, a);
    pthread_mutex_unlock(&c->lock);
    return s;
}

/* ---- A step ---- */

static void client_gone(void *arg)
{
    leat_cancel_runs(arg);
}

leat_step_call leat_step_call_of(leat_server_call *a)
{
    leat_step_call k = {.call = a, .cancellation = leat_cancellation_new()};
    if (!leat_server_call_on_cancel(a, client_gone, k.cancellation))
        leat_cancel_runs(k.cancellation);
    return k;
}

void leat_step_call_release(leat_step_call *k)
{
    leat_cancellation_free(k->cancellation);
}

static leat_feeds feeds_of(const leat_run_names *a, leat_feed *v)
{
    for (int i = 0; i < a->n_feeds; i++)
        v[i] = (leat_feed){a->outs[i], a->fed[i]};
    return (leat_feeds){v, a->n_feeds};
}

static leat_fetches fetches_of(const leat_run_names *a, leat_fetch *v, leat_tensor **fetched)
{
    for (int i = 0; i < a->n_fetches; i++)
        v[i] = (leat_fetch){a->outs[a->n_feeds + i], &fetched[i]};
    return (leat_fetches){v, a->n_fetches};
}

leat_status leat_client_run(leat_step_call *k, const leat_run_names *a, leat_tensor **fetched,
                            leat_strbuf *metadata)
{
    leat_feed *feeds = leat_new_array(leat_feed, a->n_feeds + 1);
    leat_fetch *fetches = leat_new_array(leat_fetch, a->n_fetches + 1);
    leat_targets targets = {a->outs + a->n_feeds + a->n_fetches, a->n_targets};
    leat_metadata *m = NULL;
    leat_run_options o = {.timeout_ms = k->client->operation_ms, .cancellation = k->cancellation};
    if (k->options && k->options->timeout_in_ms > 0)
        o.timeout_ms = k->options->timeout_in_ms;
    if (k->options && k->options->trace_level != LEAT__RUN_OPTIONS__TRACE_LEVEL__NO_TRACE)
        o.metadata_out = &m;
    if (k->options && k->options->output_partition_graphs) {
        o.metadata_out = &m;
        o.output_partition_graphs = true;
    }
    leat_status s = leat_session_run_with(k->client->session, &o, feeds_of(a, feeds),
                                          fetches_of(a, fetches, fetched), targets);
    void *bytes;
    size_t n;
    if (!s && m) {
        s = leat_metadata_to_binary(m, &bytes, &n);
        if (!s) {
            leat_strbuf_add(metadata, bytes, n);
            free(bytes);
        }
    }
    leat_metadata_free(m);
    free(feeds);
    free(fetches);
    return s;
}

/* ---- RunStep ---- */

static leat_run_names names_of(const leat_run_step_request *q)
{
    return (leat_run_names){.feeds = q->feed.name,
                            .fetches = q->fetch.v,
                            .targets = q->target.v,
                            .n_feeds = q->feed.n,
                            .n_fetches = q->fetch.n,
                            .n_targets = q->target.n,
                            .fed = q->feed.tensor};
}

static leat_status run(leat_service *s, leat_step_call *call, const leat_run_step_request *q,
                       leat_outgoing *o)
{
    leat_client *c;
    LEAT_TRY(leat_service_find(s, call->call, q->session_handle ? q->session_handle : "", &c));
    call->client = c;
    call->options = q->options;
    leat_run_names names = names_of(q);
    leat_status status = leat_client_enter(c);
    leat_tensor **fetched = leat_new_array(leat_tensor *, names.n_fetches + 1);
    leat_strbuf metadata = {0};
    if (!status) {
        status = leat_run_names_resolve(c, &names);
        if (!status && q->partial_run_handle && q->partial_run_handle[0])
            status = leat_client_partial_run(call, q->partial_run_handle, &names, fetched);
        else if (!status)
            status = leat_client_run(call, &names, fetched, &metadata);
        leat_client_leave(c);
    }
    for (int i = 0; i < names.n_fetches && !status; i++)
        status = leat_run_step_response_add_tensor(o, names.fetches[i], fetched[i]);
    if (!status && metadata.n)
        leat_run_step_response_add_metadata(o, metadata.s, metadata.n);
    for (int i = 0; i < names.n_fetches; i++)
        leat_tensor_unref(fetched[i]);
    free(fetched);
    leat_strbuf_release(&metadata);
    leat_run_names_release(&names);
    leat_client_done(c);
    return status;
}

void leat_service_run_step(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    leat_run_step_request q = {0};
    leat_step_call call = leat_step_call_of(a);
    leat_outgoing o = {0};
    leat_status status = leat_run_step_request_decode(in, &q);
    if (!status)
        status = leat_service_run_error(s, run(s, &call, &q, &o));
    if (status && q.store_errors_in_response_body) {
        leat_outgoing_release(&o);
        leat_run_step_response_add_error(&o, status);
        leat_status_free(status);
        status = NULL;
    }
    leat_server_call_reply(a, status, &o);
    leat_step_call_release(&call);
    leat_run_step_request_release(&q);
}
