/* service_partial.c -- partial runs, whose feeds and fetches come in several calls of RunStep, and
 * callables, whose feeds, fetches and targets are named once and run many times. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/service_int.h"
#include "core/alloc.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

/* ---- Partial runs ---- */

typedef struct leat_client_partial {
    leat_partial *run;
    int n_left; /* number of feeds and fetches that no call has named yet */
    int refs;   /* one of the client, one of each call that runs it; guarded by the client's lock */
} client_partial;

static void partial_unref(leat_client *c, client_partial *p)
{
    pthread_mutex_lock(&c->lock);
    bool last = --p->refs == 0;
    pthread_mutex_unlock(&c->lock);
    if (!last)
        return;
    leat_partial_free(p->run);
    free(p);
}

static leat_status setup(leat_client *c, const Leat__PartialRunSetupRequest *q, char handle[40])
{
    leat_run_names a = {.feeds = q->feed,
                        .fetches = q->fetch,
                        .targets = q->target,
                        .n_feeds = (int)q->n_feed,
                        .n_fetches = (int)q->n_fetch,
                        .n_targets = (int)q->n_target};
    leat_status s = leat_run_names_resolve(c, &a);
    leat_partial *run;
    if (!s)
        s = leat_session_partial(c->session, a.outs, a.n_feeds, a.outs + a.n_feeds, a.n_fetches,
                                 a.outs + a.n_feeds + a.n_fetches, a.n_targets, &run);
    if (!s) {
        client_partial *p = leat_new(client_partial);
        p->run = run;
        p->n_left = a.n_feeds + a.n_fetches;
        p->refs = 1;
        pthread_mutex_lock(&c->lock);
        snprintf(handle, 40, "partial_%" PRId64, ++c->next_partial);
        leat_map_put(&c->partials, handle, p);
        pthread_mutex_unlock(&c->lock);
    }
    leat_run_names_release(&a);
    return s;
}

void leat_service_partial_setup(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    Leat__PartialRunSetupRequest *q = NULL;
    Leat__PartialRunSetupResponse r = LEAT__PARTIAL_RUN_SETUP_RESPONSE__INIT;
    char handle[40] = "";
    leat_client *c = NULL;
    leat_status status = LEAT_REQUEST(partial_run_setup_request, in, &q);
    if (!status)
        status = leat_service_find(s, a, q->session_handle, &c);
    if (!status)
        status = leat_client_enter(c);
    if (!status) {
        status = setup(c, q, handle);
        leat_client_leave(c);
    }
    leat_client_done(c);
    r.partial_run_handle = handle;
    leat_reply_message(a, status, &r);
    leat_proto_free(q);
}

/* Called when the client of a RunStep call is lost: nobody will feed the rest. */
static void give_up(void *run)
{
    leat_partial_end(run, leat_error(CANCELLED, "The client of the partial run has gone"));
}

leat_status leat_client_partial_run(leat_step_call *k, const char *handle, const leat_run_names *a,
                                    leat_tensor **fetched)
{
    leat_client *c = k->client;
    pthread_mutex_lock(&c->lock);
    client_partial *p = leat_map_get(&c->partials, handle);
    if (p)
        p->refs++;
    pthread_mutex_unlock(&c->lock);
    LEAT_REQUIRE(p, INVALID_ARGUMENT, "Must run PartialRunSetup before PartialRun!");
    leat_feed *feeds = leat_new_array(leat_feed, a->n_feeds + 1);
    leat_fetch *fetches = leat_new_array(leat_fetch, a->n_fetches + 1);
    for (int i = 0; i < a->n_feeds; i++)
        feeds[i] = (leat_feed){a->outs[i], a->fed[i]};
    for (int i = 0; i < a->n_fetches; i++)
        fetches[i] = (leat_fetch){a->outs[a->n_feeds + i], &fetched[i]};
    leat_cancel_watch lost = {.fn = give_up, .arg = p->run};
    leat_cancellation_watch(k->cancellation, &lost);
    leat_status s = leat_partial_run(p->run, (leat_feeds){feeds, a->n_feeds},
                                     (leat_fetches){fetches, a->n_fetches});
    leat_cancellation_unwatch(k->cancellation, &lost);
    free(feeds);
    free(fetches);
    pthread_mutex_lock(&c->lock);
    if (!s)
        p->n_left -= a->n_feeds + a->n_fetches;
    bool over = p->n_left <= 0 && leat_map_remove(&c->partials, handle);
    pthread_mutex_unlock(&c->lock);
    if (over)
        partial_unref(c, p);
    partial_unref(c, p);
    return s;
}

void leat_client_partials_free(leat_client *c)
{
    for (;;) {
        size_t i = 0;
        const char *key;
        void *v = NULL;
        pthread_mutex_lock(&c->lock);
        if (leat_map_next(&c->partials, &i, &key, &v))
            leat_map_remove(&c->partials, key);
        pthread_mutex_unlock(&c->lock);
        if (!v)
            return;
        partial_unref(c, v);
    }
}

/* ---- Callables ---- */

typedef struct leat_callable {
    leat_run_names names;           /* the strings belong to options */
    Leat__CallableOptions *options; /* from the request MakeCallable */
    /* One of the client, one of each call that runs the callable. */
    atomic_int refs;
} callable;

static void callable_unref(callable *k)
{
    if (atomic_fetch_sub(&k->refs, 1) != 1)
        return;
    leat_run_names_release(&k->names);
    leat_proto_free(k->options);
    free(k);
}

void leat_client_callables_free(leat_client *c)
{
    size_t i = 0;
    const char *key;
    void *v;
    pthread_mutex_lock(&c->lock);
    leat_map callables = c->callables;
    c->callables = (leat_map){0};
    pthread_mutex_unlock(&c->lock);
    while (leat_map_next(&callables, &i, &key, &v))
        callable_unref(v);
    leat_map_release(&callables);
}

static leat_status make(leat_client *c, Leat__MakeCallableRequest *q, int64_t *handle)
{
    const Leat__CallableOptions *o = q->options;
    LEAT_REQUIRE(o, INVALID_ARGUMENT, "MakeCallable without options");
    LEAT_REQUIRE(!o->n_tensor_connection, UNIMPLEMENTED,
                 "Callables with tensor connections are not supported over the wire");
    callable *k = leat_new(callable);
    atomic_init(&k->refs, 1);
    k->names = (leat_run_names){.feeds = o->feed,
                                .fetches = o->fetch,
                                .targets = o->target,
                                .n_feeds = (int)o->n_feed,
                                .n_fetches = (int)o->n_fetch,
                                .n_targets = (int)o->n_target};
    leat_status s = leat_run_names_resolve(c, &k->names);
    if (s) {
        callable_unref(k);
        return s;
    }
    k->options = q->options;
    q->options = NULL;
    pthread_mutex_lock(&c->lock);
    *handle = c->next_callable++;
    leat_map_put_n(&c->callables, handle, sizeof(*handle), k);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

void leat_service_make_callable(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    Leat__MakeCallableRequest *q = NULL;
    Leat__MakeCallableResponse r = LEAT__MAKE_CALLABLE_RESPONSE__INIT;
    leat_client *c = NULL;
    leat_status status = LEAT_REQUEST(make_callable_request, in, &q);
    if (!status)
        status = leat_service_find(s, a, q->session_handle, &c);
    if (!status)
        status = leat_client_enter(c);
    if (!status) {
        status = make(c, q, &r.handle);
        leat_client_leave(c);
    }
    leat_client_done(c);
    leat_reply_message(a, status, &r);
    leat_proto_free(q);
}

void leat_service_release_callable(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    Leat__ReleaseCallableRequest *q = NULL;
    leat_client *c = NULL;
    leat_status status = LEAT_REQUEST(release_callable_request, in, &q);
    if (!status)
        status = leat_service_find(s, a, q->session_handle, &c);
    if (!status) {
        pthread_mutex_lock(&c->lock);
        callable *k = leat_map_remove_n(&c->callables, &q->handle, sizeof(q->handle));
        pthread_mutex_unlock(&c->lock);
        if (k)
            callable_unref(k);
        leat_client_done(c);
    }
    leat_reply_message(a, status, NULL);
    leat_proto_free(q);
}

static leat_status run_callable(leat_client *c, leat_step_call *call, const callable *k,
                                const leat_run_callable_request *q, leat_outgoing *o)
{
    LEAT_REQUIRE(q->n_feed == k->names.n_feeds, INVALID_ARGUMENT, "Expected %d feeds, but got %d.",
                 k->names.n_feeds, q->n_feed);
    leat_run_names names = k->names;
    names.fed = q->feed;
    call->client = c;
    call->options = k->options->run_options;
    leat_tensor **fetched = leat_new_array(leat_tensor *, names.n_fetches + 1);
    leat_strbuf metadata = {0};
    leat_status s = leat_client_run(call, &names, fetched, &metadata);
    for (int i = 0; i < names.n_fetches && !s; i++)
        s = leat_run_callable_response_add_fetch(o, fetched[i]);
    if (!s && metadata.n)
        leat_run_callable_response_add_metadata(o, metadata.s, metadata.n);
    for (int i = 0; i < names.n_fetches; i++)
        leat_tensor_unref(fetched[i]);
    free(fetched);
    leat_strbuf_release(&metadata);
    return s;
}

static leat_status find_and_run(leat_client *c, leat_step_call *call,
                                const leat_run_callable_request *q, leat_outgoing *o)
{
    pthread_mutex_lock(&c->lock);
    callable *k = leat_map_get_n(&c->callables, &q->handle, sizeof(q->handle));
    if (k)
        atomic_fetch_add(&k->refs, 1);
    pthread_mutex_unlock(&c->lock);
    LEAT_REQUIRE(k, INVALID_ARGUMENT, "No such callable handle: %" PRId64, q->handle);
    leat_status s = run_callable(c, call, k, q, o);
    callable_unref(k);
    return s;
}

void leat_service_run_callable(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    leat_run_callable_request q = {0};
    leat_step_call call = leat_step_call_of(a);
    leat_outgoing o = {0};
    leat_client *c = NULL;
    leat_status status = leat_run_callable_request_decode(in, &q);
    if (!status)
        status = leat_service_find(s, a, q.session_handle ? q.session_handle : "", &c);
    if (!status)
        status = leat_client_enter(c);
    if (!status) {
        status = leat_service_run_error(s, find_and_run(c, &call, &q, &o));
        leat_client_leave(c);
    }
    leat_client_done(c);
    leat_server_call_reply(a, status, &o);
    leat_step_call_release(&call);
    leat_run_callable_request_release(&q);
}
