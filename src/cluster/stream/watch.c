/* watch.c -- the watch: one thread for all connections of the process. It notices sockets that the
 * peer closed, peers that connect, times given to leat_watch_at, and readers that work on one frame
 * for long.
 *
 * While frames come, the watch looks at the readers every LOOK_MS milliseconds, so that a reader
 * that begins to work on a frame need not wake it. After QUIET_TICKS looks without a frame it
 * parks, and the next frame wakes it (leat_watch_busy).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cluster/stream/conn.h"
#include "core/thread.h"
#include "core/threadpool.h"

enum { LOOK_MS = 3, QUIET_TICKS = 30 };

/* Guards users. Held while the thread is started or its end is awaited. Taken before lock. */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static int users; /* Connections and listeners; the thread runs while there are any. */

/* Guards changed to quits. Taken before the locks of a connection. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Signalled when the thread ends, and when an on_connect has returned. */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static leat_conn *conns;
static leat_accept_watch *listeners, *answering; /* answering: its on_connect runs now; or NULL. */
static bool runs, quits;                         /* The thread runs; the thread has to end. */

static int poller = -1; /* Set while there are users. */
/* Atomic: made with the first user and never closed, since a thread whose connection was the last
 * user may still wake the watch. */
static int wake_fd = -1;
static pthread_t watcher; /* Valid while runs is set. */

static int ticking;  /* Atomic: 1 while the watch looks at readers every LOOK_MS. */
static int64_t next; /* Atomic: when to call ops->tick of all connections (CLOCK_MONOTONIC). */

static bool leave_free;       /* Atomic: see leat_watch_leave_free. */
static void (*on_tick)(void); /* Atomic: see leat_watch_on_tick. */

void leat_watch_leave_free(bool on)
{
    __atomic_store_n(&leave_free, on, __ATOMIC_RELAXED);
}

void leat_watch_on_tick(void (*fn)(void))
{
    __atomic_store_n(&on_tick, fn, __ATOMIC_RELAXED);
}

static void wake_watch(void)
{
    uint64_t one = 1;
    if (write(__atomic_load_n(&wake_fd, __ATOMIC_RELAXED), &one, sizeof one) < 0)
        return; /* EAGAIN: the counter is full, so the watch is being woken already. */
}

void leat_watch_busy(void)
{
    if (!__atomic_load_n(&ticking, __ATOMIC_SEQ_CST) &&
        !__atomic_exchange_n(&ticking, 1, __ATOMIC_SEQ_CST))
        wake_watch();
}

void leat_watch_at(int64_t at_ns)
{
    int64_t was = __atomic_load_n(&next, __ATOMIC_SEQ_CST);
    while (at_ns < was)
        if (__atomic_compare_exchange_n(&next, &was, at_ns, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
            wake_watch();
            return;
        }
}

/* Whether a connection without a reader has something for one. */
static bool wants_reader(leat_conn *c)
{
    return !c->stream->ops->unread || c->stream->ops->unread(c) ||
           __atomic_load_n(&c->alarm, __ATOMIC_SEQ_CST) || leat_conn_ended(c);
}

/* Gives a connection's reader role to another thread if the present reader works on the same frame
 * as at the last look. If no thread has the role, gives it to one, but while leave_free is set only
 * if bytes have been unread since the last look. True if a frame came since the last look, or if a
 * connection's reader works, or if a connection has none. The lock is held. */
static bool look_at_readers(void)
{
    bool any = false, rest = !__atomic_load_n(&leave_free, __ATOMIC_RELAXED);
    for (leat_conn *c = conns; c; c = c->next) {
        uint64_t frames = __atomic_load_n(&c->frames, __ATOMIC_RELAXED);
        leat_reader role = __atomic_load_n(&c->role, __ATOMIC_SEQ_CST) % LEAT_READER_STATES;
        bool news = role == LEAT_READER_NONE && wants_reader(c), same = frames == c->seen;
        any |= role != LEAT_READER_READS || !same;
        if (role == LEAT_READER_WORKS && same)
            leat_conn_hand_over(c);
        if (role == LEAT_READER_NONE && (rest || (news && c->had_news && same)))
            leat_conn_start_reader(c);
        any |= leat_conn_push_again(c);
        c->seen = frames;
        c->had_news = news;
    }
    return any;
}

/* Does what threads of a connection would do that could not be started. */
static void replace_threads(int64_t now)
{
    pthread_mutex_lock(&lock);
    leat_conn *c = conns;
    while (c && !leat_conn_lacks_thread(c, now))
        c = c->next;
    if (c)
        leat_conn_hold(c);
    pthread_mutex_unlock(&lock);
    if (!c)
        return;
    leat_conn_replace_thread(c, now);
    leat_conn_let_go(c);
}

void leat_watch_each(void (*fn)(leat_conn *c, void *arg), void *arg)
{
    pthread_mutex_lock(&lock);
    for (leat_conn *c = conns; c; c = c->next)
        fn(c, arg);
    pthread_mutex_unlock(&lock);
}

static void on_event(void *who)
{
    pthread_mutex_lock(&lock);
    for (leat_conn *c = conns; c; c = c->next)
        if (c == who) {
            char byte; /* The peer sends nothing on end_fd: recv gives 0 once the peer closed it. */
            ssize_t n = recv(c->stream->end_fd, &byte, 1, MSG_DONTWAIT);
            if (n >= 0 || (errno != EAGAIN && errno != EINTR))
                leat_conn_finish(c, n > 0 ? LEAT_CONN_GARBAGE : LEAT_CONN_CLOSED);
        }
    for (leat_accept_watch *d = listeners; d; d = d->next)
        if (d == who) {
            answering = d;
            pthread_mutex_unlock(&lock);
            d->on_connect(d->arg);
            pthread_mutex_lock(&lock);
            answering = NULL;
            pthread_cond_broadcast(&changed);
            break;
        }
    pthread_mutex_unlock(&lock);
}

static void tick_all(int64_t now)
{
    __atomic_store_n(&next, now + leat_ping_after_ns / 2, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&lock);
    for (leat_conn *c = conns; c; c = c->next)
        c->ops->tick(c, now);
    pthread_mutex_unlock(&lock);
}

static int timeout_ms(void)
{
    if (__atomic_load_n(&ticking, __ATOMIC_SEQ_CST))
        return LOOK_MS;
    int64_t left = __atomic_load_n(&next, __ATOMIC_SEQ_CST) - leat_now_ns();
    return left <= 0 ? 0 : (int)(left / 1000000) + 1;
}

static void *watch(void *unused)
{
    pthread_setname_np(pthread_self(), "leat-watch");
    int quiet = 0;
    for (bool on = true; on;) {
        struct epoll_event e[16];
        int n = epoll_wait(poller, e, 16, timeout_ms());
        for (int i = 0; i < n; i++) {
            uint64_t count;
            if (e[i].data.ptr)
                on_event(e[i].data.ptr);
            else if (read(wake_fd, &count, sizeof count) < 0)
                continue;
        }
        if (leat_now_ns() >= __atomic_load_n(&next, __ATOMIC_SEQ_CST))
            tick_all(leat_now_ns());
        void (*tick)(void) = __atomic_load_n(&on_tick, __ATOMIC_RELAXED);
        if (tick)
            tick();
        replace_threads(leat_now_ns());
        pthread_mutex_lock(&lock);
        on = !quits;
        quiet = look_at_readers() ? 0 : quiet + 1;
        if (quiet >= QUIET_TICKS) {
            /* A reader that began to work before this store has not woken the watch: look once
             * more. */
            __atomic_store_n(&ticking, 0, __ATOMIC_SEQ_CST);
            if (look_at_readers())
                __atomic_store_n(&ticking, 1, __ATOMIC_SEQ_CST);
            quiet = 0;
        }
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    runs = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static leat_status listen_to(int fd, void *who)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = who};
    LEAT_REQUIRE(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e) == 0, RESOURCE_EXHAUSTED,
                 "A connection cannot be watched (epoll): %s", strerror(errno));
    return NULL;
}

/* Waits until the thread has ended. users_lock is held. */
static void await_end(void)
{
    pthread_mutex_lock(&lock);
    while (runs)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (poller >= 0)
        close(poller);
    poller = -1;
}

/* users_lock is held. */
static leat_status start_watch(void)
{
    await_end(); /* Of a thread that has called leave itself. */
    if (wake_fd < 0)
        __atomic_store_n(&wake_fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), __ATOMIC_RELAXED);
    poller = wake_fd < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
    LEAT_REQUIRE(poller >= 0, RESOURCE_EXHAUSTED, "No descriptor to watch connections: %s",
                 strerror(errno));
    leat_status s = listen_to(wake_fd, NULL);
    if (s) {
        close(poller);
        poller = -1;
        return s;
    }
    quits = false;
    __atomic_store_n(&next, leat_now_ns() + leat_ping_after_ns / 2, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&lock);
    int e = leat_thread_start(&watcher, watch, NULL);
    runs = !e;
    pthread_mutex_unlock(&lock);
    if (!e) {
        pthread_detach(watcher);
        return NULL;
    }
    close(poller);
    poller = -1;
    return leat_error(RESOURCE_EXHAUSTED, "No thread can be started to watch connections: %s. %s",
                      strerror(e), LEAT_NO_THREAD_HINT);
}

static leat_status join(void)
{
    pthread_mutex_lock(&users_lock);
    leat_status s = users ? NULL : start_watch();
    users += !s;
    pthread_mutex_unlock(&users_lock);
    return s;
}

static void leave(void)
{
    pthread_mutex_lock(&users_lock);
    if (!--users) {
        pthread_mutex_lock(&lock);
        quits = true;
        bool own = runs && pthread_equal(pthread_self(), watcher);
        pthread_mutex_unlock(&lock);
        wake_watch();
        if (!own) /* The watch ends a connection itself where no thread can be started. */
            await_end();
    }
    pthread_mutex_unlock(&users_lock);
}

leat_status leat_watch_add(leat_conn *c)
{
    LEAT_TRY(join());
    pthread_mutex_lock(&lock);
    leat_status s = c->stream->end_fd >= 0 ? listen_to(c->stream->end_fd, c) : NULL;
    if (!s) {
        c->next = conns;
        c->link = &conns;
        if (conns)
            conns->link = &c->next;
        conns = c;
    }
    pthread_mutex_unlock(&lock);
    if (s)
        leave();
    return s;
}

void leat_watch_remove(leat_conn *c)
{
    pthread_mutex_lock(&lock);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    if (c->stream->end_fd >= 0)
        epoll_ctl(poller, EPOLL_CTL_DEL, c->stream->end_fd, NULL);
    pthread_mutex_unlock(&lock);
    leave();
}

leat_status leat_watch_add_listener(leat_accept_watch *d)
{
    LEAT_TRY(join());
    pthread_mutex_lock(&lock);
    leat_status s = listen_to(d->socket, d);
    if (!s) {
        d->next = listeners;
        listeners = d;
    }
    pthread_mutex_unlock(&lock);
    if (s)
        leave();
    return s;
}

void leat_watch_remove_listener(leat_accept_watch *d)
{
    pthread_mutex_lock(&lock);
    for (leat_accept_watch **p = &listeners; *p; p = &(*p)->next)
        if (*p == d) {
            *p = d->next;
            break;
        }
    epoll_ctl(poller, EPOLL_CTL_DEL, d->socket, NULL);
    while (answering == d)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    leave();
}
