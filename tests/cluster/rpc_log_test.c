/* rpc_log_test.c -- WorkerService's Logging and Tracing: the rows that a task keeps of tensors that
 * it has fetched, and the calls that read them. */
#include "test.h"

#include <leat/leat.h>

#include "cluster/rpc_log.h"
#include "cluster/messages/methods.h"
#include "cluster/tensor_wire.h"
#include "cluster/transport.h"
#include "core/threadpool.h"
#include "proto/cluster.pb-c.h"
#include "proto/wire.h"

#define PS "/job:ps/replica:0/task:0/device:CPU:0"
#define WORKER "/job:worker/replica:0/task:0/device:CPU:0"
#define KEY(name) WORKER ";0000000000000001;" PS ";" name ";0:0"

static Leat__LoggingResponse *take(leat_rpc_log *l, int64_t step)
{
    leat_strbuf b = {0};
    Leat__LoggingResponse *r = NULL;
    CHECK_OK(leat_rpc_log_take(l, step, &b));
    CHECK_OK(LEAT_UNPACK(logging_response, leat_strbuf_text(&b), b.n, &r));
    leat_strbuf_release(&b);
    return r;
}

static void rows(void)
{
    leat_rpc_log l;
    leat_rpc_log_init(&l);
    leat_rpc_log_add(&l, 7, KEY("edge_1_x"), 400, 1000000, 1000100);
    leat_rpc_log_add(&l, 7, KEY("edge_2_y"), 1 << 20, 1000000, 1001000);
    leat_rpc_log_add(&l, 8, KEY("edge_1_x"), 4, 1, 2);
    leat_rpc_log_add(&l, 7, "no key", 4, 1, 2);
    Leat__LoggingResponse *r = take(&l, 7);
    CHECK_INT(r->n_step, 1);
    CHECK_INT(r->step[0]->step_id, 7);
    CHECK_INT(r->step[0]->step_stats->n_dev_stats, 1);
    const Leat__DeviceStepStats *d = r->step[0]->step_stats->dev_stats[0];
    CHECK_STR(d->device, PS);
    CHECK_INT(d->n_node_stats, 2);
    const Leat__NodeExecStats *n = d->node_stats[0];
    CHECK_STR(n->node_name, "RecvTensor");
    CHECK_STR(n->timeline_label, "[400B] [32.000000Mb/s] edge_1_x from " WORKER " to " PS);
    CHECK_INT(n->all_start_micros, 1000000);
    CHECK_INT(n->all_end_rel_micros, 100);
    CHECK_INT(n->op_end_rel_micros, 100);
    CHECK_INT(n->output[0]->tensor_description->allocation_description->requested_bytes, 400);
    CHECK_STR(d->node_stats[1]->timeline_label,
              "[1.0MB] [8.4Gb/s] edge_2_y from " WORKER " to " PS);
    leat_proto_free(r);
    r = take(&l, 7); /* it was taken */
    CHECK_INT(r->n_step, 0);
    leat_proto_free(r);
    leat_rpc_log_clear(&l);
    r = take(&l, 8);
    CHECK_INT(r->n_step, 0);
    leat_proto_free(r);
    leat_rpc_log_release(&l);
}

/* A log that is left on and never read does not fill the memory. */
static void bounded(void)
{
    leat_rpc_log l;
    leat_rpc_log_init(&l);
    CHECK(!leat_rpc_log_on(&l));
    leat_rpc_log_turn(&l, false);
    leat_rpc_log_turn(&l, true);
    CHECK(leat_rpc_log_on(&l));
    for (int i = 0; i < 5000; i++)
        leat_rpc_log_add(&l, i, KEY("x"), 4, 1, 2);
    CHECK(l.n_rows <= 1024);
    leat_rpc_log_turn(&l, false);
    CHECK(!leat_rpc_log_on(&l));
    leat_rpc_log_release(&l);
}

static leat_status call(leat_channel *c, const char *method, const void *request, size_t *size)
{
    void *reply = NULL;
    leat_outgoing o = {0};
    LEAT_TRY(leat_put_fields(&o.text, method, request));
    leat_call_options options = {.deadline_ns = leat_now_ns() + INT64_C(20000000000)};
    leat_status s = leat_channel_call_wait(c, method, &o, &options, &reply, size);
    if (!s)
        free(reply);
    return s;
}

static void served(void)
{
    leat_server *server;
    leat_channel *c;
    size_t size = 1;
    CHECK_OK(leat_server_start_local(&server));
    CHECK_OK(leat_channel_open(leat_server_target(server) + strlen("grpc://"), "/job:local/task:0",
                               NULL, &c));
    Leat__LoggingRequest on = LEAT__LOGGING_REQUEST__INIT, fetch = LEAT__LOGGING_REQUEST__INIT;
    Leat__LoggingRequest off = LEAT__LOGGING_REQUEST__INIT, none = LEAT__LOGGING_REQUEST__INIT;
    int64_t nothing = 4711; /* a step of which there are no rows */
    on.enable_rpc_logging = on.clear = true;
    fetch.fetch_step_id = &nothing;
    fetch.n_fetch_step_id = 1;
    off.disable_rpc_logging = true;
    CHECK_OK(call(c, LEAT_METHOD_LOGGING, &on, &size));
    CHECK_OK(call(c, LEAT_METHOD_LOGGING, &fetch, &size));
    CHECK_INT(size, 0);
    CHECK_OK(call(c, LEAT_METHOD_LOGGING, &off, &size));
    CHECK_ERROR(call(c, LEAT_METHOD_TRACING, &none, &size), UNIMPLEMENTED, "Tracing");
    leat_channel_free(c);
    leat_server_free(server);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"rows", rows}, {"bounded", bounded}, {"served", served});
}
