/* drain_test.c -- what happens before a ps ends that was told to: sessions that save hold it, for
 * as long as its grace allows. */
#include "test.h"

#include <dirent.h>
#include <leat/leat.h>
#include <pthread.h>
#include <time.h>

#include "port.h"
#include "runtime/session_int.h"

static leat_server *ps, *worker;
static leat_cluster *cluster;
static char dir[64];

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

static void start(void)
{
    char spec[100];
    snprintf(dir, sizeof(dir), "/tmp/leat_drain_test_XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    snprintf(spec, sizeof(spec), "ps=127.0.0.1:%d;worker=127.0.0.1:%d", free_port(), free_port());
    CHECK_OK(leat_cluster_parse(spec, &cluster));
    CHECK_OK(leat_server_start(cluster, "ps", 0, NULL, &ps));
    CHECK_OK(leat_server_start(cluster, "worker", 0, NULL, &worker));
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

/* A supervisor saves, by a thread of its own, while the program runs no step. */
static void supervisor_saves(void)
{
    leat_supervisor *sv = NULL;
    leat_session *s = NULL;
    start();
    model m = make_model();
    CHECK_OK(leat_supervisor_open(m.g, &sv, .is_chief = true, .logdir = dir));
    CHECK_OK(leat_supervisor_session(sv, leat_server_target(worker), &s));
    CHECK_SOON(is_saved(0));
    for (int i = 0; i < 7; i++)
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)));
    CHECK(!is_saved(7));
    double took = 20;
    stop_ps(&took);
    CHECK(is_saved(7));
    CHECK(took < 10);
    leat_status_free(leat_supervisor_close(sv));
    leat_graph_free(m.g);
    stop();
}

/* A monitored session saves after its next run. */
static void monitored_saves(void)
{
    leat_monitored *ms = NULL;
    pthread_t thread;
    double took = 20;
    start();
    model m = make_model();
    CHECK_OK(leat_monitored_open(m.g, &ms, .master = leat_server_target(worker), .is_chief = true,
                                 .checkpoint_dir = dir, .max_wait_secs = 1));
    for (int i = 0; i < 5; i++)
        CHECK_OK(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)));
    CHECK(is_saved(0) && !is_saved(5));
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
                DEADLINE_EXCEEDED, "/job:ps/replica:0/task:0");
    leat_status_free(leat_monitored_close(ms));
    leat_graph_free(m.g);
    stop();
}

/* A chief that runs no step does not keep the ps beyond its grace; one without a directory, and one
 * that never saves, do not hold it at all. */
static void grace_is_over(void)
{
    for (int i = 0; i < 3; i++) {
        leat_monitored *ms = NULL;
        double took = 2;
        start();
        model m = make_model();
        CHECK_OK(leat_monitored_open(m.g, &ms, .master = leat_server_target(worker),
                                     .is_chief = true, .checkpoint_dir = i == 1 ? NULL : dir,
                                     .save_checkpoint_secs = i == 2 ? 0 : 600));
        stop_ps(&took);
        CHECK(i == 0 ? took >= 2 && took < 10 : took < 1.9);
        leat_status_free(leat_monitored_close(ms));
        leat_graph_free(m.g);
        stop();
    }
}

/* A session that is closed lets go. */
static void closed_session(void)
{
    leat_session *s = NULL;
    pthread_t thread;
    double took = 20;
    start();
    model m = make_model();
    CHECK_OK(leat_session_open(m.g, &s, .target = leat_server_target(worker)));
    leat_session_hold(s);
    CHECK(!leat_session_ending(s));
    CHECK_INT(pthread_create(&thread, NULL, stop_ps, &took), 0);
    CHECK_SOON(leat_session_ending(s) != NULL);
    leat_session_close(s);
    pthread_join(thread, NULL);
    CHECK(took < 10);
    leat_graph_free(m.g);
    stop();
}

/* A worker that ends while the ps waits for it ends the wait. */
static void both_end(void)
{
    leat_session *s = NULL;
    pthread_t thread;
    double took = 20;
    start();
    model m = make_model();
    CHECK_OK(leat_session_open(m.g, &s, .target = leat_server_target(worker)));
    leat_session_hold(s);
    CHECK_INT(pthread_create(&thread, NULL, stop_ps, &took), 0);
    CHECK_SOON(leat_session_ending(s) != NULL);
    leat_server_stop(worker, 0);
    pthread_join(thread, NULL);
    CHECK(took < 10);
    leat_session_close(s);
    leat_graph_free(m.g);
    stop();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"supervisor_saves", supervisor_saves},
               {"monitored_saves", monitored_saves}, {"grace_is_over", grace_is_over},
               {"closed_session", closed_session}, {"both_end", both_end});
}
