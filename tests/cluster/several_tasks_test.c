/* several_tasks_test.c -- a server that serves several tasks, those that the cluster has at its
 * address: graphs are cut by process, and edges between its tasks need no message. */
#include "test.h"

#include <leat/leat.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cluster/messages/methods.h"
#include "cluster/transport_int.h"

/* ---- Counting the calls of all links ---- */
extern const leat_transport leat_transport_local, leat_transport_grpc;
static leat_transport counted[2];
static const leat_transport *const transports[] = {&counted[0], &counted[1], NULL};
static leat_link_ops plain[2], counting[2];
static atomic_int registered, runs, received;

static void count_call(leat_link *l, const char *method, leat_outgoing *request,
                       const leat_call_options *options, leat_reply_fn fn, void *arg,
                       leat_call **call_out)
{
    registered += strcmp(method, LEAT_METHOD_REGISTER_GRAPH) == 0;
    runs += strcmp(method, LEAT_METHOD_RUN_GRAPH) == 0;
    received += strcmp(method, LEAT_METHOD_RECV_TENSOR) == 0 ||
                strcmp(method, LEAT_METHOD_RECV_TENSORS) == 0 ||
                strcmp(method, LEAT_METHOD_SEND_TENSORS) == 0;
    plain[l->ops - counting].call(l, method, request, options, fn, arg, call_out);
}

static void count_on(int i, leat_link *l)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!plain[i].call) {
        plain[i] = counting[i] = *l->ops;
        counting[i].call = count_call;
    }
    pthread_mutex_unlock(&lock);
    l->ops = &counting[i];
}

static leat_status open_local(const leat_link_target *to, leat_link **out)
{
    LEAT_TRY(leat_transport_local.open(to, out));
    count_on(0, *out);
    return NULL;
}

static leat_status open_grpc(const leat_link_target *to, leat_link **out)
{
    LEAT_TRY(leat_transport_grpc.open(to, out));
    count_on(1, *out);
    return NULL;
}

static void count_calls(void)
{
    counted[0] = leat_transport_local;
    counted[0].open = open_local;
    counted[1] = leat_transport_grpc;
    counted[1].open = open_grpc;
    leat_transports = transports;
}

static void count_from_here(void)
{
    registered = runs = received = 0;
}

/* ---- A process with two tasks of job ps, and one with a worker ---- */
static leat_cluster *cluster;
static leat_server *ps, *worker;

static const char *free_address(char out[64])
{
    leat_server *probe;
    CHECK_OK(leat_server_start_local(&probe));
    snprintf(out, 64, "%s", leat_server_target(probe) + strlen("grpc://"));
    leat_server_free(probe);
    return out;
}

static void start(const leat_server_options *options)
{
    leat_status s = NULL;
    ps = worker = NULL;
    /* Where another process has taken a port meanwhile, others are tried. */
    for (int i = 0; i < 20 && !worker; i++) {
        char address[64];
        leat_status_free(s);
        leat_server_free(ps);
        leat_cluster_free(cluster);
        ps = NULL;
        cluster = leat_cluster_new();
        free_address(address);
        CHECK_OK(leat_cluster_add(cluster, "ps", address));
        CHECK_OK(leat_cluster_add(cluster, "ps", address));
        CHECK_OK(leat_cluster_add(cluster, "worker", free_address(address)));
        s = leat_server_start(cluster, "ps", 0, options, &ps);
        if (!s)
            s = leat_server_start(cluster, "worker", 0, options, &worker);
    }
    LEAT_DIE_ON_ERROR(s);
}

static void stop(void)
{
    leat_server_free(worker);
    leat_server_free(ps);
    leat_cluster_free(cluster);
    cluster = NULL;
}

/* ---- A graph that goes from task to task: ((x + 1) * 2 - 3)^2 ---- */
typedef struct chain {
    leat_graph *g;
    leat_out x, y;
} chain;

static chain chain_new(void)
{
    chain c = {.g = leat_graph_new()};
    leat_out one, two, three;
    leat_with_device(c.g, "/job:worker/task:0")
    {
        c.x = leat_placeholder(c.g, LEAT_FLOAT, leat_shape());
        one = leat_scalar(c.g, LEAT_FLOAT, 1);
    }
    leat_with_device(c.g, "/job:ps/task:0")
    {
        two = leat_scalar(c.g, LEAT_FLOAT, 2);
        c.y = leat_mul(leat_add(c.x, one), two);
    }
    leat_with_device(c.g, "/job:ps/task:1")
    {
        three = leat_scalar(c.g, LEAT_FLOAT, 3);
        c.y = leat_sub(c.y, three);
    }
    leat_with_device(c.g, "/job:ps/task:0") c.y = leat_square(c.y);
    return c;
}

static void run_chain(leat_session *s, const chain *c, float x)
{
    leat_tensor *in = leat_scalar_float(x), *out = NULL;
    CHECK_OK(leat_session_run(s, LEAT_FEED({c->x, in}), LEAT_FETCH({c->y, &out}), LEAT_NO_TARGET));
    CHECK_NEAR(out ? leat_tensor_at(out, 0) : NAN, (2 * x - 1) * (2 * x - 1), 1e-5);
    leat_tensor_unref(out);
    leat_tensor_unref(in);
}

/* Two processes, so one part is registered, and one run is called for. The one message of a step
 * from process to process is x + 1; the fetched value comes by another. Tasks 0 and 1 of job ps
 * send each other two tensors, of which nobody else hears. */
static void cut_by_process(void)
{
    enum { STEPS = 20 };
    leat_session *s;
    start(NULL);
    chain c = chain_new();
    CHECK_OK(leat_session_open(c.g, &s, .target = leat_server_target(worker), .timeout_ms = 20000));
    count_from_here();
    run_chain(s, &c, 5);
    CHECK_INT(registered, 1);
    count_from_here();
    for (int i = 0; i < STEPS; i++)
        run_chain(s, &c, (float)i);
    CHECK_INT(registered, 0);
    CHECK_INT(runs, STEPS);
    CHECK_INT(received, 2 * STEPS);
    leat_session_close(s);
    leat_graph_free(c.g);
    stop();
}

/* The tensors of a wave are received by one call, whichever tasks of a process send or receive
 * them: x and 2x go to the two tasks of job ps, x + 1 and 2x + 3 come back. */
static void grouped_by_process(void)
{
    enum { STEPS = 20 };
    leat_session *s;
    start(NULL);
    leat_graph *g = leat_graph_new();
    leat_out x, twice, a, b, y;
    leat_with_device(g, "/job:worker/task:0")
    {
        x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
        twice = leat_add(x, x);
    }
    leat_with_device(g, "/job:ps/task:0") a = leat_add(x, leat_scalar(g, LEAT_FLOAT, 1));
    leat_with_device(g, "/job:ps/task:1") b = leat_add(twice, leat_scalar(g, LEAT_FLOAT, 3));
    leat_with_device(g, "/job:worker/task:0") y = leat_mul(a, b);
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(worker), .timeout_ms = 20000));
    for (int i = 0; i <= STEPS; i++) {
        leat_tensor *in = leat_scalar_float((float)i), *out = NULL;
        CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
        CHECK_NEAR(out ? leat_tensor_at(out, 0) : NAN, (i + 1) * (2 * i + 3), 0);
        leat_tensor_unref(out);
        leat_tensor_unref(in);
        if (i == 0)
            count_from_here();
    }
    CHECK_INT(runs, STEPS);
    CHECK_INT(received, 2 * STEPS);
    leat_session_close(s);
    leat_graph_free(g);
    stop();
}

/* Driven from the process with the two tasks, with the worker left out: nothing is called. */
static void within_one_process(void)
{
    static const char *const filters[] = {"/job:ps", NULL};
    leat_session *s;
    leat_tensor *t = NULL;
    start(NULL);
    leat_graph *g = leat_graph_new();
    leat_out v, w, sum;
    leat_with_device(g, "/job:ps/task:1") v = leat_variable(g, "v", leat_scalar(g, LEAT_FLOAT, 40));
    leat_with_device(g, "/job:ps/task:0") w = leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 2));
    leat_with_device(g, "/job:ps/task:0") sum = leat_add(v, w);
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(ps), .timeout_ms = 20000,
                               .device_filters = filters));
    int n;
    const char *const *devices = leat_session_devices(s, &n);
    CHECK_INT(n, 2);
    CHECK_STR(devices[0], "/job:ps/replica:0/task:0/device:CPU:0");
    CHECK_STR(devices[1], "/job:ps/replica:0/task:1/device:CPU:0");
    count_from_here();
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({sum, &t}), LEAT_NO_TARGET));
    CHECK_NEAR(t ? leat_tensor_at(t, 0) : NAN, 42, 0);
    CHECK_INT(registered + runs + received, 0);
    leat_tensor_unref(t);
    leat_session_close(s);
    leat_graph_free(g);
    stop();
}

/* A filter that names one of two tasks leaves the devices of the other one out. */
static void filtered(void)
{
    static const char *const filters[] = {"/job:ps/task:1", NULL};
    leat_session *s;
    leat_tensor *t = NULL;
    start(NULL);
    chain c = chain_new();
    leat_out y;
    leat_with_device(c.g, "/job:ps/task:1") y = leat_neg(leat_scalar(c.g, LEAT_FLOAT, 7));
    CHECK_OK(leat_session_open(c.g, &s, .target = leat_server_target(worker), .timeout_ms = 20000,
                               .device_filters = filters));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    CHECK_NEAR(t ? leat_tensor_at(t, 0) : NAN, -7, 0);
    leat_tensor_unref(t);
    leat_tensor *x = leat_scalar_float(1);
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({c.x, x}), LEAT_FETCH({c.y, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "/job:ps/task:0");
    leat_tensor_unref(x);
    leat_session_close(s);
    leat_graph_free(c.g);
    stop();
}

/* Every task is found at its address, and a server that was started for one of them alone is told
 * from one that serves both. */
static void checked(void)
{
    leat_probe *probes;
    int n;
    start(NULL);
    CHECK_OK(leat_cluster_check(cluster, &(leat_probe_options){.timeout_ms = 10000}, &probes, &n));
    CHECK_INT(n, 3);
    for (int i = 0; i < n; i++) {
        CHECK_STR(leat_reach_name(probes[i].reach), "ok");
        CHECK_INT(probes[i].devices, 1);
    }
    free(probes);
    leat_server_free(ps);
    leat_cluster *alone = leat_cluster_new();
    CHECK_OK(leat_cluster_add(alone, "ps", leat_cluster_address(cluster, "ps", 0)));
    LEAT_DIE_ON_ERROR(leat_server_start(alone, "ps", 0, NULL, &ps));
    leat_graph *g = leat_graph_new();
    leat_session *s;
    CHECK_ERROR(leat_session_open(g, &s, .target = leat_server_target(worker), .timeout_ms = 20000),
                FAILED_PRECONDITION, "has no device of /job:ps/replica:0/task:1");
    CHECK_OK(leat_cluster_check(cluster, &(leat_probe_options){.timeout_ms = 10000}, &probes, &n));
    CHECK_STR(leat_reach_name(probes[0].reach), "ok");
    CHECK(strstr(probes[1].problem, "not /job:ps/task:1"));
    free(probes);
    leat_graph_free(g);
    leat_cluster_free(alone);
    stop();
}

/* A server of two tasks ends when the tasks of other jobs are done: its own tasks do not count. */
static void joined(void)
{
    start(NULL);
    leat_graph *g = leat_graph_new();
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(worker), .timeout_ms = 20000));
    leat_session_close(s);
    leat_graph_free(g);
    leat_server_free(worker); /* says that it is done */
    worker = NULL;
    CHECK_OK(leat_server_join(ps));
    stop();
}

int main(int argc, char **argv)
{
    count_calls();
    return RUN(argc, argv, {"cut_by_process", cut_by_process},
               {"grouped_by_process", grouped_by_process},
               {"within_one_process", within_one_process}, {"filtered", filtered},
               {"checked", checked}, {"joined", joined});
}
