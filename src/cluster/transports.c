/* transports.c -- the list of transports, in order of preference. */
#include <stdio.h>
#include <string.h>

#include "cluster/transport_int.h"

extern const leat_transport leat_transport_local, leat_transport_shm, leat_transport_socket,
    leat_transport_grpc;

static const leat_transport *const built_in[] = {
#if LEAT_CLUSTER
    &leat_transport_local,  /* Between servers of one program. */
    &leat_transport_shm,    /* Between Leat tasks of one machine. */
    &leat_transport_socket, /* Between Leat tasks. */
#endif
    &leat_transport_grpc, /* Between all tasks, TensorFlow's among them. */
    NULL,
};
const leat_transport *const *leat_transports = built_in;

leat_status leat_transports_check(void)
{
    int n = 0, by_address = 0;
    for (; leat_transports[n]; n++) {
        const leat_transport *t = leat_transports[n];
        LEAT_REQUIRE(n < LEAT_TRANSPORTS_MAX, INTERNAL, "There are more than %d transports",
                     LEAT_TRANSPORTS_MAX);
        LEAT_REQUIRE(t->name && strlen(t->name) < sizeof(((leat_offer *)0)->transport), INTERNAL,
                     "Transport %d has no name, or one that is too long", n);
        const char *lacks = !t->listen                  ? "listen"
                            : !t->stop                  ? "stop"
                            : !t->open                  ? "open"
                            : t->by_address && !t->port ? "port"
                                                        : NULL;
        LEAT_REQUIRE(!lacks, INTERNAL, "Transport %s has no function \"%s\"", t->name, lacks);
        by_address += t->by_address;
    }
    LEAT_REQUIRE(by_address == 1, INTERNAL,
                 "One transport has to be spoken by every address, not %d of them", by_address);
    return NULL;
}

leat_status leat_transports_parse(const char *names, uint32_t *mask_out)
{
    uint32_t mask = 0;
    for (const char *p = names; p;) {
        size_t n = strcspn(p, ",");
        leat_strbuf known = {0};
        bool found = n == 0;
        for (int i = 0; leat_transports[i]; i++) {
            const char *name = leat_transports[i]->name;
            leat_strbuf_printf(&known, "%s%s", i ? ", " : "", name);
            if (strlen(name) == n && memcmp(name, p, n) == 0) {
                mask |= UINT32_C(1) << i;
                found = true;
            }
        }
        leat_status s = NULL;
        if (!found)
            s = leat_error(INVALID_ARGUMENT, "\"%.*s\" is no transport: there are %s", (int)n, p,
                           leat_strbuf_text(&known));
        leat_strbuf_release(&known);
        if (s)
            return s;
        p = p[n] ? p + n + 1 : NULL;
    }
    *mask_out = names ? mask : UINT32_MAX;
    return NULL;
}
