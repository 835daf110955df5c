/* acceptor.c -- see acceptor.h. */
#define _GNU_SOURCE
#include "cluster/stream/acceptor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cluster/stream/conn.h"
#include "cluster/stream/handshake.h"
#include "cluster/stream/pending.h"
#include "core/alloc.h"

struct leat_acceptor {
    leat_acceptor_fn fn;
    void *arg;
    int listening, timer;
    /* Its socket is an epoll instance with the listening socket, the timer and the connections that
     * wait, so that the watch notices all of them. */
    leat_accept_watch watch;
    bool watched; /* The watch looks at it. */
    /* Used by on_connect alone, until the watch has removed the acceptor: */
    leat_pending_table pending;
    bool paused; /* The listening socket is not in the epoll instance. */
};

/* False, with errno, if there is no memory for it, or the user has too many of them. */
static bool watch_socket(leat_acceptor *a, int socket)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = socket};
    return epoll_ctl(a->watch.socket, EPOLL_CTL_ADD, socket, &e) == 0;
}

static void on_bytes(leat_acceptor *a, int socket)
{
    int i = 0;
    while (i < a->pending.n && a->pending.v[i].socket != socket)
        i++;
    if (i == a->pending.n)
        return;
    /* A descriptor that the callee closes, or gives to a connection, must not be in the epoll
     * instance any more. */
    epoll_ctl(a->watch.socket, EPOLL_CTL_DEL, socket, NULL);
    if (a->fn(a->arg, socket))
        leat_pending_take(&a->pending, i);
    else if (!watch_socket(a, socket))
        leat_pending_close(&a->pending, i);
}

/* Closes what is late, accepts again after a pause, and has the timer wake the watch at the time of
 * the next of these. */
static void set_timer(leat_acceptor *a)
{
    int64_t at = leat_pending_expire(&a->pending);
    if (a->paused && !a->pending.accept_ns) {
        a->paused = !watch_socket(a, a->listening);
        if (a->paused) {
            leat_pending_pause(&a->pending, errno);
            at = leat_pending_expire(&a->pending);
        }
    }
    struct itimerspec t = {.it_value = {at / 1000000000, at % 1000000000}};
    timerfd_settime(a->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* Descriptors or memory have run out, and the listening socket stays readable: it is not looked at
 * for a while. */
static void pause_accept(leat_acceptor *a, int why)
{
    epoll_ctl(a->watch.socket, EPOLL_CTL_DEL, a->listening, NULL);
    a->paused = true;
    leat_pending_pause(&a->pending, why);
}

static void accept_all(leat_acceptor *a)
{
    int s;
    while ((s = accept4(a->listening, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (!leat_unix_peer_of(s).same_user) {
            close(s);
            continue;
        }
        if (!watch_socket(a, s)) {
            int why = errno;
            close(s);
            pause_accept(a, why);
            return;
        }
        leat_pending_add(&a->pending, s, NULL);
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        pause_accept(a, errno);
}

static void on_connect(void *arg)
{
    leat_acceptor *a = arg;
    struct epoll_event e[16];
    for (int n; (n = epoll_wait(a->watch.socket, e, 16, 0)) > 0;) {
        bool waits = true; /* All events are those of connections that go on waiting. */
        for (int i = 0; i < n; i++) {
            int before = a->pending.n;
            uint64_t count;
            if (e[i].data.fd == a->listening)
                accept_all(a);
            else if (e[i].data.fd == a->timer)
                (void)!read(a->timer, &count, sizeof count);
            else
                on_bytes(a, e[i].data.fd);
            waits &= before == a->pending.n;
        }
        set_timer(a);
        if (waits) /* They would be readable again at once: the watch comes back later. */
            break;
    }
}

leat_status leat_acceptor_new(int listening, const char *what, leat_acceptor_fn fn, void *arg,
                              leat_acceptor **out)
{
    leat_acceptor *a = leat_new(leat_acceptor);
    *a = (leat_acceptor){.fn = fn, .arg = arg, .listening = listening, .pending = {.what = what}};
    a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    a->watch = (leat_accept_watch){
        .socket = epoll_create1(EPOLL_CLOEXEC), .on_connect = on_connect, .arg = a};
    leat_status s = NULL;
    if (a->timer < 0 || a->watch.socket < 0)
        s = leat_error(RESOURCE_EXHAUSTED, "No descriptors to listen for %s: %s", what,
                       strerror(errno));
    else if (!watch_socket(a, a->listening) || !watch_socket(a, a->timer))
        s = leat_error(RESOURCE_EXHAUSTED, "Connections by %s cannot be watched (epoll): %s", what,
                       strerror(errno));
    else
        s = leat_watch_add_listener(&a->watch);
    if (s) {
        leat_acceptor_free(a);
        return s;
    }
    a->watched = true;
    *out = a;
    return NULL;
}

void leat_acceptor_free(leat_acceptor *a)
{
    if (!a)
        return;
    if (a->watched)
        leat_watch_remove_listener(&a->watch);
    leat_pending_close_all(&a->pending);
    if (a->watch.socket >= 0)
        close(a->watch.socket);
    if (a->timer >= 0)
        close(a->timer);
    close(a->listening);
    free(a);
}
