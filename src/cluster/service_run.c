/* service_run.c -- RunStep: feeds in, a step, fetches out. */
#include <stdlib.h>
#include <string.h>

#include "cluster/service_int.h"
#include "core/alloc.h"
#include "proto/wire.h"

/* ---- Names ---- */

leat_status leat_names_add(leat_names *names, const leat_wire_field *f)
{
    leat_grow(names->v, names->n, names->cap);
    LEAT_TRY(leat_get_text(f, &names->v[names->n]));
    names->n++;
    return NULL;
}

void leat_names_release(leat_names *names)
{
    for (int i = 0; i < names->n; i++)
        free(names->v[i]);
    free(names->v);
    *names = (leat_names){0};
}

void leat_ask_release(leat_ask *a)
{
    for (int i = 0; a->fed && i < a->feeds.n; i++)
        leat_tensor_unref(a->fed[i]);
    free(a->fed);
    free(a->outs);
    leat_names_release(&a->feeds);
    leat_names_release(&a->fetches);
    leat_names_release(&a->targets);
}

static bool find(const leat_client *c, const char *name, leat_out *out)
{
    leat_status s = leat_graph_find_out(c->graph, name, out);
    leat_status_free(s);
    return !s;
}

leat_status leat_ask_resolve(const leat_client *c, leat_ask *a)
{
    int n = 0;
    a->outs = leat_new_array(leat_out, a->feeds.n + a->fetches.n + a->targets.n + 1);
    for (int i = 0; i < a->feeds.n; i++)
        LEAT_REQUIRE(find(c, a->feeds.v[i], &a->outs[n++]), NOT_FOUND,
                     "FeedInputs: unable to find feed output %s", a->feeds.v[i]);
    for (int i = 0; i < a->fetches.n; i++) {
        const char *name = a->fetches.v[i];
        LEAT_REQUIRE(find(c, name, &a->outs[n++]), NOT_FOUND, "FetchOutputs node %s: not found",
                     name);
    }
    for (int i = 0; i < a->targets.n; i++) {
        LEAT_REQUIRE(find(c, a->targets.v[i], &a->outs[n]), NOT_FOUND,
                     "PruneForTargets: Some target nodes not found: %s", a->targets.v[i]);
        a->outs[n++].index = -1;
    }
    return NULL;
}

/* ---- A step ---- */

static void client_gone(void *arg)
{
    leat_cancel_runs(arg);
}

leat_step_call leat_step_call_of(leat_asked *a)
{
    leat_step_call k = {.asked = a, .cancellation = leat_cancellation_new()};
    if (!leat_asked_on_gone(a, client_gone, k.cancellation))
        leat_cancel_runs(k.cancellation);
    return k;
}

void leat_step_call_release(leat_step_call *k)
{
    leat_cancellation_free(k->cancellation);
}

static leat_feeds feeds_of(const leat_ask *a, leat_feed *v)
{
    for (int i = 0; i < a->feeds.n; i++)
        v[i] = (leat_feed){a->outs[i], a->fed[i]};
    return (leat_feeds){v, a->feeds.n};
}

static leat_fetches fetches_of(const leat_ask *a, leat_fetch *v, leat_tensor **fetched)
{
    for (int i = 0; i < a->fetches.n; i++)
        v[i] = (leat_fetch){a->outs[a->feeds.n + i], &fetched[i]};
    return (leat_fetches){v, a->fetches.n};
}

leat_status leat_client_run(leat_step_call *k, const leat_ask *a, leat_tensor **fetched,
                            leat_strbuf *metadata)
{
    leat_feed *feeds = leat_new_array(leat_feed, a->feeds.n + 1);
    leat_fetch *fetches = leat_new_array(leat_fetch, a->fetches.n + 1);
    leat_targets targets = {a->outs + a->feeds.n + a->fetches.n, a->targets.n};
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

typedef struct request {
    leat_step_call call;
    leat_ask ask;
    char *session, *partial;
} request;

static leat_status read_feed(leat_ask *a, const leat_wire_field *f)
{
    leat_grow(a->feeds.v, a->feeds.n, a->feeds.cap);
    leat_grow(a->fed, a->feeds.n, a->cap_fed);
    LEAT_TRY(leat_get_named(f, &a->feeds.v[a->feeds.n], &a->fed[a->feeds.n]));
    a->feeds.n++;
    return NULL;
}

static leat_status read_field(request *q, const leat_wire_field *f)
{
    switch (f->number) {
    case 1:
        free(q->session);
        q->session = NULL;
        return leat_get_text(f, &q->session);
    case 2:
        return read_feed(&q->ask, f);
    case 3:
        return leat_names_add(&q->ask.fetches, f);
    case 4:
        return leat_names_add(&q->ask.targets, f);
    case 5:
        leat_proto_free(q->call.options);
        q->call.options = NULL;
        return LEAT_GET(run_options, f, &q->call.options);
    case 6:
        free(q->partial);
        q->partial = NULL;
        return leat_get_text(f, &q->partial);
    case 7:
        q->call.errors_in_body = f->value != 0;
    }
    return NULL;
}

static leat_status read_request(request *q, const leat_incoming *in)
{
    leat_cursor c = leat_cursor_of(in);
    leat_wire_field f;
    leat_status s;
    while (leat_next_field(&c, &f, &s))
        LEAT_TRY(read_field(q, &f));
    return s;
}

static leat_status run(leat_service *s, request *q, leat_outgoing *o)
{
    leat_client *c;
    LEAT_TRY(leat_service_find(s, q->session ? q->session : "", &c));
    q->call.client = c;
    leat_status status = leat_client_enter(c);
    leat_tensor **fetched = leat_new_array(leat_tensor *, q->ask.fetches.n + 1);
    leat_strbuf metadata = {0};
    if (!status) {
        status = leat_ask_resolve(c, &q->ask);
        if (!status && q->partial && q->partial[0])
            status = leat_client_partial_run(c, q->partial, &q->ask, fetched);
        else if (!status)
            status = leat_client_run(&q->call, &q->ask, fetched, &metadata);
        leat_client_leave(c);
    }
    for (int i = 0; i < q->ask.fetches.n && !status; i++)
        status = leat_put_named(o, 1, q->ask.fetches.v[i], fetched[i]);
    if (!status && metadata.n)
        leat_put_bytes(&o->text, 2, metadata.s, metadata.n);
    for (int i = 0; i < q->ask.fetches.n; i++)
        leat_tensor_unref(fetched[i]);
    free(fetched);
    leat_strbuf_release(&metadata);
    leat_client_unref(c);
    return status;
}

void leat_service_run_step(leat_service *s, leat_asked *a, const leat_incoming *in)
{
    request q = {.call = leat_step_call_of(a)};
    leat_outgoing o = {0};
    leat_status status = read_request(&q, in);
    if (!status)
        status = run(s, &q, &o);
    if (status && q.call.errors_in_body) {
        leat_outgoing_release(&o);
        leat_put_int(&o.text, 3, leat_status_code(status));
        leat_put_text(&o.text, 4, leat_status_message(status));
        leat_status_free(status);
        status = NULL;
    }
    leat_asked_reply(a, status, &o);
    leat_step_call_release(&q.call);
    leat_ask_release(&q.ask);
    leat_proto_free(q.call.options);
    free(q.session);
    free(q.partial);
}
