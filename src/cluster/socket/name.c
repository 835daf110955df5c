/* name.c -- the offer of a task's sockets, and the handshake that a peer sends when it connects. */
#include <stdio.h>
#include <string.h>

#include "cluster/socket/socket.h"

void leat_socket_name_write(const leat_socket_name *name, leat_strbuf *out)
{
    leat_strbuf_printf(out, "%s\n%s\n%d\n", name->host, name->local, name->port);
    for (int i = 0; i < LEAT_SOCKET_SECRET; i++)
        leat_strbuf_printf(out, "%02x", name->secret[i]);
}

leat_status leat_socket_name_read(const leat_strbuf *offer, leat_socket_name *out)
{
    leat_socket_name n = {0};
    char hex[2 * LEAT_SOCKET_SECRET + 1] = "";
    int end = -1;
    bool good = offer->n && offer->n < 300 && !memchr(offer->s, 0, offer->n) &&
                sscanf(offer->s, "%95[^\n]\n%47[^\n]\n%5d\n%64[0-9a-f]%n", n.host, n.local, &n.port,
                       hex, &end) == 4 &&
                (size_t)end == offer->n && strlen(hex) == 2 * LEAT_SOCKET_SECRET && n.port >= 0 &&
                n.port <= 65535;
    LEAT_REQUIRE(good, INVALID_ARGUMENT, "A peer's offer of a socket cannot be read");
    for (int i = 0; i < LEAT_SOCKET_SECRET; i++) {
        unsigned byte;
        sscanf(hex + 2 * i, "%2x", &byte);
        n.secret[i] = (uint8_t)byte;
    }
    *out = n;
    return NULL;
}

void leat_socket_handshake_init(leat_socket_handshake *h, const uint8_t *secret)
{
    *h = (leat_socket_handshake){.version = LEAT_SOCKET_VERSION, .frame = sizeof(leat_frame)};
    memcpy(h->magic, LEAT_SOCKET_MAGIC, sizeof h->magic);
    memcpy(h->secret, secret, sizeof h->secret);
}

bool leat_socket_handshake_right(const leat_socket_handshake *h, const uint8_t *secret)
{
    leat_socket_handshake want;
    leat_socket_handshake_init(&want, secret);
    const volatile uint8_t *a = (const uint8_t *)h, *b = (const uint8_t *)&want;
    uint8_t differs = 0;
    for (size_t i = 0; i < sizeof want; i++)
        differs |= a[i] ^ b[i];
    return !differs;
}
