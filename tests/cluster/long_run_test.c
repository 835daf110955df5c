/* long_run_test.c -- memory of tasks that train for long: a ps, a chief and a worker, asynchronous
 * and synchronous, through shared memory and over gRPC. LEAT_STEPS=100000 trains for as many steps;
 * a task may grow by some threads' stacks and caches, which is a few bytes a step, and by the rings
 * in shared memory, whose pages become resident when they are first used. */
#include <malloc.h>
#include <pthread.h>

#include "cluster/shm/ring.h"
#include "cluster/train_task.h"

/* ---- A task: "MODE WAY DIR STEPS PS CHIEF WORKER" ---- */

/* Waits until the test has measured this task: then it makes a file of that name. */
static void say_and_wait(const char *dir, const char *word)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", dir, word);
    printf("%s\n", word);
    fflush(stdout);
    while (access(path, F_OK))
        usleep(5000);
}

static int train_long(const char *mode, const char *dir, int steps, const char *target, int task)
{
    leat_graph *g = leat_graph_new();
    char device[64];
    snprintf(device, sizeof(device), "/job:worker/task:%d", task);
    leat_out step = {0}, w = {0}, train = {0};
    leat_with_device(g, "/job:ps/task:0")
    {
        step = leat_global_step(g);
        w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(100)));
    }
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = 0.01);
    if (strcmp(mode, "sync") == 0)
        opt = leat_sync_replicas(opt, .replicas_to_aggregate = 2, .total_num_replicas = 2);
    leat_with_device(g, device) train = leat_minimize(opt, leat_reduce_sum(w), .global_step = step);
    leat_optimizer_free(opt);
    leat_monitored *ms = NULL;
    LEAT_DIE_ON_ERROR(leat_monitored_open(g, &ms, .master = target, .is_chief = task == 0,
                                          .last_step = steps, .max_wait_secs = 60,
                                          .log_step_count_steps = -1));
    bool said = false;
    while (!leat_monitored_should_stop(ms)) {
        leat_tensor *v = NULL;
        LEAT_DIE_ON_ERROR(
            leat_monitored_run(ms, LEAT_NO_FEED, LEAT_FETCH({step, &v}), LEAT_TARGET(train)));
        if (!said && leat_tensor_at(v, 0) >= steps / 3) {
            said = true;
            say_and_wait(dir, "third");
        }
        leat_tensor_unref(v);
    }
    say_and_wait(dir, "last");
    LEAT_DIE_ON_ERROR(leat_monitored_close(ms));
    leat_graph_free(g);
    return 0;
}

/* Prints the number of allocated bytes on SIGUSR1. */
static void *report(void *arg)
{
    const sigset_t *signals = arg;
    for (int got; sigwait(signals, &got) == 0;) {
        printf("allocated %zu\n", mallinfo2().uordblks);
        fflush(stdout);
    }
    return NULL;
}

static int be_long(const char *role, const char *arg)
{
    char mode[16], way[16], dir[200], address[3][64];
    int steps, task = strcmp(role, "worker") == 0, code = 0;
    if (sscanf(arg, "%15s %15s %199s %d %63s %63s %63s", mode, way, dir, &steps, address[0],
               address[1], address[2]) != 7)
        return 2;
    leat_server_options options = {.transports = strcmp(way, "shared") == 0 ? NULL : way};
    static sigset_t signals;
    pthread_t reporter;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pthread_create(&reporter, NULL, report, &signals))
        return 2;
    pthread_detach(reporter);
    leat_cluster *c = leat_cluster_new();
    leat_server *server = NULL;
    for (int i = 0; i < 3; i++)
        LEAT_DIE_ON_ERROR(leat_cluster_add(c, i ? "worker" : "ps", address[i]));
    bool ps = strcmp(role, "ps") == 0;
    LEAT_DIE_ON_ERROR(leat_server_start(c, ps ? "ps" : "worker", task, &options, &server));
    if (ps)
        LEAT_DIE_ON_ERROR(leat_server_join(server));
    else
        code = train_long(mode, dir, steps, leat_server_target(server), task);
    leat_server_free(server);
    leat_cluster_free(c);
    return code;
}

/* ---- The tests' side ---- */

typedef struct memory {
    long allocated_kb, anonymous_kb, shared_kb;
} memory;

static memory memory_of(child *t)
{
    char path[64], line[2000];
    memory m = {0};
    size_t bytes = 0; /* stays 0 under sanitizers, whose allocators do not count */
    bool said = false;
    double end = now() + 30;
    kill(t->task.pid, SIGUSR1);
    while (!said && next_line(t, line, sizeof(line), end))
        said = sscanf(line, "allocated %zu", &bytes) == 1;
    m.allocated_kb = (long)(bytes / 1024);
    snprintf(path, sizeof(path), "/proc/%d/status", (int)t->task.pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        sscanf(line, "RssAnon: %ld", &m.anonymous_kb);
        sscanf(line, "RssShmem: %ld", &m.shared_kb);
    }
    if (f)
        fclose(f);
    CHECK(said && m.anonymous_kb > 0);
    return m;
}

static void looked_at(const cluster *k, const char *word)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", k->dir, word);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    if (f)
        fclose(f);
}

static void stays_flat(const char *mode, const char *way)
{
    enum { ALLOCATED_KB = 400, RESIDENT_KB = 2000 };
    /* For each of the two other tasks, for calls in each direction: a page and two rings. */
    enum { RINGS_KB = 4 * (2 * LEAT_RING_BYTES / 1024 + 4) };
    static cluster k;
    const char *text = getenv("LEAT_STEPS");
    int steps = text ? atoi(text) : 3000;
    double patience = 60 + steps / 200.0;
    make(&k, mode, 0, 0);
    char *addresses = k.arg; /* the last three words of what make() wrote */
    for (int i = 0; i < 4; i++)
        addresses = strchr(addresses, ' ') + 1;
    char arg[600];
    snprintf(arg, sizeof(arg), "%s %s %s %d %s", mode, way, k.dir, steps, addresses);
    child *all[] = {&k.ps, &k.chief, &k.worker};
    static const char *const roles[] = {"ps", "chief", "worker"};
    memory before[3], after[3];
    double begun = now();
    for (int i = 0; i < 3; i++)
        begin(all[i], roles[i], arg);
    CHECK(until(&k.chief, "third", patience));
    for (int i = 0; i < 3; i++)
        before[i] = memory_of(all[i]);
    looked_at(&k, "third");
    CHECK(until(&k.chief, "last", patience));
    for (int i = 0; i < 3; i++)
        after[i] = memory_of(all[i]);
    looked_at(&k, "last");
    printf("%s over %s, %d steps in %.0f s:\n", mode, way, steps, now() - begun);
    for (int i = 0; i < 3; i++) {
        long more = after[i].allocated_kb - before[i].allocated_kb;
        long grown = after[i].anonymous_kb - before[i].anonymous_kb;
        printf("    %s: allocated %ld KB (%+ld), resident %ld KB (%+ld), rings %ld KB\n", roles[i],
               after[i].allocated_kb, more, after[i].anonymous_kb, grown, after[i].shared_kb);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        CHECK(more < ALLOCATED_KB && grown < RESIDENT_KB);
#endif
        CHECK(after[i].shared_kb <= (strcmp(way, "grpc") == 0 ? 0 : RINGS_KB));
    }
    all_end(&k);
}

static void async_shared(void)
{
    stays_flat("async", "shared");
}

static void sync_shared(void)
{
    stays_flat("sync", "shared");
}

static void async_grpc(void)
{
    stays_flat("async", "grpc");
}

static void sync_grpc(void)
{
    stays_flat("sync", "grpc");
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return be_long(argv[2], argv[3]);
    return RUN(argc, argv, {"async_shared", async_shared}, {"sync_shared", sync_shared},
               {"async_grpc", async_grpc}, {"sync_grpc", sync_grpc});
}
