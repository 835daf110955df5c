/* connections.c -- see connections.h. */
#include "cluster/connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/map.h"

struct leat_connections {
    leat_map open; /* end_point -> anything but NULL */
    bool unknown;  /* The system's table could not be read as a whole. */
};

/* The peer's end of a connection. An IPv4 address is written as an IPv6 one (::ffff:a.b.c.d), as
 * the system does where one socket listens for both. */
typedef struct end_point {
    struct in6_addr address;
    uint16_t port;
} end_point;

static end_point of_ipv4(uint32_t address, unsigned port)
{
    end_point e;
    memset(&e, 0, sizeof(e)); /* All bytes, because they are a key. */
    e.address.s6_addr[10] = e.address.s6_addr[11] = 0xff;
    memcpy(&e.address.s6_addr[12], &address, sizeof(address));
    e.port = (uint16_t)port;
    return e;
}

/* ---- The table ---- */

/* A line such as "0: 0100007F:08AE 0100007F:9C40 01 ...": the addresses of this end and of the
 * peer's in words as they are in memory, the ports, the state. */
static bool read_line(const char *line, int port, end_point *out)
{
    enum { ESTABLISHED = 1 };
    char own[40], theirs[40];
    unsigned own_port, port_there, state, word[4];
    if (sscanf(line, " %*d: %39[0-9A-Fa-f]:%x %39[0-9A-Fa-f]:%x %x", own, &own_port, theirs,
               &port_there, &state) != 5 ||
        state != ESTABLISHED || (int)own_port != port)
        return false;
    if (strlen(theirs) == 8 && sscanf(theirs, "%8x", &word[0]) == 1) {
        *out = of_ipv4(word[0], port_there);
        return true;
    }
    if (strlen(theirs) != 32 ||
        sscanf(theirs, "%8x%8x%8x%8x", &word[0], &word[1], &word[2], &word[3]) != 4)
        return false;
    memset(out, 0, sizeof(*out));
    memcpy(&out->address, word, sizeof(word));
    out->port = (uint16_t)port_there;
    return true;
}

static void read_file(const char *path, int port, leat_connections *c)
{
    char line[512];
    FILE *f = fopen(path, "re");
    if (!f) {
        c->unknown |= errno != ENOENT;
        return;
    }
    while (fgets(line, sizeof(line), f)) {
        end_point e;
        if (read_line(line, port, &e))
            leat_map_put_n(&c->open, &e, sizeof(e), c);
    }
    c->unknown |= ferror(f) != 0;
    fclose(f);
}

leat_connections *leat_connections_read(int port)
{
    leat_connections *c = leat_new(leat_connections);
    read_file("/proc/self/net/tcp", port, c);
    read_file("/proc/self/net/tcp6", port, c);
    return c;
}

void leat_connections_free(leat_connections *c)
{
    leat_map_release(&c->open);
    free(c);
}

/* ---- Names of peers ---- */

/* "ipv4:127.0.0.1:40312", "ipv6:[::1]:40312", or, in newer versions of gRPC,
 * "ipv6:%5B::1%5D:40312"; an address may end with a zone, "%eth0" or "%25eth0". */
static bool parse_peer(const char *peer, end_point *out)
{
    const char *colon = strrchr(peer, ':');
    char host[80];
    bool v4 = strncmp(peer, "ipv4:", 5) == 0;
    if (!colon || (!v4 && strncmp(peer, "ipv6:", 5) != 0) || colon - peer < 6)
        return false;
    const char *from = peer + 5;
    from += *from == '[' ? 1 : strncasecmp(from, "%5B", 3) == 0 ? 3 : 0;
    size_t n = strcspn(from, "]%");
    if (n > (size_t)(colon - from))
        n = (size_t)(colon - from);
    if (n >= sizeof(host))
        return false;
    memcpy(host, from, n);
    host[n] = 0;
    unsigned port = (unsigned)strtoul(colon + 1, NULL, 10);
    struct in_addr a;
    if (v4 && inet_pton(AF_INET, host, &a) == 1) {
        *out = of_ipv4(a.s_addr, port);
        return true;
    }
    memset(out, 0, sizeof(*out));
    out->port = (uint16_t)port;
    return !v4 && inet_pton(AF_INET6, host, &out->address) == 1;
}

bool leat_connections_has(const leat_connections *c, const char *peer)
{
    end_point e;
    return parse_peer(peer, &e) && (c->unknown || leat_map_get_n(&c->open, &e, sizeof(e)));
}
