/* server.c -- leat server: runs one task of a cluster, until its job is done or it gets SIGTERM or
 * SIGINT. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster_args.h"

typedef struct server_args {
    cli_cluster_args cluster;
    const char *devices, *intra, *inter, *grace, *transports, *data_port, *file_root, *read_root;
    const char *visible_gpus, *gpu_fraction, *gpu_limit;
    const char *sessions, *worker_sessions, *graphs, *calls, *idle, *call;
    long long n_intra, n_inter, grace_s, data_port_n;
    /* 0: the default; of the last two -1 is no limit. */
    long long max_sessions, max_worker_sessions, max_graphs, max_calls, idle_s, call_s;
    leat_gpu_options gpu;
} server_args;

static bool read_limit(const char *name, const char *text, long long *out)
{
    return !text ||
           (cli_number("server", name, text, 1, out) &&
            (*out <= INT_MAX || cli_bad_use("server", "--%s %s: too large", name, text) == 0));
}

/* A time limit, of which 0 means none. */
static bool read_seconds(const char *name, const char *text, long long *out)
{
    if (text && !cli_number("server", name, text, 0, out))
        return false;
    if (text && *out == 0)
        *out = -1;
    return true;
}

static bool read_limits(server_args *a)
{
    return read_limit("max_sessions", a->sessions, &a->max_sessions) &&
           read_limit("max_worker_sessions", a->worker_sessions, &a->max_worker_sessions) &&
           read_limit("max_graphs", a->graphs, &a->max_graphs) &&
           read_limit("max_calls", a->calls, &a->max_calls) &&
           read_seconds("session_idle_secs", a->idle, &a->idle_s) &&
           read_seconds("max_call_secs", a->call, &a->call_s);
}

static bool read_args(int argc, char **argv, server_args *a)
{
    cli_values rest = {0};
    const cli_option options[] = {CLI_CLUSTER_OPTIONS(&a->cluster),
                                  {.name = "devices", .value = &a->devices},
                                  {.name = "visible_device_list", .value = &a->visible_gpus},
                                  {.name = "gpu_memory_fraction", .value = &a->gpu_fraction},
                                  {.name = "gpu_memory_limit", .value = &a->gpu_limit},
                                  {.name = "intra_op_threads", .value = &a->intra},
                                  {.name = "inter_op_threads", .value = &a->inter},
                                  {.name = "grace", .value = &a->grace},
                                  {.name = "transports", .value = &a->transports},
                                  {.name = "data_port", .value = &a->data_port},
                                  {.name = "max_sessions", .value = &a->sessions},
                                  {.name = "max_worker_sessions", .value = &a->worker_sessions},
                                  {.name = "max_graphs", .value = &a->graphs},
                                  {.name = "max_calls", .value = &a->calls},
                                  {.name = "session_idle_secs", .value = &a->idle},
                                  {.name = "max_call_secs", .value = &a->call},
                                  {.name = "file_root", .value = &a->file_root},
                                  {.name = "read_root", .value = &a->read_root},
                                  {0}};
    bool ok = cli_parse(argc, argv, options, &rest);
    if (ok && rest.n)
        ok = cli_bad_use("server", "%s: takes no arguments", rest.v[0]) == 0;
    cli_values_free(&rest);
    a->gpu.visible_devices = a->visible_gpus;
    return ok && cli_devices_ok("server", a->devices) && read_limits(a) &&
           cli_gpu_memory("server", a->gpu_fraction, a->gpu_limit, &a->gpu) &&
           (!a->intra || cli_number("server", "intra_op_threads", a->intra, 0, &a->n_intra)) &&
           (!a->inter || cli_number("server", "inter_op_threads", a->inter, 0, &a->n_inter)) &&
           (!a->grace || cli_number("server", "grace", a->grace, 0, &a->grace_s)) &&
           (!a->data_port ||
            (cli_number("server", "data_port", a->data_port, 0, &a->data_port_n) &&
             (a->data_port_n <= 65535 ||
              cli_bad_use("server", "--data_port %s: too large", a->data_port) == 0)));
}

/* The task must be one of the cluster's; its index may be left out where there is only one. */
static bool find_task(const leat_cluster *c, const char *job, int *task)
{
    if (!*job)
        return cli_bad_use("server", "wants --job_name: which task of the cluster is this?") == 0;
    int n = leat_cluster_tasks(c, job);
    if (!n)
        return cli_bad_use("server", "the cluster has no job \"%s\"", job) == 0;
    if (*task < 0 && n > 1)
        return cli_bad_use("server", "wants --task_index: job \"%s\" has %d tasks", job, n) == 0;
    *task = *task < 0 ? 0 : *task;
    if (!leat_cluster_address(c, job, *task))
        return cli_bad_use("server", "job \"%s\" has no task %d", job, *task) == 0;
    return true;
}

/* ---- SIGTERM and SIGINT end running steps in an orderly way; a second one ends the process.
 * SIGUSR1 is sent by this process to its signal thread, to end that. ---- */
typedef struct waiter {
    sigset_t set;
    leat_server *server;
    int64_t grace_ms;
} waiter;

static void *wait_for_signal(void *arg)
{
    waiter *w = arg;
    int got = 0;
    if (sigwait(&w->set, &got) != 0 || got == SIGUSR1)
        return NULL;
    fprintf(stderr, "leat server: %s: ending; steps under way have %g s\n", strsignal(got),
            (double)w->grace_ms / 1000);
    sigset_t again; /* not SIGUSR1, which may still come */
    sigemptyset(&again);
    sigaddset(&again, SIGINT);
    sigaddset(&again, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &again, NULL);
    leat_process_end_within(w->grace_ms);
    leat_server_stop(w->server, w->grace_ms);
    return NULL;
}

/* Which peers are waited for, and that connections are not encrypted: printed even if no log level
 * is set. */
static void warn(void *arg, leat_log_level level, const char *file, int line, const char *message)
{
    fprintf(stderr, "leat server: %s\n", message);
}

static leat_status serve(const leat_cluster *c, const char *job, int task,
                         const leat_server_options *o, int64_t grace_ms)
{
    waiter w = {.grace_ms = grace_ms};
    sigemptyset(&w.set);
    sigaddset(&w.set, SIGINT);
    sigaddset(&w.set, SIGTERM);
    sigaddset(&w.set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &w.set, NULL); /* before the server's threads, which inherit it */
    LEAT_TRY(leat_server_start(c, job, task, o, &w.server));
    pthread_t thread;
    int e = pthread_create(&thread, NULL, wait_for_signal, &w);
    if (e) {
        leat_server_free(w.server);
        return leat_error(
            RESOURCE_EXHAUSTED,
            "No thread can be started that waits for SIGTERM: %s. Is the limit of this "
            "user's processes (ulimit -u), or that of the container, reached?",
            strerror(e));
    }
    const char *target = leat_server_target(w.server);
    printf("leat server: /job:%s/task:%d answers at %s\n", job, task, target);
    fflush(stdout);
    leat_status s = leat_server_join(w.server);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    leat_server_free(w.server);
    return s;
}

static int run(int argc, char **argv)
{
    server_args a = {.grace_s = 10};
    leat_server_options o = {0};
    leat_cluster *c = NULL;
    char job[64];
    int task;
    if (!read_args(argc, argv, &a) || !cli_security_read("server", &a.cluster, &o.security) ||
        !cli_cluster_read("server", &a.cluster, &c, job, &task))
        return 2;
    int code = 2;
    if (!getenv("TF_CPP_MIN_LOG_LEVEL"))
        leat_log_set_sink(warn, NULL, LEAT_LOG_WARNING);
    leat_status roots = leat_file_roots_set(a.file_root, a.read_root);
    if (roots) {
        cli_bad_use("server", "--file_root, --read_root: %s", leat_status_message(roots));
        leat_status_free(roots);
    } else if (find_task(c, job, &task)) {
        o.devices = a.devices;
        o.gpu = a.gpu;
        o.intra_op_threads = (int)a.n_intra;
        o.inter_op_threads = (int)a.n_inter;
        o.transports = a.transports;
        o.data_port = (int)a.data_port_n;
        o.max_sessions = (int)a.max_sessions;
        o.max_worker_sessions = (int)a.max_worker_sessions;
        o.max_graphs = (int)a.max_graphs;
        o.max_calls = (int)a.max_calls;
        o.session_idle_secs = (double)a.idle_s;
        o.max_call_secs = (double)a.call_s;
        code = cli_finish("server", serve(c, job, task, &o, a.grace_s * 1000));
    }
    leat_cluster_free(c);
    return code;
}

const cli_command cli_server = {
    .name = "server",
    .summary = "run a task of a cluster: a parameter server, a worker",
    .usage =
        "usage: leat server [--cluster SPEC] --job_name JOB --task_index N\n\n"
        "Answers for one task of a cluster, at the address that the cluster gives it, and says so\n"
        "in one line. Ends with exit code 0 when those who used it are gone, or by SIGTERM or\n"
        "Ctrl-C: steps under way then have --grace seconds, and the process ends at the\n"
        "latest five seconds later.\n\n" CLI_CLUSTER_USAGE
        "  --job_name JOB       which task this is; also from TF_CONFIG and Slurm\n"
        "  --task_index N       (or --task_id) may be left out in a job of one\n"
        "  --devices SPEC       how many devices of which kind, as cpu:2,gpu:1; of kinds that are\n"
        "                       not named: one CPU, and all devices of the others; but a ps has\n"
        "                       only those GPUs that are named\n"
        "  --visible_device_list LIST  the GPUs of the task, as 1,0: GPU:0 is the second of those\n"
        "                       that leat devices lists\n"
        "  --gpu_memory_fraction F, --gpu_memory_limit BYTES\n"
        "                       tensors take at most this part of a GPU's memory, or so much "
        "(512m,\n"
        "                       2g); memory is taken as it is needed\n"
        "  --intra_op_threads N, --inter_op_threads N\n"
        "                       threads of one kernel, and for kernels side by side (the cores)\n"
        "  --grace S            seconds (10)\n"
        "  --transports LIST    ways to and from other Leat tasks (grpc,socket,shm,local)\n"
        "  --data_port N        port of transport socket (any)\n"
        "  --max_sessions N, --max_worker_sessions N, --max_graphs N, --max_calls N\n"
        "                       at the same time: sessions of clients (1000), of masters "
        "elsewhere\n"
        "                       (10000), graphs that those registered (100000), calls (10000)\n"
        "  --session_idle_secs S  a session whose client or master has gone is closed after this\n"
        "                       time without a call (3600; 0: never)\n"
        "  --max_call_secs S    a call of another task for a step or a tensor ends after this "
        "time\n"
        "                       (604800, a week; 0: never)\n"
        "  --file_root DIR,...  graphs may read and write files only below these directories,\n"
        "  --read_root DIR,...  and read those below these (any, as this process's "
        "user)\n" CLI_SECURITY_USAGE,
    .run = run,
};
