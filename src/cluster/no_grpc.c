/* no_grpc.c -- in place of all transports in a library built with LEAT_CLUSTER=OFF: one that can
 * neither listen nor reach a peer, and says why. */
#include "cluster/transport_int.h"

static leat_status not_built(void)
{
    return leat_error(UNIMPLEMENTED, "This libleat was built without clusters: build it with "
                                     "-DLEAT_CLUSTER=ON, which needs gRPC (libgrpc-dev) "
                                     "and OpenSSL (libssl-dev)");
}

static leat_status start(const char *address, const leat_listen_options *options,
                         leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                         leat_endpoint **out)
{
    return not_built();
}

static leat_status open_link(const leat_link_target *to, leat_link **out)
{
    return not_built();
}

/* There is no endpoint that the two functions below could be called with. */
static void stop(leat_endpoint *e, int64_t deadline_ns) {}

static int port(const leat_endpoint *e)
{
    return 0;
}

const leat_transport leat_transport_grpc = {
    .name = "grpc",
    .by_address = true,
    .listen = start,
    .stop = stop,
    .open = open_link,
    .port = port,
};
