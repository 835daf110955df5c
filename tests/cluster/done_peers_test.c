/* done_peers_test.c -- when a server ends because the others are done: tasks are real processes
 * that are told to end, started again and killed, and strangers call Done in their name. */
#include "cluster/train_task.h"

#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/transport.h"
#include "core/threadpool.h"
#include "proto/cluster.pb-c.h"
#include "proto/wire.h"

/* ---- A task: --role JOB "INDEX PS WORKERS" ---- */

/* A ps waits until it is not needed any more. A worker opens a session on the ps, as one that
 * trains does, unless its job is "quiet"; it ends by SIGTERM. */
static int serve(const char *role, const char *arg)
{
    const char *job = strcmp(role, "quiet") == 0 ? "worker" : role;
    int index, got;
    char ps[64], workers[128];
    sigset_t term;
    leat_cluster *c = leat_cluster_new();
    leat_server *s = NULL;
    if (sscanf(arg, "%d %63s %127s", &index, ps, workers) != 3)
        return 2;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    leat_log_set_sink(on_log, NULL, LEAT_LOG_WARNING);
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "ps", ps));
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "worker", workers));
    LEAT_DIE_ON_ERROR(leat_server_start(c, job, index, NULL, &s));
    printf("ready\n");
    fflush(stdout);
    if (strcmp(job, "ps") == 0) {
        LEAT_DIE_ON_ERROR(leat_server_join(s));
    } else {
        leat_graph *g = leat_graph_new();
        leat_session *session = NULL;
        if (job == role)
            LEAT_DIE_ON_ERROR(
                leat_session_open(g, &session, .target = leat_server_target(s),
                                  .device_filters = (const char *const[]){"/job:ps", NULL}));
        printf("session\n");
        fflush(stdout);
        sigwait(&term, &got);
        leat_session_close(session);
        leat_graph_free(g);
    }
    leat_server_free(s);
    leat_cluster_free(c);
    return 0;
}

static char ps_address[64], worker_address[2][64], workers[128];

static void make_cluster(void)
{
    snprintf(ps_address, 64, "127.0.0.1:%d", free_port());
    for (int i = 0; i < 2; i++)
        snprintf(worker_address[i], 64, "127.0.0.1:%d", free_port());
    snprintf(workers, sizeof(workers), "%s,%s", worker_address[0], worker_address[1]);
}

static void start(child *t, const char *job, int index)
{
    char arg[300];
    snprintf(arg, sizeof(arg), "%d %s %s", index, ps_address, workers);
    begin(t, job, arg);
    CHECK(until(t, strcmp(job, "ps") == 0 ? "ready" : "session", 20));
}

static void stop(child *t)
{
    kill(t->task.pid, SIGTERM);
    ends(t, 20);
}

static bool runs(const child *t)
{
    return waitpid(t->task.pid, NULL, WNOHANG) == 0;
}

static child ps, w[2];

static void start_three(void)
{
    make_cluster();
    start(&ps, "ps", 0);
    for (int i = 0; i < 2; i++)
        start(&w[i], "worker", i);
}

static const char all_done[] = "/job:ps/replica:0/task:0 ends, since all tasks of other jobs are "
                               "done: /job:worker/replica:0/task:0, /job:worker/replica:0/task:1";

/* The workers are done: the ps says so, and ends. */
static void ps_ends(void)
{
    CHECK(until(&ps, all_done, 20));
    ends(&ps, 20);
}

/* ---- Calls by strangers ---- */

static leat_status call(const char *address, const char *method, const void *message, void **reply,
                        size_t *n)
{
    leat_channel *c;
    leat_outgoing request = {0};
    leat_call_options o = {.deadline_ns = leat_now_ns() + INT64_C(10000000000)};
    if (message)
        LEAT_TRY(leat_put_fields(&request.text, method, message));
    LEAT_TRY(leat_channel_open(address, "", NULL, &c));
    leat_status s = leat_channel_call_wait(c, method, &request, &o, reply, n);
    leat_channel_free(c);
    return s;
}

static uint64_t incarnation_of(const char *address)
{
    void *reply = NULL;
    size_t n;
    Leat__GetStatusResponse *r = NULL;
    CHECK_OK(call(address, LEAT_METHOD_GET_STATUS, NULL, &reply, &n));
    CHECK_OK(LEAT_UNPACK(get_status_response, reply, n, &r));
    uint64_t x = r && r->leat ? r->leat->incarnation : 0;
    CHECK(x);
    leat_proto_free(r);
    free(reply);
    return x;
}

static leat_status say_done(const char *task, uint64_t incarnation)
{
    void *reply = NULL;
    size_t n;
    Leat__DoneRequest q = LEAT__DONE_REQUEST__INIT;
    q.task = (char *)task;
    q.incarnation = incarnation;
    leat_status s = call(ps_address, LEAT_METHOD_DONE, &q, &reply, &n);
    free(reply);
    return s;
}

/* ---- Cases ---- */

static void all_end_one_by_one(void)
{
    start_three();
    stop(&w[1]);
    CHECK(runs(&ps));
    stop(&w[0]);
    ps_ends();
}

/* Each worker is told to end, and started again before the other one is. */
static void rolling_restart(void)
{
    start_three();
    for (int k = 0; k < 4; k++) {
        stop(&w[k % 2]);
        start(&w[k % 2], "worker", k % 2);
    }
    usleep(500000); /* in which the ps would have ended */
    CHECK(runs(&ps));
    stop(&w[0]);
    stop(&w[1]);
    ps_ends();
}

/* A worker that was started again, but has not called the ps yet, is asked. */
static void back_but_unheard(void)
{
    start_three();
    stop(&w[1]);
    start(&w[1], "quiet", 1);
    stop(&w[0]);
    CHECK(until(&ps, "/job:worker/replica:0/task:1 at 127.0.0.1:", 20));
    usleep(500000); /* in which the ps would have ended */
    CHECK(runs(&ps));
    task_end(&w[1].task);
    task_end(&ps.task);
}

static void forged(void)
{
    static const char w0_name[] = "/job:worker/replica:0/task:0",
                      w1_name[] = "/job:worker/replica:0/task:1";
    make_cluster();
    start(&ps, "ps", 0);
    /* Before the workers are there. */
    CHECK_ERROR(say_done(w0_name, 7), FAILED_PRECONDITION, "and nobody replies at 127.0.0.1:");
    CHECK_ERROR(say_done(w0_name, 0), FAILED_PRECONDITION, "which was not heard of before");
    start(&w[0], "worker", 0);
    start(&w[1], "worker", 1);
    CHECK_ERROR(say_done(w0_name, 0), FAILED_PRECONDITION, "but another one replies at 127.0.0.1:");
    CHECK_ERROR(say_done(w0_name, 12345), FAILED_PRECONDITION,
                "Done is refused: it names incarnation 0000000000003039 of "
                "/job:worker/replica:0/task:0, but another one replies at 127.0.0.1:");
    /* Even somebody who has asked the worker for its incarnation. */
    CHECK_ERROR(say_done(w0_name, incarnation_of(worker_address[0])), FAILED_PRECONDITION,
                "/job:worker/replica:0/task:0 at 127.0.0.1:");
    CHECK_ERROR(say_done(w1_name, incarnation_of(worker_address[1])), FAILED_PRECONDITION,
                "is not stopping");
    CHECK_ERROR(say_done("/job:ps/replica:0/task:0", incarnation_of(ps_address)), INVALID_ARGUMENT,
                "is no other task of this cluster");
    CHECK_ERROR(say_done("/job:worker/replica:0/task:9", 1), INVALID_ARGUMENT,
                "is no other task of this cluster");
    CHECK_ERROR(say_done("", 1), INVALID_ARGUMENT, "is no other task of this cluster");
    /* The incarnation of a worker that was started again. */
    uint64_t before = incarnation_of(worker_address[0]);
    stop(&w[0]);
    start(&w[0], "worker", 0);
    CHECK_ERROR(say_done(w0_name, before), FAILED_PRECONDITION, "but another one replies");
    CHECK(incarnation_of(worker_address[0]) != before);
    CHECK(runs(&ps));
    stop(&w[0]);
    stop(&w[1]);
    ps_ends();
}

/* A worker whose Done was heard, and that was killed before it was asked, is done. */
static void killed_while_it_ends(void)
{
    start_three();
    uint64_t last = incarnation_of(worker_address[0]);
    task_end(&w[0].task);
    CHECK_OK(say_done("/job:worker/replica:0/task:0", last));
    stop(&w[1]);
    ps_ends();
}

/* ---- The limit for the end of a process ---- */

static int never_ends(void)
{
    leat_process_end_within(0);
    leat_process_end_within(100000);
    printf("ready\n");
    fflush(stdout);
    dup2(1, 2);
    for (;;)
        pause();
    return 0;
}

static void ends_at_the_latest(void)
{
    static child t;
    int status;
    begin(&t, "stuck", "");
    CHECK(until(&t, "ready", 10));
    CHECK(until(&t, "Something under way did not end in time: it is given up", 20));
    CHECK_INT(waitpid(t.task.pid, &status, 0), t.task.pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    fclose(t.task.says);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return strcmp(argv[2], "stuck") == 0 ? never_ends() : serve(argv[2], argv[3]);
    return RUN(argc, argv, {"all_end_one_by_one", all_end_one_by_one},
               {"rolling_restart", rolling_restart}, {"back_but_unheard", back_but_unheard},
               {"forged", forged}, {"killed_while_it_ends", killed_while_it_ends},
               {"ends_at_the_latest", ends_at_the_latest});
}
