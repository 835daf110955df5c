/* name.c -- the offer of a task that listens on shared memory. */
#include <stdio.h>
#include <string.h>

#include "cluster/shm/shm.h"

void leat_shm_name_write(const leat_shm_name *name, leat_strbuf *out)
{
    leat_strbuf_printf(out, "%s\n%s\n%016llx", name->host, name->socket,
                       (unsigned long long)name->secret);
}

leat_status leat_shm_name_read(const leat_strbuf *offer, leat_shm_name *out)
{
    leat_shm_name n = {0};
    unsigned long long secret;
    int end = -1;
    LEAT_REQUIRE(offer->n && offer->n < 256 && !memchr(offer->s, 0, offer->n) &&
                     sscanf(offer->s, "%95[^\n]\n%47[^\n]\n%16llx%n", n.host, n.socket, &secret,
                            &end) == 3 &&
                     (size_t)end == offer->n,
                 INVALID_ARGUMENT, "A peer's offer of shared memory cannot be read");
    n.secret = secret;
    *out = n;
    return NULL;
}
