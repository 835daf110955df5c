/* Tasks of models/mnist_replica that are told to end, killed, started again or started by mistake
 * while others train: neither the parameter server nor the model is lost. */
#include "command.h"

static char dir[] = "/tmp/leat-life-XXXXXX", hosts[256], ps_host[64];
static const char *const kept = "on tasks that kept running: it is kept, not initialised";

static int log_level = 1; /* of the tasks: 0 info, 1 warnings */

/* options come last, and override what is before them. */
static command start(const char *job, int index, const char *options)
{
    return command_start("exec env TF_CPP_MIN_LOG_LEVEL=%d %s/models/mnist_replica --job_name %s "
                         "--task_index %d %s --train_steps 100000000 --hidden_units 20 --grace 10 "
                         "%s",
                         log_level, LEAT_BINARY_DIR, job, index, hosts, options);
}

/* A ps, and two workers. */
static void make_hosts(void)
{
    snprintf(ps_host, sizeof(ps_host), "127.0.0.1:%d", free_port());
    snprintf(hosts, sizeof(hosts), "--ps_hosts %s --worker_hosts 127.0.0.1:%d,127.0.0.1:%d",
             ps_host, free_port(), free_port());
}

/* Reads the output of a worker until it has trained for about a second from now on, and gives the
 * global step of its last line. */
static long long trains(command c)
{
    long long step = -1;
    for (int i = 0; i < 2; i++) {
        output[0] = 0;
        CHECK(command_read(c, "global step: "));
        CHECK(command_read(c, ")\n"));
    }
    const char *at = strstr(output, "global step: ");
    CHECK(at && sscanf(at, "global step: %lld", &step) == 1);
    return step;
}

/* ---- The parameter server ---- */

/* Workers are told to end and started again, one after the other, as an update of the program
 * does. The ps stays, and the model with it. Then both end, and the ps says why it does. */
static void rolling_restart(void)
{
    make_hosts();
    command ps = start("ps", 0, ""), w0 = start("worker", 0, ""), w1 = start("worker", 1, "");
    trains(w1);
    CHECK_INT(command_signal(w1, SIGTERM), 0);
    w1 = start("worker", 1, "");
    long long before = trains(w1);
    CHECK_INT(command_signal(w0, SIGTERM), 0);
    w0 = start("worker", 0, "");
    CHECK(command_read(w0, kept));
    CHECK(trains(w0) > before);
    CHECK(trains(w1) > before);
    CHECK_INT(command_signal(w0, SIGTERM), 0);
    CHECK_INT(command_signal(w1, SIGTERM), 0);
    output[0] = 0;
    CHECK_INT(command_end(ps), 0);
    saw("/job:ps/replica:0/task:0 ends, since all tasks of other jobs are done: "
        "/job:worker/replica:0/task:0, /job:worker/replica:0/task:1");
}

/* ---- The model ---- */

/* A chief with the same ps and another list of workers: it is refused, with both lists. */
static void stray_chief(void)
{
    char options[128], theirs[200], ours[200];
    int port = free_port();
    make_hosts();
    command ps = start("ps", 0, ""), w0 = start("worker", 0, ""), w1 = start("worker", 1, "");
    long long before = trains(w1);
    snprintf(options, sizeof(options), "--worker_hosts 127.0.0.1:%d", port);
    for (int i = 0; i < 3; i++)
        CHECK_INT(command_end(start("worker", 0, options)), 1);
    snprintf(theirs, sizeof(theirs), "The cluster of that task: \"ps=%s;worker=127.0.0.1:%d\"",
             ps_host, port);
    snprintf(ours, sizeof(ours), "of /job:ps/replica:0/task:0: \"ps=%s;worker=%s\"", ps_host,
             strstr(hosts, "--worker_hosts ") + strlen("--worker_hosts "));
    saw("FAILED_PRECONDITION: /job:ps/replica:0/task:0 refuses a session of "
        "/job:worker/replica:0/task:0, which was started for another cluster: "
        "/job:worker/replica:0/task:0 is at 127.0.0.1:");
    saw(", where another process replies");
    saw(theirs);
    saw(ours);
    saw("Start all tasks with the same lists of hosts");
    CHECK(trains(w1) > before);
    CHECK_INT(command_signal(w1, SIGTERM), 0);
    CHECK_INT(command_signal(w0, SIGTERM), 0);
    CHECK_INT(command_end(ps), 0);
}

/* A chief without --log_dir is killed and started again: the model is kept. With --discard_live it
 * is initialised. */
static void chief_again(void)
{
    make_hosts();
    command ps = start("ps", 0, ""), w0 = start("worker", 0, ""), w1 = start("worker", 1, "");
    long long before = trains(w1);
    CHECK_INT(command_signal(w0, SIGKILL), -SIGKILL);
    w0 = start("worker", 0, "");
    CHECK(command_read(w0, kept));
    saw("The model is there already, at step ");
    saw("set discard_live");
    CHECK(trains(w0) > before);
    CHECK_INT(command_signal(w1, SIGTERM), 0); /* no other worker counts the steps up */
    CHECK_INT(command_signal(w0, SIGKILL), -SIGKILL);
    w0 = start("worker", 0, "--discard_live --log_every 1");
    CHECK(command_read(w0, "training step 3 done"));
    saw("Worker 0: training step 1 done (global step: 0)\n");
    CHECK(!strstr(output, kept));
    CHECK_INT(command_signal(w0, SIGTERM), 0);
    CHECK_INT(command_end(ps), 0);
}

/* ---- A ps that is told to end ---- */

/* The step in the name of a checkpoint, after these words. */
static long long step_after(const char *words)
{
    const char *at = strstr(output, words), *name = at ? strstr(at, "model.ckpt-") : NULL;
    return name ? atoll(name + strlen("model.ckpt-")) : -1;
}

/* The chief saves before the ps ends, although the next checkpoint is due in ten minutes, and
 * restores that when the ps is back. */
static void ps_drains(const char *options)
{
    char with_dir[200];
    static int runs;
    make_hosts();
    snprintf(with_dir, sizeof(with_dir), "--log_dir %s/%d %s", dir, runs++, options);
    log_level = 0;
    command ps = start("ps", 0, ""), w0 = start("worker", 0, with_dir),
            w1 = start("worker", 1, options);
    long long before = trains(w0);
    output[0] = 0;
    CHECK_INT(command_signal(ps, SIGTERM), 0);
    saw("Terminated: ending; steps under way have 10 s");
    ps = start("ps", 0, "");
    CHECK(command_read(w0, "A task went away"));
    saw("/job:ps/replica:0/task:0 is about to end: the model is saved first, as /tmp/leat-life-");
    long long saved = step_after("is about to end");
    CHECK(saved >= before);
    CHECK(command_read(w0, "Restoring parameters from"));
    CHECK(command_read(w0, "Running local_init_op"));
    CHECK_INT(step_after("Restoring parameters from"), saved);
    CHECK(trains(w0) > saved);
    CHECK_INT(command_signal(w1, SIGTERM), 0);
    CHECK_INT(command_signal(w0, SIGTERM), 0);
    CHECK_INT(command_end(ps), 0);
    log_level = 1;
}

static void ps_drains_async(void)
{
    ps_drains("");
}

static void ps_drains_sync(void)
{
    ps_drains("--sync_replicas");
}

static command start_server(const char *job)
{
    command c = command_start("exec %s/leat server --job_name %s --task_index 0 %s --grace 10",
                              LEAT_BINARY_DIR, job, hosts);
    CHECK(command_read(c, "answers at"));
    return c;
}

/* The same, for a chief that drives servers of other processes. */
static void ps_drains_existing(void)
{
    char options[200];
    make_hosts();
    snprintf(options, sizeof(options), "--existing_servers --log_dir %s/existing", dir);
    command ps = start_server("ps"), server = start_server("worker");
    log_level = 0;
    command w0 = start("worker", 0, options);
    log_level = 1;
    long long before = trains(w0);
    CHECK_INT(command_signal(ps, SIGTERM), 0);
    ps = start_server("ps");
    output[0] = 0;
    CHECK(command_read(w0, "A task went away"));
    saw("/job:ps/replica:0/task:0 is about to end: the model is saved first, as /tmp/leat-life-");
    long long saved = step_after("is about to end");
    CHECK(saved >= before);
    CHECK(command_read(w0, "Restoring parameters from"));
    CHECK(command_read(w0, "Running local_init_op"));
    CHECK_INT(step_after("Restoring parameters from"), saved);
    CHECK(trains(w0) > saved);
    CHECK_INT(command_signal(w0, SIGTERM), 0);
    CHECK_INT(command_signal(server, SIGTERM), 0);
    command_signal(ps, SIGTERM);
}

int main(int argc, char **argv)
{
    if (!mkdtemp(dir))
        return 1;
    int rc = RUN(argc, argv, {"rolling_restart", rolling_restart}, {"stray_chief", stray_chief},
                 {"chief_again", chief_again}, {"ps_drains_async", ps_drains_async},
                 {"ps_drains_sync", ps_drains_sync}, {"ps_drains_existing", ps_drains_existing});
    command_end(command_start("rm -r %s", dir));
    return rc;
}
