/* stream_cases.h -- test cases for every transport that carries wire frames: those of call_cases.h,
 * and peers in other processes that are killed or stopped by a signal. */
#ifndef LEAT_TEST_STREAM_CASES_H
#define LEAT_TEST_STREAM_CASES_H

#include <signal.h>

#include "call_cases.h"
#include "cluster/stream/conn.h"
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

#define STREAM_CASES                                                                               \
    CALL_CASES, {"killed", killed},                                                                \
    {                                                                                              \
        "stopped", stopped                                                                         \
    }

#endif
