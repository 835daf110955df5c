/* sessions_test.c -- what clients and masters leave behind on a server: sessions and graphs of
 * those that vanished are closed, limits are kept, and calls that nobody ends are ended.
 * LEAT_VANISHED and LEAT_KILLED say how many clients vanish and how many workers are killed while
 * the memory of the server is watched. */
#include "test.h"

#include <inttypes.h>
#include <leat/leat.h>
#include <malloc.h>
#include <pthread.h>

#include "cluster/pair.h"
#include "cluster/server.h"
#include "cluster/service.h"
#include "cluster/wire_client.h"
#include "cluster/worker.h"

static int count_of(const char *variable, int usual)
{
    const char *text = getenv(variable);
    return text && atoi(text) > 0 ? atoi(text) : usual;
}

/* Memory of this process in kB. */
typedef struct memory {
    long resident;
    long used; /* What malloc has given and was not freed; 0 where sanitizers replace malloc. */
} memory;

static memory measure(void)
{
    long pages = 0, shared;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%*d %ld %ld", &pages, &shared) == 2);
    fclose(f);
    struct mallinfo2 m = mallinfo2();
    return (memory){pages * (sysconf(_SC_PAGESIZE) / 1024), (long)((m.uordblks + m.hblkhd) / 1024)};
}

/* Soon, since what was taken out of the tables is freed afterwards, no more memory is used than
 * before, but for some pools and caches. */
static void check_flat(const char *what, int n, memory before)
{
    memory after = measure();
    for (int i = 0; i < 100 && after.used - before.used >= 500 + n / 10; i++) {
        usleep(100000);
        after = measure();
    }
    printf("%d %s: %ld kB resident, then %ld kB; %ld kB used, then %ld kB\n", n, what,
           before.resident, after.resident, before.used, after.used);
    CHECK(after.used - before.used < 500 + n / 10);
}

static leat_server *start(const leat_server_options *o)
{
    leat_server *s = NULL;
    leat_cluster *c = leat_cluster_new();
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "local", "localhost:0"));
    LEAT_DIE_ON_ERROR(leat_server_start(c, "local", 0, o, &s));
    leat_cluster_free(c);
    return s;
}

static int sessions(const leat_server *s)
{
    return leat_service_sessions(leat_server_service(s));
}

/* A graph whose tensor "one:0" may be fetched. */
static leat_graph *make_graph(char one[64])
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_scalar(g, LEAT_FLOAT, 1);
    snprintf(one, 64, "%s:0", x.node->name);
    return g;
}

/* ---- Clients ---- */

/* Clients that vanish do not keep others out; clients that are connected do, with a message that
 * names the limit. */
static void limit_of_sessions(void)
{
    enum { MOST = 5 };
    leat_server *server = start(&(leat_server_options){.max_sessions = MOST});
    char one[64];
    leat_graph *g = make_graph(one);
    wire_handle h;
    for (int i = 0; i < 4 * MOST; i++) {
        leat_channel *c = wire_connect(leat_server_target(server));
        leat_status s = NULL;
        CHECK_SOON(!(leat_status_free(s), s = wire_create(c, g, h)));
        leat_status_free(s);
        CHECK(sessions(server) <= MOST);
        leat_channel_free(c);
    }
    leat_channel *here[MOST + 1];
    for (int i = 0; i < MOST; i++) {
        leat_status s = NULL;
        here[i] = wire_connect(leat_server_target(server));
        CHECK_SOON(!(leat_status_free(s), s = wire_create(here[i], g, h)));
        leat_status_free(s);
    }
    here[MOST] = wire_connect(leat_server_target(server));
    CHECK_ERROR(
        wire_create(here[MOST], g, h), RESOURCE_EXHAUSTED,
        "/job:local/replica:0/task:0 has 5 sessions of clients that are connected, which is "
        "its limit: close some, or start it with a higher limit (leat server "
        "--max_sessions, max_sessions of leat_server_options)");
    CHECK_OK(wire_run(here[0], h, NULL, one, 0)); /* Any connection may use a handle. */
    CHECK_OK(wire_close(here[0], h));
    CHECK_OK(wire_create(here[MOST], g, h));
    for (int i = 0; i <= MOST; i++)
        leat_channel_free(here[i]);
    leat_graph_free(g);
    leat_server_free(server);
}

/* A client that is connected keeps its session while it thinks, one that comes back within the idle
 * time finds it, one that does not come back loses it. */
static void idle_sessions(void)
{
    leat_server *server = start(&(leat_server_options){.session_idle_secs = 2});
    char one[64];
    leat_graph *g = make_graph(one);
    wire_handle h;
    leat_channel *c = wire_connect(leat_server_target(server));
    CHECK_OK(wire_create(c, g, h));
    usleep(3500000);
    CHECK_OK(wire_run(c, h, NULL, one, 0));
    usleep(3500000);
    leat_channel_free(c);
    c = wire_connect(leat_server_target(server)); /* Within the idle time after the connection. */
    CHECK_OK(wire_run(c, h, NULL, one, 0));
    leat_channel_free(c);
    CHECK_INT(sessions(server), 1);
    CHECK_SOON(sessions(server) == 0);
    c = wire_connect(leat_server_target(server));
    CHECK_ERROR(wire_run(c, h, NULL, one, 0), ABORTED, "is not found");
    leat_channel_free(c);
    leat_graph_free(g);
    leat_server_free(server);
}

static void vanish(const leat_server *server, leat_graph *g, const char *fetch, int n)
{
    wire_handle h;
    for (int i = 0; i < n && !test_failures; i++) {
        leat_channel *c = wire_connect(leat_server_target(server));
        CHECK_OK(wire_create(c, g, h));
        CHECK_OK(wire_run(c, h, NULL, fetch, 0));
        leat_channel_free(c);
    }
}

static void vanished_clients(void)
{
    leat_server *server = start(&(leat_server_options){.session_idle_secs = 1});
    char one[64];
    leat_graph *g = make_graph(one);
    int n = count_of("LEAT_VANISHED", 200);
    vanish(server, g, one, n / 4);
    CHECK_SOON(sessions(server) == 0);
    memory before = measure();
    vanish(server, g, one, n - n / 4);
    CHECK_SOON(sessions(server) == 0);
    check_flat("clients vanished", n, before);
    leat_graph_free(g);
    leat_server_free(server);
}

/* A client with a partial run that waits for a queue; waits to be killed. */
static int be_client(const char *target)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_out q = leat_fifo_queue(g, -1, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
    leat_out y = leat_add(x, leat_dequeue(q));
    char feed[64], fetch[64];
    snprintf(feed, sizeof(feed), "%s:0", x.node->name);
    snprintf(fetch, sizeof(fetch), "%s:0", y.node->name);
    wire_handle session, partial;
    leat_channel *c = wire_connect(target);
    LEAT_DIE_ON_ERROR(wire_create(c, g, session));
    LEAT_DIE_ON_ERROR(wire_setup(c, session, feed, fetch, partial));
    printf("ready\n");
    fflush(stdout);
    leat_status_free(wire_run_partial(c, session, partial, feed, fetch, 0));
    return 1;
}

/* A partial run of a client that vanished ends: it does not keep the session for ever. */
static void vanished_partial_run(void)
{
    leat_server *server = start(&(leat_server_options){.session_idle_secs = 1});
    char line[64];
    task t = task_start("client", leat_server_target(server));
    CHECK(fgets(line, sizeof(line), t.says) && strcmp(line, "ready\n") == 0);
    usleep(2500000); /* The call waits by now, and keeps the session. */
    CHECK_INT(sessions(server), 1);
    task_end(&t);
    CHECK_SOON(sessions(server) == 0);
    leat_server_free(server);
}

/* ---- Masters ---- */

/* A worker: opens a session with nodes on the ps, runs a step and waits to be killed. */
static int be_worker(const char *arg)
{
    char ps[64], worker[64];
    leat_server *s = NULL;
    leat_session *session = NULL;
    if (sscanf(arg, "%63s %63s", ps, worker) != 2)
        return 2;
    leat_cluster *c = leat_cluster_new();
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "ps", ps));
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "worker", worker));
    LEAT_DIE_ON_ERROR(leat_server_start(c, "worker", 0, NULL, &s));
    leat_graph *g = leat_graph_new();
    leat_out w = {0}, y = {0};
    leat_with_device(g, "/job:ps/task:0") w =
        leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(100)));
    leat_with_device(g, "/job:worker/task:0") y = leat_neg(w);
    LEAT_DIE_ON_ERROR(leat_session_open(g, &session, .target = leat_server_target(s)));
    LEAT_DIE_ON_ERROR(leat_session_run(session, LEAT_NO_FEED, LEAT_NO_FETCH,
                                       LEAT_TARGET(leat_global_variables_initializer(g))));
    leat_tensor *v;
    for (int i = 0; i < 20; i++) {
        LEAT_DIE_ON_ERROR(
            leat_session_run(session, LEAT_NO_FEED, LEAT_FETCH({y, &v}), LEAT_NO_TARGET));
        leat_tensor_unref(v);
    }
    printf("ready\n");
    fflush(stdout);
    pause();
    return 0;
}

static void kill_workers(const char *arg, int n)
{
    for (int i = 0; i < n && !test_failures; i++) {
        char line[64];
        task t = task_start("worker", arg);
        CHECK(fgets(line, sizeof(line), t.says) && strcmp(line, "ready\n") == 0);
        task_end(&t);
    }
}

typedef struct lone_ps {
    leat_server *server;
    leat_worker *worker; /* The server's. */
    char arg[130];       /* For the role "worker". */
} lone_ps;

static lone_ps start_ps(const leat_server_options *o)
{
    lone_ps p = {0};
    leat_cluster *c = pair_cluster();
    snprintf(p.arg, sizeof(p.arg), "%s %s", leat_cluster_address(c, "ps", 0),
             leat_cluster_address(c, "worker", 0));
    LEAT_DIE_ON_ERROR(leat_server_start(c, "ps", 0, o, &p.server));
    p.worker = leat_server_worker(p.server);
    leat_cluster_free(c);
    return p;
}

/* A restarted worker takes the place of its former incarnation, whose sessions and graphs go. */
static void killed_workers(void)
{
    lone_ps p = start_ps(NULL);
    int n = count_of("LEAT_KILLED", 8), first = n / 4;
    kill_workers(p.arg, first);
    CHECK_INT(leat_worker_sessions(p.worker), 1);
    memory before = measure();
    int graphs = leat_worker_graphs(p.worker);
    kill_workers(p.arg, n - first);
    check_flat("workers were killed", n, before);
    CHECK_INT(leat_worker_sessions(p.worker), 1);
    CHECK_INT(leat_worker_graphs(p.worker), graphs);
    leat_server_free(p.server);
}

/* A worker that does not come back. One that only stands still keeps its session: its connection is
 * open. */
static void killed_for_good(void)
{
    lone_ps p = start_ps(&(leat_server_options){.session_idle_secs = 1});
    char line[64];
    task t = task_start("worker", p.arg);
    CHECK(fgets(line, sizeof(line), t.says) && strcmp(line, "ready\n") == 0);
    usleep(2500000);
    CHECK_INT(leat_worker_sessions(p.worker), 1);
    task_end(&t);
    CHECK_SOON(leat_worker_sessions(p.worker) == 0);
    CHECK_INT(leat_worker_graphs(p.worker), 0);
    leat_server_free(p.server);
}

/* A session that its master has closed, on a ps that DeleteWorkerSession did not reach, is closed
 * though the master runs and stays connected. One that the master has open stays. */
static void lost_close(void)
{
    pair p;
    pair_start(&p, &(leat_server_options){.session_idle_secs = 0.5});
    leat_worker *ps = leat_server_worker(p.ps);
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_with_device(g, "/job:ps/task:0") leat_scalar(g, LEAT_FLOAT, 1);
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker)));
    Leat__CreateWorkerSessionRequest q = LEAT__CREATE_WORKER_SESSION_REQUEST__INIT;
    q.session_handle = (char *)"closed long ago";
    q.master_task = (char *)"/job:worker/replica:0/task:0";
    q.master_incarnation = (int64_t)leat_worker_incarnation(leat_server_worker(p.worker));
    leat_channel *c = wire_connect(leat_server_target(p.ps));
    CHECK_OK(wire_send(c, LEAT_METHOD_CREATE_WORKER_SESSION, &q, NULL, NULL));
    CHECK_INT(leat_worker_sessions(ps), 2);
    CHECK_SOON(leat_worker_sessions(ps) == 1);
    usleep(1000000); /* in which the other one would be closed */
    CHECK_INT(leat_worker_sessions(ps), 1);
    leat_session_close(s);
    CHECK_SOON(leat_worker_sessions(ps) == 0);
    leat_channel_free(c);
    leat_graph_free(g);
    pair_stop(&p);
}

/* A master that replies to GetStatus, unless it is mute. */
typedef struct fake_master {
    atomic_bool mute;
    atomic_int asked;
} fake_master;
enum { FAKE_INCARNATION = 77 };

static void be_master(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    fake_master *m = arg;
    Leat__GetStatusResponse r = LEAT__GET_STATUS_RESPONSE__INIT;
    Leat__DeviceAttributes device = LEAT__DEVICE_ATTRIBUTES__INIT, *devices[] = {&device};
    leat_status s = NULL;
    device.name = (char *)"/job:worker/replica:0/task:0/device:CPU:0";
    device.device_type = (char *)"CPU";
    device.incarnation = FAKE_INCARNATION;
    r.device_attributes = devices;
    r.n_device_attributes = 1;
    if (strcmp(method, LEAT_METHOD_GET_STATUS) != 0)
        s = leat_error(UNIMPLEMENTED, "%s", method);
    else if (atomic_load(&m->mute))
        s = leat_error(UNAVAILABLE, "busy");
    atomic_fetch_add(&m->asked, 1);
    leat_reply_message(a, s, &r);
}

/* A master that was there all the time, and then does not reply once: the session's idle time began
 * when it was last heard, not with the last call of the session. */
static void master_mute_for_once(void)
{
    fake_master m = {0};
    leat_cluster *cluster = pair_cluster();
    leat_server *ps;
    leat_listener *l;
    CHECK_OK(leat_listen(leat_cluster_address(cluster, "worker", 0), NULL, be_master, &m, &l));
    CHECK_OK(
        leat_server_start(cluster, "ps", 0, &(leat_server_options){.session_idle_secs = 2}, &ps));
    Leat__CreateWorkerSessionRequest q = LEAT__CREATE_WORKER_SESSION_REQUEST__INIT;
    q.session_handle = (char *)"open";
    q.master_task = (char *)"/job:worker/replica:0/task:0";
    q.master_incarnation = FAKE_INCARNATION;
    leat_channel *c = wire_connect(leat_server_target(ps));
    CHECK_OK(wire_send(c, LEAT_METHOD_CREATE_WORKER_SESSION, &q, NULL, NULL));
    leat_channel_free(c);
    usleep(2500000); /* Longer than the session may be idle. */
    const int before = atomic_load(&m.asked);
    CHECK(before > 0);
    CHECK_INT(leat_worker_sessions(leat_server_worker(ps)), 1);
    CHECK_SOON(atomic_load(&m.asked) > before);
    atomic_store(&m.mute, true);
    const int heard = atomic_load(&m.asked);
    CHECK_SOON(atomic_load(&m.asked) > heard);
    atomic_store(&m.mute, false);
    usleep(300000); /* The session would be closed now. */
    CHECK_INT(leat_worker_sessions(leat_server_worker(ps)), 1);
    atomic_store(&m.mute, true); /* For good. */
    CHECK_SOON(leat_worker_sessions(leat_server_worker(ps)) == 0);
    leat_server_free(ps);
    leat_listener_stop(l, 0);
    leat_cluster_free(cluster);
}

static void masters_by_connection(void)
{
    lone_ps p = start_ps(
        &(leat_server_options){.session_idle_secs = 1, .max_worker_sessions = 2, .max_graphs = 3});
    leat_channel *c = wire_connect(leat_server_target(p.server)),
                 *d = wire_connect(leat_server_target(p.server));
    CHECK_OK(wire_worker_session(c, "first"));
    CHECK_OK(wire_worker_session(d, "second"));
    CHECK_ERROR(wire_worker_session(d, "third"), RESOURCE_EXHAUSTED,
                "/job:ps/replica:0/task:0 has 2 sessions of masters, which is its limit: close "
                "some, or start it with a higher limit (leat server --max_worker_sessions, "
                "max_worker_sessions of leat_server_options)");
    for (int i = 0; i < 3; i++)
        CHECK_OK(wire_register_graph(d, "second"));
    CHECK_ERROR(wire_register_graph(d, "second"), RESOURCE_EXHAUSTED,
                "has 3 registered graphs, which is its limit: run fewer different sets of fetches, "
                "close sessions, or start it with a higher limit (leat server --max_graphs, "
                "max_graphs of leat_server_options)");
    leat_channel_free(c);
    CHECK_SOON(leat_worker_sessions(p.worker) == 1);
    CHECK_INT(leat_worker_graphs(p.worker), 3);
    leat_channel_free(d);
    CHECK_SOON(leat_worker_sessions(p.worker) == 0);
    CHECK_INT(leat_worker_graphs(p.worker), 0);
    leat_server_free(p.server);
}

/* ---- Calls that nobody ends ---- */

static void tensor_that_never_comes(void)
{
    lone_ps p = start_ps(&(leat_server_options){.max_call_secs = 0.5});
    leat_channel *c = wire_connect(leat_server_target(p.server));
    leat_outgoing o = {0};
    char key[400];
    int n;
    const leat_device *d = leat_worker_devices(p.worker, &n)[0];
    snprintf(key, sizeof(key), "%s;%016" PRIx64 ";/job:worker/replica:0/task:0/device:CPU:0;x;0:0",
             d->name, d->incarnation);
    leat_recv_tensor_request_encode(&o, &(leat_recv_tensor_request){.step_id = 77});
    leat_recv_tensor_request_add_key(&o, key);
    void *reply = NULL;
    size_t size;
    leat_status s = wire_call(c, LEAT_METHOD_RECV_TENSOR, &o, &reply, &size);
    CHECK(s && strstr(leat_status_message(s), key));
    CHECK(s && strstr(leat_status_message(s), "of step 77, for more than 0.5 s, the limit of "
                                              "/job:ps/replica:0/task:0 (leat server "
                                              "--max_call_secs)"));
    CHECK_ERROR(s, DEADLINE_EXCEEDED, "ip");
    leat_channel_free(c);
    leat_server_free(p.server);
}

static void step_that_never_ends(void)
{
    pair p;
    pair_start(&p, &(leat_server_options){.max_call_secs = 0.5});
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out q, x = {0};
    leat_with_device(g, "/job:ps/task:0")
    {
        q = leat_fifo_queue(g, -1, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
        x = leat_dequeue(q);
    }
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker)));
    leat_status status = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(x));
    CHECK(status && strstr(leat_status_message(status), "RunGraph of step "));
    CHECK(status && strstr(leat_status_message(status), x.node->name));
    CHECK_ERROR(status, DEADLINE_EXCEEDED,
                "is under way on /job:ps/replica:0/task:0 for more than 0.5 s, the limit of this "
                "server (leat server --max_call_secs): it waits for ");
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&p);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return strcmp(argv[2], "client") == 0 ? be_client(argv[3]) : be_worker(argv[3]);
    return RUN(argc, argv, {"limit_of_sessions", limit_of_sessions},
               {"idle_sessions", idle_sessions}, {"vanished_clients", vanished_clients},
               {"vanished_partial_run", vanished_partial_run}, {"killed_workers", killed_workers},
               {"killed_for_good", killed_for_good}, {"lost_close", lost_close},
               {"master_mute_for_once", master_mute_for_once},
               {"masters_by_connection", masters_by_connection},
               {"tensor_that_never_comes", tensor_that_never_comes},
               {"step_that_never_ends", step_that_never_ends});
}
