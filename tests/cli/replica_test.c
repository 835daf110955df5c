/* models/mnist_replica as users run it: a cluster by `leat launch`, with and without TLS and a
 * token; tasks by themselves that SIGTERM ends. */
#include "command.h"

#include <time.h>

static char dir[] = "/tmp/leat-replica-XXXXXX";

static int launch(const char *options)
{
    return command_end(command_start("%s/leat launch --ps_grace 1 --ps 2 --workers 2 -- "
                                     "%s/models/mnist_replica --train_steps 60 --hidden_units 20 "
                                     "--log_every 10 %s",
                                     LEAT_BINARY_DIR, LEAT_BINARY_DIR, options));
}

static void trains(const char *options)
{
    CHECK_INT(launch(options), 0);
    saw("[ps/1] job name = ps\n");
    saw("[worker/1] task index = 1\n");
    saw("[worker/0] Worker 0: Initializing session...");
    saw("[worker/1] Worker 1: Waiting for session to be initialized...");
    saw("[worker/1] Worker 1: Session initialization complete.");
    saw("[worker/0] Training begins @ ");
    /* One worker may be so late that the other one does all steps. */
    saw(": training step 10 done (global step: ");
    saw("[worker/1] Training elapsed time: ");
    saw("[worker/0] After 60 training step(s), validation cross entropy = ");
    saw("[worker/0] test accuracy ");
    saw("all done in");
}

static void replicas(void)
{
    trains("");
}

static void sync_replicas(void)
{
    trains("--sync_replicas");
}

static void bad_use(void)
{
    static const struct {
        const char *args, *words;
    } rows[] = {
        {"", "Must specify an explicit `job_name`"},
        {"--job_name ps", "Must specify an explicit `task_index`"},
        {"--job_name ps --task_index 7", "no task 7"},
        {"--job_name ps --task_index 0 --tls_cert c", "go together"},
        {"--job_name ps --task_index 0 --tls_mutual", "wants --tls_cert"},
        {"--job_name ps --task_index 0 --token a --token_file b", "not both"},
        {"--job_name ps --task_index 0 --token_file /none", "/none: No such file"},
        {"--job_name ps --task_index 0 --token_file /dev/null", "wants one line"},
        {"--train_steps 0", "is too small"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        command c = command_start("env -u TF_CONFIG -u SLURM_PROCID %s/models/mnist_replica %s",
                                  LEAT_BINARY_DIR, rows[i].args);
        expect(rows[i].args, command_end(c), 2, rows[i].words);
    }
}

/* ---- Who may talk ---- */

static bool make_certificate(void)
{
    char script[1024];
    snprintf(script, sizeof(script),
             "cd %s && exec >/dev/null 2>&1 && openssl req -x509 -newkey rsa:2048 -nodes -days 2 "
             "-subj /CN=task -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout task.key "
             "-out task.pem && umask 077 && echo sesame >token",
             dir);
    return system(script) == 0;
}

static int ask(int port, const char *options)
{
    return command_end(command_start("%s/leat check --wait 3 --ps_hosts 127.0.0.1:%d %s",
                                     LEAT_BINARY_DIR, port, options));
}

static void secured(void)
{
    char options[512];
    if (!make_certificate())
        SKIP("the openssl command is not there");
    snprintf(options, sizeof(options),
             "--tls_cert %s/task.pem --tls_key %s/task.key --tls_ca %s/task.pem --tls_mutual "
             "--token_file %s/token",
             dir, dir, dir, dir);
    trains(options);
    /* One task with TLS and a token, checked with neither, with one of them, with both. */
    int port = free_port();
    command c = command_start("exec %s/models/mnist_replica --job_name ps --task_index 0 "
                              "--ps_hosts 127.0.0.1:%d %s",
                              LEAT_BINARY_DIR, port, options);
    command_read(c, "task index = 0");
    char half[256];
    snprintf(half, sizeof(half), "--tls_ca %s/task.pem --token sesame", dir);
    CHECK_INT(ask(port, ""), 1);
    CHECK_INT(ask(port, half), 1); /* without a certificate */
    CHECK_INT(ask(port, options), 0);
    CHECK_INT(command_signal(c, SIGTERM), 0);
}

/* ---- SIGTERM ---- */

static char hosts[128];
static const char lost_ps[] = "A task went away"; /* a worker's log, when its ps has ended */

static command start(const char *job, const char *options)
{
    return command_start("exec env TF_CPP_MIN_LOG_LEVEL=0 "
                         "%s/models/mnist_replica --job_name %s --task_index 0 %s "
                         "--train_steps 1000000 --hidden_units 20 --log_every 5 --grace 2 %s",
                         LEAT_BINARY_DIR, job, hosts, options);
}

static void make_hosts(void)
{
    snprintf(hosts, sizeof(hosts), "--ps_hosts 127.0.0.1:%d --worker_hosts 127.0.0.1:%d",
             free_port(), free_port());
}

/* A worker that waits for a ps that was never started, or that was lost, gets SIGTERM: it ends at
 * once, names the task it waited for, and exits with 0. */
static void worker_waits(void)
{
    char wanted[64];
    for (int gone = 0; gone < 2; gone++) {
        make_hosts();
        snprintf(wanted, sizeof(wanted), "%.*s", (int)strcspn(hosts + 11, " "), hosts + 11);
        command ps = {0}, worker;
        if (gone)
            ps = start("ps", "");
        worker = start("worker", "--grace 30");
        if (gone) {
            CHECK(command_read(worker, "training step 5 done"));
            command_signal(ps, SIGKILL);
            CHECK(command_read(worker, lost_ps));
        } else {
            CHECK(command_read(worker, "Initializing session"));
        }
        time_t began = time(NULL);
        CHECK_INT(command_signal(worker, SIGTERM), 0);
        CHECK(time(NULL) - began < 10); /* it has 30 s of grace */
        saw("Asked to stop, after the chief on grpc://127.0.0.1:");
        saw(wanted);
    }
}

/* The worker ends after its step and saves what it did; its ps then ends by itself. */
static void worker_drains(void)
{
    char options[128];
    make_hosts();
    snprintf(options, sizeof(options), "--log_dir %s/log", dir);
    command ps = start("ps", ""), worker = start("worker", options);
    CHECK(command_read(worker, "training step 5 done"));
    CHECK_INT(command_signal(worker, SIGTERM), 0);
    saw("Terminated: ending; steps under way have 2 s");
    saw("Training ends");
    CHECK(!strstr(output, "After 1000000"));
    command list = command_start("cat %s/log/checkpoint", dir);
    CHECK_INT(command_end(list), 0);
    CHECK(!strstr(output, "model_checkpoint_path: \"model.ckpt-0\""));
    CHECK_INT(command_end(ps), 0);
}

/* A ps drains at once while its worker goes on. */
static void ps_drains(void)
{
    make_hosts();
    command ps = start("ps", ""), worker = start("worker", "");
    CHECK(command_read(worker, "training step 5 done"));
    CHECK_INT(command_signal(ps, SIGTERM), 0);
    saw("Terminated: ending; steps under way have 2 s");
    CHECK(command_read(worker, lost_ps));
    CHECK_INT(command_signal(worker, SIGTERM), 0);
    saw("/job:ps/replica:0/task:0 (127.0.0.1:"); /* the task that it waited for */
}

int main(int argc, char **argv)
{
    if (!mkdtemp(dir))
        return 1;
    int rc = RUN(argc, argv, {"bad_use", bad_use}, {"replicas", replicas},
                 {"sync_replicas", sync_replicas}, {"secured", secured},
                 {"worker_drains", worker_drains}, {"worker_waits", worker_waits},
                 {"ps_drains", ps_drains});
    command_end(command_start("rm -r %s", dir));
    return rc;
}
