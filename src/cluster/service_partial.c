/* service_partial.c -- runs in several calls, and callables: signatures that are named once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/service_int.h"
#include "core/alloc.h"
#include "proto/wire.h"

/* ---- Partial runs ---- */

typedef struct leat_client_partial {
    leat_partial *run;
    int n_left; /* feeds and fetches that are to come */
    int refs;   /* the client's, and one of each call at work on it; guarded by the client's lock */
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

static leat_status copy_names(leat_names *to, char *const *v, size_t n)
{
    to->v = leat_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        to->v[to->n++] = leat_xstrdup(v[i]);
    return NULL;
}

static leat_status setup(leat_client *c, const Leat__PartialRunSetupRequest *q, char handle[40])
{
    leat_ask a = {0};
    leat_status s = copy_names(&a.feeds, q->feed, q->n_feed);
    s = leat_status_first(s, copy_names(&a.fetches, q->fetch, q->n_fetch));
    s = leat_status_first(s, copy_names(&a.targets, q->target, q->n_target));
    if (!s)
        s = leat_ask_resolve(c, &a);
    leat_partial *run;
    if (!s)
        s = leat_session_partial(c->session, a.outs, a.feeds.n, a.outs + a.feeds.n, a.fetches.n,
                                 a.outs + a.feeds.n + a.fetches.n, a.targets.n, &run);
    if (!s) {
        client_partial *p = leat_new(client_partial);
        p->run = run;
        p->n_left = a.feeds.n + a.fetches.n;
        p->refs = 1;
        pthread_mutex_lock(&c->lock);
        snprintf(handle, 40, "partial_%" PRId64, ++c->next_partial);
        leat_map_put(&c->partials, handle, p);
        pthread_mutex_unlock(&c->lock);
    }
    leat_ask_release(&a);
    return s;
}

void leat_service_partial_setup(leat_service *s, leat_asked *a, const leat_incoming *in)
{
    Leat__PartialRunSetupRequest *q = NULL;
    Leat__PartialRunSetupResponse r = LEAT__PARTIAL_RUN_SETUP_RESPONSE__INIT;
    char handle[40] = "";
    leat_client *c = NULL;
    leat_status status = LEAT_REQUEST(partial_run_setup_request, in, &q);
    if (!status)
        status = leat_service_find(s, q->session_handle, &c);
    if (!status)
        status = leat_client_enter(c);
    if (!status) {
        status = setup(c, q, handle);
        leat_client_leave(c);
    }
    if (c)
        leat_client_unref(c);
    r.partial_run_handle = handle;
    leat_reply_message(a, status, &r);
    leat_proto_free(q);
}

leat_status leat_client_partial_run(leat_client *c, const char *handle, const leat_ask *a,
                                    leat_tensor **fetched)
{
    pthread_mutex_lock(&c->lock);
    client_partial *p = leat_map_get(&c->partials, handle);
    if (p)
        p->refs++;
    pthread_mutex_unlock(&c->lock);
    LEAT_REQUIRE(p, INVALID_ARGUMENT, "Must run PartialRunSetup before PartialRun!");
    leat_feed *feeds = leat_new_array(leat_feed, a->feeds.n + 1);
    leat_fetch *fetches = leat_new_array(leat_fetch, a->fetches.n + 1);
    for (int i = 0; i < a->feeds.n; i++)
        feeds[i] = (leat_feed){a->outs[i], a->fed[i]};
    for (int i = 0; i < a->fetches.n; i++)
        fetches[i] = (leat_fetch){a->outs[a->feeds.n + i], &fetched[i]};
    leat_status s = leat_partial_run(p->run, (leat_feeds){feeds, a->feeds.n},
                                     (leat_fetches){fetches, a->fetches.n});
    free(feeds);
    free(fetches);
    pthread_mutex_lock(&c->lock);
    if (!s)
        p->n_left -= a->feeds.n + a->fetches.n;
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
    leat_ask ask;
    Leat__CallableOptions *options; /* of the request that made it */
} callable;

static void callable_free(callable *k)
{
    leat_ask_release(&k->ask);
    leat_proto_free(k->options);
    free(k);
}

void leat_client_callables_free(leat_client *c)
{
    size_t i = 0;
    const char *key;
    void *v;
    while (leat_map_next(&c->callables, &i, &key, &v))
        callable_free(v);
    leat_map_release(&c->callables);
    c->callables = (leat_map){0};
}

static leat_status make(leat_client *c, Leat__MakeCallableRequest *q, int64_t *handle)
{
    const Leat__CallableOptions *o = q->options;
    LEAT_REQUIRE(o, INVALID_ARGUMENT, "MakeCallable without options");
    LEAT_REQUIRE(!o->n_tensor_connection, UNIMPLEMENTED,
                 "Callables with tensor connections are not supported over the wire");
    callable *k = leat_new(callable);
    leat_status s = copy_names(&k->ask.feeds, o->feed, o->n_feed);
    s = leat_status_first(s, copy_names(&k->ask.fetches, o->fetch, o->n_fetch));
    s = leat_status_first(s, copy_names(&k->ask.targets, o->target, o->n_target));
    if (!s)
        s = leat_ask_resolve(c, &k->ask);
    if (s) {
        callable_free(k);
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

void leat_service_make_callable(leat_service *s, leat_asked *a, const leat_incoming *in)
{
    Leat__MakeCallableRequest *q = NULL;
    Leat__MakeCallableResponse r = LEAT__MAKE_CALLABLE_RESPONSE__INIT;
    leat_client *c = NULL;
    leat_status status = LEAT_REQUEST(make_callable_request, in, &q);
    if (!status)
        status = leat_service_find(s, q->session_handle, &c);
    if (!status)
        status = leat_client_enter(c);
    if (!status) {
        status = make(c, q, &r.handle);
        leat_client_leave(c);
    }
    if (c)
        leat_client_unref(c);
    leat_reply_message(a, status, &r);
    leat_proto_free(q);
}

void leat_service_release_callable(leat_service *s, leat_asked *a, const leat_incoming *in)
{
    Leat__ReleaseCallableRequest *q = NULL;
    leat_client *c = NULL;
    leat_status status = LEAT_REQUEST(release_callable_request, in, &q);
    if (!status)
        status = leat_service_find(s, q->session_handle, &c);
    if (!status) {
        /* Whoever runs it holds `use` for reading. */
        pthread_rwlock_wrlock(&c->use);
        callable *k = leat_map_remove_n(&c->callables, &q->handle, sizeof(q->handle));
        pthread_rwlock_unlock(&c->use);
        if (k)
            callable_free(k);
        leat_client_unref(c);
    }
    leat_reply_message(a, status, NULL);
    leat_proto_free(q);
}

typedef struct run_request {
    char *session;
    int64_t handle;
    leat_tensor **fed;
    int n_fed, cap_fed;
} run_request;

static leat_status read_request(run_request *q, const leat_incoming *in)
{
    leat_cursor c = leat_cursor_of(in);
    leat_wire_field f;
    leat_status s;
    while (leat_next_field(&c, &f, &s)) {
        if (f.number == 1 && !q->session) {
            LEAT_TRY(leat_get_text(&f, &q->session));
        } else if (f.number == 2) {
            q->handle = (int64_t)f.value;
        } else if (f.number == 3) {
            leat_grow(q->fed, q->n_fed, q->cap_fed);
            LEAT_TRY(leat_get_tensor(&f, &q->fed[q->n_fed]));
            q->n_fed++;
        }
    }
    return s;
}

static leat_status run(leat_client *c, leat_step_call *call, const run_request *q, leat_outgoing *o)
{
    pthread_mutex_lock(&c->lock);
    callable *k = leat_map_get_n(&c->callables, &q->handle, sizeof(q->handle));
    pthread_mutex_unlock(&c->lock);
    LEAT_REQUIRE(k, INVALID_ARGUMENT, "No such callable handle: %" PRId64, q->handle);
    LEAT_REQUIRE(q->n_fed == k->ask.feeds.n, INVALID_ARGUMENT, "Expected %d feeds, but got %d.",
                 k->ask.feeds.n, q->n_fed);
    leat_ask ask = k->ask;
    ask.fed = q->fed;
    call->client = c;
    call->options = k->options->run_options;
    leat_tensor **fetched = leat_new_array(leat_tensor *, ask.fetches.n + 1);
    leat_strbuf metadata = {0};
    leat_status s = leat_client_run(call, &ask, fetched, &metadata);
    for (int i = 0; i < ask.fetches.n && !s; i++)
        s = leat_put_tensor(o, 1, fetched[i]);
    if (!s && metadata.n)
        leat_put_bytes(&o->text, 2, metadata.s, metadata.n);
    for (int i = 0; i < ask.fetches.n; i++)
        leat_tensor_unref(fetched[i]);
    free(fetched);
    leat_strbuf_release(&metadata);
    return s;
}

void leat_service_run_callable(leat_service *s, leat_asked *a, const leat_incoming *in)
{
    run_request q = {0};
    leat_step_call call = leat_step_call_of(a);
    leat_outgoing o = {0};
    leat_client *c = NULL;
    leat_status status = read_request(&q, in);
    if (!status)
        status = leat_service_find(s, q.session ? q.session : "", &c);
    if (!status)
        status = leat_client_enter(c);
    if (!status) {
        status = run(c, &call, &q, &o);
        leat_client_leave(c);
    }
    if (c)
        leat_client_unref(c);
    leat_asked_reply(a, status, &o);
    leat_step_call_release(&call);
    for (int i = 0; i < q.n_fed; i++)
        leat_tensor_unref(q.fed[i]);
    free(q.fed);
    free(q.session);
}
