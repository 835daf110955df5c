/* link_test.c -- a link between tasks that is cut during training, and later works again. The ps
 * and the chief are in one network namespace, the worker in another, joined by a pair of virtual
 * Ethernet devices. It needs root, or a kernel that lets users make namespaces, and the command
 * `ip`; the namespaces end with their processes. docs/failures.md names these cases. */
#define _GNU_SOURCE
#include <sys/prctl.h>

#include "cluster/grpc/channel_int.h"
#include "cluster/namespace.h"
#include "cluster/train_task.h"

#define PS "10.77.0.1:2222"

/* ---- Two networks and a link ---- */

static int far_net = -1;
static pid_t far_keeper; /* a process that keeps the network namespace while no task is in it */

static void enter_far(void)
{
    if (setns(far_net, CLONE_NEWNET))
        _exit(126);
}

static bool sh(void (*first)(void), const char *command)
{
    int status = -1;
    pid_t p = fork();
    if (!p) {
        if (first)
            first();
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    waitpid(p, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool make_far(void)
{
    int p[2];
    char byte, path[64];
    if (pipe(p))
        return false;
    far_keeper = fork();
    if (!far_keeper) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) || write(p[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(p[1]);
    bool made = read(p[0], &byte, 1) == 1;
    close(p[0]);
    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)far_keeper);
    return made && (far_net = open(path, O_RDONLY | O_CLOEXEC)) >= 0;
}

/* NULL, or the reason why the networks cannot be made. */
static const char *make_networks(void)
{
    char command[300];
    if (!sh(NULL, "command -v ip >/dev/null"))
        return "there is no command `ip` (Debian package iproute2)";
    if (!leave_for(CLONE_NEWNET) || !make_far())
        return "this user may not make network namespaces (root may)";
    snprintf(command, sizeof(command),
             "ip link set lo up && ip link add near type veth peer name far netns %d &&"
             "ip addr add 10.77.0.1/24 dev near && ip link set near up",
             (int)far_keeper);
    if (!sh(NULL, command) ||
        !sh(enter_far, "ip link set lo up && ip addr add 10.77.0.2/24 dev far &&"
                       "ip link set far up && ip -o link show far >/dev/null"))
        return "no pair of virtual Ethernet devices can be made here";
    return NULL;
}

/* Takes the device down, as pulling a cable does: the kernel knows of it on both ends. */
static void pull(void)
{
    CHECK(sh(enter_far, "ip link set far down"));
}

static void plug(void)
{
    CHECK(sh(enter_far, "ip link set far up"));
}

/* Sends packets to an Ethernet address that does not exist: they are lost, and no kernel knows of
 * it. */
static void lose_packets(void)
{
    CHECK(sh(enter_far, "ip neigh replace 10.77.0.1 lladdr 02:00:00:00:00:01 dev far"));
    CHECK(sh(NULL, "ip neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev near"));
}

static void find_packets(void)
{
    CHECK(sh(enter_far, "ip neigh del 10.77.0.1 dev far"));
    CHECK(sh(NULL, "ip neigh del 10.77.0.2 dev near"));
}

/* ---- Training over it ---- */

/* The worker is connected to a port of the ps's machine other than those of gRPC: its calls go by
 * the socket, for nothing else connects there. */
static bool by_socket(const child *worker)
{
    unsigned port, state;
    char path[64], line[300];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/net/tcp", (int)worker->task.pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        found |= sscanf(line, "%*d: %*x:%*x 01004D0A:%x %x", &port, &state) == 2 && state == 1 &&
                 port != 2222 && port != 2223;
    if (f)
        fclose(f);
    return found;
}

static void start_apart(cluster *k, const char *mode, int last_step)
{
    snprintf(k->dir, sizeof(k->dir), "/tmp/leat_link_test_XXXXXX");
    CHECK(mkdtemp(k->dir) != NULL);
    snprintf(k->arg, sizeof(k->arg), "%s %s %d 60 " PS " 10.77.0.1:2223 10.77.0.2:2224", mode,
             k->dir, last_step);
    begin(&k->ps, "ps", k->arg);
    begin(&k->chief, "chief", k->arg);
    begin_after(enter_far, &k->worker, "worker", k->arg);
    CHECK(until(&k->ps, "ready", 20));
    CHECK(until(&k->chief, "ready", 20));
    CHECK(until(&k->worker, "ready", 20));
    CHECK(beyond(&k->worker, 20, 20));
    CHECK(by_socket(&k->worker));
}

/* The last step that a task has printed, and whether it lost its session before that. */
static int last_step_of(child *t, bool *lost)
{
    char line[2000];
    int step = -1;
    double end = now() + 0.05;
    while (next_line(t, line, sizeof(line), end)) {
        sscanf(line, "step %d", &step);
        *lost |= strstr(line, "A task went away") != NULL;
    }
    return step;
}

/* The task does at least this many steps more, in its old session. */
static void goes_on(child *t, int steps, double secs)
{
    bool lost = false;
    double end = now() + secs;
    int from = last_step_of(t, &lost), step = from;
    while (now() < end && (from < 0 || step < from + steps)) {
        int s = last_step_of(t, &lost);
        step = s < 0 ? step : s;
        from = from < 0 ? s : from;
    }
    CHECK(!lost);
    CHECK(from >= 0 && step >= from + steps);
}

/* Cut for a moment, within the deadline: a step takes longer, no more. */
static void cut_briefly(void (*cut)(void), void (*heal)(void))
{
    static cluster k;
    bool lost = false;
    start_apart(&k, "async", 100000);
    cut();
    usleep(500000);
    last_step_of(&k.worker, &lost);
    usleep(500000);
    CHECK_INT(last_step_of(&k.worker, &lost), -1); /* it waits */
    heal();
    goes_on(&k.worker, 20, 15);
    CHECK(!lost);
    task_end(&k.worker.task);
    task_end(&k.chief.task);
    task_end(&k.ps.task);
    clean(&k);
}

/* Cut for longer: the worker's step ends, with an error that names the task, its address, the time
 * and what to do; it waits for the ps, and goes on when the link works again. The chief goes on all
 * the time. */
static void cut_long(void (*cut)(void), void (*heal)(void))
{
    static cluster k;
    char line[2000] = "";
    double end = now() + 30;
    start_apart(&k, "async", 100000);
    cut();
    while (next_line(&k.worker, line, sizeof(line), end) && !strstr(line, "A task went away"))
        ;
    printf("%s\n", line);
    CHECK(strstr(line, "/job:ps/replica:0/task:0 (" PS));
    /* The first of three: TCP gets no acknowledgement, a ping no reply, or the system knows that
     * the link is down. */
    CHECK(strstr(line, ") fell silent: ") || strstr(line, ") cannot be reached: "));
    CHECK(strstr(line, "network between"));
    CHECK(strstr(line, ", after ") && strstr(line, " s]"));
    CHECK(until(&k.worker,
                "still waiting for response from worker: /job:ps/replica:0/task:0 at " PS, 30));
    goes_on(&k.chief, 50, 15);
    heal();
    goes_on(&k.worker, 20, 30);
    task_end(&k.worker.task);
    task_end(&k.chief.task);
    task_end(&k.ps.task);
    clean(&k);
}

static void pulled_briefly(void)
{
    cut_briefly(pull, plug);
}

static void lost_briefly(void)
{
    cut_briefly(lose_packets, find_packets);
}

static void pulled_long(void)
{
    cut_long(pull, plug);
}

static void lost_long(void)
{
    cut_long(lose_packets, find_packets);
}

/* The same with TLS on all that goes over the link. */
static void with_tls(void (*test)(void))
{
    if (!certificates_make())
        SKIP("the openssl command is not there");
    setenv("LEAT_TEST_CERTIFICATES", certificates, 1);
    test();
    certificates_remove();
}

static void tls_briefly(void)
{
    with_tls(lost_briefly);
}

static void tls_long(void)
{
    with_tls(pulled_long);
}

/* Synchronous replicas: rounds go on without the worker that is cut off, and with it again. */
static void cut_sync(void)
{
    static cluster k;
    start_apart(&k, "sync", 100000);
    lose_packets();
    CHECK(until(&k.chief, "Replica 1 is silent: rounds go on without it", 20));
    CHECK(beyond(&k.chief, 50, 20));
    CHECK(until(&k.worker, "A task went away", 30));
    find_packets();
    CHECK(until(&k.chief, "Replica 1 is back", 30));
    goes_on(&k.chief, 20, 15);
    CHECK(until(&k.worker, "step ", 30));
    task_end(&k.worker.task);
    task_end(&k.chief.task);
    task_end(&k.ps.task);
    clean(&k);
}

/* Each case has networks of its own. */
#define APART(name)                                                                                \
    static void name##_apart(void)                                                                 \
    {                                                                                              \
        apart(make_networks, name);                                                                \
    }
APART(pulled_briefly)
APART(lost_briefly)
APART(pulled_long)
APART(lost_long)
APART(cut_sync)
APART(tls_briefly)
APART(tls_long)

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0) {
        leat_ping_after_ns = 2000000000;
        return be(argv[2], argv[3]);
    }
    return RUN(argc, argv, {"pulled_briefly", pulled_briefly_apart},
               {"lost_briefly", lost_briefly_apart}, {"pulled_long", pulled_long_apart},
               {"lost_long", lost_long_apart}, {"cut_sync", cut_sync_apart},
               {"tls_briefly", tls_briefly_apart}, {"tls_long", tls_long_apart});
}
