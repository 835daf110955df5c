/* common_task.h -- programs that are tasks of a cluster: which task, security, its server, and its
 * end by SIGTERM or Ctrl-C. */
#ifndef COMMON_TASK_H
#define COMMON_TASK_H

#include <leat/leat.h>

#include <pthread.h>
#include <signal.h>

#include "common_flags.h"

typedef struct task_flags {
    const char *job_name, *ps_hosts, *worker_hosts;
    int64_t task_index, grace; /* -1: from the environment; grace in seconds */
    const char *transports;
    int64_t data_port;
    const char *certificate, *key, *authority, *name, *token, *token_file;
    bool mutual;
} task_flags;
#define TASK_FLAGS_DEFAULT                                                                         \
    {                                                                                              \
        .task_index = -1, .grace = 10                                                              \
    }

/* Rows for a table of flags; f is a static task_flags. */
#define TASK_FLAGS(f)                                                                              \
    {"job_name", FLAG_STRING, &(f).job_name, 0, "ps or worker; also from TF_CONFIG or Slurm"},     \
        {"task_index", FLAG_INT, &(f).task_index, 0, "of the job; worker 0 is the chief"},         \
        {"task_id", FLAG_INT, &(f).task_index, 0, "the same"},                                     \
        {"ps_hosts", FLAG_STRING, &(f).ps_hosts, 0, "host:port,... of the parameter servers"},     \
        {"worker_hosts", FLAG_STRING, &(f).worker_hosts, 0, "host:port,... of the workers"},       \
        {"grace", FLAG_INT, &(f).grace, 0, "seconds for steps under way after SIGTERM"},           \
        {"transports", FLAG_STRING, &(f).transports, 0, "ways between tasks: grpc,socket,shm"},    \
        {"data_port", FLAG_INT, &(f).data_port, 0, "of transport socket; 0: any"},                 \
        {"tls_cert", FLAG_STRING, &(f).certificate, 0, "file: this task's certificate, PEM"},      \
        {"tls_key", FLAG_STRING, &(f).key, 0, "file: its key"},                                    \
        {"tls_ca", FLAG_STRING, &(f).authority, 0, "file: certificates that sign the peers'"},     \
        {"tls_mutual", FLAG_BOOL, &(f).mutual, 0, "clients must show a certificate, too"},         \
        {"tls_name", FLAG_STRING, &(f).name, 0, "name in peers' certificates, if not their host"}, \
        {"token_file", FLAG_STRING, &(f).token_file, 0, "file: secret that every call carries"},   \
    {                                                                                              \
        "token", FLAG_STRING, &(f).token, 0, "that secret itself; also from LEAT_TOKEN"            \
    }

typedef struct task { /* the task that this process is */
    leat_cluster *cluster;
    char job[64];
    int index, workers; /* workers: number of workers, including a chief */
    bool is_chief;
    leat_security security;
    const char *transports;
    int data_port;
    char token[LEAT_TOKEN_SIZE]; /* from the token file, or from LEAT_TOKEN */
    leat_server *server;         /* NULL: the server is another process */
    const char *program;
    int64_t grace_s;
    sigset_t signals;
    pthread_t waiter;
    leat_cancellation *stop; /* cancelled by a signal */
} task;

/* Whether flags or the environment name a cluster. */
leat_status task_wanted(const task_flags *f, bool *wanted_out) LEAT_MUST_CHECK;
/* From the flags, else from the environment, else from the default addresses. Borrows f's texts. */
leat_status task_find(const char *program, const task_flags *f, task *t) LEAT_MUST_CHECK;
/* From now on SIGTERM and SIGINT end the task: a ps stops its server, whose running steps have
 * `grace` seconds to end; a worker that gives t->stop to its session does no further step. A
 * task that has not ended some seconds after its grace is ended (leat_process_end_within). Starts
 * the server, unless the task's server is another process. */
leat_status task_start(task *t, bool has_server) LEAT_MUST_CHECK;
void task_stop(task *t); /* stops the server, and the thread that waits for signals */
void task_release(task *t);

#endif
