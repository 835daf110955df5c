/* cluster_args.c -- see cluster_args.h. */
#include "cluster_args.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reports a mistake of the user in one line and returns false. Takes s. */
static bool wrong(const char *command, const char *where, leat_status s)
{
    cli_bad_use(command, "%s%s", where, leat_status_message(s));
    leat_status_free(s);
    return false;
}

static leat_status from_hosts(const cli_cluster_args *a, leat_cluster **out)
{
    leat_cluster *c = leat_cluster_new();
    leat_status s = NULL;
    if (a->ps_hosts && *a->ps_hosts)
        s = leat_status_prefix(leat_cluster_add(c, "ps", a->ps_hosts), "--ps_hosts: ");
    if (!s && a->worker_hosts && *a->worker_hosts)
        s = leat_status_prefix(leat_cluster_add(c, "worker", a->worker_hosts), "--worker_hosts: ");
    if (!s && !leat_cluster_jobs(c))
        s = leat_error(INVALID_ARGUMENT, "--ps_hosts and --worker_hosts name no task");
    if (s) {
        leat_cluster_free(c);
        return s;
    }
    *out = c;
    return NULL;
}

static bool from_environment(const char *command, const cli_cluster_args *a, leat_cluster **out,
                             char job[64], int *task)
{
    long long port = 0;
    leat_status s;
    if (a->port_base && (!cli_number(command, "port_base", a->port_base, 1, &port)))
        return false;
    if (port > 65535)
        return cli_bad_use(command, "--port_base %s: no port", a->port_base) == 0;
    if (a->slurm_jobs || a->port_base)
        s = leat_cluster_from_slurm(a->slurm_jobs, (int)port, out, job, task);
    else
        s = leat_cluster_from_env(out, job, task);
    if (leat_status_code(s) == LEAT_NOT_FOUND) {
        leat_status_free(s);
        return cli_bad_use(command, "no cluster: wants --cluster, --ps_hosts and --worker_hosts, "
                                    "TF_CONFIG or a Slurm step") == 0;
    }
    return s ? wrong(command, "", s) : true;
}

/* Flags override the environment. */
static bool read_task(const char *command, const cli_cluster_args *a, char job[64], int *task)
{
    const char *index = a->task_index ? a->task_index : a->task_id;
    long long v;
    if (a->job_name && strlen(a->job_name) > 63)
        return cli_bad_use(command, "--job_name %.80s...: is no job", a->job_name) == 0;
    if (a->job_name) {
        strcpy(job, a->job_name);
        *task = -1;
    }
    if (!index)
        return true;
    if (!cli_number(command, a->task_index ? "task_index" : "task_id", index, 0, &v))
        return false;
    if (v > INT_MAX)
        return cli_bad_use(command, "task %s: no such task", index) == 0;
    *task = (int)v;
    return true;
}

bool cli_cluster_read(const char *command, const cli_cluster_args *a, leat_cluster **cluster_out,
                      char job_out[64], int *task_out)
{
    leat_cluster *c = NULL;
    leat_status s = NULL;
    job_out[0] = 0;
    *task_out = -1;
    if (a->cluster && (a->ps_hosts || a->worker_hosts))
        return cli_bad_use(command, "--cluster, or --ps_hosts and --worker_hosts, not both") == 0;
    if (a->cluster)
        s = leat_cluster_parse(a->cluster, &c);
    else if (a->ps_hosts || a->worker_hosts)
        s = from_hosts(a, &c);
    else if (!from_environment(command, a, &c, job_out, task_out))
        return false;
    if (s)
        return wrong(command, "", s);
    if (!read_task(command, a, job_out, task_out)) {
        leat_cluster_free(c);
        return false;
    }
    *cluster_out = c;
    return true;
}

bool cli_security_read(const char *command, cli_cluster_args *a, leat_security *out)
{
    if (a->token && a->token_file)
        return cli_bad_use(command, "--token or --token_file, not both") == 0;
    leat_status s = leat_token_read(a->token_file, a->token_text);
    if (s)
        return wrong(command, a->token_file ? "--token_file: " : "", s);
    if (a->token)
        fprintf(stderr,
                "leat %s: warning: --token shows the token to all users of this machine; use "
                "--token_file or LEAT_TOKEN\n",
                command);
    if (!a->certificate != !a->key)
        return cli_bad_use(command, "--tls_cert and --tls_key go together") == 0;
    if (a->mutual && (!a->certificate || !a->authority))
        return cli_bad_use(command, "--tls_mutual wants --tls_cert, --tls_key and --tls_ca") == 0;
    *out = (leat_security){
        .certificate = a->certificate,
        .key = a->key,
        .authority = a->authority,
        .mutual = a->mutual,
        .name = a->name,
        .token = a->token           ? a->token
                 : a->token_text[0] ? a->token_text
                                    : NULL,
    };
    return true;
}
