/* cluster_spec.h -- what a leat_cluster is made of, and the ways into it and out of it that the
 * public header has no need of. */
#ifndef LEAT_CLUSTER_SPEC_H
#define LEAT_CLUSTER_SPEC_H

#include <leat/cluster.h>

#include "proto/config.pb-c.h"

#define LEAT_JOB_NAME_MAX 63       /* as long as device names take it */
#define LEAT_JOBS_MAX 1000         /* keep a bad text from eating memory and time: jobs, */
#define LEAT_CLUSTER_MAX (1 << 20) /* tasks of all jobs */

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
    leat_job_spec *jobs; /* in the order in which they were first named */
    int n, cap;
};

/* The job is there afterwards, though without tasks. INVALID_ARGUMENT names what is no job name. */
leat_status leat_cluster_add_job(leat_cluster *c, const char *job) LEAT_MUST_CHECK;
void leat_cluster_remove_job(leat_cluster *c, const char *job);
/* The job, or NULL. */
const leat_job_spec *leat_cluster_find(const leat_cluster *c, const char *job);

/* The address as host (without the brackets of "[::1]:2222") and port. INVALID_ARGUMENT names an
 * address that is none. */
leat_status leat_address_split(const char *address, char host_out[256],
                               int *port_out) LEAT_MUST_CHECK;

/* To and from TensorFlow's message; jobs by name, as TensorFlow writes them. Gives a message to be
 * freed with leat__cluster_def__free_unpacked. */
leat_status leat_cluster_from_def(const Leat__ClusterDef *def,
                                  leat_cluster **cluster_out) LEAT_MUST_CHECK;
Leat__ClusterDef *leat_cluster_to_def(const leat_cluster *c);

/* The text of TF_CONFIG. */
leat_status leat_cluster_from_tf_config(const char *text, leat_cluster **cluster_out,
                                        char job_out[64], int *task_out) LEAT_MUST_CHECK;

/* Slurm's way of writing hosts, "n[1-3,07-09]-x,m2", one by one. Gives an array of *n_out strings,
 * array and strings to be freed with free(). */
leat_status leat_slurm_hosts(const char *text, char ***hosts_out, int *n_out) LEAT_MUST_CHECK;
/* "2(x3),1": 2 2 2 1. Gives an array to be freed with free(). */
leat_status leat_slurm_counts(const char *text, int **counts_out, int *n_out) LEAT_MUST_CHECK;

#endif
