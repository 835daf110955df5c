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
#include "core/alloc.h"
#include "core/log.h"
#include "core/threadpool.h"

enum { WAITING_MAX = 64 };
static const int64_t PATIENCE_NS = INT64_C(3000000000), ACCEPT_PAUSE_NS = INT64_C(100000000),
                     LOG_PAUSE_NS = INT64_C(1000000000);

/* A connection whose handshake has not come. */
typedef struct waiting {
    int socket;
    int64_t deadline_ns; /* When the connection is closed. */
} waiting;

struct leat_acceptor {
    const char *what;
    leat_acceptor_fn fn;
    void *arg;
    int listening, timer;
    /* Its socket is an epoll instance with the listening socket, the timer and the connections that
     * wait, so that the watch notices all of them. */
    leat_accept_watch watch;
    bool watched; /* The watch looks at it. */
    /* Used by on_connect alone: */
    waiting waiting[WAITING_MAX]; /* The oldest first. */
    int n_waiting;
    int64_t accept_ns; /* Until this time no connections are accepted; 0: they are. */
    int64_t log_ns;    /* From this time on a failure to accept is logged again. */
};

static void watch_socket(leat_acceptor *a, int socket)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = socket};
    epoll_ctl(a->watch.socket, EPOLL_CTL_ADD, socket, &e);
}

static void take_waiting(leat_acceptor *a, int i)
{
    memmove(&a->waiting[i], &a->waiting[i + 1], sizeof *a->waiting * (size_t)(--a->n_waiting - i));
}

static void close_oldest(leat_acceptor *a)
{
    close(a->waiting[0].socket);
    take_waiting(a, 0);
}

static void on_bytes(leat_acceptor *a, int socket)
{
    int i = 0;
    while (i < a->n_waiting && a->waiting[i].socket != socket)
        i++;
    if (i == a->n_waiting)
        return;
    /* A descriptor that the callee closes, or gives to a connection, must not be in the epoll
     * instance any more. */
    epoll_ctl(a->watch.socket, EPOLL_CTL_DEL, socket, NULL);
    if (a->fn(a->arg, socket))
        take_waiting(a, i);
    else
        watch_socket(a, socket);
}

/* Has the timer wake the watch at the time when connections are accepted again, or one is closed.
 */
static void set_timer(leat_acceptor *a)
{
    int64_t at = a->n_waiting ? a->waiting[0].deadline_ns : 0;
    if (a->accept_ns && (!at || a->accept_ns < at))
        at = a->accept_ns;
    struct itimerspec t = {.it_value = {at / 1000000000, at % 1000000000}};
    timerfd_settime(a->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* Descriptors or memory have run out, and the listening socket stays readable: it is not looked at
 * for ACCEPT_PAUSE_NS. */
static void pause_accept(leat_acceptor *a, int why)
{
    int64_t now = leat_now_ns();
    if (a->n_waiting)
        close_oldest(a);
    epoll_ctl(a->watch.socket, EPOLL_CTL_DEL, a->listening, NULL);
    a->accept_ns = now + ACCEPT_PAUSE_NS;
    if (now >= a->log_ns)
        LEAT_LOG(WARNING,
                 "No connection by %s can be accepted now: %s. Too many descriptors are open "
                 "(ulimit -n)",
                 a->what, strerror(why));
    a->log_ns = now + LOG_PAUSE_NS;
}

static void accept_all(leat_acceptor *a)
{
    int s;
    while ((s = accept4(a->listening, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (!leat_unix_peer_of(s).same_user) {
            close(s);
            continue;
        }
        if (a->n_waiting == WAITING_MAX)
            close_oldest(a);
        a->waiting[a->n_waiting++] = (waiting){s, leat_now_ns() + PATIENCE_NS};
        watch_socket(a, s);
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        pause_accept(a, errno);
}

static void on_timer(leat_acceptor *a)
{
    uint64_t count;
    int64_t now = leat_now_ns();
    (void)!read(a->timer, &count, sizeof count);
    while (a->n_waiting && a->waiting[0].deadline_ns <= now)
        close_oldest(a);
    if (a->accept_ns && a->accept_ns <= now) {
        a->accept_ns = 0;
        watch_socket(a, a->listening);
    }
}

static void on_connect(void *arg)
{
    leat_acceptor *a = arg;
    struct epoll_event e[16];
    for (int n; (n = epoll_wait(a->watch.socket, e, 16, 0)) > 0;) {
        bool waits = true; /* All events are those of connections that go on waiting. */
        for (int i = 0; i < n; i++) {
            int before = a->n_waiting;
            if (e[i].data.fd == a->listening)
                accept_all(a);
            else if (e[i].data.fd == a->timer)
                on_timer(a);
            else
                on_bytes(a, e[i].data.fd);
            waits &= before == a->n_waiting;
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
    *a = (leat_acceptor){.what = what, .fn = fn, .arg = arg, .listening = listening};
    a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    a->watch = (leat_accept_watch){
        .socket = epoll_create1(EPOLL_CLOEXEC), .on_connect = on_connect, .arg = a};
    leat_status s = NULL;
    if (a->timer < 0 || a->watch.socket < 0)
        s = leat_error(RESOURCE_EXHAUSTED, "No descriptors to listen for %s: %s", what,
                       strerror(errno));
    if (!s) {
        watch_socket(a, a->listening);
        watch_socket(a, a->timer);
        s = leat_watch_add_listener(&a->watch);
    }
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
    while (a->n_waiting)
        close_oldest(a);
    if (a->watch.socket >= 0)
        close(a->watch.socket);
    if (a->timer >= 0)
        close(a->timer);
    close(a->listening);
    free(a);
}
