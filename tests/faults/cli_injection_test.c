/* cli_injection_test.c -- runs the command with calls of the C library that fail (inject.h), the
 * first, the second, the third ... of all that it makes, once alone and once with all later calls,
 * and checks that it does not crash or hang, that it says what is wrong, and that what it prints
 * when it succeeds is right.
 *
 * By default some RUNS calls at even distances fail, from a start that is drawn with a seed, which
 * is printed and which LEAT_FAULTS_SEED repeats. LEAT_FAULTS=all, LEAT_FAULTS=20-29 and
 * LEAT_FAULTS_SHOW=1 as in injection_test. */
#define _GNU_SOURCE
#include <errno.h>
#include <leat/leat.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/command.h"
#include "faults/inject.h"

enum { RUNS = 14, DEADLINE_S = 40, MISSES = 3, SILENT_MS = 3000 };

static char dir[] = "/tmp/leat-cli-injection-XXXXXX";
static inject_state *state; /* shared with the command */
static char good[1 << 16];  /* what the command prints if no call fails */

static const char *path_of(const char *name)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static void share_state(void)
{
    const char *path = path_of("inject");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(*state)))
        abort();
    state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (state == MAP_FAILED)
        abort();
    close(fd);
    setenv("LEAT_INJECT", path, 1);
}

static void arm(long n, bool stays)
{
    state->fail = n;
    state->stays = stays;
    state->fault = (inject_fault){0};
    atomic_store(&state->failed, false);
    atomic_store(&state->calls, 0);
    atomic_store(&state->armed, true);
}

/* ---- One run of the command ---- */
typedef struct run {
    const char *args;
    const char *says; /* words of its output, which varies otherwise; NULL: it does not vary */
    bool serves;      /* it gets SIGTERM when it has printed a line */
} run;

static pid_t running;
static void on_alarm(int signal)
{
    kill(running, SIGKILL);
}

/* Reads until a server has told its address, or has ended, or its output seems to be lost. */
static void await_line(command c)
{
    struct pollfd p = {.fd = c.from, .events = POLLIN};
    size_t n = 0;
    while (!strstr(output, "answers at") && poll(&p, 1, SILENT_MS) > 0) {
        const ssize_t got = read(c.from, output + n, sizeof(output) - 1 - n);
        if (got <= 0)
            return;
        output[n += (size_t)got] = 0;
    }
}

/* The exit code of the command, or the negative number of the signal that ended it: SIGKILL at its
 * deadline. */
static int command_run(const run *r)
{
    command c = command_start("exec %s/tests/leat_injected %s", LEAT_BINARY_DIR, r->args);
    running = c.pid;
    alarm(DEADLINE_S);
    if (r->serves) {
        await_line(c);
        kill(c.pid, SIGTERM);
    }
    const int code = command_end(c);
    alarm(0);
    return code;
}

/* The functions between the call that failed and main. */
static void print_fault(const inject_fault *f)
{
    const size_t base = 0x555555554000; /* where programs are with ADDR_NO_RANDOMIZE */
    char line[512] = "", shell[600];
    printf("  the call of a function that failed (errno %d):\n", f->error);
    for (int i = 2; i < f->n_frames && !strstr(line, "main at"); i++) {
        snprintf(shell, sizeof(shell), "addr2line -fpe %s/tests/leat_injected 0x%zx",
                 LEAT_BINARY_DIR, (size_t)f->frames[i] - base - 1);
        FILE *names = popen(shell, "r");
        if (names && fgets(line, sizeof(line), names))
            printf("    %s", line);
        if (names)
            pclose(names);
    }
}

/* The output has words about the error, or about what the command could not do. */
static bool explains(const inject_fault *f, bool stays)
{
    if (!output[0])
        return false;
    if (stays || !f->named)
        return true;
    if (f->error == ENOMEM)
        return strstr(output, "memory") || strstr(output, "OOM");
    return strstr(output, strerror(f->error)) != NULL;
}

/* A call that failed may be one that the command can do without; it may warn then. */
static bool succeeds(const run *r)
{
    return strstr(output, "WARNING") || strstr(output, r->says ? r->says : good);
}

static void run_n(const run *r, long n, bool stays)
{
    arm(n, stays);
    const int code = command_run(r);
    atomic_store(&state->armed, false);
    const inject_fault *f = &state->fault;
    const bool right = code == 0 ? succeeds(r) : code == 1 && explains(f, stays);
    if (getenv("LEAT_FAULTS_SHOW"))
        printf("  n = %ld%s: %d: %s\n", n, stays ? " and later" : "", code, output);
    if (!right && atomic_load(&state->failed)) {
        printf("leat %s, n = %ld%s: exit code %d, and prints:\n%s\n", r->args, n,
               stays ? " and all later" : "", code, output);
        print_fault(f);
    }
    CHECK(right || !atomic_load(&state->failed));
}

static void run_all(const run *r, long first, long last, long step)
{
    for (long n = first, misses = 0; n <= last && misses < MISSES; n += step) {
        run_n(r, n, false);
        misses = atomic_load(&state->failed) ? 0 : misses + 1;
        run_n(r, n, true);
    }
}

static void inject(const run *r)
{
    const char *which = getenv("LEAT_FAULTS");
    long first = 1, last = 1L << 40, step = 1;
    arm(0, false);
    const int code = command_run(r);
    CHECK_INT(code, 0);
    snprintf(good, sizeof(good), "%s", output);
    const long calls = atomic_load(&state->calls);
    printf("leat %s: %ld calls\n", r->args, calls);
    CHECK(calls > 0);
    if (!which) {
        step = 1 + calls / RUNS;
        first = 1 + rand() % step;
    } else if (strcmp(which, "all") != 0 && sscanf(which, "%ld-%ld", &first, &last) != 2) {
        CHECK(!"LEAT_FAULTS is neither \"all\" nor \"FIRST-LAST\"");
        return;
    }
    if (code == 0)
        run_all(r, first, last, step);
}

/* ---- The commands ---- */
static void write_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(path_of(name), "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

static void make_files(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    void *bytes;
    size_t n;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(), leat_name("x"));
    leat_out w = leat_variable(g, "w", leat_full(g, LEAT_FLOAT, leat_shape(200), 2));
    leat_out init = leat_global_variables_initializer(g);
    leat_mul(x, w, leat_name("y"));
    leat_saver *saver = leat_saver_new(g);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    CHECK_OK(leat_saver_save(saver, s, path_of("model"), -1, NULL));
    leat_session_close(s);
    leat_saver_free(saver);
    CHECK_OK(leat_graph_to_binary(g, &bytes, &n));
    write_file("graph.pb", bytes, n);
    free(bytes);
    leat_graph_free(g);
}

static void runs_graph(void)
{
    char args[400];
    snprintf(args, sizeof(args), "run %s --init init --feed x=3 --fetch y:0 --out %s/out",
             path_of("graph.pb"), dir);
    inject(&(run){args});
}

static void shows_graph(void)
{
    char args[200];
    snprintf(args, sizeof(args), "show %s", path_of("graph.pb"));
    inject(&(run){args});
}

static void shows_checkpoint(void)
{
    char args[200];
    snprintf(args, sizeof(args), "show %s", path_of("model"));
    inject(&(run){args});
}

#if LEAT_CLUSTER
static void serves(void)
{
    char args[200];
    snprintf(args, sizeof(args), "server --ps_hosts 127.0.0.1:%d --job_name ps --grace 1",
             free_port());
    inject(&(run){args, .says = "answers at", .serves = true});
}

static void checks(void)
{
    char args[200];
    const int port = free_port();
    unsetenv("LEAT_INJECT");
    command c = command_start("exec %s/tests/leat_injected server --ps_hosts 127.0.0.1:%d "
                              "--job_name ps --grace 0",
                              LEAT_BINARY_DIR, port);
    CHECK(command_read(c, "answers at"));
    setenv("LEAT_INJECT", path_of("inject"), 1);
    snprintf(args, sizeof(args), "check --ps_hosts 127.0.0.1:%d --timeout 5", port);
    inject(&(run){args, .says = "all 1 tasks are well"});
    CHECK_INT(command_signal(c, SIGTERM), 0);
}

#define CLUSTER_CASES                                                                              \
    , {"serves", serves},                                                                          \
    {                                                                                              \
        "checks", checks                                                                           \
    }
#else
#define CLUSTER_CASES
#endif

int main(int argc, char **argv)
{
    const char *given = getenv("LEAT_FAULTS_SEED");
    const unsigned seed = given ? (unsigned)atol(given) : (unsigned)time(NULL) % 100000;
    printf("LEAT_FAULTS_SEED=%u\n", seed);
    srand(seed);
    signal(SIGALRM, on_alarm);
    personality(ADDR_NO_RANDOMIZE); /* print_fault knows where the command is in memory. */
    if (!mkdtemp(dir))
        abort();
    share_state();
    unsetenv("LEAT_INJECT");
    make_files();
    setenv("LEAT_INJECT", path_of("inject"), 1);
    const int code = RUN(argc, argv, {"runs_graph", runs_graph}, {"shows_graph", shows_graph},
                         {"shows_checkpoint", shows_checkpoint} CLUSTER_CASES);
    char shell[100];
    snprintf(shell, sizeof(shell), "rm -rf %s", dir);
    return system(shell) ? 1 : code;
}
