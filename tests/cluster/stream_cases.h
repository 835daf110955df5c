/* stream_cases.h -- test cases for every transport that carries wire frames: those of call_cases.h,
 * and peers in other processes that are killed or stopped by a signal. */
#ifndef LEAT_TEST_STREAM_CASES_H
#define LEAT_TEST_STREAM_CASES_H

#include <signal.h>

#include <sys/eventfd.h>

#include "call_cases.h"
#include "cluster/stream/conn.h"
#include "core/thread.h"
#include "task.h"

/* The server process: listens, and writes its offer to standard output, in hexadecimal. */
static int serve(void)
{
    listen_here();
    for (size_t i = 0; i < offer.n; i++)
        printf("%02x", (uint8_t)offer.s[i]);
    printf("\n");
    fflush(stdout);
    while (pause() < 0)
        ;
    return 0;
}

static task start_task(void)
{
    task t = task_start("server", "");
    char hex[1024] = "";
    CHECK_INT(fscanf(t.says, "%1023s", hex), 1);
    leat_strbuf_release(&offer);
    for (const char *p = hex; p[0] && p[1]; p += 2) {
        unsigned byte = 0;
        sscanf(p, "%2x", &byte);
        leat_strbuf_putc(&offer, (char)byte);
    }
    if (change_offer)
        change_offer(&offer);
    return t;
}

static void killed(void)
{
    char reply[8];
    task t = start_task();
    open_channel();
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    CHECK_STR(reply, "hello");
    result r;
    call("/test/Park", &r, NULL);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    task_end(&t);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, UNAVAILABLE, "closed the connection in mid-call");
    leat_channel_free(channel);
}

static void stopped(void)
{
    char reply[8];
    task t = start_task();
    open_channel();
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    task_pause(&t);
    CHECK_ERROR(ask("/test/Echo", "", reply, sizeof reply, 200), DEADLINE_EXCEEDED, "in time");
    /* A message that fits into no buffer of the transport: its call times out like any other, and
     * leat_channel_call does not block. */
    leat_tensor *big;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(LARGE), &big));
    leat_outgoing out = {0};
    leat_outgoing_tensor(&out, big);
    result r;
    leat_event_init(&r.done);
    leat_channel_call(channel, "/test/Echo", &out, &(leat_call_options){.deadline_ns = in_ms(300)},
                      on_result, &r, NULL);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, DEADLINE_EXCEEDED, "in time");
    kill(t.pid, SIGCONT);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 10000));
    leat_channel_free(channel);
    leat_tensor_unref(big);
    task_end(&t);
}

/* A thread whose connection was the last one may still wake the watch, which has ended: that writes
 * to no descriptor that was opened since. */
static void wakes_nobody_else(void)
{
    enum { N = 40 };
    int fds[N];
    uint64_t count;
    start();
    CHECK_OK(ask("/test/Echo", "", NULL, 0, 0));
    stop();
    for (int i = 0; i < N; i++)
        fds[i] = eventfd(0, EFD_NONBLOCK);
    leat_watch_at(0);
    for (int i = 0; i < N; i++) {
        CHECK(read(fds[i], &count, sizeof count) < 0);
        close(fds[i]);
    }
}

/* ---- No thread can be started ---- */
static void refuse_threads(bool on)
{
    __atomic_store_n(&leat_threads_refused, on, __ATOMIC_SEQ_CST);
}

static void no_thread_to_open(void)
{
    leat_strbuf none = {0};
    leat_endpoint *e;
    refuse_threads(true);
    CHECK_ERROR(
        transport->listen("127.0.0.1:0", &(leat_listen_options){0}, handle, NULL, &none, &e),
        RESOURCE_EXHAUSTED, "ulimit -u");
    leat_strbuf_release(&none);
    refuse_threads(false);
    listen_here();
    refuse_threads(true);
    leat_channel *c;
    leat_status s = open_by(&offer, &c); /* The listener refuses the link, or the channel fails. */
    CHECK(leat_status_code(s) == LEAT_RESOURCE_EXHAUSTED ||
          leat_status_code(s) == LEAT_UNAVAILABLE);
    CHECK(strstr(leat_status_message(s), "thread"));
    leat_status_free(s);
    refuse_threads(false);
    open_channel();
    CHECK_OK(ask("/test/Echo", "", NULL, 0, 0));
    stop();
}

/* The reader runs a handler that blocks, and no other thread can read: calls miss their deadlines,
 * and go on as soon as there is a thread. */
static void no_thread_to_read(void)
{
    result r;
    start();
    CHECK_OK(ask("/test/Echo", "", NULL, 0, 0));
    leat_event_init(&released[0]);
    refuse_threads(true);
    call("/test/Leave", &r, NULL);
    await(&entered, 1);
    CHECK_ERROR(ask("/test/Echo", "", NULL, 0, 300), DEADLINE_EXCEEDED, "in time");
    refuse_threads(false);
    CHECK_OK(ask("/test/Echo", "", NULL, 0, 30000));
    leat_event_set(&released[0]);
    leat_event_wait(&r.done, 0);
    CHECK_OK(r.status);
    stop();
}

/* The same, but no thread can be started for long: the connection ends, and its calls with it. */
static void no_thread_for_long(void)
{
    result r;
    int64_t normal = leat_conn_starved_ns;
    leat_conn_starved_ns = INT64_C(200000000);
    start();
    CHECK_OK(ask("/test/Echo", "", NULL, 0, 0));
    leat_event_init(&released[0]);
    refuse_threads(true);
    call("/test/Leave", &r, NULL);
    await(&entered, 1);
    CHECK_ERROR(ask("/test/Echo", "", NULL, 0, 0), UNAVAILABLE, "closed the connection");
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, UNAVAILABLE, "closed the connection");
    CHECK(leat_channel_state(channel) == LEAT_LINK_DEAD);
    CHECK_ERROR(ask("/test/Echo", "", NULL, 0, 0), UNAVAILABLE, "");
    leat_event_set(&released[0]);
    stop();
    refuse_threads(false);
    leat_conn_starved_ns = normal;
}

/* A call that is cancelled ends, though no thread can be started that calls its reply function. */
static void no_thread_to_cancel(void)
{
    result r;
    leat_call *k;
    start();
    CHECK_OK(ask("/test/Echo", "", NULL, 0, 0));
    call("/test/Park", &r, &k);
    await(&entered, 1);
    refuse_threads(true);
    leat_call_cancel(k);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, CANCELLED, "the call was cancelled");
    refuse_threads(false);
    await(&gone, 1);
    leat_server_call_reply(parked, NULL, NULL);
    stop();
}

/* A message that does not fit at once is sent without a writing thread. */
static void no_thread_to_write(void)
{
    leat_tensor *big;
    start();
    CHECK_OK(ask("/test/Echo", "", NULL, 0, 0));
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(LARGE), &big));
    refuse_threads(true);
    leat_outgoing out = {0};
    leat_outgoing_tensor(&out, big);
    void *reply;
    size_t n;
    CHECK_OK(leat_channel_call_wait(channel, "/test/Share", &out, NULL, &reply, &n));
    CHECK_INT(n, LARGE);
    free(reply);
    leat_tensor_unref(big);
    stop();
    refuse_threads(false);
}

#define STREAM_CASES                                                                               \
    CALL_CASES, {"killed", killed}, {"stopped", stopped},                                          \
        {"wakes_nobody_else", wakes_nobody_else}, {"no_thread_to_open", no_thread_to_open},        \
        {"no_thread_to_read", no_thread_to_read}, {"no_thread_for_long", no_thread_for_long},      \
        {"no_thread_to_cancel", no_thread_to_cancel},                                              \
    {                                                                                              \
        "no_thread_to_write", no_thread_to_write                                                   \
    }

#endif
