/* cluster.h -- jobs and tasks, servers.
 *
 *     leat_cluster *c = leat_cluster_new();
 *     LEAT_TRY(leat_cluster_add(c, "ps", "10.0.0.1:2222"));
 *     LEAT_TRY(leat_cluster_add(c, "worker", "10.0.0.2:2222,10.0.0.3:2222"));
 *     LEAT_TRY(leat_server_start(c, "worker", 0, NULL, &server));
 *     LEAT_TRY(leat_session_open(g, &session, .target = leat_server_target(server)));
 *
 * Every task of a job runs a server, on the address that the cluster names for it. The order in
 * which they start does not matter.
 */
#ifndef LEAT_CLUSTER_H
#define LEAT_CLUSTER_H

#include <leat/graph.h>
#include <leat/session.h>

/* ---- Which tasks there are ---- */
typedef struct leat_cluster leat_cluster;

LEAT_API leat_cluster *leat_cluster_new(void);
LEAT_API void leat_cluster_free(leat_cluster *c);
LEAT_API leat_cluster *leat_cluster_copy(const leat_cluster *c);
/* Adds tasks to a job, the next index first; addresses are separated by commas, blanks around them
 * are taken off. INVALID_ARGUMENT names what is no address ("host:port") or no job name. */
LEAT_API leat_status leat_cluster_add(leat_cluster *c, const char *job,
                                      const char *addresses) LEAT_MUST_CHECK;
/* The address of one task of a job, which need not have all tasks before it. */
LEAT_API leat_status leat_cluster_set(leat_cluster *c, const char *job, int task,
                                      const char *address) LEAT_MUST_CHECK;
/* "ps=host:2222;worker=host:2223,host:2224", or as TensorFlow's own server takes it,
 * "ps|host:2222,worker|host:2223;host:2224". */
LEAT_API leat_status leat_cluster_parse(const char *text,
                                        leat_cluster **cluster_out) LEAT_MUST_CHECK;
/* From the environment: TF_CONFIG (cluster or sparseCluster), else Slurm's variables, with the
 * split of LEAT_JOBS ("ps=1,worker=3") and the first port LEAT_PORT_BASE. job_out (at most 64 bytes
 * with its NUL) and task_out: which task this process is; "" and -1 if TF_CONFIG does not say, and
 * an evaluator is in no cluster. NOT_FOUND if neither is set. */
LEAT_API leat_status leat_cluster_from_env(leat_cluster **cluster_out, char job_out[64],
                                           int *task_out) LEAT_MUST_CHECK;
/* From the variables that Slurm sets for the tasks of a step (srun). jobs: how its tasks are split,
 * by the jobs' names in alphabetical order, "ps=1,worker=3"; NULL: all are workers. The first task
 * of a host is at port_base (0: 8888), others behind it. NOT_FOUND if this is no such task. */
LEAT_API leat_status leat_cluster_from_slurm(const char *jobs, int port_base,
                                             leat_cluster **cluster_out, char job_out[64],
                                             int *task_out) LEAT_MUST_CHECK;
LEAT_API int leat_cluster_jobs(const leat_cluster *c);
LEAT_API const char *leat_cluster_job(const leat_cluster *c, int i);
/* One more than the highest index of a task; 0 for a job that is not there. */
LEAT_API int leat_cluster_tasks(const leat_cluster *c, const char *job);
LEAT_API const char *leat_cluster_address(const leat_cluster *c, const char *job,
                                          int task); /* or NULL */

/* ---- Who may talk ---- */
/* Zero means none of it. Files are PEM. */
typedef struct leat_security {
    const char *certificate, *key; /* files: this task's TLS certificate and its key */
    const char *authority;         /* file: certificates that sign peers' */
    bool mutual;                   /* clients must show a certificate, too */
    const char *token;             /* every call carries it, as a gRPC call credential */
    const char *name;              /* the name that peers' certificates carry, if not their host */
} leat_security;

/* ---- A task's server ---- */
typedef struct leat_server leat_server;

typedef struct leat_server_options {
    int cpu_devices;      /* 1 */
    int intra_op_threads; /* as in leat_session_options */
    int inter_op_threads;
    leat_security security;
    int64_t max_message;   /* bytes; 0: 2 GB from TensorFlow's tasks, 1 TB from Leat's, in parts */
    int max_sessions;      /* at a time; 0: 1,000 */
    int max_calls;         /* parked or running at a time; 0: 10,000 */
    bool no_shared_memory; /* gRPC alone, also with Leat's tasks on this machine */
} leat_server_options;

/* Copies what it is given. Returns when the server answers. */
LEAT_API leat_status leat_server_start(const leat_cluster *c, const char *job, int task,
                                       const leat_server_options *options,
                                       leat_server **server_out) LEAT_MUST_CHECK;
/* A server of its own, job "local", task 0, on a free port of the loopback address. */
LEAT_API leat_status leat_server_start_local(leat_server **server_out) LEAT_MUST_CHECK;
LEAT_API const char *leat_server_target(const leat_server *s); /* "grpc://host:port" */
/* Waits until the job is done: all tasks that had sessions here have closed them and gone, or
 * leat_server_stop was called. */
LEAT_API leat_status leat_server_join(leat_server *s) LEAT_MUST_CHECK;
/* Steps under way get grace_ms to end; then they are aborted. From any thread. */
LEAT_API void leat_server_stop(leat_server *s, int64_t grace_ms);
LEAT_API void leat_server_free(leat_server *s); /* stops it, if it runs */

/* ---- Is everybody there? ---- */
typedef enum leat_reach {
    LEAT_REACH_OK,
    LEAT_REACH_UNRESOLVED,  /* the host's name is not known */
    LEAT_REACH_REFUSED,     /* nobody listens at the port */
    LEAT_REACH_SILENT,      /* no connection in time: the host is down, or a firewall */
    LEAT_REACH_UNREACHABLE, /* no way there, or no right to go */
    LEAT_REACH_MUTE,        /* the port is open, but no task of a cluster answers */
    LEAT_REACH_WRONG, /* another task than the cluster says, of another version, or a wrong clock */
} leat_reach;
typedef struct leat_probe {
    char job[64];
    int task;
    char address[300];
    leat_reach reach;
    char problem[400]; /* "" if there is none: what was found, and what to do */
    char kind[16];     /* "Leat", "TensorFlow"; "" if it did not answer */
    char version[32];  /* of Leat; "" if it does not say */
    int devices;
    double round_trip;  /* seconds: the least of some */
    double clock_ahead; /* seconds that its clock is ahead of ours; NaN if it does not say */
} leat_probe;
typedef struct leat_probe_options {
    int64_t timeout_ms; /* of each task; 0: 5,000 */
    leat_security security;
} leat_probe_options;
/* Asks all tasks of a cluster at the same time. Gives *n_out probes, to be freed with free(), in
 * the order of jobs and tasks. Only what cannot even be tried is an error. */
LEAT_API leat_status leat_cluster_check(const leat_cluster *c, const leat_probe_options *options,
                                        leat_probe **probes_out, int *n_out) LEAT_MUST_CHECK;
LEAT_API const char *leat_reach_name(leat_reach r); /* "ok", "refused" */
LEAT_API const char *leat_version(void);            /* of this library, "0.1.0" */

#endif
