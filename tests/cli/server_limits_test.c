/* server_limits_test.c -- the flags of `leat server` that set limits: wrong values are refused, and
 * right ones take effect. */
#include "command.h"

#include <inttypes.h>

#include "cluster/wire_client.h"
#include "core/threadpool.h"

/* ---- Wrong values ---- */

static void refuse(const char *flag, const char *value, const char *words)
{
    char want[256];
    command c =
        command_start("env -u TF_CONFIG -u SLURM_PROCID %s/leat server --ps_hosts 127.0.0.1:1 "
                      "--job_name ps --%s '%s'",
                      LEAT_BINARY_DIR, flag, value);
    snprintf(want, sizeof(want), "--%s %s: %s", flag, value, words);
    expect(flag, command_end(c), 2, want);
}

static void wrong_values(void)
{
    static const char *const counts[] = {"max_sessions", "max_worker_sessions", "max_graphs",
                                         "max_calls"},
                             *const seconds[] = {"session_idle_secs", "max_call_secs"},
                             *const no_numbers[] = {
                                 "", "x", "-1", "2x", "1.5", "99999999999999999999", "1e400"};
    for (size_t k = 0; k < sizeof(no_numbers) / sizeof(*no_numbers); k++) {
        for (int i = 0; i < 4; i++)
            refuse(counts[i], no_numbers[k], "wants a whole number from 1");
        for (int i = 0; i < 2; i++)
            refuse(seconds[i], no_numbers[k], "wants a whole number from 0");
    }
    for (int i = 0; i < 4; i++) {
        refuse(counts[i], "0", "wants a whole number from 1");
        refuse(counts[i], "2147483648", "too large");
    }
}

/* ---- Right values ---- */

typedef struct server {
    command command;
    char target[64];
} server;

static server start(const char *flags)
{
    server s;
    int port = free_port();
    s.command = command_start("exec %s/leat server --ps_hosts 127.0.0.1:%d --job_name ps %s",
                              LEAT_BINARY_DIR, port, flags);
    CHECK(command_read(s.command, "answers at"));
    snprintf(s.target, sizeof(s.target), "grpc://127.0.0.1:%d", port);
    return s;
}

static void end(server *s)
{
    CHECK_INT(command_signal(s->command, SIGTERM), 0);
}

static void sessions_and_graphs(void)
{
    server s = start("--max_sessions 1 --max_worker_sessions 2 --max_graphs 3");
    leat_channel *c = wire_connect(s.target), *d = wire_connect(s.target);
    leat_graph *g = leat_graph_new();
    leat_scalar(g, LEAT_FLOAT, 1);
    wire_handle h;
    CHECK_OK(wire_create(c, g, h));
    CHECK_ERROR(wire_create(d, g, h), RESOURCE_EXHAUSTED, "has 1 sessions of clients");
    CHECK_OK(wire_worker_session(c, "first"));
    for (int i = 0; i < 3; i++)
        CHECK_OK(wire_register_graph(c, "first"));
    CHECK_ERROR(wire_register_graph(c, "first"), RESOURCE_EXHAUSTED, "has 3 registered graphs");
    CHECK_OK(wire_worker_session(c, "second"));
    CHECK_ERROR(wire_worker_session(c, "third"), RESOURCE_EXHAUSTED, "has 2 sessions of masters");
    leat_graph_free(g);
    leat_channel_free(c);
    leat_channel_free(d);
    end(&s);
}

/* The key of a tensor of the server's first device, which nobody makes. */
static void make_key(leat_channel *c, char key[400])
{
    Leat__GetStatusRequest q = LEAT__GET_STATUS_REQUEST__INIT;
    Leat__GetStatusResponse *r = NULL;
    void *reply = NULL;
    size_t n = 0;
    LEAT_DIE_ON_ERROR(wire_send(c, LEAT_METHOD_GET_STATUS, &q, &reply, &n));
    LEAT_DIE_ON_ERROR(LEAT_UNPACK(get_status_response, reply, n, &r));
    snprintf(key, 400, "%s;%016" PRIx64 ";/job:worker/replica:0/task:0/device:CPU:0;x;0:0",
             r->device_attributes[0]->name, (uint64_t)r->device_attributes[0]->incarnation);
    leat_proto_free(r);
    free(reply);
}

typedef struct waiting {
    leat_event done;
    leat_status status;
} waiting;

static void on_reply(void *arg, leat_status s, const leat_incoming *in)
{
    waiting *w = arg;
    w->status = s;
    leat_event_set(&w->done);
}

static void wait_for_tensor(leat_channel *c, int64_t step, const char *key, waiting *w)
{
    leat_outgoing o = {0};
    leat_event_init(&w->done);
    leat_recv_tensor_request_encode(&o, &(leat_recv_tensor_request){.step_id = step});
    leat_recv_tensor_request_add_key(&o, key);
    leat_channel_call(c, LEAT_METHOD_RECV_TENSOR, &o, NULL, on_reply, w, NULL);
}

/* One connection may have half of the calls. */
static void calls(void)
{
    server s = start("--max_calls 6 --max_call_secs 2");
    leat_channel *c = wire_connect(s.target);
    char key[400];
    waiting w[4];
    make_key(c, key);
    for (int i = 0; i < 4; i++)
        wait_for_tensor(c, i + 1, key, &w[i]);
    int refused = 0;
    for (int i = 0; i < 4; i++) {
        leat_event_wait(&w[i].done, 0);
        bool full = leat_status_code(w[i].status) == LEAT_RESOURCE_EXHAUSTED;
        refused += full;
        if (full)
            CHECK_ERROR(w[i].status, RESOURCE_EXHAUSTED, "which is its limit: half of the 6");
        else
            CHECK_ERROR(w[i].status, DEADLINE_EXCEEDED, "for more than 2 s, the limit of");
    }
    CHECK_INT(refused, 1);
    leat_channel_free(c);
    end(&s);
}

static leat_status come_back(const char *target, const char *handle, const char *fetch)
{
    leat_channel *c = wire_connect(target);
    leat_status s = wire_run(c, handle, NULL, fetch, 0);
    leat_channel_free(c);
    return s;
}

/* A second without its client, and the session is closed; after ten billion seconds, or with a
 * limit of 0, it is not. */
static void idle(void)
{
    static const char *const flags[] = {
        "--session_idle_secs 1", "--session_idle_secs 10000000000 --max_call_secs 9999999999",
        "--session_idle_secs 0 --max_call_secs 0"};
    leat_graph *g = leat_graph_new();
    char fetch[64];
    snprintf(fetch, sizeof(fetch), "%s:0", leat_scalar(g, LEAT_FLOAT, 1).node->name);
    for (int i = 0; i < 3; i++) {
        server s = start(flags[i]);
        leat_channel *c = wire_connect(s.target);
        wire_handle h;
        CHECK_OK(wire_create(c, g, h));
        leat_channel_free(c);
        sleep(4);
        leat_status back = come_back(s.target, h, fetch);
        if (i == 0)
            CHECK_ERROR(back, ABORTED, "is not found");
        else
            CHECK_OK(back);
        end(&s);
    }
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"wrong_values", wrong_values},
               {"sessions_and_graphs", sessions_and_graphs}, {"calls", calls}, {"idle", idle});
}
