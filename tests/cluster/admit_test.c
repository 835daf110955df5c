/* admit_test.c -- which masters may open a session on a server: lists of tasks that are the same,
 * that are a part of each other, and that are not. */
#include "cluster/admit.h"

#include <leat/leat.h>

#include "cluster/cluster_spec.h"
#include "port.h"
#include "test.h"

/* The master of a server that was started with these tasks opens a session. */
static leat_status admit(leat_peers *p, const char *task, uint64_t incarnation, const char *spec)
{
    leat_cluster *c = NULL;
    Leat__CreateWorkerSessionRequest m = LEAT__CREATE_WORKER_SESSION_REQUEST__INIT;
    LEAT_TRY(leat_cluster_parse(spec, &c));
    m.master_task = (char *)task;
    m.master_incarnation = (int64_t)incarnation;
    m.leat_cluster = leat_cluster_to_def(c);
    leat_status s = leat_peers_admit(p, &m);
    leat__cluster_def__free_unpacked(m.leat_cluster, NULL);
    leat_cluster_free(c);
    return s;
}

static leat_peers *peers_of(const char *spec, const char *task)
{
    leat_cluster *c = NULL;
    leat_peers *p = NULL;
    CHECK_OK(leat_cluster_parse(spec, &c));
    CHECK_OK(leat_peers_new(c, NULL, &p));
    leat_peers_set_task(p, task, 1);
    leat_cluster_free(c);
    return p;
}

static const char w0[] = "/job:worker/replica:0/task:0", w1[] = "/job:worker/replica:0/task:1";

static void lists(void)
{
    leat_peers *p = peers_of("ps=a:1,b:1;worker=c:1,d:1", "/job:ps/replica:0/task:0");
    CHECK_OK(admit(p, w0, 5, "ps=a:1,b:1;worker=c:1,d:1"));
    CHECK_INT(leat_peers_find(p, w0)->incarnation, 5);
    CHECK_INT(leat_peers_find(p, w1)->incarnation, 0);
    CHECK_OK(admit(p, w0, 6, "worker=c:1,d:1;ps=a:1,b:1"));
    CHECK_INT(leat_peers_find(p, w0)->incarnation, 6);
    /* The server itself may be called by another name. */
    CHECK_OK(admit(p, w0, 7, "ps=a.example.org:1,b:1;worker=c:1,d:1"));
    /* One list may be a part of the other. */
    CHECK_OK(admit(p, w0, 8, "ps=a:1,b:1;worker=c:1"));
    CHECK_OK(admit(p, "/job:worker/replica:0/task:2", 9, "ps=a:1,b:1;worker=c:1,d:1,e:1"));
    CHECK_OK(admit(p, "/job:chief/replica:0/task:0", 9, "ps=a:1,b:1;worker=c:1,d:1;chief=e:1"));
    CHECK_ERROR(admit(p, w0, 10, "ps=a:1,x:2;worker=c:1,d:1"), FAILED_PRECONDITION,
                "/job:ps/replica:0/task:0 refuses a session of /job:worker/replica:0/task:0, which "
                "was started for another cluster: /job:ps/replica:0/task:1 is at b:1, not at x:2. "
                "The cluster of that task: \"ps=a:1,x:2;worker=c:1,d:1\"; of "
                "/job:ps/replica:0/task:0: \"ps=a:1,b:1;worker=c:1,d:1\". Start all tasks with the "
                "same lists of hosts");
    CHECK_ERROR(admit(p, w1, 10, "ps=a:1,b:1;worker=x:1,d:1"), FAILED_PRECONDITION,
                "/job:worker/replica:0/task:0 is at c:1, not at x:1");
    CHECK_ERROR(admit(p, "/job:chief/replica:0/task:0", 10, "ps=a:1,b:1;chief=c:1"),
                FAILED_PRECONDITION,
                "there is no /job:chief/replica:0/task:0, but a /job:worker/replica:0/task:1");
    CHECK_INT(leat_peers_find(p, w0)->incarnation, 8); /* not that of a master that was refused */
    leat_peers_free(p);
}

/* A list with gaps, as Kubeflow's sparse clusters have. */
static void sparse(void)
{
    leat_cluster *c = leat_cluster_new();
    leat_strbuf text = {0};
    leat_peers *p = peers_of("ps=a:1,b:1;worker=c:1,d:1,e:1", "/job:ps/replica:0/task:1");
    CHECK_OK(leat_cluster_set(c, "ps", 0, "a:1"));
    CHECK_OK(leat_cluster_set(c, "ps", 1, "b:1"));
    CHECK_OK(leat_cluster_set(c, "worker", 2, "e:1"));
    CHECK_OK(leat_cluster_set(c, "worker", 3, "f:1"));
    CHECK_OK(leat_cluster_set(c, "worker", 7, "g:1"));
    leat_cluster_print(c, &text);
    CHECK_STR(leat_strbuf_text(&text), "ps=a:1,b:1;worker[2]=e:1,f:1;worker[7]=g:1");
    leat_strbuf_release(&text);
    Leat__CreateWorkerSessionRequest m = LEAT__CREATE_WORKER_SESSION_REQUEST__INIT;
    m.master_task = "/job:worker/replica:0/task:2";
    m.leat_cluster = leat_cluster_to_def(c);
    CHECK_ERROR(leat_peers_admit(p, &m), FAILED_PRECONDITION, "there is no /job:worker");
    leat__cluster_def__free_unpacked(m.leat_cluster, NULL);
    leat_cluster_free(c);
    CHECK_OK(leat_cluster_parse("ps=a:1,b:1", &c));
    CHECK_OK(leat_cluster_set(c, "worker", 2, "e:1"));
    m.leat_cluster = leat_cluster_to_def(c);
    CHECK_OK(leat_peers_admit(p, &m));
    leat__cluster_def__free_unpacked(m.leat_cluster, NULL);
    leat_cluster_free(c);
    leat_peers_free(p);
}

/* The text of a large cluster is cut. */
static void large(void)
{
    leat_cluster *c = leat_cluster_new();
    leat_strbuf text = {0};
    for (int i = 0; i < 10000; i++)
        CHECK_OK(leat_cluster_add(c, "worker", "host.example.org:2222"));
    leat_cluster_print(c, &text);
    CHECK(text.n > 1000 && text.n < 2000);
    CHECK(strstr(leat_strbuf_text(&text), ",..."));
    leat_strbuf_release(&text);
    leat_cluster_free(c);
}

/* The master's own entry differs: the address that this process has for it is asked. */
static void own_entry(void)
{
    char spec[200], same[200], other[200];
    int port = free_port(), closed = free_port();
    leat_server *worker = NULL;
    leat_cluster *c = NULL;
    snprintf(spec, sizeof(spec), "ps=a:1;worker=127.0.0.1:%d", port);
    snprintf(same, sizeof(same), "ps=a:1;worker=localhost:%d", port);
    snprintf(other, sizeof(other), "ps=a:1;worker=127.0.0.1:%d", closed);
    CHECK_OK(leat_cluster_parse(spec, &c));
    CHECK_OK(leat_server_start(c, "worker", 0, NULL, &worker));
    leat_peers *p = peers_of(spec, "/job:ps/replica:0/task:0");
    uint64_t incarnation = 0;
    bool stopping = true;
    CHECK_OK(leat_peer_ask(leat_peers_find(p, w0), leat_now_ns() + INT64_C(10000000000),
                           &incarnation, &stopping));
    CHECK(incarnation && !stopping);
    CHECK_OK(admit(p, w0, incarnation, same));
    CHECK_ERROR(admit(p, w0, incarnation + 2, same), FAILED_PRECONDITION,
                "where another process replies");
    CHECK_ERROR(admit(p, w0, incarnation + 2, other), FAILED_PRECONDITION,
                "where another process replies");
    leat_server_free(worker);
    CHECK_ERROR(admit(p, w0, incarnation, same), UNAVAILABLE, "where nobody replies: ");
    leat_peers_free(p);
    leat_cluster_free(c);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"lists", lists}, {"sparse", sparse}, {"large", large},
               {"own_entry", own_entry});
}
