/* handshake.c -- see handshake.h. */
#define _GNU_SOURCE
#include "cluster/stream/handshake.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/address.h"
#include "cluster/stream/conn.h"

/* ---- Offers ---- */
leat_status leat_stream_name_init(leat_stream_name *n)
{
    *n = (leat_stream_name){.local = "-"};
    snprintf(n->host, sizeof n->host, "%s", *leat_machine_id() ? leat_machine_id() : "?");
    LEAT_REQUIRE(getrandom(n->secret, sizeof n->secret, 0) == sizeof n->secret, UNAVAILABLE,
                 "No random numbers for a secret: %s", strerror(errno));
    return NULL;
}

void leat_stream_name_write(const leat_stream_name *n, leat_strbuf *out)
{
    leat_strbuf_printf(out, "%s\n%s\n%d\n", n->host, n->local, n->port);
    for (int i = 0; i < LEAT_SECRET_BYTES; i++)
        leat_strbuf_printf(out, "%02x", n->secret[i]);
}

leat_status leat_stream_name_read(const leat_strbuf *offer, const char *what, leat_stream_name *out)
{
    leat_stream_name n = {0};
    char hex[2 * LEAT_SECRET_BYTES + 1] = "";
    int end = -1;
    bool good = offer->n && offer->n < 300 && !memchr(offer->s, 0, offer->n) &&
                sscanf(offer->s, "%95[^\n]\n%47[^\n]\n%5d\n%64[0-9a-f]%n", n.host, n.local, &n.port,
                       hex, &end) == 4 &&
                (size_t)end == offer->n && strlen(hex) == 2 * LEAT_SECRET_BYTES && n.port >= 0 &&
                n.port <= 65535;
    LEAT_REQUIRE(good, INVALID_ARGUMENT, "A peer's offer of %s cannot be read", what);
    for (int i = 0; i < LEAT_SECRET_BYTES; i++) {
        unsigned byte;
        sscanf(hex + 2 * i, "%2x", &byte);
        n.secret[i] = (uint8_t)byte;
    }
    *out = n;
    return NULL;
}

bool leat_stream_name_is_local(const leat_stream_name *n)
{
    return *leat_machine_id() && strcmp(n->host, leat_machine_id()) == 0 &&
           strcmp(n->local, "-") != 0;
}

/* ---- Handshakes ---- */
void leat_handshake_init(leat_handshake *h, const char *transport, const uint8_t *secret)
{
    *h = (leat_handshake){.version = LEAT_HANDSHAKE_VERSION, .frame = sizeof(leat_frame)};
    memcpy(h->transport, transport, sizeof h->transport);
    memcpy(h->secret, secret, sizeof h->secret);
}

bool leat_handshake_right(const leat_handshake *h, const char *transport, const uint8_t *secret)
{
    leat_handshake want;
    leat_handshake_init(&want, transport, secret);
    const volatile uint8_t *a = (const uint8_t *)h, *b = (const uint8_t *)&want;
    uint8_t differs = 0;
    for (size_t i = 0; i < sizeof want; i++)
        differs |= a[i] ^ b[i];
    return !differs;
}

/* ---- Unix sockets ---- */
socklen_t leat_unix_address(const leat_stream_name *n, struct sockaddr_un *out)
{
    size_t size = strlen(n->local);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + 1, n->local, size);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
}

int leat_unix_listen(const char *prefix, leat_stream_name *n)
{
    enum { BACKLOG = 128 };
    unsigned long long random;
    struct sockaddr_un a;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -1;
    snprintf(n->local, sizeof n->local, "%s-%d-%016llx", prefix, (int)getpid(), random);
    socklen_t size = leat_unix_address(n, &a);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&a, size) && !listen(fd, BACKLOG))
        return fd;
    int why = errno;
    snprintf(n->local, sizeof n->local, "-");
    if (fd >= 0)
        close(fd);
    errno = why;
    return -1;
}

leat_unix_peer leat_unix_peer_of(int fd)
{
    struct ucred who;
    socklen_t n = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n))
        return (leat_unix_peer){0};
    return (leat_unix_peer){who.pid, who.uid == geteuid() || who.uid == 0};
}
