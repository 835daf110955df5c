/* launch.c -- leat launch: runs a whole cluster on this machine, each task as a process of its
 * own. */
#include "launch.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST_TASKS = 1000 };

static bool job_name_ok(const char *name, size_t n)
{
    if (n == 0 || n > 63 || !isalpha((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return false;
    return true;
}

/* Adds n tasks of a job; false if the job exists already, or there would be too many tasks. */
static bool add_job(launch *l, const char *job, size_t job_n, long long n)
{
    for (int i = 0; i < l->n; i++)
        if (strlen(l->tasks[i].job) == job_n && strncmp(l->tasks[i].job, job, job_n) == 0)
            return cli_bad_use("launch", "job %s is asked for twice", l->tasks[i].job) == 0;
    if (n > MOST_TASKS - l->n)
        return cli_bad_use("launch", "more than %d tasks", MOST_TASKS) == 0;
    for (long long i = 0; i < n; i++) {
        launch_task *t = &l->tasks[l->n++];
        *t = (launch_task){.index = (int)i, .streams = {{.fd = -1}, {.fd = -1}}};
        memcpy(t->job, job, job_n);
        snprintf(t->label, sizeof(t->label), "%s/%d", t->job, t->index);
        t->passive = strcmp(t->job, "ps") == 0;
    }
    return true;
}

static bool add_other_jobs(launch *l, const cli_values *jobs)
{
    for (int i = 0; i < jobs->n; i++)
        for (const char *p = jobs->v[i]; *p;) {
            size_t n = strcspn(p, "="), all = strcspn(p, ",");
            char number[32];
            long long count;
            if (n >= all || !job_name_ok(p, n) || all - n - 1 >= sizeof(number))
                return cli_bad_use("launch", "--jobs %s: wants NAME=N", p) == 0;
            snprintf(number, sizeof(number), "%.*s", (int)(all - n - 1), p + n + 1);
            if (!cli_number("launch", "jobs", number, 1, &count) || !add_job(l, p, n, count))
                return false;
            p += all + (p[all] == ',');
        }
    return true;
}

static bool seconds(const char *option, const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0 && v < 1e6))
        return cli_bad_use("launch", "--%s %s: wants seconds", option, text) == 0;
    *out = v;
    return true;
}

/* Fills l from the arguments before "--". */
static bool read_options(launch *l, int argc, char **argv)
{
    const char *ps = NULL, *workers = NULL, *grace = "10", *ps_grace = "5";
    bool chief = false;
    long long n_ps = 1, n_workers = 2;
    cli_values rest = {0}, jobs = {0};
    leat_gpu_options gpu; /* only checked here */
    const cli_option options[] = {{.name = "ps", .value = &ps},
                                  {.name = "workers", .value = &workers},
                                  {.name = "chief", .given = &chief},
                                  {.name = "jobs", .values = &jobs},
                                  {.name = "grace", .value = &grace},
                                  {.name = "ps_grace", .value = &ps_grace},
                                  {.name = "no_flags", .given = &l->no_flags},
                                  {.name = "visible_device_list", .value = &l->visible_gpus},
                                  {.name = "gpu_memory_fraction", .value = &l->gpu_fraction},
                                  {.name = "gpu_memory_limit", .value = &l->gpu_limit},
                                  {0}};
    bool ok = cli_parse(argc, argv, options, &rest);
    if (ok && rest.n)
        ok = cli_bad_use("launch", "%s: the program comes behind \"--\"", rest.v[0]) == 0;
    if (jobs.n) /* without defaults: only the jobs that are given */
        n_ps = n_workers = 0;
    ok = ok && (!ps || cli_number("launch", "ps", ps, 0, &n_ps)) &&
         (!workers || cli_number("launch", "workers", workers, 0, &n_workers)) &&
         cli_gpu_memory("launch", l->gpu_fraction, l->gpu_limit, &gpu) &&
         seconds("grace", grace, &l->grace) && seconds("ps_grace", ps_grace, &l->ps_grace) &&
         add_job(l, "ps", 2, n_ps) && add_job(l, "chief", 5, chief) &&
         add_job(l, "worker", 6, n_workers) && add_other_jobs(l, &jobs);
    if (ok && !l->n)
        ok = cli_bad_use("launch", "no task to run") == 0;
    cli_values_free(&rest);
    cli_values_free(&jobs);
    return ok;
}

static void release(launch *l)
{
    for (int i = 0; i < l->n; i++) {
        for (int k = 0; k < LAUNCH_TAIL; k++)
            free(l->tasks[i].tail[k]);
        for (int s = 0; s < 2; s++)
            free(l->tasks[i].streams[s].text);
    }
    free(l->tasks);
}

static int go(launch *l)
{
    leat_status s = launch_find_ports(l);
    if (!s)
        s = launch_guard_start(l);
    if (s)
        return cli_finish("launch", s);
    signal(SIGPIPE, SIG_IGN);
    /* Processes that leave their task's process group become our children. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    l->live = isatty(STDERR_FILENO);
    l->colour = isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) && !getenv("NO_COLOR");
    l->began = launch_now();
    launch_say(l, "%d tasks on 127.0.0.1, ports %d to %d", l->n, l->tasks[0].port,
               l->tasks[l->n - 1].port);
    int code = launch_watch(l);
    if (code == 0)
        launch_say(l, "all done in %.1f s", launch_now() - l->began);
    return code;
}

static int run(int argc, char **argv)
{
    int cut = 1;
    while (cut < argc && strcmp(argv[cut], "--") != 0)
        cut++;
    launch l = {.guard = -1, .tasks = cli_array(MOST_TASKS, sizeof(launch_task))};
    int code = 2;
    if (!read_options(&l, cut, argv))
        code = 2;
    else if (cut + 1 >= argc)
        cli_bad_use("launch", "wants \"-- PROGRAM ARGS\" behind its options");
    else {
        l.program = argv + cut + 1;
        l.n_program = argc - cut - 1;
        code = go(&l);
    }
    release(&l);
    return code;
}

const cli_command cli_launch = {
    .name = "launch",
    .summary = "run a program as a whole cluster on this machine",
    .usage =
        "usage: leat launch [--ps N] [--workers N] [--chief] [--jobs NAME=N,...] -- PROGRAM ARGS\n"
        "\n"
        "Starts PROGRAM once a task, with free ports of 127.0.0.1. Each is told which task it\n"
        "is by TF_CONFIG and by flags behind ARGS: --job_name, --task_index and, if there are\n"
        "no other jobs, --ps_hosts and --worker_hosts. What they print comes behind their\n"
        "names. When a task fails, the rest is ended, and the exit code is 1. When all but the\n"
        "ps tasks are done, these are ended, too. The CPUs are dealt out to the tasks that are\n"
        "no ps, by LEAT_NUM_THREADS, unless that is set. Tasks get a random token (LEAT_TOKEN),\n"
        "so that no other user of the machine can call them; LEAT_TOKEN=text sets it, and\n"
        "LEAT_TOKEN= leaves it out, for clients that have none.\n"
        "\n"
        "  --ps N             ps tasks (1)\n"
        "  --workers N        worker tasks (2)\n"
        "  --chief            a job \"chief\" of one task besides\n"
        "  --jobs NAME=N,...  other jobs; --ps and --workers are then 0 if they are not given\n"
        "  --no_flags         nothing behind ARGS: PROGRAM reads TF_CONFIG\n"
        "  --visible_device_list LIST, --gpu_memory_fraction F, --gpu_memory_limit BYTES\n"
        "                     the machine's GPUs that tasks see, as 1,0, and how much of each "
        "one's\n"
        "                     memory a task takes: LEAT_VISIBLE_DEVICES, LEAT_GPU_MEMORY_FRACTION\n"
        "                     and LEAT_GPU_MEMORY_LIMIT of the tasks\n"
        "  --ps_grace S       seconds that ps tasks have to end by themselves (5)\n"
        "  --grace S          seconds between SIGTERM and SIGKILL (10)\n",
    .run = run,
};
