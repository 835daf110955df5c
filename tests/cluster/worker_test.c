/* worker_test.c -- a worker that is freed as soon as the last call has its reply, as a server does
 * that stops. AddressSanitizer sees more than the checks here do. */
#include <inttypes.h>
#include <leat/leat.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cluster/exchange_int.h"
#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/transport_int.h"
#include "cluster/worker_int.h"
#include "graph/graphdef.h"
#include "proto/wire.h"
#include "test.h"

/* A call without a transport. */
typedef struct call {
    leat_server_call base;
    leat_worker *worker;
    void (*replied)(struct call *c);
    pthread_t thread;
    atomic_bool freed; /* the worker */
    int replies;
    leat_code code; /* of the last reply, with its message */
    char message[300];
} call;

static void reply(leat_server_call *a, leat_status s, leat_outgoing *o)
{
    call *c = (call *)a;
    c->replies++;
    c->code = leat_status_code(s);
    snprintf(c->message, sizeof c->message, "%s", s ? leat_status_message(s) : "");
    leat_status_free(s);
    if (o)
        leat_outgoing_release(o);
    if (c->replied)
        c->replied(c);
}

/* The caller has gone already. */
static bool on_cancel(leat_server_call *a, void (*fn)(void *arg), void *arg)
{
    return false;
}

static const char *peer(const leat_server_call *a)
{
    return "a test";
}

static const leat_server_call_ops ops = {.reply = reply, .on_cancel = on_cancel, .peer = peer};

static bool watch(leat_server_call *a, void (*fn)(void *arg), void *arg)
{
    return true;
}

/* Of a caller that does not go. */
static const leat_server_call_ops ops_there = {.reply = reply, .on_cancel = watch, .peer = peer};

static void serve(call *c, const char *method, leat_strbuf *text)
{
    leat_slice slice = {(const uint8_t *)text->s, text->n};
    leat_incoming in = {&slice, 1, text->n, NULL};
    CHECK(leat_worker_serve(c->worker, &c->base, method, &in));
    leat_strbuf_release(text);
}

static leat_peers *peers; /* of a cluster of one task */

static leat_worker *start_worker(void)
{
    leat_worker *w = NULL;
    leat_cluster *c = leat_cluster_new();
    CHECK_OK(leat_cluster_add(c, "ps", "127.0.0.1:1"));
    CHECK_OK(leat_peers_new(c, NULL, &peers));
    leat_cluster_free(c);
    CHECK_OK(leat_worker_new("ps", 0, &(leat_server_options){0}, peers, &w));
    return w;
}

/* ---- RunGraph ---- */

/* The handle of a graph that the worker has registered. */
static const char *register_graph(leat_worker *w)
{
    leat_worker_session *session;
    CHECK_OK(leat_worker_session_open(w, "session", &(leat_worker_session_options){0}, &session));
    leat_graph *g = leat_graph_new();
    leat_scalar(g, LEAT_FLOAT, 1);
    Leat__RegisterGraphRequest q = LEAT__REGISTER_GRAPH_REQUEST__INIT;
    q.session_handle = (char *)"session";
    q.create_worker_session_called = true;
    CHECK_OK(leat_graph_to_proto(g, &q.graph_def));
    leat_strbuf text = {0};
    CHECK_OK(leat_proto_pack(&q, &text));
    leat_proto_free(q.graph_def);
    leat_graph_free(g);
    serve(&(call){.base = {&ops}, .worker = w}, LEAT_METHOD_REGISTER_GRAPH, &text);
    size_t i = 0;
    const char *handle = "";
    void *graph;
    CHECK(leat_map_next(&w->graphs, &i, &handle, &graph));
    return handle;
}

static void *free_main(void *arg)
{
    call *c = arg;
    leat_worker_free(c->worker);
    atomic_store(&c->freed, true);
    return NULL;
}

static void free_elsewhere(call *c)
{
    pthread_create(&c->thread, NULL, free_main, c);
    for (int i = 0; i < 50 && !atomic_load(&c->freed); i++)
        usleep(1000);
    CHECK(!atomic_load(&c->freed));
}

/* A step that its master gave up forgets its exchange after the reply: the worker waits for it. */
static void freed_after_a_run(void)
{
    leat_worker *w = start_worker();
    leat_run_graph_request q = {.graph_handle = (char *)register_graph(w),
                                .session_handle = (char *)"session",
                                .step_id = 7,
                                .leat = true};
    leat_outgoing o = {0};
    leat_run_graph_request_encode(&o, &q);
    call c = {.base = {&ops}, .worker = w, .replied = free_elsewhere};
    serve(&c, LEAT_METHOD_RUN_GRAPH, &o.text);
    pthread_join(c.thread, NULL);
    CHECK(atomic_load(&c.freed));
    leat_peers_free(peers);
}

/* ---- RecvTensor ---- */

static void free_here(call *c)
{
    leat_worker_free(c->worker);
    atomic_store(&c->freed, true);
}

/* The last tensor of a step that has ended: what comes after the reply needs no worker. */
static void freed_after_a_tensor(void)
{
    enum { STEP = 7 };
    leat_worker *w = start_worker();
    int n;
    const leat_device *d = leat_worker_devices(w, &n)[0];
    char key[400];
    snprintf(key, sizeof(key), "%s;%016" PRIx64 ";/job:worker/replica:0/task:0/device:CPU:0;x;0:0",
             d->name, d->incarnation);
    leat_exchange *x = leat_exchange_get(leat_worker_exchanges(w), STEP);
    leat_rendezvous *r = leat_exchange_claim(x);
    const leat_rendezvous_key k = leat_rendezvous_key_of(key);
    CHECK_OK(r->ops->send(r, &k, leat_scalar_float(2), false));
    leat_exchange_close(x);
    leat_exchange_unref(x);
    leat_outgoing o = {0};
    leat_recv_tensor_request_encode(&o, &(leat_recv_tensor_request){.step_id = STEP});
    leat_recv_tensor_request_add_key(&o, key);
    call c = {.base = {&ops}, .worker = w, .replied = free_here};
    serve(&c, LEAT_METHOD_RECV_TENSOR, &o.text);
    CHECK(atomic_load(&c.freed));
    leat_peers_free(peers);
}

/* ---- Sessions ---- */

/* A graph that calls functions, and is registered while its session is closed, joins no other task:
 * nobody would close what it has opened there. */
static void closed_before_it_joins(void)
{
    leat_worker *w = start_worker();
    leat_worker_session *s = NULL;
    leat_far *far = NULL;
    CHECK_OK(leat_worker_session_open(w, "session", &(leat_worker_session_options){0}, NULL));
    CHECK_OK(leat_worker_find_session(w, "session", &s));
    leat_worker_session_close(w, "session");
    CHECK_ERROR(leat_worker_session_far(w, s, &far), ABORTED,
                "The session was closed while a graph was registered");
    CHECK(!far);
    leat_worker_session_unref(s);
    leat_worker_free(w);
    leat_peers_free(peers);
}

static leat_status open_by(leat_worker *w, const char *handle, const char *task,
                           uint64_t incarnation)
{
    return leat_worker_session_open(
        w, handle,
        &(leat_worker_session_options){.master_task = task, .master_incarnation = incarnation},
        NULL);
}

/* A restarted master's former sessions are closed, those of others are not. */
static void former_incarnation(void)
{
    leat_worker *w = start_worker();
    const char *one = "/job:worker/replica:0/task:1", *two = "/job:worker/replica:0/task:2";
    leat_worker_session *s = NULL;
    CHECK_OK(open_by(w, "a", one, 11));
    CHECK_OK(open_by(w, "b", one, 11));
    CHECK_OK(open_by(w, "c", two, 11));
    CHECK_OK(open_by(w, "d", "", 0));
    CHECK_INT(leat_worker_sessions(w), 4);
    CHECK_OK(open_by(w, "e", one, 12));
    CHECK_INT(leat_worker_sessions(w), 3);
    CHECK_ERROR(leat_worker_find_session(w, "b", &s), ABORTED, "Session handle is not found: b");
    CHECK_OK(leat_worker_find_session(w, "c", &s));
    leat_worker_session_unref(s);
    leat_worker_free(w);
    leat_peers_free(peers);
}

static bool holds(leat_worker *w, int64_t step)
{
    leat_exchange *x = leat_exchange_get(leat_worker_exchanges(w), step);
    bool kept = x->session != 0;
    leat_exchange_unref(x);
    return kept;
}

/* The exchange of a step that a TensorFlow master drives waits for CleanupGraph, which a master
 * that was killed does not send: it goes with the session. */
static void step_without_cleanup(void)
{
    leat_worker *w = start_worker();
    leat_run_graph_request q = {.graph_handle = (char *)register_graph(w),
                                .session_handle = (char *)"session",
                                .step_id = 9};
    leat_outgoing o = {0};
    leat_run_graph_request_encode(&o, &q);
    serve(&(call){.base = {&ops_there}, .worker = w}, LEAT_METHOD_RUN_GRAPH, &o.text);
    CHECK_SOON(leat_worker_idle(w));
    leat_worker_await_runs(w);
    CHECK(holds(w, 9));
    leat_worker_session_close(w, "session");
    CHECK(!holds(w, 9));
    leat_worker_free(w);
    leat_peers_free(peers);
}

/* ---- SendTensors ---- */

static void push(call *c, int64_t step, const char *key)
{
    leat_outgoing o = {0};
    leat_send_tensors_request_encode(&o, &(leat_send_tensors_request){.step_id = step});
    CHECK_OK(leat_send_tensors_request_add(&o, key, NULL));
    serve(c, LEAT_METHOD_SEND_TENSORS, &o.text);
    leat_outgoing_release(&o);
}

static bool exchange_there(leat_worker *w, int64_t step)
{
    return leat_map_get_n(leat_worker_exchanges(w)->by_step, &step, sizeof step) != NULL;
}

#define PUSHED "/job:worker/replica:0/task:0/device:CPU:0;0000000000000001;" TO ";edge_1_x;0:0"
#define TO "/job:ps/replica:0/task:0/device:CPU:0"

/* The reply comes when the step has ended; a push that comes later still is replied to at once. */
static void pushed_until_the_end(void)
{
    leat_worker *w = start_worker();
    call first = {.base = {&ops_there}, .worker = w}, second = first, again = first, late = first;
    leat_exchange *x = leat_exchange_get(leat_worker_exchanges(w), 5);
    push(&first, 5, PUSHED);
    push(&second, 5, PUSHED "2");
    CHECK_INT(first.replies + second.replies, 0);
    leat_exchange_reply_pushed(x, false);
    CHECK_INT(first.replies, 1);
    CHECK_INT(second.replies, 1);
    CHECK_INT(first.code, LEAT_OK);
    push(&late, 5, PUSHED "3");
    CHECK_INT(late.replies, 1);
    leat_exchange_unref(x);
    x = leat_exchange_get(leat_worker_exchanges(w), 6);
    push(&first, 6, PUSHED);
    push(&again, 6, PUSHED); /* The same tensor twice: the step fails. */
    CHECK_INT(again.replies, 1);
    CHECK_INT(again.code, LEAT_CANCELLED);
    CHECK_INT(first.replies, 2);
    leat_exchange_unref(x);
    leat_worker_free(w);
    leat_peers_free(peers);
}

/* The end of the step's part replies to what was pushed for it. */
static void pushed_and_run(void)
{
    leat_worker *w = start_worker();
    leat_run_graph_request q = {.graph_handle = (char *)register_graph(w),
                                .session_handle = (char *)"session",
                                .step_id = 9,
                                .leat = true};
    leat_outgoing o = {0};
    call c = {.base = {&ops_there}, .worker = w};
    push(&c, 9, PUSHED);
    CHECK_INT(c.replies, 0);
    leat_run_graph_request_encode(&o, &q);
    serve(&(call){.base = {&ops_there}, .worker = w}, LEAT_METHOD_RUN_GRAPH, &o.text);
    CHECK_SOON(leat_worker_idle(w));
    leat_worker_await_runs(w);
    CHECK_INT(c.replies, 1);
    CHECK_INT(c.code, LEAT_OK);
    leat_worker_free(w);
    leat_peers_free(peers);
}

/* The step has not begun, and the master has gone: nothing is kept. */
static void pushed_by_one_who_goes(void)
{
    leat_worker *w = start_worker();
    call c = {.base = {&ops}, .worker = w};
    push(&c, 5, PUSHED);
    CHECK_INT(c.replies, 1);
    CHECK_INT(c.code, LEAT_CANCELLED);
    CHECK(!exchange_there(w, 5));
    leat_worker_free(w);
    leat_peers_free(peers);
}

static void pushed_wrongly(void)
{
    static const char *const keys[] = {"", ";", "a;b", "a;1;b;c;0:0", TO ";1;/job:worker;x;0:0"};
    leat_worker *w = start_worker();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        call c = {.base = {&ops_there}, .worker = w};
        push(&c, 5, keys[i]);
        CHECK_INT(c.replies, 1);
        CHECK_INT(c.code, LEAT_INVALID_ARGUMENT);
        CHECK(strstr(c.message, *keys[i] ? "that /job:ps/replica:0/task:0 does not receive"
                                         : "SendTensors has no tensor"));
        CHECK(!exchange_there(w, 5));
    }
    leat_run_graph_request q = {.graph_handle = (char *)register_graph(w),
                                .session_handle = (char *)"session",
                                .step_id = 9,
                                .leat = true,
                                .leat_sender = "/job:nobody/replica:0/task:0"};
    leat_outgoing o = {0};
    leat_run_graph_request_encode(&o, &q);
    call c = {.base = {&ops_there}, .worker = w};
    serve(&c, LEAT_METHOD_RUN_GRAPH, &o.text);
    CHECK_INT(c.code, LEAT_INVALID_ARGUMENT);
    CHECK(strstr(c.message, "/job:nobody/replica:0/task:0 sends tensors"));
    leat_worker_free(w);
    leat_peers_free(peers);
}

int main(int argc, char **argv)
{
    return RUN(
        argc, argv, {"freed_after_a_run", freed_after_a_run},
        {"freed_after_a_tensor", freed_after_a_tensor},
        {"closed_before_it_joins", closed_before_it_joins},
        {"former_incarnation", former_incarnation}, {"step_without_cleanup", step_without_cleanup},
        {"pushed_until_the_end", pushed_until_the_end}, {"pushed_and_run", pushed_and_run},
        {"pushed_by_one_who_goes", pushed_by_one_who_goes}, {"pushed_wrongly", pushed_wrongly});
}
