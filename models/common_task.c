/* common_task.c -- see common_task.h. */
#include "common_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Cluster and task ---- */

static leat_status add_hosts(leat_cluster *c, const task_flags *f)
{
    LEAT_TRY(leat_cluster_add(c, "ps", f->ps_hosts ? f->ps_hosts : "localhost:2222"));
    return leat_cluster_add(c, "worker",
                            f->worker_hosts ? f->worker_hosts : "localhost:2223,localhost:2224");
}

static leat_status find_cluster(const task_flags *f, task *t)
{
    if (!f->ps_hosts && !f->worker_hosts) {
        leat_status s = leat_cluster_from_env(&t->cluster, t->job, &t->index);
        if (leat_status_code(s) != LEAT_NOT_FOUND)
            return s;
        leat_status_free(s);
    }
    t->cluster = leat_cluster_new();
    return add_hosts(t->cluster, f);
}

static leat_status find_task(const task_flags *f, task *t)
{
    if (f->job_name) {
        LEAT_REQUIRE(strlen(f->job_name) < sizeof(t->job), INVALID_ARGUMENT,
                     "--job_name is too long");
        strcpy(t->job, f->job_name);
    }
    if (f->task_index >= 0)
        t->index = f->task_index > 1 << 30 ? 1 << 30 : (int)f->task_index;
    LEAT_REQUIRE(t->job[0], INVALID_ARGUMENT, "Must specify an explicit `job_name`");
    LEAT_REQUIRE(t->index >= 0, INVALID_ARGUMENT, "Must specify an explicit `task_index`");
    LEAT_REQUIRE(leat_cluster_address(t->cluster, t->job, t->index), INVALID_ARGUMENT,
                 "The cluster has no task %d of job \"%s\"", t->index, t->job);
    int chiefs = leat_cluster_tasks(t->cluster, "chief") + leat_cluster_tasks(t->cluster, "master");
    t->workers = leat_cluster_tasks(t->cluster, "worker") + chiefs;
    t->is_chief = strcmp(t->job, "worker") != 0 || (!chiefs && t->index == 0);
    return NULL;
}

/* ---- Security ---- */

static leat_status find_security(const task_flags *f, task *t)
{
    LEAT_REQUIRE(!f->token || !f->token_file, INVALID_ARGUMENT,
                 "--token or --token_file, not both");
    LEAT_REQUIRE(!f->certificate == !f->key, INVALID_ARGUMENT,
                 "--tls_cert and --tls_key go together");
    LEAT_REQUIRE(!f->mutual || (f->certificate && f->authority), INVALID_ARGUMENT,
                 "--tls_mutual wants --tls_cert, --tls_key and --tls_ca");
    LEAT_TRY(leat_status_prefix(leat_token_read(f->token_file, t->token), "%s",
                                f->token_file ? "--token_file: " : ""));
    if (f->token)
        fprintf(stderr,
                "%s: warning: --token shows the token to all users of this machine; use "
                "--token_file or LEAT_TOKEN\n",
                t->program);
    t->security = (leat_security){
        .certificate = f->certificate,
        .key = f->key,
        .authority = f->authority,
        .mutual = f->mutual,
        .name = f->name,
        .token = f->token      ? f->token
                 : t->token[0] ? t->token
                               : NULL,
    };
    return NULL;
}

leat_status task_wanted(const task_flags *f, bool *wanted_out)
{
    leat_cluster *c = NULL;
    char job[64];
    int index;
    *wanted_out = f->job_name || f->ps_hosts || f->worker_hosts;
    if (*wanted_out)
        return NULL;
    leat_status s = leat_cluster_from_env(&c, job, &index);
    *wanted_out = !s;
    leat_cluster_free(c);
    if (leat_status_code(s) != LEAT_NOT_FOUND)
        return s;
    leat_status_free(s);
    return NULL;
}

leat_status task_find(const char *program, const task_flags *f, task *t)
{
    *t = (task){.index = -1,
                .program = program,
                .grace_s = f->grace,
                .transports = f->transports,
                .data_port = (int)f->data_port};
    LEAT_REQUIRE(f->data_port >= 0 && f->data_port <= 65535, INVALID_ARGUMENT,
                 "--data_port is no port");
    LEAT_TRY(find_cluster(f, t));
    LEAT_TRY(find_task(f, t));
    return find_security(f, t);
}

/* ---- Start and end. SIGUSR1 is sent by this process to its signal thread, to end that. ---- */

static void *wait_for_signal(void *arg)
{
    task *t = arg;
    int got = 0;
    if (sigwait(&t->signals, &got) != 0 || got == SIGUSR1)
        return NULL;
    fprintf(stderr, "%s: %s: ending; steps under way have %lld s\n", t->program, strsignal(got),
            (long long)t->grace_s);
    sigset_t
        again; /* a second signal ends the process at once; not SIGUSR1, which may still come */
    sigemptyset(&again);
    sigaddset(&again, SIGINT);
    sigaddset(&again, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &again, NULL);
    leat_process_end_within(t->grace_s * 1000);
    leat_cancel_runs(t->stop);
    if (t->server && strcmp(t->job, "ps") == 0)
        leat_server_stop(t->server, t->grace_s * 1000);
    return NULL;
}

leat_status task_start(task *t, bool has_server)
{
    leat_server_options o = {
        .security = t->security, .transports = t->transports, .data_port = t->data_port};
    t->stop = leat_cancellation_new();
    sigemptyset(&t->signals);
    sigaddset(&t->signals, SIGINT);
    sigaddset(&t->signals, SIGTERM);
    sigaddset(&t->signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &t->signals, NULL); /* before other threads, which inherit it */
    if (!has_server)
        LEAT_TRY(leat_server_start(t->cluster, t->job, t->index, &o, &t->server));
    LEAT_REQUIRE(pthread_create(&t->waiter, NULL, wait_for_signal, t) == 0, RESOURCE_EXHAUSTED,
                 "No thread to wait for signals");
    return NULL;
}

void task_stop(task *t)
{
    if (t->waiter) {
        pthread_kill(t->waiter, SIGUSR1);
        pthread_join(t->waiter, NULL);
        t->waiter = 0;
    }
    leat_server_free(t->server);
    t->server = NULL;
}

void task_release(task *t)
{
    task_stop(t);
    leat_cancellation_free(t->stop);
    t->stop = NULL;
    leat_cluster_free(t->cluster);
    t->cluster = NULL;
}
