/* cluster_spec.h -- the fields of a leat_cluster, and the functions that make one from messages,
 * text and environment variables, beyond the public header. */
#ifndef LEAT_CLUSTER_SPEC_H
#define LEAT_CLUSTER_SPEC_H

#include <leat/cluster.h>

#include "proto/config.pb-c.h"
#include "core/object.h"
#include "core/strbuf.h"

#define LEAT_JOB_NAME_MAX 63 /* as device names allow */
/* Limits, so that a bad text cannot use much memory or time: jobs, and tasks of all jobs. */
#define LEAT_JOBS_MAX 1000
#define LEAT_CLUSTER_MAX (1 << 20)

typedef struct leat_task_spec {
    int index;
    char *address;
} leat_task_spec;
typedef struct leat_job_spec {
    char *name;
    leat_task_spec *tasks; /* by index; gaps are allowed */
    int n, cap;
} leat_job_spec;
struct leat_cluster {
    leat_object object;
    leat_job_spec *jobs; /* in the order in which they were first named */
    int n, cap;
};

/* Adds a job without tasks, unless the cluster has it. INVALID_ARGUMENT: it is no job name. */
leat_status leat_cluster_add_job(leat_cluster *c, const char *job) LEAT_MUST_CHECK;
void leat_cluster_remove_job(leat_cluster *c, const char *job);
/* The job, or NULL. */
const leat_job_spec *leat_cluster_find(const leat_cluster *c, const char *job);

/* Adds the cluster as text: "ps=a:1;worker=b:1,c:1". After a gap in the indices the first one is
 * named: "worker[3]=d:1". The text of a large cluster is cut after some 1,500 bytes. */
void leat_cluster_print(const leat_cluster *c, leat_strbuf *out);

/* How two lists of tasks differ; texts are borrowed from the lists. */
typedef struct leat_cluster_difference {
    char task[128]; /* A task that both lists have, at different addresses; "": none. */
    const char *here, *there;
    char caller[128];                     /* The same, for a task of the caller. */
    char here_only[128], there_only[128]; /* Tasks that only one of the lists has; "": none. */
} leat_cluster_difference;
/* here is the list of this process, there that of another one, and one of the two calls the other.
 * The entry of a server in its own list may name its address in another way (0.0.0.0): callee is
 * the address that `here` has for the process that is called, whose entry in its own list is not
 * compared, since the caller has reached it. caller is the address that `here` has for the process
 * that calls; NULL: it is no server. */
void leat_cluster_compare(const leat_cluster *here, const leat_cluster *there, const char *callee,
                          const char *caller, leat_cluster_difference *difference_out);
/* Adds how the lists differ, in words. False if they are of the same cluster: no task has different
 * addresses, and one list is a part of the other (Kubeflow's sparse clusters). A task of the caller
 * is not looked at. */
bool leat_cluster_difference_print(const leat_cluster_difference *d, leat_strbuf *out);

/* The address as host (without the brackets of "[::1]:2222") and port. INVALID_ARGUMENT names an
 * address that is none. */
leat_status leat_address_split(const char *address, char host_out[256],
                               int *port_out) LEAT_MUST_CHECK;

/* From and to TensorFlow's ClusterDef, whose jobs are sorted by name. Free the message with
 * leat__cluster_def__free_unpacked. */
leat_status leat_cluster_from_def(const Leat__ClusterDef *def,
                                  leat_cluster **cluster_out) LEAT_MUST_CHECK;
Leat__ClusterDef *leat_cluster_to_def(const leat_cluster *c);

/* Reads the text of TF_CONFIG. */
leat_status leat_cluster_from_tf_config(const char *text, leat_cluster **cluster_out,
                                        char job_out[64], int *task_out) LEAT_MUST_CHECK;

/* Expands Slurm's notation of hosts, "n[1-3,07-09]-x,m2". Gives an array of *n_out strings; free()
 * the strings and the array. */
leat_status leat_slurm_hosts(const char *text, char ***hosts_out, int *n_out) LEAT_MUST_CHECK;
/* "2(x3),1": 2 2 2 1. Gives an array to be freed with free(). */
leat_status leat_slurm_counts(const char *text, int **counts_out, int *n_out) LEAT_MUST_CHECK;

#endif
