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
/* Adds tasks to a job, beginning with the next free index; addresses are separated by commas,
 * blanks around them are removed. INVALID_ARGUMENT names what is not an address ("host:port") or
 * not a job name. */
LEAT_API leat_status leat_cluster_add(leat_cluster *c, const char *job,
                                      const char *addresses) LEAT_MUST_CHECK;
/* Sets the address of one task of a job; tasks with lower indices may be missing. */
LEAT_API leat_status leat_cluster_set(leat_cluster *c, const char *job, int task,
                                      const char *address) LEAT_MUST_CHECK;
/* Parses "ps=host:2222;worker=host:2223,host:2224", or the form of TensorFlow's own server,
 * "ps|host:2222,worker|host:2223;host:2224". */
LEAT_API leat_status leat_cluster_parse(const char *text,
                                        leat_cluster **cluster_out) LEAT_MUST_CHECK;
/* From the environment: TF_CONFIG (cluster or sparseCluster), else Slurm's variables, with the
 * split of LEAT_JOBS ("ps=1,worker=3") and the first port LEAT_PORT_BASE. job_out (at most 64 bytes
 * with its NUL) and task_out give the task that this process is: "" and -1 if TF_CONFIG has no
 * task. An evaluator is not part of the cluster. NOT_FOUND if neither TF_CONFIG nor Slurm's
 * variables are set. */
LEAT_API leat_status leat_cluster_from_env(leat_cluster **cluster_out, char job_out[64],
                                           int *task_out) LEAT_MUST_CHECK;
/* From the variables that Slurm sets for the tasks of a step (srun). jobs says how the tasks are
 * split into jobs, which are in alphabetical order: "ps=1,worker=3"; NULL: all are workers. The
 * first task of a host listens on port_base (0: 8888), the next ones on the ports after it.
 * NOT_FOUND if this process is not a task of a Slurm step. */
LEAT_API leat_status leat_cluster_from_slurm(const char *jobs, int port_base,
                                             leat_cluster **cluster_out, char job_out[64],
                                             int *task_out) LEAT_MUST_CHECK;
LEAT_API int leat_cluster_jobs(const leat_cluster *c);
LEAT_API const char *leat_cluster_job(const leat_cluster *c, int i);
/* One more than the highest index of a task; 0 if there is no such job. */
LEAT_API int leat_cluster_tasks(const leat_cluster *c, const char *job);
LEAT_API const char *leat_cluster_address(const leat_cluster *c, const char *job,
                                          int task); /* NULL if there is no such task */

/* ---- Security ---- */
/* A field that is zero is not used. Files are PEM. */
typedef struct leat_security {
    const char *certificate, *key; /* files: this task's TLS certificate and its key */
    /* File: certificates of the authorities that sign the peers' certificates. */
    const char *authority;
    bool mutual;       /* clients must present a certificate, too */
    const char *token; /* every call must carry this token, as a gRPC call credential */
    const char *name;  /* the name that peers' certificates carry, if not their host */
} leat_security;
enum { LEAT_TOKEN_SIZE = 4096 }; /* bytes of the longest token, with the NUL at its end */
/* The token in a file of one line; NULL: in the environment variable LEAT_TOKEN, "" if that is not
 * set. A command line is no place for a token: all users of a machine see it. PERMISSION_DENIED: a
 * file that others may read or write. */
LEAT_API leat_status leat_token_read(const char *file,
                                     char token_out[LEAT_TOKEN_SIZE]) LEAT_MUST_CHECK;

/* ---- A task's server ---- */
typedef struct leat_server leat_server;

typedef struct leat_server_options {
    const char *devices;  /* how many of which kind, "cpu:2,gpu:1"; see leat_devices_list */
    int cpu_devices;      /* number of CPU devices, if `devices` does not give it; default 1 */
    leat_gpu_options gpu; /* a task of the job "ps" has no GPU unless `devices` names them */
    int intra_op_threads; /* as in leat_session_options */
    int inter_op_threads;
    leat_security security;
    /* Limit of a message in bytes; default: 2 GB for messages of TensorFlow's tasks, 1 TB for those
     * of Leat's, which are sent in parts. */
    int64_t max_message;
    /* How many may be at the same time: sessions of clients (default 1,000; at the limit, the
     * oldest one whose client has gone is closed), sessions that masters elsewhere have on this
     * task (10,000), graphs that they have registered (100,000), calls that run or wait (10,000).
     */
    int max_sessions, max_worker_sessions, max_graphs, max_calls;
    /* A session is closed that had no call for this many seconds, and whose client or master has
     * gone: its connection is closed for as long. Default 3,600; negative: never. */
    double session_idle_secs;
    /* A call of another task, to run a step or to receive a tensor, that is under way for this many
     * seconds ends with DEADLINE_EXCEEDED. Default 604,800, a week; negative: never. */
    double max_call_secs;
    /* Which transports may be used between Leat's tasks, "grpc,socket,shm,local"; NULL: all. gRPC
     * always is, and alone with tasks that are not Leat's. */
    const char *transports;
    /* Leaves "shm" out of them: tasks of one machine talk by Unix sockets, or by gRPC where
     * `transports` has no "socket". For gRPC alone set `transports` to "grpc". */
    bool no_shared_memory;
    int data_port; /* TCP port of transport socket; 0: any that is free */
} leat_server_options;

/* Serves this task, and all others that the cluster has at the same address. Copies its arguments.
 * Returns when the server accepts calls. */
LEAT_API leat_status leat_server_start(const leat_cluster *c, const char *job, int task,
                                       const leat_server_options *options,
                                       leat_server **server_out) LEAT_MUST_CHECK;
/* Starts a server of a cluster with a single task: job "local", task 0, on a free port of the
 * loopback address. */
LEAT_API leat_status leat_server_start_local(leat_server **server_out) LEAT_MUST_CHECK;
LEAT_API const char *leat_server_target(const leat_server *s); /* "grpc://host:port" */
/* Waits until the job is done, or leat_server_stop was called. The job is done when the servers of
 * all tasks of other jobs were stopped and not started again, or did not reply for a minute after
 * another one was stopped; the log says which. A server with sessions of clients goes on. */
LEAT_API leat_status leat_server_join(leat_server *s) LEAT_MUST_CHECK;
/* Tells the tasks of other jobs that this server is about to end: a chief that saves checkpoints
 * saves one first. That, and the steps that are running, have grace_ms to end; then steps are
 * aborted. May be called from any thread. */
LEAT_API void leat_server_stop(leat_server *s, int64_t grace_ms);
LEAT_API void leat_server_free(leat_server *s); /* stops the server if it runs */
/* For programs that end because of a signal: what is under way has grace_ms to end, and what is
 * cancelled then has five seconds more. A process that has not exited by then ends with exit code 1
 * and a line on standard error, since some things cannot be cancelled: a kernel in a loop, a file
 * system that hangs. */
LEAT_API void leat_process_end_within(int64_t grace_ms);

/* ---- Which tasks can be reached ---- */
typedef enum leat_reach {
    LEAT_REACH_OK,
    LEAT_REACH_UNRESOLVED, /* the host's name cannot be resolved */
    LEAT_REACH_REFUSED,    /* nothing listens on the port */
    LEAT_REACH_SILENT, /* no connection in time: the host is down, or a firewall drops packets */
    LEAT_REACH_UNREACHABLE, /* no route to the host, or no permission */
    LEAT_REACH_MUTE,        /* the port is open, but no task of a cluster replies */
    /* a different task than the cluster names, a different list of tasks, or a wrong clock. */
    LEAT_REACH_WRONG,
} leat_reach;
typedef struct leat_probe {
    char job[64];
    int task;
    char address[300];
    leat_reach reach;
    char problem[4000]; /* what was found, and what to do; "" if there is no problem */
    char kind[16];      /* "Leat" or "TensorFlow"; "" if the task did not reply */
    char version[32];   /* version of Leat; "" if the task does not send it */
    int devices;
    double round_trip; /* seconds: the shortest of several */
    /* Seconds that the task's clock is ahead of ours; NaN if the task does not send its time. */
    double clock_ahead;
} leat_probe;
typedef struct leat_probe_options {
    int64_t timeout_ms; /* for each task; default 5,000 */
    leat_security security;
} leat_probe_options;
/* Calls all tasks of a cluster at the same time. Gives *n_out probes, to be freed with free(), in
 * the order of jobs and tasks. A task that cannot be reached is not an error of this function. */
LEAT_API leat_status leat_cluster_check(const leat_cluster *c, const leat_probe_options *options,
                                        leat_probe **probes_out, int *n_out) LEAT_MUST_CHECK;
LEAT_API const char *leat_reach_name(leat_reach r); /* the name of a result: "ok", "refused" */
LEAT_API const char *leat_version(void);            /* the version of this library, "0.1.0" */

#endif
