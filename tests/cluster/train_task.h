/* train_task.h -- a small training program as a ps, a chief and a worker, each of which is the
 * test's own program again, and functions by which a test reads their output. For tests that kill,
 * stop and disconnect tasks. */
#ifndef LEAT_TEST_TRAIN_TASK_H
#define LEAT_TEST_TRAIN_TASK_H

#include <dirent.h>
#include <leat/leat.h>
#include <poll.h>
#include <time.h>

#include "cluster/certificates.h"
#include "cluster/task.h"
#include "port.h"
#include "test.h"

/* ---- A task: --role ps|chief|worker, with "MODE DIR LAST_STEP MAX_WAIT PS CHIEF WORKER" in one
 * argument ---- */

typedef struct plan {
    char mode[16], dir[200], ps[64], chief[64], worker[64];
    int last_step, max_wait;
} plan;

static inline void on_log(void *arg, leat_log_level level, const char *file, int line,
                          const char *message)
{
    printf("log %s\n", message);
    fflush(stdout);
}

/* w -= 0.01 each step; in sync mode each round. */
static inline int train(const plan *p, const char *target, int task)
{
    leat_graph *g = leat_graph_new();
    char device[64];
    snprintf(device, sizeof(device), "/job:worker/task:%d", task);
    bool sync = strcmp(p->mode, "sync") == 0;
    leat_out step = {0}, w = {0}, train = {0};
    leat_with_device(g, "/job:ps/task:0")
    {
        step = leat_global_step(g);
        w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(1000)));
    }
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = 0.01);
    if (sync)
        opt = leat_sync_replicas(opt, .replicas_to_aggregate = 2, .total_num_replicas = 2,
                                 .lease_secs = 1);
    leat_with_device(g, device) train = leat_minimize(opt, leat_reduce_sum(w), .global_step = step);
    leat_optimizer_free(opt);
    leat_monitored *ms = NULL;
    LEAT_DIE_ON_ERROR(leat_monitored_open(g, &ms, .master = target, .is_chief = task == 0,
                                          .checkpoint_dir = p->dir, .save_checkpoint_steps = 20,
                                          .last_step = p->last_step, .max_wait_secs = p->max_wait,
                                          .log_step_count_steps = -1));
    printf("ready\n");
    fflush(stdout);
    while (!leat_monitored_should_stop(ms)) {
        leat_tensor *v = NULL;
        LEAT_DIE_ON_ERROR(
            leat_monitored_run(ms, LEAT_NO_FEED, LEAT_FETCH({step, &v}), LEAT_TARGET(train)));
        printf("step %.0f\n", leat_tensor_at(v, 0));
        fflush(stdout);
        leat_tensor_unref(v);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    LEAT_DIE_ON_ERROR(leat_monitored_close(ms));
    leat_graph_free(g);
    printf("done\n");
    return 0;
}

/* Mutual TLS with these certificates, if the test has named their directory. */
static inline leat_security train_security(void)
{
    const char *directory = getenv("LEAT_TEST_CERTIFICATES");
    if (!directory)
        return (leat_security){0};
    snprintf(certificates, sizeof(certificates), "%s", directory);
    return (leat_security){.certificate = file("task.pem"),
                           .key = file("task.key"),
                           .authority = file("ca.pem"),
                           .mutual = true};
}

static inline int be(const char *role, const char *arg)
{
    plan p;
    leat_server_options options = {.security = train_security()};
    if (sscanf(arg, "%15s %199s %d %d %63s %63s %63s", p.mode, p.dir, &p.last_step, &p.max_wait,
               p.ps, p.chief, p.worker) != 7)
        return 2;
    dup2(1, 2); /* standard error goes to the test, too */
    leat_log_set_sink(on_log, NULL, LEAT_LOG_INFO);
    leat_cluster *c = leat_cluster_new();
    leat_server *server = NULL;
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "ps", p.ps));
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "worker", p.chief));
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "worker", p.worker));
    bool ps = strcmp(role, "ps") == 0;
    int task = strcmp(role, "worker") == 0, code = 0;
    LEAT_DIE_ON_ERROR(leat_server_start(c, ps ? "ps" : "worker", task, &options, &server));
    if (ps) {
        printf("ready\n");
        fflush(stdout);
        LEAT_DIE_ON_ERROR(leat_server_join(server));
    } else {
        code = train(&p, leat_server_target(server), task);
    }
    leat_server_free(server);
    leat_cluster_free(c);
    return code;
}

/* ---- For the test: starting tasks and reading their output ---- */

typedef struct child {
    task task;
    char buf[1 << 16]; /* output that the test has not read yet */
    size_t n;
} child;

typedef struct cluster {
    char arg[600], dir[200];
    child ps, chief, worker;
} cluster;

static inline void make(cluster *k, const char *mode, int last_step, int max_wait)
{
    char address[3][64];
    for (int i = 0; i < 3; i++)
        snprintf(address[i], 64, "127.0.0.1:%d", free_port());
    snprintf(k->dir, sizeof(k->dir), "/tmp/leat_train_test_XXXXXX");
    CHECK(mkdtemp(k->dir) != NULL);
    snprintf(k->arg, sizeof(k->arg), "%s %s %d %d %s %s %s", mode, k->dir, last_step, max_wait,
             address[0], address[1], address[2]);
}

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The next line of a task's output; false if the task ends, or prints nothing until `end`. */
static inline bool next_line(child *t, char *line, size_t size, double end)
{
    for (;;) {
        char *nl = memchr(t->buf, '\n', t->n);
        if (nl) {
            size_t n = (size_t)(nl - t->buf);
            snprintf(line, size, "%.*s", (int)n, t->buf);
            t->n -= n + 1;
            memmove(t->buf, nl + 1, t->n);
            if (getenv("LEAT_TEST_VERBOSE") && strncmp(line, "step", 4) != 0 &&
                !strstr(line, "Saving checkpoints"))
                fprintf(stderr, "%d: %s\n", (int)t->task.pid, line);
            return true;
        }
        int ms = (int)((end - now()) * 1000);
        struct pollfd p = {.fd = fileno(t->task.says), .events = POLLIN};
        if (ms <= 0 || t->n == sizeof(t->buf) || poll(&p, 1, ms) <= 0)
            return false;
        ssize_t got = read(p.fd, t->buf + t->n, sizeof(t->buf) - t->n);
        if (got <= 0)
            return false;
        t->n += (size_t)got;
    }
}

/* Reads until the task prints this. */
static inline bool until(child *t, const char *words, double secs)
{
    char line[2000];
    double end = now() + secs;
    while (next_line(t, line, sizeof(line), end))
        if (strstr(line, words))
            return true;
    printf("%d did not say \"%s\" in %.0f s\n", (int)t->task.pid, words, secs);
    return false;
}

/* Reads until the task prints a step beyond this. */
static inline bool beyond(child *t, int step, double secs)
{
    char line[2000];
    int seen = -1;
    double end = now() + secs;
    while (next_line(t, line, sizeof(line), end))
        if (sscanf(line, "step %d", &seen) == 1 && seen > step)
            return true;
    printf("%d came to step %d in %.0f s, not beyond %d\n", (int)t->task.pid, seen, secs, step);
    return false;
}

static inline void begin_after(void (*first)(void), child *t, const char *role, const char *arg)
{
    t->task = task_start_after(first, role, arg);
    t->n = 0;
}

static inline void begin(child *t, const char *role, const char *arg)
{
    begin_after(NULL, t, role, arg);
}

/* Checks that the task ends with code 0. */
static inline void ends(child *t, double secs)
{
    int status = -1;
    char line[2000];
    double end = now() + secs;
    while (next_line(t, line, sizeof(line), end))
        ;
    pid_t got = 0;
    while (!got && now() < end) {
        got = waitpid(t->task.pid, &status, WNOHANG);
        if (!got)
            usleep(10000);
    }
    CHECK(got == t->task.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!got)
        task_end(&t->task);
    else
        fclose(t->task.says);
}

static inline void start_all(cluster *k)
{
    begin(&k->ps, "ps", k->arg);
    begin(&k->chief, "chief", k->arg);
    begin(&k->worker, "worker", k->arg);
    CHECK(until(&k->ps, "ready", 10));
    CHECK(until(&k->chief, "ready", 20));
    CHECK(until(&k->worker, "ready", 20));
}

/* Removes the cluster's files. */
static inline void clean(cluster *k)
{
    char path[600];
    DIR *d = opendir(k->dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", k->dir, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(k->dir);
}

static inline void all_end(cluster *k)
{
    ends(&k->chief, 30);
    ends(&k->worker, 30);
    ends(&k->ps, 30);
    clean(k);
}

#endif
