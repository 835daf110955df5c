/* `leat launch` with shell scripts as tasks: the tasks' arguments and environment, their output,
 * and that no process is left, however it ends. */
#include "command.h"

#include <dirent.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A launch with these options, each task a shell that runs the script: $1 is --job_name=..., $2
 * --task_index=... */
static command start(const char *options, const char *script)
{
    return command_start("exec %s/leat launch %s -- sh -c '%s' task", LEAT_BINARY_DIR, options,
                         script);
}

static int run(const char *options, const char *script)
{
    return command_end(start(options, script));
}

static void flags(void)
{
    CHECK_INT(run("--workers 2", "echo \"$*\""), 0);
    saw("[ps/0] --job_name=ps --task_index=0 --ps_hosts=127.0.0.1:");
    saw("[worker/1] --job_name=worker --task_index=1 --ps_hosts=127.0.0.1:");
    CHECK_INT(run("--ps 1 --workers 2 --chief --jobs extra=1", "echo \"$* $TF_CONFIG\""), 0);
    saw("[worker/1] --job_name=worker --task_index=1 {");
    saw("[extra/0] --job_name=extra");
    saw("\"task\": {\"type\": \"chief\", \"index\": 0}}");
    saw("{\"cluster\": {\"ps\": [\"127.0.0.1:");
    saw("all done");
    CHECK_INT(run("--ps 0 --workers 1 --no_flags", "echo \"<$*>\"; printf end"), 0);
    saw("[worker/0] <>\n");
    saw("[worker/0] end\n"); /* a line without its end */
    CHECK_INT(run("--ps 0 --workers 20", "echo \"$LEAT_NUM_THREADS threads\""), 0);
    saw("[worker/19] 1 threads\n");
}

/* All tasks have the same token, which nobody else knows, or what the user says. */
static void tokens(void)
{
    char first[64] = "", second[64] = "", other[64] = "";
    CHECK_INT(run("--ps 0 --workers 2", "echo \"token $LEAT_TOKEN.\""), 0);
    const char *a = strstr(output, "[worker/0] token "), *b = strstr(output, "[worker/1] token ");
    CHECK(a && sscanf(a, "[worker/0] token %40[0-9a-f].", first) == 1);
    CHECK(b && sscanf(b, "[worker/1] token %40[0-9a-f].", second) == 1);
    CHECK_INT(strlen(first), 32);
    CHECK_STR(first, second);
    CHECK_INT(run("--ps 0 --workers 1", "echo \"token $LEAT_TOKEN.\""), 0);
    a = strstr(output, "[worker/0] token ");
    CHECK(a && sscanf(a, "[worker/0] token %40[0-9a-f].", other) == 1);
    CHECK(strcmp(first, other) != 0);
    setenv("LEAT_TOKEN", "", 1);
    CHECK_INT(run("--ps 0 --workers 1", "echo \"token <$LEAT_TOKEN>\""), 0);
    saw("[worker/0] token <>");
    setenv("LEAT_TOKEN", "sesame", 1);
    CHECK_INT(run("--ps 0 --workers 1", "echo \"token <$LEAT_TOKEN>\""), 0);
    saw("[worker/0] token <sesame>");
    unsetenv("LEAT_TOKEN");
}

static void bad_use(void)
{
    CHECK_INT(run("--ps x", ":"), 2);
    CHECK_INT(run("--ps 0 --workers 0", ":"), 2);
    CHECK_INT(run("--jobs ps", ":"), 2);
    CHECK_INT(run("--jobs a=1,a=2", ":"), 2);
    CHECK_INT(run("--workers 100000", ":"), 2);
    CHECK_INT(run("--grace soon", ":"), 2);
    CHECK_INT(run("extra", ":"), 2);
    CHECK_INT(run("--ps 0 --workers 2 -- /no/such/program", ":"), 2);
    saw("/no/such/program: No such file");
}

static void worker_fails(void)
{
    double began = now();
    CHECK_INT(run("--ps 1 --workers 2",
                  "case $1$2 in *worker*1) echo so far; echo bad >&2; exit 7;; esac; sleep 60"),
              1);
    saw("worker/1 ended with exit code 7");
    saw("; its last lines:\n");
    saw("    bad\n");
    saw("    so far\n");
    saw("ending the other 2 tasks");
    CHECK(now() - began < 10);
    CHECK_INT(run("--ps 0 --workers 1", "kill -SEGV $$"), 1);
    saw("worker/0 was ended by signal 11 (Segmentation fault)");
}

/* A ps that handles SIGTERM drains; one that ignores it is killed. */
static void ps_ends(void)
{
    CHECK_INT(run("--ps_grace 0.2",
                  "case $1 in *ps) trap \"echo drained; exit 0\" TERM; while :; do sleep 0.05; "
                  "done;; esac"),
              0);
    saw("[ps/0] drained");
    CHECK_INT(run("--ps_grace 0.2 --grace 0.3",
                  "case $1 in *ps) trap \"\" TERM; while :; do sleep 0.05; done;; esac"),
              0);
    saw("did not end within 0.3 s: killed");
    CHECK_INT(run("", "case $1 in *ps) sleep 0.3; echo by myself;; esac"), 0);
    saw("[ps/0] by myself");
}

/* Whether a process "sleep SECONDS" with this number runs. */
static bool alive(const char *seconds)
{
    char path[300], want[64];
    int n = snprintf(want, sizeof(want), "sleep%c%s", 0, seconds) + 1;
    bool found = false;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        char got[64] = "";
        snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        FILE *f = e->d_name[0] >= '0' && e->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (!f)
            continue;
        found = fread(got, 1, sizeof(got), f) == (size_t)n && memcmp(got, want, (size_t)n) == 0;
        fclose(f);
    }
    if (d)
        closedir(d);
    return found;
}

static bool gone(const char *word)
{
    for (double until = now() + 10; now() < until; usleep(50000))
        if (!alive(word))
            return true;
    return false;
}

static bool appears(const char *seconds)
{
    for (double until = now() + 10; now() < until; usleep(20000))
        if (alive(seconds))
            return true;
    return false;
}

static void interrupted(void)
{
    command c = start("", "echo up; sleep 41239 & sleep 41239");
    CHECK(command_read(c, "[worker/1] up"));
    CHECK(appears("41239"));
    CHECK_INT(command_signal(c, SIGINT), 130);
    saw("Interrupt: ending 3 tasks");
    CHECK(gone("41239"));
}

/* The ps gets SIGTERM when the workers have ended. */
static void ps_outlives(void)
{
    command c =
        start("--ps 1 --workers 1", "case $1 in *ps) w=ps; n=0;; *) w=worker; n=0.5;; esac; "
                                    "trap \"sleep $n; echo $w drained; exit 0\" TERM; echo up; "
                                    "while :; do sleep 0.05; done");
    CHECK(command_read(c, "[worker/0] up") && command_read(c, "[ps/0] up"));
    CHECK_INT(command_signal(c, SIGTERM), 143);
    saw("worker drained");
    saw("ps drained");
    CHECK(strstr(output, "worker drained") < strstr(output, "ps drained"));
}

static void launch_killed(void)
{
    command c = start("", "echo up; trap \"\" TERM; (sleep 41240; :) & sleep 41240; :");
    CHECK(command_read(c, "[worker/0] up") && command_read(c, "[worker/1] up") &&
          command_read(c, "[ps/0] up"));
    CHECK(appears("41240"));
    kill(c.pid, SIGKILL);
    waitpid(c.pid, NULL, 0);
    close(c.from);
    CHECK(gone("41240"));
}

/* A process that a task has started in a session of its own (setsid) ends with the launch, too. */
static void runaway(void)
{
    CHECK_INT(run("--ps 0 --workers 1", "setsid sleep 41241 >/dev/null 2>&1 & sleep 0.3"), 0);
    CHECK(gone("41241"));
}

static void much_output(void)
{
    CHECK_INT(run("--ps 0 --workers 2",
                  "i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; printf "
                  "\"a\\rb\\r\\n\""),
              0);
    saw("[worker/0] line 499\n");
    saw("[worker/1] line 0\n");
    saw("[worker/1] a\n");
    saw("[worker/1] b\n");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"flags", flags}, {"tokens", tokens}, {"bad_use", bad_use},
               {"worker_fails", worker_fails}, {"ps_ends", ps_ends}, {"interrupted", interrupted},
               {"ps_outlives", ps_outlives}, {"launch_killed", launch_killed}, {"runaway", runaway},
               {"much_output", much_output});
}
