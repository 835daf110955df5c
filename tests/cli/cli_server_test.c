/* `leat server` and `leat check` as users run them: bad use, a task that answers, is checked,
 * drains and ends; and models/mnist_replica on a cluster by `leat launch`. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static char output[1 << 16];

static int run(const char *env, const char *program, const char *args)
{
    char command[4096];
    snprintf(command, sizeof(command), "%s %s/%s %s 2>&1", env, LEAT_BINARY_DIR, program, args);
    FILE *p = popen(command, "r");
    size_t n = p ? fread(output, 1, sizeof(output) - 1, p) : 0;
    output[n] = 0;
    int status = p ? pclose(p) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check(const char *env, const char *args, int code, const char *words)
{
    int got = run(env, "leat", args);
    if (got != code || !strstr(output, words)) {
        test_failures++;
        printf("leat %s: exit code %d, want %d with \"%s\"; it printed:\n%s", args, got, code,
               words, output);
    }
    if (code == 2 && strchr(output, '\n') && strchr(output, '\n')[1]) {
        test_failures++;
        printf("leat %s: more than one line:\n%s", args, output);
    }
}

static int free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(a);
    CHECK(bind(fd, (struct sockaddr *)&a, size) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&a, &size) == 0);
    close(fd);
    return ntohs(a.sin_port);
}

static void bad_use(void)
{
    static const char none[] = "env -u TF_CONFIG -u SLURM_PROCID";
    check(none, "server", 2, "no cluster: wants --cluster");
    check(none, "check", 2, "no cluster: wants --cluster");
    check(none, "server --cluster ps=h", 2, "\"h\" as a host-port pair");
    check(none, "server --cluster ps=h:1", 2, "wants --job_name");
    check(none, "server --cluster ps=h:1 --job_name worker", 2, "no job \"worker\"");
    check(none, "server --cluster ps=h:1,h:2 --job_name ps", 2, "job \"ps\" has 2 tasks");
    check(none, "server --cluster ps=h:1 --job_name ps --task_index 3", 2, "no task 3");
    check(none, "server --cluster ps=h:1 --job_name ps --task_id x", 2, "wants a whole number");
    check(none, "server --cluster ps=h:1 --ps_hosts h:1", 2, "not both");
    check(none, "server --ps_hosts '' --worker_hosts ''", 2, "name no task");
    check(none, "server --ps_hosts h:1 --job_name ps --devices gpu:1", 2, "wants cpu:N");
    check(none, "server --ps_hosts h:1 --job_name ps --tls_cert c", 2, "go together");
    check(none, "server --ps_hosts h:1 --job_name ps --token a --token_file b", 2, "not both");
    check(none, "server --ps_hosts h:1 --job_name ps --token_file /none", 2, "/none: No such file");
    check(none, "server --ps_hosts h:1 --job_name ps extra", 2, "takes no arguments");
    check("env TF_CONFIG='{'", "server", 2, "TF_CONFIG: line 1, column 2");
    check(none, "check --cluster ps=h:1 --timeout 0", 2, "wants a whole number from 1");
    check(none, "server --cluster ps=203.0.113.1:1 --job_name ps", 1, "203.0.113.1");
}

/* Gives the id of a server whose first line has come. */
static pid_t start(const char *env, const char *args, int *from)
{
    int ends[2];
    char command[2048];
    snprintf(command, sizeof(command), "exec env %s %s/leat server %s", env, LEAT_BINARY_DIR, args);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    close(ends[1]);
    *from = ends[0];
    size_t n = 0;
    output[0] = 0;
    for (ssize_t got; !strchr(output, '\n'); output[n] = 0) {
        got = read(*from, output + n, sizeof(output) - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return pid;
}

static int finish(pid_t pid, int from, int signal)
{
    int status;
    kill(pid, signal);
    waitpid(pid, &status, 0);
    close(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void answers(void)
{
    char args[256], want[256];
    int port = free_port(), from;
    snprintf(args, sizeof(args), "--cluster ps=127.0.0.1:%d --job_name ps --devices cpu:2", port);
    pid_t pid = start("", args, &from);
    snprintf(want, sizeof(want), "leat server: /job:ps/task:0 answers at grpc://127.0.0.1:%d\n",
             port);
    CHECK_STR(output, want);
    snprintf(args, sizeof(args), "check --ps_hosts 127.0.0.1:%d", port);
    check("", args, 0, "all 1 tasks are well");
    CHECK(strstr(output, "Leat 0."));
    snprintf(args, sizeof(args), "check --worker_hosts 127.0.0.1:%d", port);
    check("", args, 1, "not /job:worker/task:0");
    snprintf(args, sizeof(args), "server --ps_hosts 127.0.0.1:%d --job_name ps", port);
    check("", args, 1, "in use");
    CHECK_INT(finish(pid, from, SIGTERM), 0);
    snprintf(args, sizeof(args), "check --ps_hosts 127.0.0.1:%d", port);
    check("", args, 1, "start the task");
}

static void from_tf_config(void)
{
    char env[256];
    int port = free_port(), from;
    snprintf(env, sizeof(env),
             "TF_CONFIG='{\"cluster\": {\"worker\": [\"localhost:%d\"]}, \"task\": {\"type\": "
             "\"worker\", \"index\": 0}}'",
             port);
    pid_t pid = start(env, "", &from);
    CHECK(strstr(output, "/job:worker/task:0 answers at"));
    CHECK_INT(finish(pid, from, SIGINT), 0);
}

static void trains(const char *options)
{
    char args[1024];
    snprintf(args, sizeof(args),
             "launch --ps_grace 1 --ps 2 --workers 2 -- %s/models/mnist_replica --train_steps 60 "
             "--hidden_units "
             "20 --log_every 10 %s",
             LEAT_BINARY_DIR, options);
    check("", args, 0, "[worker/0] Worker 0: Initializing session...");
    static const char *const lines[] = {
        "[ps/1] job name = ps\n",
        "[worker/1] task index = 1\n",
        "[worker/1] Worker 1: Waiting for session to be initialized...",
        "[worker/1] Worker 1: Session initialization complete.",
        "[worker/0] Training begins @ ",
        "Worker 0: training step 10 done (global step: ",
        "[worker/1] Training elapsed time: ",
        "[worker/0] After 60 training step(s), validation cross entropy = ",
        "[worker/0] test accuracy ",
        "all done in",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        if (!strstr(output, lines[i])) {
            test_failures++;
            printf("no \"%s\" in:\n%s", lines[i], output);
        }
}

static void replicas(void)
{
    trains("");
}

static void sync_replicas(void)
{
    trains("--sync_replicas");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"bad_use", bad_use}, {"answers", answers},
               {"from_tf_config", from_tf_config}, {"replicas", replicas},
               {"sync_replicas", sync_replicas});
}
