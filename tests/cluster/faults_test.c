/* faults_test.c -- what may go wrong around a step: a task started twice, a task of another
 * cluster, a client that is killed, a task that is stopped, a task that was started again. */
#include "test.h"

#include <leat/leat.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port.h"

static leat_cluster *ps_and_worker(void)
{
    leat_cluster *c = leat_cluster_new();
    const char *jobs[] = {"ps", "worker"};
    for (int i = 0; i < 2; i++) {
        char address[32];
        snprintf(address, sizeof(address), "127.0.0.1:%d", free_port());
        CHECK_OK(leat_cluster_add(c, jobs[i], address));
    }
    return c;
}

/* A task in a process of its own, forked before this one has threads. It starts when a byte comes
 * from `gate`, if that is not -1. */
static pid_t spawn_at(const leat_cluster *c, const char *job, int gate)
{
    char byte;
    pid_t p = fork();
    if (p)
        return p;
    if (gate >= 0 && read(gate, &byte, 1) != 1)
        _exit(1);
    leat_server *s;
    LEAT_DIE_ON_ERROR(leat_server_start(c, job, 0, NULL, &s));
    leat_status_free(leat_server_join(s));
    _exit(0);
}

static pid_t spawn(const leat_cluster *c, const char *job)
{
    return spawn_at(c, job, -1);
}

static void kill_task(pid_t p)
{
    kill(p, SIGKILL);
    waitpid(p, NULL, 0);
}

/* A variable on the ps, used by the worker. */
typedef struct model {
    leat_graph *g;
    leat_out w, init, more;
} model;

static model make_model(void)
{
    model m = {.g = leat_graph_new()};
    leat_with_device(m.g, "/job:ps/task:0")
    {
        m.w = leat_variable(m.g, "w", leat_scalar(m.g, LEAT_FLOAT, 1));
        m.more = leat_assign_add(leat_variable_ref(m.w), leat_scalar(m.g, LEAT_FLOAT, 1));
    }
    m.init = leat_global_variables_initializer(m.g);
    return m;
}

static leat_session *open_on(const leat_cluster *c, const model *m)
{
    char target[64];
    leat_session *s = NULL;
    snprintf(target, sizeof(target), "grpc://%s", leat_cluster_address(c, "worker", 0));
    CHECK_OK(leat_session_open(m->g, &s, .target = target, .timeout_ms = 20000));
    return s;
}

static void started_twice(void)
{
    leat_cluster *c = ps_and_worker();
    pid_t ps = spawn(c, "ps"), worker = spawn(c, "worker");
    model m = make_model();
    leat_session *s = open_on(c, &m); /* both tasks reply now */
    leat_server *again;
    CHECK_ERROR(leat_server_start(c, "ps", 0, NULL, &again), ALREADY_EXISTS, "is in use");
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.init)));
    leat_session_close(s);
    leat_graph_free(m.g);
    kill_task(ps);
    kill_task(worker);
    leat_cluster_free(c);
}

/* The address of the ps leads to a task of another job. */
static void wrong_spec(void)
{
    leat_cluster *c = ps_and_worker(), *other = leat_cluster_new();
    CHECK_OK(leat_cluster_add(other, "master", leat_cluster_address(c, "ps", 0)));
    pid_t ps = spawn(other, "master"), worker = spawn(c, "worker");
    model m = make_model();
    leat_session *s;
    char target[64];
    snprintf(target, sizeof(target), "grpc://%s", leat_cluster_address(c, "worker", 0));
    CHECK_ERROR(leat_session_open(m.g, &s, .target = target, .timeout_ms = 20000),
                FAILED_PRECONDITION, "was started for another cluster, job or index");
    leat_graph_free(m.g);
    kill_task(ps);
    kill_task(worker);
    leat_cluster_free(c);
    leat_cluster_free(other);
}

static double size_of(leat_session *s, leat_out size)
{
    leat_tensor *v = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({size, &v}), LEAT_NO_TARGET));
    double n = leat_tensor_at(v, 0);
    leat_tensor_unref(v);
    return n;
}

/* A client waits for two elements of a queue that has one, and is killed. Its step ends, and the
 * element is there for others. */
static void client_vanishes(void)
{
    leat_cluster *c = ps_and_worker();
    pid_t ps = spawn(c, "ps"), worker = spawn(c, "worker");
    model m = make_model();
    leat_out q, take, take2, put, size;
    leat_with_device(m.g, "/job:ps/task:0")
    {
        q = leat_fifo_queue(m.g, 10, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}),
                            .shared_name = "q");
        take = leat_dequeue(q);
        take2 = leat_dequeue_many(q, 2);
        size = leat_queue_size(q);
        put = leat_enqueue(q, leat_scalar(m.g, LEAT_FLOAT, 7));
    }
    pid_t client = fork();
    if (client == 0) {
        leat_session *s = open_on(c, &m);
        leat_status_free(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(take2)));
        _exit(0);
    }
    leat_session *s = open_on(c, &m);
    leat_tensor *v = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(put)));
    CHECK_SOON(size_of(s, size) == 0); /* the client has taken it, and waits for another */
    kill_task(client);
    CHECK_SOON(size_of(s, size) == 1);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({take, &v}), LEAT_NO_TARGET));
    CHECK(v && *(const float *)leat_tensor_data(v) == 7);
    leat_tensor_unref(v);
    leat_session_close(s);
    leat_graph_free(m.g);
    kill_task(ps);
    kill_task(worker);
    leat_cluster_free(c);
}

/* The ps is stopped: the step ends at its deadline, and steps go on when the ps does. */
static void stands_still(void)
{
    leat_cluster *c = ps_and_worker();
    pid_t ps = spawn(c, "ps"), worker = spawn(c, "worker");
    model m = make_model();
    leat_session *s = open_on(c, &m);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.init)));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)));
    kill(ps, SIGSTOP);
    int stopped;
    waitpid(ps, &stopped, WUNTRACED);
    CHECK_ERROR(leat_session_run_with(s, &(leat_run_options){.timeout_ms = 1000}, LEAT_NO_FEED,
                                      LEAT_NO_FETCH, LEAT_TARGET(m.more)),
                DEADLINE_EXCEEDED, "/job:ps/replica:0/task:0 (127.0.0.1:");
    kill(ps, SIGCONT);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)));
    leat_session_close(s);
    leat_graph_free(m.g);
    kill_task(ps);
    kill_task(worker);
    leat_cluster_free(c);
}

/* A ps that was killed and started again is noticed; a new session works. */
static void started_again(void)
{
    leat_cluster *c = ps_and_worker();
    int gate[2];
    CHECK(pipe(gate) == 0);
    pid_t ps = spawn(c, "ps"), next = spawn_at(c, "ps", gate[0]), worker = spawn(c, "worker");
    model m = make_model();
    leat_session *s = open_on(c, &m);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.init)));
    kill_task(ps);
    leat_status status = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more));
    CHECK(leat_status_code(status) == LEAT_UNAVAILABLE);
    CHECK(strstr(leat_status_message(status), "/job:ps/replica:0/task:0"));
    leat_status_free(status);
    CHECK(write(gate[1], "x", 1) == 1);
    ps = next;
    leat_session_close(s);
    s = open_on(c, &m); /* waits until it is there */
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)),
                FAILED_PRECONDITION, "uninitialized");
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.init)));
    leat_session_close(s);
    leat_graph_free(m.g);
    kill_task(ps);
    kill_task(worker);
    leat_cluster_free(c);
}

/* Each case runs in a child process: a case leaves threads, which a later fork would not copy. */
static void apart(void (*test)(void))
{
    fflush(stdout);
    pid_t p = fork();
    if (p == 0) {
        test();
        fflush(stdout);
        _exit(test_failures ? 1 : 0);
    }
    int status;
    waitpid(p, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define APART(name)                                                                                \
    static void name##_apart(void)                                                                 \
    {                                                                                              \
        apart(name);                                                                               \
    }
APART(started_twice)
APART(wrong_spec)
APART(client_vanishes)
APART(stands_still)
APART(started_again)

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"started_twice", started_twice_apart}, {"wrong_spec", wrong_spec_apart},
               {"client_vanishes", client_vanishes_apart}, {"stands_still", stands_still_apart},
               {"started_again", started_again_apart});
}
