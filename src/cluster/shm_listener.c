/* shm_listener.c -- the answering side of shared memory: a door, and the calls that came. A call is
 * referred to by whoever will answer it, and for a moment by a cancellation. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster/gone.h"
#include "cluster/shm_int.h"
#include "core/alloc.h"
#include "core/later.h"
#include "core/threadpool.h"

typedef struct guest guest;
typedef struct asked asked;

struct leat_shm_listener {
    leat_handler_fn handler;
    void *arg;
    int64_t max_message;
    int max_calls;
    uint64_t secret;
    leat_door door;
    pthread_mutex_t lock; /* what follows; before a connection's */
    pthread_cond_t changed;
    guest *guests;
    int calls;    /* not answered */
    int handlers; /* that run */
    bool stopping;
    int refs; /* of connections that live, and of the owner */
};

/* A connection from one caller. */
struct guest {
    leat_conn conn;
    leat_shm_listener *listener;
    guest *next, **link; /* among the listener's, while it lives */
    char name[48];
    asked *asked; /* conn.lock: calls that are not answered */
};

struct asked {
    leat_asked base;
    guest *guest; /* with a reference to its connection */
    asked *next, **link;
    uint64_t id;
    leat_gone gone;
    int refs;  /* conn.lock, as is: */
    bool told; /* that its caller has gone */
};

static guest *of(leat_conn *c)
{
    return (guest *)((char *)c - offsetof(guest, conn));
}

static void unref_listener(leat_shm_listener *l)
{
    pthread_mutex_lock(&l->lock);
    int left = --l->refs;
    pthread_mutex_unlock(&l->lock);
    if (left)
        return;
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l);
}

/* ---- Calls ---- */
static void unref_asked(asked *a)
{
    guest *g = a->guest;
    pthread_mutex_lock(&g->conn.lock);
    int left = --a->refs;
    pthread_mutex_unlock(&g->conn.lock);
    if (left)
        return;
    leat_gone_release(&a->gone);
    free(a);
    leat_conn_unref(&g->conn);
}

static void send_error(leat_conn *c, uint64_t id, leat_status s)
{
    leat_outgoing words = {0};
    leat_strbuf_puts(&words.text, leat_status_message(s));
    leat_frame f = {.kind = LEAT_FRAME_ERROR, .code = (uint32_t)leat_status_code(s), .id = id};
    leat_conn_send(c, &f, "", &words);
    leat_status_free(s);
}

static void reply(leat_asked *base, leat_status s, leat_outgoing *reply)
{
    asked *a = (asked *)base;
    guest *g = a->guest;
    leat_shm_listener *l = g->listener;
    leat_gone_answer(&a->gone);
    pthread_mutex_lock(&g->conn.lock);
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
    pthread_mutex_unlock(&g->conn.lock);
    size_t size = reply && !s ? leat_outgoing_size(reply) : 0;
    if (size > LEAT_MESSAGE_MAX)
        s = leat_error(RESOURCE_EXHAUSTED, "A reply of %zu bytes is larger than the limit of %lld",
                       size, (long long)LEAT_MESSAGE_MAX);
    if (s)
        send_error(&g->conn, a->id, s);
    else
        leat_conn_send(&g->conn, &(leat_frame){.kind = LEAT_FRAME_REPLY, .id = a->id}, "", reply);
    if (reply)
        leat_outgoing_release(reply);
    pthread_mutex_lock(&l->lock);
    if (--l->calls == 0)
        pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    unref_asked(a);
}

static bool on_gone(leat_asked *base, void (*fn)(void *arg), void *arg)
{
    return leat_gone_watch(&((asked *)base)->gone, fn, arg);
}

static const char *peer(const leat_asked *base)
{
    return ((const asked *)base)->guest->name;
}

static void leave(leat_asked *base)
{
    leat_later_now();
    leat_conn_leave(&((asked *)base)->guest->conn);
}

static void on_request(guest *g, const leat_frame *f, const char *method, const leat_incoming *in)
{
    static const leat_asked_ops ops = {reply, on_gone, peer, leave};
    leat_shm_listener *l = g->listener;
    pthread_mutex_lock(&l->lock);
    bool stopping = l->stopping, room = l->calls < l->max_calls;
    bool wanted = !stopping && room && in;
    l->calls += wanted;
    l->handlers += wanted;
    pthread_mutex_unlock(&l->lock);
    if (stopping)
        send_error(&g->conn, f->id, leat_error(UNAVAILABLE, "The task is being shut down"));
    else if (!in)
        send_error(&g->conn, f->id,
                   leat_error(RESOURCE_EXHAUSTED,
                              "%s of %llu bytes is larger than the limit of "
                              "%lld, or than the memory that is free",
                              method, (unsigned long long)f->size, (long long)l->max_message));
    else if (!room)
        send_error(&g->conn, f->id,
                   leat_error(RESOURCE_EXHAUSTED,
                              "The task has %d calls under way, which is its limit", l->max_calls));
    if (!wanted)
        return;
    asked *a = leat_new(asked);
    a->base.ops = &ops;
    a->guest = g;
    a->id = f->id;
    a->refs = 1;
    leat_gone_init(&a->gone);
    leat_conn_ref(&g->conn);
    pthread_mutex_lock(&g->conn.lock);
    a->next = g->asked;
    a->link = &g->asked;
    if (a->next)
        a->next->link = &a->next;
    g->asked = a;
    pthread_mutex_unlock(&g->conn.lock);
    l->handler(l->arg, &a->base, method, in);
    pthread_mutex_lock(&l->lock);
    if (--l->handlers == 0)
        pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void nothing(void) {}

/* The caller of this call, or of all if id is 0, has gone. */
static void tell_gone(guest *g, uint64_t id)
{
    for (;;) {
        pthread_mutex_lock(&g->conn.lock);
        asked *a = g->asked;
        while (a && ((id && a->id != id) || a->told))
            a = a->next;
        if (a) {
            a->refs++;
            a->told = true;
        }
        pthread_mutex_unlock(&g->conn.lock);
        if (!a)
            return;
        leat_gone_fire(&a->gone, nothing);
        unref_asked(a);
    }
}

/* ---- Connections ---- */
static void on_frame(leat_conn *c, const leat_frame *f, const char *method, const leat_incoming *in)
{
    if (f->kind == LEAT_FRAME_REQUEST)
        on_request(of(c), f, method, in);
    else if (f->kind == LEAT_FRAME_CANCEL && f->id)
        tell_gone(of(c), f->id);
}

static void on_ended(leat_conn *c)
{
    guest *g = of(c);
    leat_shm_listener *l = g->listener;
    tell_gone(g, 0);
    leat_watch_remove(c);
    __atomic_store_n(&c->closing, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&l->lock);
    *g->link = g->next;
    if (g->next)
        g->next->link = g->link;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    leat_conn_unref(c);
}

static void on_nothing(leat_conn *c) {}

static void on_released(leat_conn *c)
{
    guest *g = of(c);
    unref_listener(g->listener);
    free(g);
}

static void on_tick(leat_conn *c, int64_t now) {}

/* The hello of one who knocked: the file of his memory, or -1. */
static int hear(leat_shm_listener *l, int socket)
{
    leat_shm_hello hello = {0};
    struct iovec v = {&hello, sizeof hello};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    struct timeval patience = {.tv_usec = 100000};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
    int fd = -1;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof(int));
    if (fd >= 0 && (n != sizeof hello || hello.magic != LEAT_SHM_MAGIC ||
                    hello.version != LEAT_SHM_VERSION || hello.secret != l->secret)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void welcome(leat_shm_listener *l, int socket)
{
    static const leat_conn_ops ops = {on_frame, on_nothing, on_ended, on_released, on_tick};
    leat_ring_pair rings;
    int fd = hear(l, socket);
    leat_status s =
        fd >= 0 ? leat_rings_take(&rings, fd) : leat_error(UNAUTHENTICATED, "The secret is wrong");
    char yes = LEAT_SHM_WELCOME;
    if (!s && send(socket, &yes, 1, MSG_NOSIGNAL) != 1) {
        leat_rings_release(&rings);
        s = leat_error(UNAVAILABLE, "The caller has gone");
    }
    if (s) {
        leat_status_free(s);
        close(socket);
        return;
    }
    guest *g = leat_new(guest);
    g->listener = l;
    struct ucred who = {0};
    socklen_t n = sizeof who;
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &n);
    snprintf(g->name, sizeof g->name, "shared memory of process %d", (int)who.pid);
    pthread_mutex_lock(&l->lock);
    l->refs++;
    g->next = l->guests;
    g->link = &l->guests;
    if (g->next)
        g->next->link = &g->next;
    l->guests = g;
    leat_conn_start(&g->conn, &ops, socket, rings, l->max_message);
    pthread_mutex_unlock(&l->lock);
}

static void on_caller(void *arg)
{
    leat_shm_listener *l = arg;
    for (int s; (s = accept4(l->door.socket, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
        welcome(l, s);
}

/* ---- The listener ---- */
const char *leat_shm_host(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char host[96];
    pthread_mutex_lock(&lock);
    if (!*host) {
        char boot[40] = "", net[40] = "";
        FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
        ssize_t n = readlink("/proc/self/ns/net", net, sizeof net - 1);
        if (f && fscanf(f, "%39s", boot) == 1 && n > 0)
            snprintf(host, sizeof host, "%s %s", boot, net);
        if (f)
            fclose(f);
    }
    pthread_mutex_unlock(&lock);
    return host;
}

static leat_status open_door(leat_shm_listener *l, leat_shm_name *name_out)
{
    leat_shm_name made, *name = &made;
    uint64_t random[2];
    LEAT_REQUIRE(*leat_shm_host() && getrandom(random, sizeof random, 0) == sizeof random,
                 UNAVAILABLE, "Shared memory cannot be used: this machine does not say who it is");
    *name = (leat_shm_name){.secret = random[0]};
    snprintf(name->host, sizeof name->host, "%s", leat_shm_host());
    snprintf(name->socket, sizeof name->socket, "leat-%d-%016llx", (int)getpid(),
             (unsigned long long)random[1]);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(name->socket);
    memcpy(a.sun_path + 1, name->socket, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        bind(fd, (struct sockaddr *)&a,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) ||
        listen(fd, 128)) {
        leat_status s =
            leat_error(UNAVAILABLE, "Cannot open a socket for shared memory: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return s;
    }
    l->secret = name->secret;
    l->door = (leat_door){.socket = fd, .on_caller = on_caller, .arg = l};
    *name_out = made;
    return NULL;
}

leat_status leat_shm_listen(leat_handler_fn handler, void *arg, const leat_listen_options *options,
                            leat_shm_name *name_out, leat_shm_listener **out)
{
    static const leat_listen_options none;
    options = options ? options : &none;
    leat_shm_listener *l = leat_new(leat_shm_listener);
    leat_status s = open_door(l, name_out);
    if (s) {
        free(l);
        return s;
    }
    l->handler = handler;
    l->arg = arg;
    l->max_calls = options->max_calls ? options->max_calls : 10000;
    l->max_message = options->max_message ? options->max_message : LEAT_MESSAGE_MAX;
    l->refs = 1;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, &attr);
    pthread_condattr_destroy(&attr);
    leat_watch_door(&l->door);
    *out = l;
    return NULL;
}

void leat_shm_stop(leat_shm_listener *l, int64_t deadline_ns)
{
    leat_watch_no_door(&l->door);
    close(l->door.socket);
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    while (l->calls && pthread_cond_timedwait(&l->changed, &l->lock, &until) == 0)
        ;
    for (guest *g = l->guests; g; g = g->next)
        leat_conn_finish(&g->conn, LEAT_CONN_LEFT);
    while (l->guests || l->handlers)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    unref_listener(l);
}
