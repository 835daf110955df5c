/* reply.c -- requests and replies of the services that are messages of protobuf-c. */
#include <stdlib.h>

#include "cluster/worker.h"
#include "proto/wire.h"

void leat_reply_message(leat_server_call *a, leat_status status, const void *m)
{
    leat_outgoing o = {0};
    if (!status && m)
        status = leat_proto_pack(m, &o.text);
    leat_server_call_reply(a, status, &o);
}

leat_status leat_request_message(const ProtobufCMessageDescriptor *d, const leat_incoming *in,
                                 ProtobufCMessage **out)
{
    void *copy;
    const void *bytes;
    LEAT_TRY(leat_incoming_flat(in, &bytes, &copy));
    leat_status s = leat_proto_unpack(d, bytes, in->size, out);
    free(copy);
    return s;
}
