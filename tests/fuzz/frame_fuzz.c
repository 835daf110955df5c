/* frame_fuzz.c -- any bytes as what comes over a socket after the handshake: to a listener, and to
 * a caller that has calls under way. The first byte of an input says to which of them. Every call
 * must end exactly once. */
#include <leat/leat.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/socket/socket.h"
#include "core/buffer.h"
#include "core/threadpool.h"

enum { CALLS = 4 };

static void handle(void *arg, leat_server_call *c, const char *method, const leat_incoming *in)
{
    leat_outgoing o = {0};
    for (int i = 0; i < in->n; i++)
        leat_strbuf_add(&o.text, in->slices[i].data, in->slices[i].n);
    leat_server_call_reply(c, strlen(method) % 2 ? leat_error(ABORTED, "%s", method) : NULL, &o);
}

static atomic_int ended;

static void on_reply(void *arg, leat_status s, const leat_incoming *in)
{
    size_t sum = 0;
    for (int i = 0; in && i < in->n; i++)
        for (size_t k = 0; k < in->slices[i].n; k++)
            sum += in->slices[i].data[k];
    *(size_t *)arg = sum;
    leat_status_free(s);
    atomic_fetch_add(&ended, 1);
}

/* Sends all, and reads what comes back until the other side has closed. */
static void feed(int fd, const uint8_t *data, size_t size)
{
    char back[4096];
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && recv(fd, back, sizeof back, 0) <= 0)
            break;
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    shutdown(fd, SHUT_WR);
    while (recv(fd, back, sizeof back, 0) > 0)
        ;
}

/* The server has no listener, and the peer need not be told that it may send. */
static void nothing(void *unused) {}

static void to_listener(int pair[2], const uint8_t *data, size_t size)
{
    leat_listen_options o = {.max_message = 1 << 20};
    leat_stream_server *s = leat_stream_server_new(&o, handle, NULL, nothing, NULL);
    leat_stream_server_add(s, leat_socket_stream_new(pair[0], NULL), "fuzzer", nothing, NULL);
    feed(pair[1], data, size);
    leat_stream_server_stop(leat_stream_server_base(s), leat_now_ns());
}

static void to_caller(int pair[2], const uint8_t *data, size_t size)
{
    leat_link_target to = {.address = "localhost:1", .peer = "fuzzer"};
    leat_stream_link *l = leat_stream_link_new(&to, "socket");
    leat_link *base = leat_stream_link_base(l);
    leat_call_options options = {0};
    size_t sums[CALLS];
    /* After an error the link is DEAD, and its calls end all the same. */
    leat_status_free(leat_stream_link_start(l, leat_socket_stream_new(pair[0], NULL)));
    atomic_store(&ended, 0);
    for (int i = 0; i < CALLS; i++)
        base->ops->call(base, "/test/Fuzz", &(leat_outgoing){0}, &options, on_reply, &sums[i],
                        NULL);
    feed(pair[1], data, size);
    base->ops->free(base);
    if (atomic_load(&ended) != CALLS)
        abort(); /* a call did not end, or ended twice */
}

/* A connection that stays, so that the watch's thread does not end with every input. */
static void keep_watch(void)
{
    static leat_stream_server *kept;
    int pair[2];
    if (kept || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return;
    kept = leat_stream_server_new(&(leat_listen_options){0}, handle, NULL, nothing, NULL);
    leat_stream_server_add(kept, leat_socket_stream_new(pair[0], NULL), "kept", nothing, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int pair[2];
    leat_cpu_allocator()->limit = 64 << 20;
    keep_watch();
    if (!size || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 0;
    if (data[0] % 2)
        to_caller(pair, data + 1, size - 1);
    else
        to_listener(pair, data + 1, size - 1);
    close(pair[1]);
    return 0;
}
