/* drain_test.c -- what happens before a ps ends that was told to: sessions that save hold it, for
 * as long as its grace allows, be their master in this process or in another one. */
#include "test.h"

#include <dirent.h>
#include <leat/leat.h>
#include <pthread.h>
#include <time.h>

#include "cluster/echo.h"
#include "cluster/server.h"
#include "cluster/wire_client.h"
#include "cluster/worker_int.h"
#include "port.h"
#include "runtime/session_int.h"

static leat_server *ps, *worker;
static leat_cluster *cluster;
static char dir[64], target[64]; /* target: of sessions */

typedef struct model {
    leat_graph *g;
    leat_out step, more;
} model;

static model make_model(void)
{
    model m = {.g = leat_graph_new()};
    leat_with_device(m.g, "/job:ps/task:0")
    {
        m.step = leat_global_step(m.g);
        m.more = leat_assign_add(leat_variable_ref(m.step), leat_scalar(m.g, LEAT_INT64, 1));
    }
    return m;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* remote: sessions call the worker's server, as if it were another process. */
static void start(bool remote)
{
    char spec[100];
    int port = free_port();
    snprintf(dir, sizeof(dir), "/tmp/leat_drain_test_XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    snprintf(spec, sizeof(spec), "ps=127.0.0.1:%d;worker=127.0.0.1:%d", free_port(), port);
    CHECK_OK(leat_cluster_parse(spec, &cluster));
    CHECK_OK(leat_server_start(cluster, "ps", 0, NULL, &ps));
    CHECK_OK(leat_server_start(cluster, "worker", 0, NULL, &worker));
    snprintf(target, sizeof(target), "grpc://%s:%d", remote ? "localhost" : "127.0.0.1", port);
}

/* Whether there is a checkpoint of that step. */
static bool is_saved(long long step)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/model.ckpt-%lld.index", dir, step);
    return access(path, R_OK) == 0;
}

static void stop(void)
{
    char path[600];
    leat_server_free(worker);
    leat_server_free(ps);
    leat_cluster_free(cluster);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

static void *stop_ps(void *took)
{
    double began = now();
    leat_server_stop(ps, took ? (int64_t)(*(double *)took * 1000) : 20000);
    if (took)
        *(double *)took = now() - began;
    return NULL;
}

/* The number of sessions on the worker's server that hold the ps. */
static int holds(void)
{
    leat_peers *peers = leat_server_worker(worker)->peers;
    return atomic_load(&leat_peers_find(peers, "/job:ps/replica:0/task:0")->holds);
}

static void hold(leat_channel *c, const char *handle, result *r)
{
    Leat__HoldRequest q = LEAT__HOLD_REQUEST__INIT;
    leat_outgoing o = {0};
    q.session_handle = (char *)handle;
    leat_event_init(&r->done);
    CHECK_OK(leat_put_fields(&o.text, LEAT_METHOD_HOLD, &q));
    leat_channel_call(c, LEAT_METHOD_HOLD, &o, NULL, on_result, r, NULL);
}

/* A supervisor saves, by a thread of its own, while the program runs no step. */
static void supervisor_saves(bool remote)
{
    leat_supervisor *sv = NULL;
    leat_session *s = NULL;
    start(remote);
    model m = make_model();
    CHECK_OK(leat_supervisor_open(m.g, &sv, .is_chief = true, .logdir = dir));
    CHECK_OK(leat_supervisor_session(sv, target, &s));
    CHECK_SOON(is_saved(0));
    for (int i = 0; i < 7; i++)
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)));
    CHECK(!is_saved(7));
    CHECK_SOON(holds() == 1);
    double took = 20;
    stop_ps(&took);
    CHECK(is_saved(7));
    CHECK(took < 10);
    leat_status_free(leat_supervisor_close(sv));
    leat_graph_free(m.g);
    stop();
}

/* A monitored session saves after its next run. */
static void monitored_saves(bool remote)
{
    leat_monitored *ms = NULL;
    pthread_t thread;
    double took = 20;
    start(remote);
    model m = make_model();
    CHECK_OK(leat_monitored_open(m.g, &ms, .master = target, .is_chief = true,
                                 .checkpoint_dir = dir, .max_wait_secs = 1));
    for (int i = 0; i < 5; i++)
        CHECK_OK(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)));
    CHECK(is_saved(0) && !is_saved(5));
    CHECK_SOON(holds() == 1);
    CHECK_INT(pthread_create(&thread, NULL, stop_ps, &took), 0);
    CHECK_SOON(leat_session_ending(leat_monitored_session(ms)) != NULL);
    CHECK_STR(leat_session_ending(leat_monitored_session(ms)), "/job:ps/replica:0/task:0");
    CHECK(!is_saved(6));
    CHECK_OK(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)));
    CHECK(is_saved(6));
    pthread_join(thread, NULL);
    CHECK(took < 10);
    /* The ps is gone now. */
    CHECK_ERROR(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)),
                DEADLINE_EXCEEDED, remote ? target : "/job:ps/replica:0/task:0");
    leat_status_free(leat_monitored_close(ms));
    leat_graph_free(m.g);
    stop();
}

/* A chief that runs no step does not keep the ps beyond its grace; one without a directory, and one
 * that never saves, do not hold it at all. */
static void grace_is_over(bool remote)
{
    for (int i = 0; i < 3; i++) {
        leat_monitored *ms = NULL;
        double took = 2;
        start(remote);
        model m = make_model();
        CHECK_OK(leat_monitored_open(m.g, &ms, .master = target, .is_chief = true,
                                     .checkpoint_dir = i == 1 ? NULL : dir,
                                     .save_checkpoint_secs = i == 2 ? 0 : 600));
        CHECK_SOON(holds() == (i == 0));
        stop_ps(&took);
        CHECK(i == 0 ? took >= 2 && took < 10 : took < 1.9);
        leat_status_free(leat_monitored_close(ms));
        leat_graph_free(m.g);
        stop();
    }
}

/* The ps waits no longer for a session that is closed, nor for a worker that ends. */
static void lets_go(bool remote)
{
    for (int i = 0; i < 2; i++) {
        leat_session *s = NULL;
        pthread_t thread;
        double took = 20;
        start(remote);
        model m = make_model();
        CHECK_OK(leat_session_open(m.g, &s, .target = target));
        leat_session_hold(s);
        CHECK(!leat_session_ending(s));
        CHECK_SOON(holds() == 1);
        CHECK_INT(pthread_create(&thread, NULL, stop_ps, &took), 0);
        CHECK_SOON(leat_session_ending(s) != NULL);
        if (i)
            leat_server_stop(worker, 0);
        else
            leat_session_close(s);
        pthread_join(thread, NULL);
        CHECK(took < 10);
        if (i)
            leat_session_close(s);
        leat_graph_free(m.g);
        stop();
    }
}

/* A client that is lost holds nothing. A second call of Hold ends the first. */
static void client_gone(void)
{
    wire_handle handle;
    double took = 20;
    result first, second;
    start(true);
    model m = make_model();
    leat_channel *c = wire_connect(target);
    CHECK_OK(wire_create(c, m.g, handle));
    hold(c, handle, &first);
    hold(c, handle, &second);
    leat_event_wait(&first.done, 0);
    CHECK_ERROR(first.status, ABORTED, "The client has called Hold again");
    CHECK(!leat_event_is_set(&second.done));
    leat_channel_free(c);
    CHECK_ERROR(second.status, CANCELLED, "");
    CHECK_SOON(holds() == 0);
    stop_ps(&took);
    CHECK(took < 1.9);
    leat_graph_free(m.g);
    stop();
}

#define BOTH(name)                                                                                 \
    static void name##_here(void)                                                                  \
    {                                                                                              \
        name(false);                                                                               \
    }                                                                                              \
    static void name##_remote(void)                                                                \
    {                                                                                              \
        name(true);                                                                                \
    }
BOTH(supervisor_saves)
BOTH(monitored_saves)
BOTH(grace_is_over)
BOTH(lets_go)
#define CASES(name)                                                                                \
    {#name, name##_here},                                                                          \
    {                                                                                              \
#name "_remote", name##_remote                                                             \
    }

int main(int argc, char **argv)
{
    return RUN(argc, argv, CASES(supervisor_saves), CASES(monitored_saves), CASES(grace_is_over),
               CASES(lets_go), {"client_gone", client_gone});
}
