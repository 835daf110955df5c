/* shm_channel.c -- the caller's side of shared memory: calls by number, which end once, whatever
 * ends them first: a reply, a deadline, a cancellation, or the connection. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster/shm_int.h"
#include "core/alloc.h"
#include "core/threadpool.h"

static const int64_t PING_NS = INT64_C(10000000000);

typedef struct call call;
typedef struct channel {
    leat_channel base;
    leat_conn conn;
    char *address, *peer;
    uint64_t secret; /* of the door that it leads to */
    /* Guarded by conn.lock: */
    call **calls; /* by number modulo cap; NULL: free */
    uint64_t cap, n, number;
    call *failed, **failed_end; /* to be ended by the reading thread */
} channel;

struct call {
    leat_call base;
    channel *channel;
    call *next; /* among the failed */
    uint64_t id;
    const char *method;
    leat_reply_fn fn;
    void *arg;
    int64_t started_ns, deadline_ns;
    leat_status status;
};

static channel *of(leat_conn *c)
{
    return (channel *)((char *)c - offsetof(channel, conn));
}

static leat_status failure(const call *k, leat_code code, const char *what)
{
    return leat_status_new(code, __FILE__, __LINE__, "%s (%s, shared memory) %s [%s, after %.3f s]",
                           k->channel->peer, k->channel->address, what, k->method,
                           (double)(leat_now_ns() - k->started_ns) / 1e9);
}

static leat_status lost(const call *k)
{
    switch (__atomic_load_n(&k->channel->conn.end, __ATOMIC_SEQ_CST)) {
    case LEAT_CONN_SILENT:
        return failure(k, LEAT_UNAVAILABLE,
                       "fell silent: not even a ping was answered. It is stopped or hangs");
    case LEAT_CONN_GARBAGE:
        return failure(k, LEAT_UNAVAILABLE, "sent what is no frame: the connection was closed");
    case LEAT_CONN_LEFT:
        return failure(k, LEAT_CANCELLED, "was not waited for any longer: the channel was closed");
    default:
        return failure(k, LEAT_UNAVAILABLE,
                       "closed the connection in mid-call. The task ended, or was killed: see what "
                       "it printed last");
    }
}

/* ---- The table of calls; conn.lock is held ---- */
static void add(channel *ch, call *k)
{
    if (2 * ch->n >= ch->cap) {
        uint64_t cap = ch->cap ? 2 * ch->cap : 64;
        call **v = leat_new_array(call *, cap);
        for (uint64_t i = 0; i < ch->cap; i++)
            if (ch->calls[i])
                v[ch->calls[i]->id % cap] = ch->calls[i];
        free(ch->calls);
        ch->calls = v;
        ch->cap = cap;
    }
    do
        k->id = ++ch->number;
    while (ch->calls[k->id % ch->cap]);
    ch->calls[k->id % ch->cap] = k;
    ch->n++;
}

static call *take(channel *ch, uint64_t id)
{
    call *k = ch->cap ? ch->calls[id % ch->cap] : NULL;
    if (!k || k->id != id)
        return NULL;
    ch->calls[id % ch->cap] = NULL;
    ch->n--;
    return k;
}

/* Takes s. The reading thread ends it. */
static void fail(channel *ch, call *k, leat_status s)
{
    k->status = s;
    k->next = NULL;
    *ch->failed_end = k;
    ch->failed_end = &k->next;
    leat_conn_call_reader(&ch->conn);
}

/* ---- What the connection tells ---- */
static void on_frame(leat_conn *c, const leat_frame *f, const char *method, const leat_incoming *in)
{
    channel *ch = of(c);
    pthread_mutex_lock(&c->lock);
    call *k = take(ch, f->id);
    pthread_mutex_unlock(&c->lock);
    if (!k)
        return; /* it was given up meanwhile */
    if (!in) {
        k->fn(k->arg, failure(k, LEAT_RESOURCE_EXHAUSTED, "sent a reply that is too large"), NULL);
    } else if (f->kind == LEAT_FRAME_REPLY) {
        k->fn(k->arg, NULL, in);
    } else {
        leat_strbuf words = {0};
        for (int i = 0; i < in->n; i++)
            leat_strbuf_add(&words, in->slices[i].data, in->slices[i].n);
        leat_code code = f->code > 0 && f->code <= LEAT_UNAUTHENTICATED ? f->code : LEAT_UNKNOWN;
        leat_status s = leat_status_new(code, __FILE__, __LINE__, "%s", leat_strbuf_text(&words));
        leat_strbuf_release(&words);
        k->fn(k->arg, s, NULL);
    }
    free(k);
}

static void on_chores(leat_conn *c)
{
    channel *ch = of(c);
    pthread_mutex_lock(&c->lock);
    call *k = ch->failed;
    ch->failed = NULL;
    ch->failed_end = &ch->failed;
    pthread_mutex_unlock(&c->lock);
    while (k) {
        call *next = k->next;
        k->fn(k->arg, k->status, NULL);
        free(k);
        k = next;
    }
}

static void on_ended(leat_conn *c)
{
    channel *ch = of(c);
    pthread_mutex_lock(&c->lock);
    for (uint64_t i = 0; i < ch->cap; i++)
        if (ch->calls[i])
            fail(ch, ch->calls[i], lost(ch->calls[i]));
    if (ch->cap)
        memset(ch->calls, 0, ch->cap * sizeof *ch->calls);
    ch->n = 0;
    pthread_mutex_unlock(&c->lock);
}

/* Deadlines, and peers that fell silent. */
static void on_tick(leat_conn *c, int64_t now)
{
    channel *ch = of(c);
    int64_t soonest = INT64_MAX, since = now - PING_NS;
    pthread_mutex_lock(&c->lock);
    bool open = ch->n;
    for (uint64_t i = 0; i < ch->cap; i++) {
        call *k = ch->calls[i];
        if (!k || !k->deadline_ns)
            continue;
        if (k->deadline_ns > now) {
            soonest = k->deadline_ns < soonest ? k->deadline_ns : soonest;
            continue;
        }
        take(ch, k->id);
        leat_conn_send(c, &(leat_frame){.kind = LEAT_FRAME_CANCEL, .id = k->id}, "", NULL);
        fail(ch, k,
             failure(k, LEAT_DEADLINE_EXCEEDED,
                     "is connected, but did not answer in time. It is busy or stopped, or "
                     "what was asked for takes longer"));
    }
    pthread_mutex_unlock(&c->lock);
    leat_watch_at(soonest);
    int64_t pinged = __atomic_load_n(&c->pinged_ns, __ATOMIC_RELAXED);
    if (!open || __atomic_load_n(&c->heard_ns, __ATOMIC_RELAXED) > since)
        return;
    if (pinged && pinged <= since)
        leat_conn_finish(c, LEAT_CONN_SILENT);
    else if (!pinged) {
        __atomic_store_n(&c->pinged_ns, now, __ATOMIC_RELAXED);
        leat_conn_send(c, &(leat_frame){.kind = LEAT_FRAME_PING}, "", NULL);
    }
}

static void on_released(leat_conn *c)
{
    channel *ch = of(c);
    free(ch->calls);
    free(ch->address);
    free(ch->peer);
    free(ch);
}

/* ---- A channel ---- */
static void cancel(leat_call *base)
{
    call *k = (call *)base;
    channel *ch = k->channel;
    pthread_mutex_lock(&ch->conn.lock);
    if (take(ch, k->id)) {
        leat_conn_send(&ch->conn, &(leat_frame){.kind = LEAT_FRAME_CANCEL, .id = k->id}, "", NULL);
        fail(ch, k,
             failure(k, LEAT_CANCELLED, "was not waited for any longer: the call was cancelled"));
    }
    pthread_mutex_unlock(&ch->conn.lock);
}

static void channel_call(leat_channel *base, const char *method, leat_outgoing *request,
                         const leat_call_options *options, leat_reply_fn fn, void *arg,
                         leat_call **call_out)
{
    channel *ch = (channel *)base;
    call *k = leat_new(call);
    *k = (call){.base = {cancel},
                .channel = ch,
                .method = method,
                .fn = fn,
                .arg = arg,
                .started_ns = leat_now_ns(),
                .deadline_ns = options->deadline_ns};
    size_t size = leat_outgoing_size(request);
    pthread_mutex_lock(&ch->conn.lock);
    add(ch, k);
    if (call_out)
        *call_out = &k->base;
    leat_frame f = {.kind = LEAT_FRAME_REQUEST, .id = k->id};
    bool sent = true;
    if (size > LEAT_MESSAGE_MAX) {
        take(ch, k->id);
        fail(ch, k, failure(k, LEAT_RESOURCE_EXHAUSTED, "cannot be sent a request so large"));
        sent = false;
    } else if (__atomic_load_n(&ch->conn.end, __ATOMIC_SEQ_CST)) {
        take(ch, k->id);
        fail(ch, k, lost(k));
        sent = false;
    } else if (ch->n == 1) { /* silence counts from now on */
        __atomic_store_n(&ch->conn.heard_ns, k->started_ns, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&ch->conn.lock);
    if (!sent) {
        leat_outgoing_release(request);
        return;
    }
    if (options->deadline_ns)
        leat_watch_at(options->deadline_ns);
    leat_conn_send(&ch->conn, &f, method, request);
}

static void channel_free(leat_channel *base)
{
    channel *ch = (channel *)base;
    leat_conn_close(&ch->conn);
    leat_conn_unref(&ch->conn);
}

bool leat_channel_shm_lives(leat_channel *c)
{
    return !__atomic_load_n(&((channel *)c)->conn.end, __ATOMIC_SEQ_CST);
}

bool leat_channel_shm_leads_to(leat_channel *c, const leat_shm_name *name)
{
    return leat_channel_shm_lives(c) && ((channel *)c)->secret == name->secret;
}

/* ---- Knocking ---- */
static leat_status knock(const leat_shm_name *name, const char *peer, int *socket_out)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strnlen(name->socket, sizeof name->socket);
    memcpy(a.sun_path + 1, name->socket, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&a,
                            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n))) {
        *socket_out = fd;
        return NULL;
    }
    leat_status s =
        leat_error(UNAVAILABLE, "%s cannot be reached by shared memory: %s", peer, strerror(errno));
    if (fd >= 0)
        close(fd);
    return s;
}

/* Sends the memory, and hears whether it is welcome. */
static leat_status hand_over(int socket, int memory, uint64_t secret, const char *peer)
{
    leat_shm_hello hello = {LEAT_SHM_MAGIC, LEAT_SHM_VERSION, secret};
    struct iovec v = {&hello, sizeof hello};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &memory, sizeof(int));
    struct timeval patience = {.tv_sec = 5};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char welcome = 0;
    LEAT_REQUIRE(sendmsg(socket, &m, MSG_NOSIGNAL) == sizeof hello &&
                     recv(socket, &welcome, 1, 0) == 1 && welcome == LEAT_SHM_WELCOME,
                 UNAVAILABLE, "%s does not take part in shared memory: wrong secret, or no answer",
                 peer);
    return NULL;
}

leat_status leat_channel_open_shm(const leat_shm_name *name, const char *address, const char *peer,
                                  leat_channel **out)
{
    static const leat_channel_ops ops = {channel_call, channel_free};
    static const leat_conn_ops conn_ops = {on_frame, on_chores, on_ended, on_released, on_tick};
    LEAT_REQUIRE(*leat_shm_host() && strcmp(leat_shm_host(), name->host) == 0, FAILED_PRECONDITION,
                 "%s is not on this machine", peer);
    leat_ring_pair rings;
    int socket = -1, memory;
    LEAT_TRY(leat_rings_make(&rings, &memory));
    leat_status s = knock(name, peer, &socket);
    if (!s)
        s = hand_over(socket, memory, name->secret, peer);
    close(memory);
    if (s) {
        leat_rings_release(&rings);
        if (socket >= 0)
            close(socket);
        return s;
    }
    channel *ch = leat_new(channel);
    ch->base.ops = &ops;
    ch->address = leat_xstrdup(address);
    ch->peer = leat_xstrdup(peer);
    ch->secret = name->secret;
    ch->failed_end = &ch->failed;
    leat_conn_start(&ch->conn, &conn_ops, socket, rings, LEAT_MESSAGE_MAX);
    *out = &ch->base;
    return NULL;
}
