/* call_cases.h -- test cases for every transport that peers find by an offer. The channel and the
 * listener are in one process. The cases cover small and large messages, cancellation, deadlines,
 * handlers that block, limits, and the end of channel and listener. A test sets the variables
 * below, from `transport` to `security`, and runs CALL_CASES. */
#ifndef LEAT_TEST_CALL_CASES_H
#define LEAT_TEST_CALL_CASES_H

#include <leat/tensor.h>
#include <pthread.h>

#include "cluster/transport_int.h"
#include "core/buffer.h"
#include "echo.h"

enum { LARGE = (12 << 20) + 12345 };

/* "/test/Share" replies with the last slice of the request, without a copy. echo_handle handles the
 * other methods. */
static void handle(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    if (strcmp(method, "/test/Share") != 0) {
        echo_handle(arg, a, method, in);
        return;
    }
    leat_outgoing out = {0};
    leat_slice last = in->slices[in->n - 1];
    leat_buffer *owner = last.owner ? last.owner : in->owner;
    CHECK(owner && (uintptr_t)last.data % LEAT_ALIGN == 0);
    leat_buffer_ref(owner);
    leat_shape shape = leat_shape((int64_t)last.n);
    leat_tensor *t = leat_tensor_over(owner, (void *)last.data, LEAT_UINT8, &shape);
    leat_outgoing_tensor(&out, t);
    leat_tensor_unref(t);
    leat_server_call_reply(a, NULL, &out);
}

static const leat_transport *transport;
static const char *in_words;                /* The transport's name in error messages. */
static void (*change_offer)(leat_strbuf *); /* Changes the listener's offer; may be NULL. */
static const leat_security *security;       /* Of channel and listener; may be NULL. */
static leat_strbuf offer;
static leat_endpoint *listener;
static leat_channel *channel;

static void listen_with(const leat_listen_options *options)
{
    leat_listen_options o = *options;
    o.security = security;
    echo_begin();
    leat_strbuf_release(&offer);
    CHECK_OK(transport->listen("127.0.0.1:0", &o, handle, NULL, &offer, &listener));
    if (change_offer)
        change_offer(&offer);
}

static void listen_here(void)
{
    listen_with(&(leat_listen_options){0});
}

static leat_status open_by(const leat_strbuf *data, leat_channel **out)
{
    leat_offer o = {.data = *data};
    leat_link_target to = {"127.0.0.1:2222", "/job:ps/task:0", security, &o};
    LEAT_TRY(leat_channel_open_link(transport, &to, out));
    for (int i = 0; i < 10000 && leat_channel_state(*out) == LEAT_LINK_OPENING; i++)
        usleep(1000);
    return NULL;
}

static void open_channel(void)
{
    CHECK_OK(open_by(&offer, &channel));
    CHECK(leat_channel_state(channel) == LEAT_LINK_LIVES);
}

static void start(void)
{
    listen_here();
    open_channel();
}

static void stop(void)
{
    leat_channel_free(channel);
    transport->stop(listener, in_ms(1000));
}

static leat_status ask(const char *method, const char *text, char *reply, size_t cap,
                       int64_t timeout_ms)
{
    leat_call_options o = {.deadline_ns = timeout_ms ? in_ms(timeout_ms) : 0};
    return echo_call(channel, method, text, reply, cap, &o);
}

static void call(const char *method, result *r, leat_call **out)
{
    leat_event_init(&r->done);
    leat_channel_call(channel, method, &(leat_outgoing){0}, NULL, on_result, r, out);
}

static void echo(void)
{
    char reply[64];
    start();
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    CHECK_STR(reply, "hello");
    CHECK_OK(ask("/test/Echo", "", reply, sizeof reply, 0));
    CHECK_STR(reply, "");
    CHECK_ERROR(ask("/test/Fail", "", reply, sizeof reply, 0), FAILED_PRECONDITION,
                "uninitialized value W");
    for (int i = 0; i < 20000; i++) {
        char text[32];
        snprintf(text, sizeof text, "%d", i);
        CHECK_OK(ask("/test/Echo", text, reply, sizeof reply, 0));
        CHECK_STR(reply, text);
    }
    stop();
}

/* Request and reply are larger than any buffer of the transport, so each is sent in pieces. */
static void large(void)
{
    enum { N = LARGE };
    start();
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(N), &t));
    uint8_t *bytes = leat_tensor_mutable(t);
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 4096);
    for (int round = 0; round < 3; round++) {
        leat_outgoing out = {0};
        leat_strbuf_puts(&out.text, "odd");
        leat_outgoing_tensor(&out, t);
        if (round)
            leat_strbuf_puts(&out.text, "end");
        void *reply = NULL;
        size_t n = 0;
        CHECK_OK(leat_channel_call_wait(channel, round ? "/test/Echo" : "/test/Share", &out, NULL,
                                        &reply, &n));
        CHECK_INT(n, round ? N + 6 : N);
        CHECK(reply && memcmp((char *)reply + (round ? 3 : 0), bytes, N) == 0);
        free(reply);
    }
    leat_tensor_unref(t);
    stop();
}

static void cancelled(void)
{
    char reply[8];
    start();
    result r;
    leat_call *c;
    call("/test/Park", &r, &c);
    await(&entered, 1);
    leat_call_cancel(c);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, CANCELLED, in_words);
    await(&gone, 1);
    leat_server_call_reply(parked, NULL, NULL);
    int64_t begin = leat_now_ns();
    CHECK_ERROR(ask("/test/Park", "", reply, sizeof reply, 100), DEADLINE_EXCEEDED,
                "did not answer in time");
    CHECK(leat_now_ns() - begin > 95000000 && leat_now_ns() - begin < 2000000000);
    await(&gone, 2);
    leat_server_call_reply(parked, NULL, NULL);
    /* The channel is freed, then the listener stopped, before the handler replies. */
    call("/test/Park", &r, NULL);
    await(&entered, 3);
    leat_channel_free(channel);
    CHECK(leat_event_is_set(&r.done));
    CHECK_ERROR(r.status, CANCELLED, "the channel was closed");
    await(&gone, 3);
    transport->stop(listener, in_ms(50));
    leat_server_call_reply(parked, NULL, NULL);
}

static void listener_stops(void)
{
    char reply[8];
    start();
    result r;
    call("/test/Park", &r, NULL);
    await(&entered, 1);
    transport->stop(listener, in_ms(50));
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, UNAVAILABLE, "closed the connection in mid-call");
    CHECK_INT(atomic_load(&gone), 1);
    CHECK(leat_channel_degraded(channel));
    CHECK_ERROR(ask("/test/Echo", "", reply, sizeof reply, 0), UNAVAILABLE, "closed");
    leat_channel_free(channel);
    leat_server_call_reply(parked, NULL, NULL);
}

/* Handlers that block do not delay other calls, whether they call leat_server_call_will_block
 * (Leave) or not (Block). */
static void blocked(void)
{
    enum { N = 60 };
    static result r[N];
    char reply[8];
    start();
    for (int i = 0; i < N; i++) {
        leat_event_init(&released[i]);
        call(i % 2 ? "/test/Block" : "/test/Leave", &r[i], NULL);
    }
    await(&entered, N);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    for (int i = 0; i < N; i++)
        leat_event_set(&released[i]);
    for (int i = 0; i < N; i++) {
        leat_event_wait(&r[i].done, 0);
        CHECK_OK(r[i].status);
    }
    stop();
}

/* More calls at once, and a larger message, than the listener's limits allow. */
static void too_many(void)
{
    char reply[8];
    result r[3];
    listen_with(&(leat_listen_options){.max_calls = 2, .max_message = 5000});
    open_channel();
    for (int i = 0; i < 2; i++) {
        leat_event_init(&released[i]);
        call("/test/Leave", &r[i], NULL);
    }
    await(&entered, 2);
    CHECK_ERROR(ask("/test/Echo", "", reply, sizeof reply, 0), RESOURCE_EXHAUSTED,
                "2 calls under way, which is its limit (--max_calls)");
    for (int i = 0; i < 2; i++)
        leat_event_set(&released[i]);
    for (int i = 0; i < 2; i++)
        leat_event_wait(&r[i].done, 0);
    char large[6000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    CHECK_ERROR(ask("/test/Echo", large, reply, sizeof reply, 0), RESOURCE_EXHAUSTED,
                "larger than the limit of 5000");
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    stop();
}

static void *many(void *arg)
{
    enum { N = 500 };
    result *r = malloc(N * sizeof *r);
    for (int i = 0; i < N; i++)
        call("/test/Echo", &r[i], NULL);
    for (int i = 0; i < N; i++) {
        leat_event_wait(&r[i].done, 0);
        CHECK_OK(r[i].status);
    }
    free(r);
    return NULL;
}

static void thousands(void)
{
    pthread_t t[4];
    start();
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, many, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    stop();
}

#define CALL_CASES                                                                                 \
    {"echo", echo}, {"large", large}, {"cancelled", cancelled},                                    \
        {"listener_stops", listener_stops}, {"blocked", blocked}, {"too_many", too_many},          \
    {                                                                                              \
        "thousands", thousands                                                                     \
    }

#endif
