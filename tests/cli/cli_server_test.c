/* `leat server` and `leat check` as users run them: bad use, a task that replies, is checked,
 * drains and ends. */
#include "command.h"

#include <leat/leat.h>
#include <sys/stat.h>

static void check(const char *env, const char *args, int code, const char *words)
{
    command c = command_start("%s %s/leat %s", env, LEAT_BINARY_DIR, args);
    expect(args, command_end(c), code, words);
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
    check(none, "server --ps_hosts h:1 --job_name ps --devices tpu:1", 2,
          "there are no devices of kind TPU, only of CPU");
    check(none, "server --ps_hosts h:1 --job_name ps --tls_cert c", 2, "go together");
    check(none, "server --ps_hosts h:1 --job_name ps --token a --token_file b", 2, "not both");
    check(none, "server --ps_hosts h:1 --job_name ps --token_file /none", 2, "/none: No such file");
    check("echo sesame >open_token; chmod 644 open_token;",
          "server --ps_hosts h:1 --job_name ps --token_file open_token", 2,
          "open_token: others may read this file (mode 644), so it keeps no secret: chmod 600 "
          "open_token");
    check("chmod 620 open_token;", "server --ps_hosts h:1 --job_name ps --token_file open_token", 2,
          "others may write this file");
    check(none, "server --ps_hosts h:1 --job_name ps --file_root /tmp,/none", 2,
          "--file_root, --read_root: /none; No such file");
    check(none, "server --ps_hosts h:1 --job_name ps extra", 2, "takes no arguments");
    check("env TF_CONFIG='{'", "server", 2, "TF_CONFIG: line 1, column 2");
    check(none, "check --cluster ps=h:1 --timeout 0", 2, "wants a whole number from 1");
    check(none, "server --cluster ps=203.0.113.1:1 --job_name ps", 1, "203.0.113.1");
}

/* A server whose first line has come. */
static command start(const char *env, const char *args)
{
    command c = command_start("exec env %s %s/leat server %s", env, LEAT_BINARY_DIR, args);
    command_read(c, "\n");
    return c;
}

static void answers(void)
{
    char args[256], want[256];
    int port = free_port();
    snprintf(args, sizeof(args), "--cluster ps=127.0.0.1:%d --job_name ps --devices cpu:2", port);
    command c = start("", args);
    snprintf(want, sizeof(want), "leat server: /job:ps/task:0 answers at grpc://127.0.0.1:%d\n",
             port);
    CHECK_STR(output, want);
    snprintf(args, sizeof(args), "check --ps_hosts 127.0.0.1:%d", port);
    check("", args, 0, "all 1 tasks are well");
    CHECK(strstr(output, "Leat 0."));
    snprintf(args, sizeof(args), "check --worker_hosts 127.0.0.1:%d", port);
    check("", args, 1, "not /job:worker/task:0");
    snprintf(args, sizeof(args), "check --ps_hosts 127.0.0.1:%d,127.0.0.1:1 --timeout 1", port);
    check("", args, 1, "1 of 2 tasks are not well"); /* The server's list is a part of this one. */
    snprintf(args, sizeof(args), "server --ps_hosts 127.0.0.1:%d --job_name ps", port);
    check("", args, 1, "in use");
    CHECK_INT(command_signal(c, SIGTERM), 0);
    snprintf(args, sizeof(args), "check --ps_hosts 127.0.0.1:%d", port);
    check("", args, 1, "start the task");
}

/* Threads of an OpenCL driver do not take the signal that ends the server in an orderly way. */
static void driver_threads(void)
{
#ifndef __SANITIZE_THREAD__ /* PoCL is not instrumented. */
    char args[256];
    snprintf(args, sizeof(args), "--worker_hosts 127.0.0.1:%d --job_name worker --task_index 0",
             free_port());
    command c = start("POCL_DEVICES=pthread", args);
    CHECK_INT(command_signal(c, SIGTERM), 0);
#endif
}

static void other_list(void)
{
    char args[256], want[256];
    int port = free_port();
    snprintf(args, sizeof(args),
             "--ps_hosts 127.0.0.1:%d --worker_hosts 127.0.0.1:1,127.0.0.1:2 --job_name ps", port);
    command c = start("", args);
    snprintf(args, sizeof(args),
             "check --ps_hosts 127.0.0.1:%d --worker_hosts 127.0.0.1:1,127.0.0.1:3", port);
    snprintf(want, sizeof(want),
             "ps/0: was started with another list of tasks: /job:worker/replica:0/task:1 is at "
             "127.0.0.1:3, not at 127.0.0.1:2. Its list: \"ps=127.0.0.1:%d;worker=127.0.0.1:1,",
             port);
    check("", args, 1, want);
    CHECK_INT(command_signal(c, SIGTERM), 0);
}

static void visible_token(void)
{
    char args[256];
    snprintf(args, sizeof(args), "--cluster ps=127.0.0.1:%d --job_name ps --token sesame",
             free_port());
    command c = start("", args);
    command_read(c, "answers at");
    CHECK(strstr(output, "--token shows the token to all users of this machine"));
    CHECK_INT(command_signal(c, SIGTERM), 0);
}

static void from_tf_config(void)
{
    char env[256];
    int port = free_port();
    snprintf(env, sizeof(env),
             "TF_CONFIG='{\"cluster\": {\"worker\": [\"localhost:%d\"]}, \"task\": {\"type\": "
             "\"worker\", \"index\": 0}}'",
             port);
    command c = start(env, "");
    CHECK(strstr(output, "/job:worker/task:0 answers at"));
    CHECK_INT(command_signal(c, SIGINT), 0);
}

/* A kernel that never ends, since nobody reads the pipe that it writes to, does not keep a server
 * that was told to end. */
static void ends_in_spite_of_a_kernel(void)
{
    char args[256], dir[] = "/tmp/leat_server_XXXXXX", target[64], stream[80];
    int port = free_port();
    CHECK(mkdtemp(dir));
    snprintf(args, sizeof(args), "--cluster ps=127.0.0.1:%d --job_name ps --grace 0", port);
    snprintf(target, sizeof(target), "grpc://127.0.0.1:%d", port);
    snprintf(stream, sizeof(stream), "file://%s/pipe", dir);
    CHECK_INT(mkfifo(stream + strlen("file://"), 0600), 0);
    command c = start("", args);
    pid_t client = fork();
    if (client == 0) {
        leat_graph *g = leat_graph_new();
        leat_session *s;
        leat_out print = LEAT_OP1("PrintV2", leat_string_const(g, "x"),
                                  leat_attr_string("output_stream", stream));
        leat_status bad = leat_session_open(g, &s, .target = target);
        if (!bad)
            bad = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(print));
        _exit(bad ? 0 : 1);
    }
    sleep(2); /* the kernel waits for a reader by now */
    CHECK_INT(command_signal(c, SIGTERM), 1);
    CHECK(strstr(output, "did not end in time"));
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
    unlink(stream + strlen("file://"));
    rmdir(dir);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"bad_use", bad_use}, {"answers", answers},
               {"driver_threads", driver_threads}, {"other_list", other_list},
               {"visible_token", visible_token}, {"from_tf_config", from_tf_config},
               {"ends_in_spite_of_a_kernel", ends_in_spite_of_a_kernel});
}
