/* cluster_bench.c -- measures clusters on this machine; prints "name value" lines.
 *
 *     cluster_bench rtt SECONDS             feed, add, fetch on a server in another process
 *     cluster_bench hop SECONDS             the same from a worker to a ps and back
 *     cluster_bench big SECONDS [MB]        a variable from ps to worker in each step
 *     cluster_bench wire SECONDS [MB]       the same over gRPC alone, without shared memory
 * cluster_bench null KIND WORKERS PS SECONDS
 *                                           steps that only fetch: scalar, dense (100 MB in all),
 *                                           sparse (64 rows of a table of 1 GB)
 *     cluster_bench first                   start of ps and worker to the end of a first step
 *
 * Every task is a process of its own. */
#include <leat/leat.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 32 };

static leat_cluster *cluster;
static leat_server_options server_options;
static pid_t children[MOST];
static int n_children;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A free port, a different one in each call; below the range of ephemeral ports, so that no
 * outgoing connection takes it before its task listens. */
static int free_port(void)
{
    enum { FIRST = 20000, COUNT = 12000 };
    static int next;
    if (!next)
        next = (int)(getpid() * 37L % COUNT);
    for (int i = 0; i < COUNT; i++) {
        int port = FIRST + next++ % COUNT, fd = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        bool free = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
        if (fd >= 0)
            close(fd);
        if (free)
            return port;
    }
    fprintf(stderr, "no port is free\n");
    exit(1);
}

static void add_tasks(const char *job, int n)
{
    for (int i = 0; i < n; i++) {
        char address[64];
        snprintf(address, sizeof(address), "127.0.0.1:%d", free_port());
        LEAT_DIE_ON_ERROR(leat_cluster_add(cluster, job, address));
    }
}

static leat_server *serve(const char *job, int task)
{
    leat_server *s;
    LEAT_DIE_ON_ERROR(leat_server_start(cluster, job, task, &server_options, &s));
    return s;
}

/* Forks; the child ends when its parent does. */
static pid_t spawn(void)
{
    pid_t parent = getpid(), p = fork();
    if (p == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        n_children = 0;
    } else if (p < 0) {
        perror("fork");
        exit(1);
    } else {
        children[n_children++] = p;
    }
    return p;
}

/* Starts a task as a process. */
static void spawn_server(const char *job, int task)
{
    if (spawn() == 0) {
        leat_server *s = serve(job, task);
        leat_status status = leat_server_join(s);
        leat_status_free(status);
        leat_server_free(s);
        _exit(0);
    }
}

static double cpu_of(int who)
{
    struct rusage u;
    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static double child_mb(pid_t p)
{
    char path[64], line[200];
    double kb = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)p);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmHWM: %lf", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb / 1024;
}

static void end_children(void)
{
    for (int i = 0; i < n_children; i++)
        kill(children[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    n_children = 0;
}

static void end_and_report(long steps)
{
    double mb = child_mb(children[0]);
    end_children();
    printf("own_cpu_us_per_step %.1f\n", cpu_of(RUSAGE_SELF) * 1e6 / (double)steps);
    printf("others_cpu_us_per_step %.1f\n", cpu_of(RUSAGE_CHILDREN) * 1e6 / (double)steps);
    printf("first_child_mb %.1f\n", mb);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct times {
    double *v;
    long n, cap;
} times;

/* Runs for some seconds; the first tenth is not measured. */
static times measure(leat_session *s, leat_feeds feeds, leat_fetches fetches, leat_targets targets,
                     double seconds)
{
    times t = {.cap = 1 << 20};
    t.v = malloc(sizeof(double) * (size_t)t.cap);
    double begin = now(), last = begin;
    while (last - begin < seconds && t.n < t.cap) {
        leat_tensor *v = NULL;
        leat_fetch f = {.x = fetches.n ? fetches.v[0].x : (leat_out){0}, .value = &v};
        LEAT_DIE_ON_ERROR(leat_session_run(s, feeds, (leat_fetches){&f, fetches.n}, targets));
        leat_tensor_unref(v);
        double at = now();
        if (at - begin > seconds * 0.1)
            t.v[t.n++] = at - last;
        last = at;
    }
    return t;
}

static double quantile(times t, double q)
{
    qsort(t.v, (size_t)t.n, sizeof(*t.v), by_size);
    return t.n ? t.v[(long)((double)(t.n - 1) * q)] : 0;
}

static leat_session *session_on(leat_graph *g, const char *target)
{
    leat_session *s;
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s, .target = target, .timeout_ms = 60000));
    LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                                       LEAT_TARGET(leat_global_variables_initializer(g))));
    return s;
}

static leat_tensor *scalar(float x)
{
    leat_tensor *t;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape(), &t));
    *(float *)leat_tensor_mutable(t) = x;
    return t;
}

/* ---- Round trips ---- */

static void rtt(double seconds, bool hop)
{
    add_tasks("ps", 1);
    add_tasks("worker", 1);
    spawn_server("ps", 0);
    leat_server *own = hop ? serve("worker", 0) : NULL;
    if (!hop)
        spawn_server("worker", 0);
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape()), y, w;
    leat_with_device(g, "/job:ps/task:0") w = leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 1));
    (void)w;
    leat_with_device(g, hop ? "/job:ps/task:0" : "/job:worker/task:0") y =
        leat_add(x, leat_scalar(g, LEAT_FLOAT, 1));
    char target[80];
    snprintf(target, sizeof(target), "grpc://%s", leat_cluster_address(cluster, "worker", 0));
    leat_session *s = session_on(g, hop ? leat_server_target(own) : target);
    leat_tensor *one = scalar(1);
    times t = measure(s, LEAT_FEED({x, one}), LEAT_FETCH({y, NULL}), LEAT_NO_TARGET, seconds);
    printf("rtt_us %.1f\nrtt_p99_us %.1f\n", quantile(t, 0.5) * 1e6, quantile(t, 0.99) * 1e6);
    leat_session_close(s);
    end_and_report(t.n);
}

static void big(double seconds, double mb)
{
    add_tasks("ps", 1);
    add_tasks("worker", 1);
    spawn_server("ps", 0);
    leat_server *own = serve("worker", 0);
    leat_graph *g = leat_graph_new();
    int64_t n = (int64_t)(mb * 1e6 / 4);
    leat_out w, y;
    leat_with_device(g, "/job:ps/task:0") w =
        leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(n)));
    leat_with_device(g, "/job:worker/task:0") y = leat_slice(
        w, leat_int_vector(g, ((int64_t[]){0}), 1), leat_int_vector(g, ((int64_t[]){1}), 1));
    leat_session *s = session_on(g, leat_server_target(own));
    times t = measure(s, LEAT_NO_FEED, LEAT_FETCH({y, NULL}), LEAT_NO_TARGET, seconds);
    printf("gb_per_s %.3f\n", mb * 1e-3 / quantile(t, 0.5));
    leat_session_close(s);
    end_and_report(t.n);
}

/* ---- Null steps ----
 *
 * Every worker fetches from every ps and computes nothing. Measuring begins when all workers have
 * run some steps. Workers write their results to a null_board, which is in memory that all
 * processes share. */
enum { NULL_DENSE = 25000000, NULL_ROWS = 3906250, NULL_WIDTH = 64, NULL_PICKED = 64 };
enum { NULL_TIMES = 1 << 18 };

typedef struct null_board {
    int ready;       /* number of workers that have run some steps */
    int initialised; /* 1: worker 0 has initialised the variables */
    int go;          /* 1: the workers measure */
    int done;        /* number of workers that have ended */
    long n[MOST];    /* number of steps of each worker */
    double times[MOST][NULL_TIMES];
} null_board;

static void await(int *what, int least)
{
    double begin = now();
    while (__atomic_load_n(what, __ATOMIC_ACQUIRE) < least) {
        if (now() - begin > 120 || waitpid(-1, NULL, WNOHANG) > 0) { /* a task died */
            fprintf(stderr, "cluster_bench: a task has ended, or is not ready after 120 s\n");
            end_children();
            exit(1);
        }
        usleep(1000);
    }
}

/* The tensor that a worker fetches from this ps: a scalar, the ps's part of 100 MB, or 64 rows,
 * different ones in each step, of its part of a table of 1 GB. */
static leat_out null_step(leat_graph *g, const char *kind, int ps, int n_ps)
{
    char name[32], device[32];
    leat_out v = {0}, rows;
    snprintf(name, sizeof(name), "v%d", ps);
    snprintf(device, sizeof(device), "/job:ps/task:%d", ps);
    bool sparse = strcmp(kind, "sparse") == 0;
    leat_shape shape = sparse                       ? leat_shape(NULL_ROWS / n_ps, NULL_WIDTH)
                       : strcmp(kind, "dense") == 0 ? leat_shape(NULL_DENSE / n_ps)
                                                    : leat_shape();
    if (sparse)
        rows = leat_random_uniform(g, leat_shape(NULL_PICKED / n_ps), .dtype = LEAT_INT32,
                                   .high = NULL_ROWS / n_ps);
    leat_with_device(g, device)
    {
        v = leat_variable(g, name, leat_zeros(g, LEAT_FLOAT, shape));
        if (sparse)
            v = leat_gather(v, rows, leat_scalar(g, LEAT_INT32, 0));
    }
    return leat_identity(v);
}

static void null_worker(const char *kind, int task, int n_ps, double seconds, null_board *board)
{
    leat_server *own = serve("worker", task);
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out parts[MOST];
    char device[40];
    snprintf(device, sizeof(device), "/job:worker/task:%d", task);
    leat_with_device(g, device)
    {
        for (int i = 0; i < n_ps; i++)
            parts[i] = null_step(g, kind, i, n_ps);
    }
    if (task == 0) {
        s = session_on(g, leat_server_target(own));
        __atomic_store_n(&board->initialised, 1, __ATOMIC_RELEASE);
    } else {
        await(&board->initialised, 1);
        LEAT_DIE_ON_ERROR(
            leat_session_open(g, &s, .target = leat_server_target(own), .timeout_ms = 60000));
    }
    leat_targets targets = {parts, n_ps};
    for (int i = 0; i < 3; i++)
        LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, targets));
    __atomic_fetch_add(&board->ready, 1, __ATOMIC_ACQ_REL);
    await(&board->go, 1);
    double begin = now(), last = begin;
    long n = 0;
    while (last - begin < seconds && n < NULL_TIMES) {
        LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, targets));
        double at = now();
        board->times[task][n++] = at - last;
        last = at;
    }
    board->n[task] = n;
    __atomic_fetch_add(&board->done, 1, __ATOMIC_ACQ_REL);
    for (;;)
        pause(); /* until the parent has read this process's CPU time */
}

static double cpu_of_children(int first, int n)
{
    double seconds = 0;
    for (int i = first; i < first + n; i++) {
        clockid_t clock;
        struct timespec t;
        if (clock_getcpuclockid(children[i], &clock) == 0 && clock_gettime(clock, &t) == 0)
            seconds += (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    }
    return seconds;
}

/* The times of the steps of all workers. */
static times null_gather(const null_board *board, int workers)
{
    times all = {0};
    for (int i = 0; i < workers; i++)
        all.cap += board->n[i];
    all.v = malloc(sizeof(double) * (size_t)(all.cap + 1));
    for (int i = 0; i < workers; i++) {
        memcpy(all.v + all.n, board->times[i], sizeof(double) * (size_t)board->n[i]);
        all.n += board->n[i];
    }
    return all;
}

static double most_mb(int first, int n)
{
    double most = 0;
    for (int i = first; i < first + n; i++)
        most = child_mb(children[i]) > most ? child_mb(children[i]) : most;
    return most;
}

static void null_steps(const char *kind, int workers, int n_ps, double seconds)
{
    null_board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (board == MAP_FAILED)
        exit(1);
    add_tasks("ps", n_ps);
    add_tasks("worker", workers);
    for (int i = 0; i < n_ps; i++)
        spawn_server("ps", i);
    for (int i = 0; i < workers; i++) {
        pid_t p = spawn();
        if (p == 0)
            null_worker(kind, i, n_ps, seconds, board);
    }
    await(&board->ready, workers);
    double ps = cpu_of_children(0, n_ps), own = cpu_of_children(n_ps, workers), begin = now();
    __atomic_store_n(&board->go, 1, __ATOMIC_RELEASE);
    await(&board->done, workers);
    double took = now() - begin;
    ps = cpu_of_children(0, n_ps) - ps;
    own = cpu_of_children(n_ps, workers) - own;
    double ps_mb = most_mb(0, n_ps), worker_mb = most_mb(n_ps, workers);
    end_children();
    times t = null_gather(board, workers);
    printf("median_us %.0f\np99_us %.0f\n", quantile(t, 0.5) * 1e6, quantile(t, 0.99) * 1e6);
    printf("steps_per_s %.1f\n", (double)t.n / took);
    printf("worker_cpu_us_per_step %.1f\n", own * 1e6 / (double)t.n);
    printf("ps_cpu_us_per_step %.1f\n", ps * 1e6 / (double)t.n / n_ps);
    printf("worker_mb %.0f\nps_mb %.0f\n", worker_mb, ps_mb);
}

static void first(void)
{
    double begin = now();
    add_tasks("ps", 1);
    add_tasks("worker", 1);
    spawn_server("ps", 0);
    leat_server *own = serve("worker", 0);
    leat_graph *g = leat_graph_new();
    leat_out w;
    leat_with_device(g, "/job:ps/task:0") w = leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 1));
    leat_session *s = session_on(g, leat_server_target(own));
    LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(w)));
    printf("first_s %.4f\n", now() - begin);
    leat_session_close(s);
    end_and_report(1);
}

int main(int argc, char **argv)
{
    cluster = leat_cluster_new();
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *mode = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    bool wire = strcmp(mode, "wire") == 0;
    server_options.transports = wire ? "grpc" : NULL;
    if (strcmp(mode, "rtt") == 0 || strcmp(mode, "hop") == 0)
        rtt(seconds, mode[0] == 'h');
    else if (strcmp(mode, "big") == 0 || wire)
        big(seconds, argc > 3 ? atof(argv[3]) : 100);
    else if (strcmp(mode, "null") == 0 && argc > 5)
        null_steps(argv[2], atoi(argv[3]), atoi(argv[4]), atof(argv[5]));
    else if (strcmp(mode, "first") == 0)
        first();
    else
        return fprintf(stderr, "cluster_bench: rtt, hop, big, wire, null or first\n"), 2;
    return 0;
}
