/* cluster_args.h -- options that `server` and `check` share: the cluster, the task, security. */
#ifndef LEAT_CLI_CLUSTER_ARGS_H
#define LEAT_CLI_CLUSTER_ARGS_H

#include "cli.h"

typedef struct cli_cluster_args {
    const char *cluster, *ps_hosts, *worker_hosts, *job_name, *task_index, *task_id;
    const char *slurm_jobs, *port_base;
    const char *certificate, *key, *authority, *name, *token, *token_file;
    bool mutual;
    char token_text[LEAT_TOKEN_SIZE]; /* from the token file, or from LEAT_TOKEN */
} cli_cluster_args;

/* Rows for a table of options. */
#define CLI_CLUSTER_OPTIONS(a)                                                                     \
    {.name = "cluster", .value = &(a)->cluster}, {.name = "ps_hosts", .value = &(a)->ps_hosts},    \
        {.name = "worker_hosts", .value = &(a)->worker_hosts},                                     \
        {.name = "job_name", .value = &(a)->job_name},                                             \
        {.name = "task_index", .value = &(a)->task_index},                                         \
        {.name = "task_id", .value = &(a)->task_id},                                               \
        {.name = "slurm_jobs", .value = &(a)->slurm_jobs},                                         \
        {.name = "port_base", .value = &(a)->port_base},                                           \
        {.name = "tls_cert", .value = &(a)->certificate}, {.name = "tls_key", .value = &(a)->key}, \
        {.name = "tls_ca", .value = &(a)->authority}, {.name = "tls_name", .value = &(a)->name},   \
        {.name = "tls_mutual", .given = &(a)->mutual}, {.name = "token", .value = &(a)->token},    \
    {                                                                                              \
        .name = "token_file", .value = &(a)->token_file                                            \
    }

#define CLI_CLUSTER_USAGE                                                                          \
    "  --cluster SPEC       'ps=host:2222;worker=host:2223,host:2224'; or\n"                       \
    "  --ps_hosts LIST, --worker_hosts LIST\n"                                                     \
    "                       without these, TF_CONFIG; else the variables of a Slurm step\n"        \
    "  --slurm_jobs LIST    how the step's tasks are split, 'ps=1,worker=3' (all are workers)\n"   \
    "  --port_base N        port of a Slurm host's first task (8888)\n"

#define CLI_SECURITY_USAGE                                                                         \
    "  --tls_cert FILE, --tls_key FILE\n"                                                          \
    "                       this task's certificate and key, PEM\n"                                \
    "  --tls_ca FILE        certificates that sign the peers'\n"                                   \
    "  --tls_mutual         clients must show a certificate, too\n"                                \
    "  --tls_name NAME      name in the peers' certificates, if not their host\n"                  \
    "  --token_file FILE, --token TEXT\n"                                                          \
    "                       shared secret that every call carries (also from LEAT_TOKEN)\n"

/* The cluster, and the task that this process is ("" and -1: not given). Returns false after a
 * mistake, which it has reported. */
bool cli_cluster_read(const char *command, const cli_cluster_args *a, leat_cluster **cluster_out,
                      char job_out[64], int *task_out);
/* Borrows from a. */
bool cli_security_read(const char *command, cli_cluster_args *a, leat_security *out);

#endif
