/* wire_client.h -- a client of a server's MasterService for tests: single calls over a gRPC
 * connection of its own, as TensorFlow's client makes them. A client that is freed without
 * wire_close has vanished: its connection is closed, its sessions are not. */
#ifndef LEAT_TESTS_CLUSTER_WIRE_CLIENT_H
#define LEAT_TESTS_CLUSTER_WIRE_CLIENT_H

#include <leat/leat.h>

#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "graph/graphdef.h"
#include "proto/wire.h"
#include "test.h"

enum { WIRE_MS = 60000 }; /* A call that takes longer hangs. */

typedef char wire_handle[64];

/* target is "grpc://host:port". */
static inline leat_channel *wire_connect(const char *target)
{
    leat_channel *c = NULL;
    LEAT_DIE_ON_ERROR(leat_channel_open(target + strlen("grpc://"), target, NULL, &c));
    return c;
}

/* Takes the content of o. *reply_out may be freed with free(). */
static inline leat_status wire_call(leat_channel *c, const char *method, leat_outgoing *o,
                                    void **reply_out, size_t *n_out)
{
    leat_call_options options = {.deadline_ns = leat_now_ns() + INT64_C(1000000) * WIRE_MS};
    return leat_channel_call_wait(c, method, o, &options, reply_out, n_out);
}

/* Sends a message of protobuf-c; the reply is dropped if reply_out is NULL. */
static inline leat_status wire_send(leat_channel *c, const char *method, const void *request,
                                    void **reply_out, size_t *n_out)
{
    leat_outgoing o = {0};
    void *reply = NULL;
    size_t n = 0;
    LEAT_TRY(leat_put_fields(&o.text, method, request));
    LEAT_TRY(wire_call(c, method, &o, &reply, &n));
    if (reply_out) {
        *reply_out = reply;
        *n_out = n;
    } else {
        free(reply);
    }
    return NULL;
}

static inline leat_status wire_create(leat_channel *c, leat_graph *g, wire_handle handle_out)
{
    Leat__CreateSessionRequest q = LEAT__CREATE_SESSION_REQUEST__INIT;
    Leat__CreateSessionResponse *r = NULL;
    void *reply = NULL;
    size_t n;
    LEAT_TRY(leat_graph_to_proto(g, &q.graph_def));
    leat_status s = wire_send(c, LEAT_METHOD_CREATE_SESSION, &q, &reply, &n);
    leat_proto_free(q.graph_def);
    if (!s)
        s = LEAT_UNPACK(create_session_response, reply, n, &r);
    if (!s)
        snprintf(handle_out, sizeof(wire_handle), "%s", r->session_handle);
    leat_proto_free(r);
    free(reply);
    return s;
}

static inline leat_status wire_close(leat_channel *c, const char *handle)
{
    Leat__CloseSessionRequest q = LEAT__CLOSE_SESSION_REQUEST__INIT;
    q.session_handle = (char *)handle;
    return wire_send(c, LEAT_METHOD_CLOSE_SESSION, &q, NULL, NULL);
}

/* Runs a step, or a part of a partial run if `partial` is not NULL. feed and fetch are names of
 * tensors and may be NULL; feed gets 2. ms: the time-out of the step, 0 for none. */
static inline leat_status wire_run_partial(leat_channel *c, const char *handle, const char *partial,
                                           const char *feed, const char *fetch, int64_t ms)
{
    Leat__RunOptions options = LEAT__RUN_OPTIONS__INIT;
    options.timeout_in_ms = ms;
    leat_run_step_request q = {.session_handle = (char *)handle,
                               .options = &options,
                               .partial_run_handle = (char *)partial};
    leat_outgoing o = {0};
    leat_tensor *two = leat_scalar_float(2);
    leat_run_step_request_encode(&o, &q);
    leat_status s = feed ? leat_run_step_request_add_feed(&o, feed, two) : NULL;
    if (fetch)
        leat_run_step_request_add_fetch(&o, fetch);
    leat_tensor_unref(two);
    void *reply = NULL;
    size_t n;
    if (s)
        leat_outgoing_release(&o);
    else
        s = wire_call(c, LEAT_METHOD_RUN_STEP, &o, &reply, &n);
    free(reply);
    return s;
}

static inline leat_status wire_run(leat_channel *c, const char *handle, const char *feed,
                                   const char *fetch, int64_t ms)
{
    return wire_run_partial(c, handle, NULL, feed, fetch, ms);
}

/* Sets a partial run up that is fed `feed` and fetches `fetch`. */
static inline leat_status wire_setup(leat_channel *c, const char *handle, const char *feed,
                                     const char *fetch, wire_handle partial_out)
{
    Leat__PartialRunSetupRequest q = LEAT__PARTIAL_RUN_SETUP_REQUEST__INIT;
    Leat__PartialRunSetupResponse *r = NULL;
    void *reply = NULL;
    size_t n;
    q.session_handle = (char *)handle;
    q.feed = (char *[]){(char *)feed};
    q.fetch = (char *[]){(char *)fetch};
    q.n_feed = q.n_fetch = 1;
    LEAT_TRY(wire_send(c, LEAT_METHOD_PARTIAL_RUN_SETUP, &q, &reply, &n));
    leat_status s = LEAT_UNPACK(partial_run_setup_response, reply, n, &r);
    if (!s)
        snprintf(partial_out, sizeof(wire_handle), "%s", r->partial_run_handle);
    leat_proto_free(r);
    free(reply);
    return s;
}

/* Makes a callable that fetches `fetch`. */
static inline leat_status wire_make_callable(leat_channel *c, const char *handle, const char *fetch,
                                             int64_t *callable_out)
{
    Leat__MakeCallableRequest q = LEAT__MAKE_CALLABLE_REQUEST__INIT;
    Leat__CallableOptions options = LEAT__CALLABLE_OPTIONS__INIT;
    Leat__MakeCallableResponse *r = NULL;
    void *reply = NULL;
    size_t n;
    q.session_handle = (char *)handle;
    options.fetch = (char *[]){(char *)fetch};
    options.n_fetch = 1;
    q.options = &options;
    LEAT_TRY(wire_send(c, LEAT_METHOD_MAKE_CALLABLE, &q, &reply, &n));
    leat_status s = LEAT_UNPACK(make_callable_response, reply, n, &r);
    if (!s)
        *callable_out = r->handle;
    leat_proto_free(r);
    free(reply);
    return s;
}

static inline leat_status wire_run_callable(leat_channel *c, const char *handle, int64_t callable)
{
    Leat__RunCallableRequest q = LEAT__RUN_CALLABLE_REQUEST__INIT;
    leat_outgoing o = {0};
    void *reply = NULL;
    size_t n;
    q.session_handle = (char *)handle;
    q.handle = callable;
    LEAT_TRY(leat_proto_pack(&q, &o.text));
    leat_status s = wire_call(c, LEAT_METHOD_RUN_CALLABLE, &o, &reply, &n);
    free(reply);
    return s;
}

static inline leat_status wire_release_callable(leat_channel *c, const char *handle,
                                                int64_t callable)
{
    Leat__ReleaseCallableRequest q = LEAT__RELEASE_CALLABLE_REQUEST__INIT;
    q.session_handle = (char *)handle;
    q.handle = callable;
    return wire_send(c, LEAT_METHOD_RELEASE_CALLABLE, &q, NULL, NULL);
}

static inline leat_status wire_reset(leat_channel *c)
{
    Leat__ResetRequest q = LEAT__RESET_REQUEST__INIT;
    return wire_send(c, LEAT_METHOD_RESET, &q, NULL, NULL);
}

/* A session of a master that sends neither its task nor its incarnation, as TensorFlow 1's do. */
static inline leat_status wire_worker_session(leat_channel *c, const char *handle)
{
    Leat__CreateWorkerSessionRequest q = LEAT__CREATE_WORKER_SESSION_REQUEST__INIT;
    q.session_handle = (char *)handle;
    return wire_send(c, LEAT_METHOD_CREATE_WORKER_SESSION, &q, NULL, NULL);
}

/* Registers an empty graph in such a session. */
static inline leat_status wire_register_graph(leat_channel *c, const char *handle)
{
    Leat__RegisterGraphRequest q = LEAT__REGISTER_GRAPH_REQUEST__INIT;
    Leat__GraphDef def = LEAT__GRAPH_DEF__INIT;
    q.session_handle = (char *)handle;
    q.create_worker_session_called = true;
    q.graph_def = &def;
    return wire_send(c, LEAT_METHOD_REGISTER_GRAPH, &q, NULL, NULL);
}

#endif
