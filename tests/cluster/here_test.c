/* here_test.c -- calls to a listener of the same process, in the caller's thread. */
#include "test.h"

#include <leat/tensor.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "cluster/here.h"
#include "core/threadpool.h"

static pthread_t ran_in;
static leat_event gone;
static atomic_int entered;

static void note_gone(void *arg)
{
    leat_event_set(&gone);
}

static void handle(void *arg, leat_asked *a, const char *method, const leat_incoming *in)
{
    leat_outgoing out = {0};
    leat_status s = NULL;
    ran_in = pthread_self();
    if (strcmp(method, "/test/Wait") == 0) {
        leat_event_init(&gone);
        if (leat_asked_on_gone(a, note_gone, NULL)) {
            atomic_fetch_add(&entered, 1);
            leat_event_wait(&gone, 0);
        }
        s = leat_error(CANCELLED, "was cancelled");
    }
    for (int i = 0; i < in->n; i++)
        leat_strbuf_add(&out.text, in->slices[i].data, in->slices[i].n);
    leat_asked_reply(a, s, &out);
}

static leat_listener *listener;
static char address[64];

static void start(void)
{
    CHECK_OK(leat_listen("localhost:0", NULL, handle, NULL, &listener));
    snprintf(address, sizeof address, "localhost:%d", leat_listener_port(listener));
}

static char replied[32];
static leat_code code;

static void on_reply(void *arg, leat_status s, const leat_incoming *in)
{
    code = leat_status_code(s);
    leat_status_free(s);
    replied[0] = 0;
    if (in)
        snprintf(replied, sizeof replied, "%.*s", (int)in->slices[0].n,
                 (const char *)in->slices[0].data);
}

static void echo(void)
{
    start();
    CHECK(!leat_here_new("localhost:1"));
    leat_call *c = leat_here_new(address);
    CHECK(c);
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(2), &t));
    memcpy(leat_tensor_mutable(t), "bc", 2);
    leat_outgoing o = {0};
    leat_strbuf_puts(&o.text, "a");
    leat_outgoing_tensor(&o, t);
    leat_strbuf_puts(&o.text, "d");
    leat_tensor_unref(t);
    leat_here_call(c, "/test/Echo", &o, on_reply, NULL);
    CHECK_STR(replied, "abcd");
    CHECK(pthread_equal(ran_in, pthread_self()));
    leat_listener_stop(listener, 0);
    CHECK(!leat_here_new(address));
}

static void *cancel_soon(void *arg)
{
    while (!atomic_load(&entered))
        usleep(1000);
    if (arg)
        leat_call_cancel(arg);
    else
        leat_listener_stop(listener, leat_now_ns() + 20000000);
    return NULL;
}

/* By its caller before it begins, while it runs, and by a listener that stops. */
static void cancelled(void)
{
    pthread_t t;
    start();
    leat_call *c = leat_here_new(address);
    leat_call_cancel(c);
    leat_here_call(c, "/test/Wait", &(leat_outgoing){0}, on_reply, NULL);
    CHECK_INT(code, LEAT_CANCELLED);
    c = leat_here_new(address);
    pthread_create(&t, NULL, cancel_soon, c);
    leat_here_call(c, "/test/Wait", &(leat_outgoing){0}, on_reply, NULL);
    pthread_join(t, NULL);
    CHECK_INT(code, LEAT_CANCELLED);
    c = leat_here_new(address);
    pthread_create(&t, NULL, cancel_soon, NULL);
    leat_here_call(c, "/test/Wait", &(leat_outgoing){0}, on_reply, NULL);
    pthread_join(t, NULL);
    CHECK_INT(code, LEAT_CANCELLED);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"echo", echo}, {"cancelled", cancelled});
}
