/* Any bytes as one of the messages: an error, or a message that is written and read again alike. */
#include "core/strbuf.h"
#include "proto/config.pb-c.h"
#include "proto/device.pb-c.h"
#include "proto/graph.pb-c.h"
#include "proto/wire.h"

#include <stdlib.h>
#include <string.h>

static const ProtobufCMessageDescriptor *const types[] = {
    &leat__graph_def__descriptor,    &leat__tensor_proto__descriptor,
    &leat__config_proto__descriptor, &leat__run_metadata__descriptor,
    &leat__function_def__descriptor, &leat__device_attributes__descriptor,
    &leat__op_list__descriptor,
};

static bool read_again(const ProtobufCMessageDescriptor *d, const leat_strbuf *in, leat_strbuf *out)
{
    ProtobufCMessage *m = NULL;
    leat_status s = leat_proto_unpack(d, in->s, in->n, &m);
    if (!s)
        s = leat_proto_pack(m, out);
    bool ok = !s;
    leat_status_free(s);
    leat_proto_free(m);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    const ProtobufCMessageDescriptor *d = types[data[n - 1] % (sizeof(types) / sizeof(types[0]))];
    leat_strbuf in = {(char *)data, n - 1, 0}, once = {0}, twice = {0};
    if (read_again(d, &in, &once) && (!read_again(d, &once, &twice) || once.n != twice.n ||
                                      (once.n && memcmp(once.s, twice.s, once.n) != 0)))
        abort();
    leat_strbuf_release(&once);
    leat_strbuf_release(&twice);
    return 0;
}
