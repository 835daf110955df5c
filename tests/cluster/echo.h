/* echo.h -- handlers that reply, fail, keep a call open or block, for tests of transports. */
#ifndef LEAT_TEST_ECHO_H
#define LEAT_TEST_ECHO_H

#include <stdatomic.h>
#include <unistd.h>

#include "cluster/transport.h"
#include "core/threadpool.h"
#include "test.h"

static inline int64_t in_ms(int64_t ms)
{
    return leat_now_ns() + ms * 1000000;
}

static leat_server_call *parked; /* The last call of Park, which the test replies to. */
/* gone: calls of Park that were cancelled or whose connection broke; entered: calls of Park, Block
 * and Leave that have reached the handler. */
static atomic_int gone, entered;
/* Call i of Block or Leave, in the order of arrival, returns when released[i] is set. */
static leat_event released[500];

static inline void echo_begin(void)
{
    atomic_store(&gone, 0);
    atomic_store(&entered, 0);
}

static inline void note_gone(void *arg)
{
    atomic_fetch_add(&gone, 1);
}

static inline void echo_handle(void *arg, leat_server_call *a, const char *method,
                               const leat_incoming *in)
{
    leat_outgoing out = {0};
    leat_status s = NULL;
    if (strcmp(method, "/test/Echo") == 0) {
        for (int i = 0; i < in->n; i++)
            leat_strbuf_add(&out.text, in->slices[i].data, in->slices[i].n);
    } else if (strcmp(method, "/test/Fail") == 0) {
        s = leat_error(FAILED_PRECONDITION, "Attempting to use uninitialized value W");
    } else if (strcmp(method, "/test/Park") == 0) {
        CHECK(leat_server_call_on_cancel(a, note_gone, NULL));
        parked = a;
        atomic_fetch_add(&entered, 1);
        return;
    } else if (strcmp(method, "/test/Block") == 0 || strcmp(method, "/test/Leave") == 0) {
        if (strcmp(method, "/test/Leave") == 0)
            leat_server_call_will_block(a);
        leat_event_wait(&released[atomic_fetch_add(&entered, 1)], 0);
    } else if (strcmp(method, "/test/Peer") == 0) {
        leat_strbuf_puts(&out.text, leat_server_call_peer(a));
    } else {
        s = leat_error(UNIMPLEMENTED, "no %s here", method);
    }
    leat_server_call_reply(a, s, &out);
}

/* Makes a call, and copies the reply as text to `reply`, of cap bytes. */
static inline leat_status echo_call(leat_channel *c, const char *method, const char *text,
                                    char *reply, size_t cap, const leat_call_options *options)
{
    leat_outgoing out = {0};
    leat_strbuf_puts(&out.text, text);
    void *p;
    size_t n;
    leat_status s = leat_channel_call_wait(c, method, &out, options, &p, &n);
    if (!s) {
        if (cap)
            snprintf(reply, cap, "%.*s", (int)n, (char *)p);
        free(p);
    }
    return s;
}

static inline void await(atomic_int *n, int least)
{
    for (int i = 0; i < 20000 && atomic_load(n) < least; i++)
        usleep(1000);
    CHECK(atomic_load(n) >= least);
}

/* Set by on_result, for calls that a test makes without waiting for the reply. */
typedef struct result {
    leat_event done;
    leat_status status;
} result;

static inline void on_result(void *arg, leat_status s, const leat_incoming *in)
{
    result *r = arg;
    r->status = s;
    leat_event_set(&r->done);
}

#endif
