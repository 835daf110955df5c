/* launch_spawn.c -- tasks as processes: starting them, their arguments and environment, ending
 * them. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"

extern char **environ;

/* ---- The guard ---- */

/* Reads ids of process groups from the pipe, positive when a group starts and negative when it has
 * ended, until launch has ended; then kills the groups that are left. */
static void guard_run(int from)
{
    enum { MOST = 4096 };
    static pid_t groups[MOST];
    int n = 0, id;
    while (read(from, &id, sizeof(id)) == (ssize_t)sizeof(id))
        if (id > 0 && n < MOST)
            groups[n++] = id;
        else
            for (int i = 0; i < n; i++)
                if (groups[i] == -id)
                    groups[i] = groups[--n];
    for (int i = 0; i < n; i++)
        kill(-groups[i], SIGKILL);
    _exit(0);
}

leat_status launch_guard_start(launch *l)
{
    int ends[2];
    LEAT_REQUIRE(pipe2(ends, O_CLOEXEC) == 0, UNAVAILABLE, "pipe: %s", strerror(errno));
    l->guard_pid = fork();
    if (l->guard_pid == 0) {
        setsid(); /* Ctrl-C at the terminal must not end the guard */
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        close(ends[1]);
        guard_run(ends[0]);
    }
    close(ends[0]);
    if (l->guard_pid < 0) {
        close(ends[1]);
        return leat_error(UNAVAILABLE, "fork: %s", strerror(errno));
    }
    l->guard = ends[1];
    return NULL;
}

static void guard_send(launch *l, int id)
{
    if (l->guard >= 0 && write(l->guard, &id, sizeof(id)) < 0)
        l->guard = -1; /* the guard was killed; PR_SET_PDEATHSIG still works */
}

void launch_guard_stop(launch *l)
{
    if (l->guard >= 0)
        close(l->guard);
    l->guard = -1;
    if (l->guard_pid > 0)
        waitpid(l->guard_pid, NULL, 0);
    l->guard_pid = 0;
}

/* ---- Arguments and environment of a task ---- */

static void add_hosts(const launch *l, FILE *to, const char *job, const char *quote)
{
    const char *comma = "";
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->tasks[i].job, job) == 0) {
            fprintf(to, "%s%s127.0.0.1:%d%s", comma, quote, l->tasks[i].port, quote);
            comma = ",";
        }
}

static char *tf_config(const launch *l, const launch_task *t)
{
    char *text = NULL;
    size_t n;
    FILE *to = cli_text_stream(&text, &n);
    fprintf(to, "TF_CONFIG={\"cluster\": {");
    for (int i = 0; i < l->n; i++)
        if (l->tasks[i].index == 0) {
            fprintf(to, "%s\"%s\": [", i ? ", " : "", l->tasks[i].job);
            add_hosts(l, to, l->tasks[i].job, "\"");
            fprintf(to, "]");
        }
    fprintf(to, "}, \"task\": {\"type\": \"%s\", \"index\": %d}}", t->job, t->index);
    fclose(to);
    return text;
}

static char *hosts_flag(const launch *l, const char *job)
{
    char *text = NULL;
    size_t n;
    FILE *to = cli_text_stream(&text, &n);
    fprintf(to, "--%s_hosts=", job);
    add_hosts(l, to, job, "");
    fclose(to);
    return text;
}

static char *text_of(const char *name, const char *value)
{
    char *text = NULL;
    size_t n;
    FILE *to = cli_text_stream(&text, &n);
    fprintf(to, "%s%s", name, value);
    fclose(to);
    return text;
}

/* The usual flags of TensorFlow's example programs exist for the jobs ps and worker only; if there
 * are other jobs, the flags are not given. */
static bool only_ps_and_workers(const launch *l)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->tasks[i].job, "ps") != 0 && strcmp(l->tasks[i].job, "worker") != 0)
            return false;
    return true;
}

/* The program's arguments followed by the usual flags. The caller frees the array and the strings
 * from n_program on. */
static char **arguments(const launch *l, const launch_task *t)
{
    char **v = cli_array((size_t)l->n_program + 5, sizeof(char *)), index[16];
    int n = l->n_program;
    memcpy(v, l->program, sizeof(char *) * (size_t)n);
    if (l->no_flags)
        return v;
    snprintf(index, sizeof(index), "%d", t->index);
    v[n++] = text_of("--job_name=", t->job);
    v[n++] = text_of("--task_index=", index);
    if (only_ps_and_workers(l)) {
        v[n++] = hosts_flag(l, "ps");
        v[n++] = hosts_flag(l, "worker");
    }
    return v;
}

/* Divides the CPUs among the tasks that compute: if threads of several tasks share a CPU, all of
 * them become slower. */
static void share_of_cpus(const launch *l, char *text, size_t size)
{
    int at_work = 0;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < l->n; i++)
        at_work += !l->tasks[i].passive;
    long share = at_work ? cpus / at_work : cpus;
    snprintf(text, size, "LEAT_NUM_THREADS=%ld", share > 1 ? share : 1);
}

/* A token that no other user of this machine knows, as a variable, which only this user can read.
 */
static leat_status make_token(launch *l)
{
    unsigned char random[16];
    if (l->token[0])
        return NULL;
    LEAT_REQUIRE(getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random), UNAVAILABLE,
                 "no random number for the tasks' token: %s", strerror(errno));
    int n = snprintf(l->token, sizeof(l->token), "LEAT_TOKEN=");
    for (size_t i = 0; i < sizeof(random); i++)
        n += snprintf(l->token + n, sizeof(l->token) - (size_t)n, "%02x", random[i]);
    return NULL;
}

enum { GPU_VARIABLES = 3 };

/* What launch says of GPUs, as variables, each from malloc; those that are not given are NULL. */
static void gpu_variables(const launch *l, char *v[GPU_VARIABLES])
{
    v[0] = l->visible_gpus ? text_of("LEAT_VISIBLE_DEVICES=", l->visible_gpus) : NULL;
    v[1] = l->gpu_fraction ? text_of("LEAT_GPU_MEMORY_FRACTION=", l->gpu_fraction) : NULL;
    v[2] = l->gpu_limit ? text_of("LEAT_GPU_MEMORY_LIMIT=", l->gpu_limit) : NULL;
}

/* Whether both are "NAME=...", of one name. */
static bool same_variable(const char *a, const char *b)
{
    size_t n = strcspn(a, "=") + 1;
    return strncmp(a, b, n) == 0;
}

static char **environment(char *config, char *threads, char *token, char *gpus[GPU_VARIABLES])
{
    int n = 0, kept = 0;
    while (environ[n])
        n++;
    char **v = cli_array((size_t)n + 5 + GPU_VARIABLES, sizeof(char *));
    for (int i = 0; i < n; i++) {
        bool replaced = same_variable(config, environ[i]);
        for (int k = 0; k < GPU_VARIABLES; k++)
            replaced |= gpus[k] && same_variable(gpus[k], environ[i]);
        if (!replaced)
            v[kept++] = environ[i];
    }
    for (int k = 0; k < GPU_VARIABLES; k++)
        if (gpus[k])
            v[kept++] = gpus[k];
    v[kept++] = config;
    if (!getenv("PYTHONUNBUFFERED"))
        /* Output appears when it is printed, not when the task ends. */
        v[kept++] = "PYTHONUNBUFFERED=1";
    if (!getenv("LEAT_NUM_THREADS"))
        v[kept++] = threads;
    if (!getenv("LEAT_TOKEN"))
        v[kept++] = token;
    return v;
}

/* ---- Starting ---- */

/* In the child: executes the program, or sends errno to the parent. */
static void become(char **argv, char **env, const int out[2], const int err[2], int failed,
                   pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) {
        int null = open("/dev/null", O_RDONLY);
        dup2(null, 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        environ = env;
        execvp(argv[0], argv);
    }
    int e = errno;
    if (write(failed, &e, sizeof(e)) < 0)
        _exit(126);
    _exit(127);
}

static void close_pair(int v[2])
{
    for (int i = 0; i < 2; i++)
        if (v[i] >= 0)
            close(v[i]);
}

static leat_status begin(launch_task *t, char **argv, char **env)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, failed[2] = {-1, -1}, e = 0;
    pid_t self = getpid();
    bool ok = pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 &&
              pipe2(failed, O_CLOEXEC) == 0 && (t->pid = fork()) >= 0;
    if (ok && t->pid == 0)
        become(argv, env, out, err, failed[1], self);
    if (!ok) {
        leat_status s =
            leat_error(RESOURCE_EXHAUSTED, "%s: cannot start: %s", t->label, strerror(errno));
        close_pair(out);
        close_pair(err);
        close_pair(failed);
        t->pid = 0;
        return s;
    }
    setpgid(t->pid, t->pid); /* done by parent and child, so that it holds for both from here on */
    close(out[1]);
    close(err[1]);
    close(failed[1]);
    t->streams[0].fd = out[0];
    t->streams[1].fd = err[0];
    for (int i = 0; i < 2; i++)
        fcntl(t->streams[i].fd, F_SETFL, O_NONBLOCK);
    ssize_t got = read(failed[0], &e, sizeof(e));
    close(failed[0]);
    LEAT_REQUIRE(got != (ssize_t)sizeof(e), NOT_FOUND, "%s: %s", argv[0], strerror(e));
    return NULL;
}

leat_status launch_spawn(launch *l, launch_task *t)
{
    char threads[40];
    share_of_cpus(l, threads, sizeof(threads));
    LEAT_TRY(make_token(l));
    char *gpus[GPU_VARIABLES];
    gpu_variables(l, gpus);
    char *config = tf_config(l, t), **argv = arguments(l, t),
         **env = environment(config, threads, l->token, gpus);
    t->began = launch_now();
    leat_status s = begin(t, argv, env);
    if (t->pid)
        guard_send(l, t->pid);
    for (int i = l->n_program; argv[i]; i++)
        free(argv[i]);
    free(argv);
    free(env);
    free(config);
    for (int k = 0; k < GPU_VARIABLES; k++)
        free(gpus[k]);
    return s;
}

/* ---- Ending ---- */

void launch_signal(launch_task *t, int signal)
{
    if (t->pid && !t->ended)
        kill(-t->pid, signal);
}

void launch_reap(launch *l)
{
    siginfo_t info;
    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid)
            return;
        launch_task *t = NULL;
        for (int i = 0; i < l->n; i++)
            if (l->tasks[i].pid == info.si_pid)
                t = &l->tasks[i];
        if (t)
            kill(-t->pid, SIGKILL); /* kill the processes that it started */
        int status = 0;
        waitpid(info.si_pid, &status, 0);
        if (info.si_pid == l->guard_pid)
            l->guard_pid = 0;
        if (!t)
            continue;
        guard_send(l, -t->pid);
        t->pid = 0;
        t->ended = true;
        t->status = status;
        t->finished = launch_now();
        launch_drain(l, t);
    }
}

void launch_kill_orphans(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    for (int tries = 0; tries < 100; tries++) {
        FILE *f = fopen(path, "r");
        int pid, n = 0;
        while (f && fscanf(f, "%d", &pid) == 1) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            n++;
        }
        if (f)
            fclose(f);
        if (!n)
            return;
    }
}
