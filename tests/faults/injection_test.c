/* injection_test.c -- runs small cases with calls of the C library that fail (inject.h), the first,
 * the second, the third ... of all that the case makes, and checks that nothing crashes, hangs or
 * leaks, that errors say what is wrong, and that the case works again afterwards.
 *
 * Each n has a process of its own, in which a scenario is run
 *   1. with the n-th call failing, as the first that the process does with Leat,
 *   2. without failures, which must succeed,
 *   3. with the n-th call failing, and with all from the n-th on failing,
 *   4. without failures again: it must succeed, and leave as many threads and descriptors as 2.
 * By default one call of each stack is made to fail, at most MOST of a scenario; of the scenarios
 * with clusters, CLUSTER_MOST that are drawn with a seed, which is printed and which
 * LEAT_FAULTS_SEED repeats. With LEAT_FAULTS=all all calls fail, one after the other;
 * LEAT_FAULTS=20-29 has these n alone.
 * LEAT_FAULTS_SHOW=1 prints each call that failed and the error that came of it. */
#define _GNU_SOURCE
#include "test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "faults/inject.h"
#include "faults/scenarios.h"
#include "port.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
int __lsan_do_recoverable_leak_check(void);
#else
static int __lsan_do_recoverable_leak_check(void)
{
    return 0;
}
#endif

enum {
    MOST = 40,         /* calls of a scenario that fail, by default */
    CLUSTER_MOST = 8,  /* the same for a scenario with a cluster */
    DEADLINE_S = 60,   /* for one process */
    SETTLE_MS = 20000, /* until threads and descriptors that are no longer used are gone */
    MISSES = 3,        /* n without a failing call, after which there are no more */
};

typedef leat_status scenario_fn(const char *dir);

/* What a process of a scenario tells, in shared memory. */
static struct report {
    const char *step; /* what it does */
    int problems;
    bool fired;         /* a call failed */
    inject_fault fault; /* the one before the first problem */
    char dir[64];
    int ports[2];
} * report;
static const char *scenario_name;
static bool shows;

/* ---- What scenarios use ---- */
static void problem(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void problem(const char *format, ...)
{
    va_list v;
    if (!report->problems++)
        report->fault = inject_failed();
    printf("  %s: ", report->step);
    va_start(v, format);
    vprintf(format, v);
    va_end(v);
    printf("\n");
}

void scenario_expect(bool right, const char *file, int line, const char *words)
{
    if (!right)
        problem("%s:%d: not so: %s", file, line, words);
}

const char *scenario_path(const char *dir, const char *name)
{
    static __thread char paths[4][256];
    static __thread unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

int scenario_port(int i)
{
    return report->ports[i];
}

/* ---- In the process of one n ---- */
static int entries_of(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    return f->level ? remove(path) : 0;
}

static void empty_dir(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A status that came of the failed call says what is wrong. */
static void judge(leat_status s, const inject_fault *f, bool stays)
{
    const char *message = leat_status_message(s);
    const char *words = strerror(f->error);
    if (shows && f->function)
        printf("  %-9s %-16s %s%s%s\n", report->step, f->function,
               s ? leat_code_name(leat_status_code(s)) : "succeeded", s ? ": " : "",
               s ? message : "");
    if (!s)
        return;
    if (!f->function)
        problem("failed though no call did: %s: %s", leat_code_name(leat_status_code(s)), message);
    else if (!*message)
        problem("%s without a message", leat_code_name(leat_status_code(s)));
    else if (f->error == ENOMEM && f->named && !strstr(message, "memory") &&
             !strstr(message, "OOM"))
        problem("does not say that memory is exhausted: %s", message);
    else if (f->named && !stays && f->error != ENOMEM && !strstr(message, words))
        problem("does not say \"%s\": %s", words, message);
}

static void run_failing(scenario_fn *run, const char *step, long n, bool stays)
{
    report->step = step;
    inject_arm(n, stays);
    leat_status s = run(report->dir);
    inject_disarm();
    const inject_fault fault = inject_failed();
    report->fired = report->fired || fault.function;
    judge(s, &fault, stays);
    leat_status_free(s);
    empty_dir(report->dir);
}

static void run_well(scenario_fn *run, const char *step)
{
    report->step = step;
    leat_status s = run(report->dir);
    if (s)
        problem("%s: %s", leat_code_name(leat_status_code(s)), leat_status_message(s));
    leat_status_free(s);
    empty_dir(report->dir);
}

static void run_n(scenario_fn *run, long n)
{
    run_failing(run, "first", n, false);
    run_well(run, "after it");
    const int files = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
    run_failing(run, "later", n, false);
    run_failing(run, "all later", n, true);
    run_well(run, "after all");
    report->step = "at the end";
    int ms = 0;
    while ((entries_of("/proc/self/fd") > files || entries_of("/proc/self/task") > threads) &&
           ms++ < SETTLE_MS)
        usleep(1000);
    if (ms >= SETTLE_MS)
        problem("%d descriptors and %d threads, before there were %d and %d",
                entries_of("/proc/self/fd"), entries_of("/proc/self/task"), files, threads);
    if (__lsan_do_recoverable_leak_check())
        problem("memory has leaked");
}

/* Counts the calls of a first run; inject_state->sites has one call of each stack. */
static void run_counting(scenario_fn *run)
{
    report->step = "counting";
    inject_record();
    leat_status s = run(report->dir);
    inject_disarm();
    if (s)
        problem("%s: %s", leat_code_name(leat_status_code(s)), leat_status_message(s));
    leat_status_free(s);
}

/* ---- In the process that starts them ---- */
static void print_log(int fd)
{
    char text[4096];
    ssize_t n;
    lseek(fd, 0, SEEK_SET);
    while ((n = read(fd, text, sizeof(text))) > 0)
        fwrite(text, 1, (size_t)n, stdout);
}

/* The functions between the call that failed and the scenario. */
static void print_fault(const inject_fault *f)
{
    char line[512] = "";
    if (!f->function)
        return;
    printf("  the call of %s that failed:\n", f->function);
    for (int i = 2; i < f->n_frames && !strstr(line, "run_failing"); i++) {
        Dl_info in;
        char command[512];
        if (!dladdr(f->frames[i], &in) || !in.dli_fname)
            continue;
        snprintf(command, sizeof(command), "addr2line -fpe %s 0x%zx 2>/dev/null", in.dli_fname,
                 (size_t)((char *)f->frames[i] - (char *)in.dli_fbase - 1));
        FILE *names = popen(command, "r");
        if (names && fgets(line, sizeof(line), names))
            printf("    %s", line);
        if (names)
            pclose(names);
    }
}

/* The exit status, or -1 after the deadline. */
static int await(pid_t pid)
{
    int status = 0;
    struct timespec begin, now;
    const char *deadline = getenv("LEAT_FAULTS_DEADLINE");
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begin.tv_sec > (deadline ? atoi(deadline) : DEADLINE_S)) {
            const char *debug = getenv("LEAT_FAULTS_DEBUGGER"); /* A command that gets the id. */
            char command[512];
            snprintf(command, sizeof(command), "%s %d", debug ? debug : "true", (int)pid);
            if (system(command))
                printf("  cannot be run: %s\n", command);
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -1;
        }
        usleep(500);
    }
    kill(-pid, SIGKILL); /* What it started. */
    return status;
}

/* Runs one process; false if it has failed, which it has told. */
static bool in_process(scenario_fn *run, long n)
{
    char dir[] = "/tmp/leat-injection-XXXXXX", log_path[] = "/tmp/leat-injection-log-XXXXXX";
    const int log = mkstemp(log_path);
    if (!mkdtemp(dir) || log < 0)
        abort();
    unlink(log_path);
    *report = (struct report){.step = "starting"};
    inject_disarm(); /* The process before may have died. */
    atomic_store(&inject_init()->lock, 0);
    inject_init()->fault = (inject_fault){0};
    memcpy(report->dir, dir, sizeof(dir));
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(log, 2);
        for (int i = 0; i < 2; i++)
            report->ports[i] = free_port();
        if (n)
            run_n(run, n);
        else
            run_counting(run);
        fflush(stdout);
        _exit(report->problems != 0);
    }
    setpgid(pid, pid);
    const int status = await(pid);
    if (status) {
        printf("%s, n = %ld, %s: %s", scenario_name, n, report->step,
               status == -1          ? "hangs"
               : WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                     : "has failed");
        printf("\n");
        print_fault(report->problems ? &report->fault : &inject_init()->fault);
        print_log(log);
        fflush(stdout);
    }
    close(log);
    empty_dir(dir);
    rmdir(dir);
    return status == 0;
}

static void run_all(scenario_fn *run, long first, long last)
{
    for (long n = first, misses = 0; n <= last && misses < MISSES; n++) {
        CHECK(in_process(run, n));
        misses = report->fired ? 0 : misses + 1;
    }
}

/* Fails at most `most` of the calls that were counted: at even distances, or drawn. */
static void run_some(scenario_fn *run, int most, bool drawn)
{
    inject_state *state = inject_init();
    struct inject_site sites[INJECT_SITES];
    const int n = state->n_sites;
    memcpy(sites, state->sites, sizeof(sites));
    for (int i = 0; i < most && i < n; i++) {
        const int from = (int)((long)i * n / most), to = (int)((long)(i + 1) * n / most);
        const int at = n <= most ? i : drawn ? from + rand() % (to - from) : from;
        CHECK(in_process(run, sites[at].call));
    }
}

static void draw_seed(void)
{
    static bool drawn;
    const char *given = getenv("LEAT_FAULTS_SEED");
    const unsigned seed = given ? (unsigned)atol(given) : (unsigned)time(NULL) % 100000;
    if (!drawn)
        printf("LEAT_FAULTS_SEED=%u\n", seed);
    drawn = true;
    srand(seed);
}

static void run_scenario(const char *name, scenario_fn *run, bool cluster)
{
    const char *which = getenv("LEAT_FAULTS");
    long first = 1, last = 1L << 40;
    scenario_name = name;
    shows = getenv("LEAT_FAULTS_SHOW") != NULL;
    CHECK(in_process(run, 0));
    printf("%s: %ld calls from %d stacks\n", name, atomic_load(&inject_init()->calls),
           inject_init()->n_sites);
    if (cluster)
        draw_seed();
    if (!which)
        run_some(run, cluster ? CLUSTER_MOST : MOST, cluster);
    else if (strcmp(which, "all") == 0 || sscanf(which, "%ld-%ld", &first, &last) == 2)
        run_all(run, first, last);
    else
        CHECK(!"LEAT_FAULTS is neither \"all\" nor \"FIRST-LAST\"");
}

#define X(name)                                                                                    \
    static void run_##name(void)                                                                   \
    {                                                                                              \
        run_scenario(#name, scenario_##name, false);                                               \
    }
SCENARIOS(X)
#undef X
#define X(name)                                                                                    \
    static void run_##name(void)                                                                   \
    {                                                                                              \
        run_scenario(#name, scenario_##name, true);                                                \
    }
CLUSTER_SCENARIOS(X)
#undef X
#define X(name)                                                                                    \
    static void run_##name(void)                                                                   \
    {                                                                                              \
        const bool made = scenario_begin();                                                        \
        if (made)                                                                                  \
            run_scenario(#name, scenario_##name, true);                                            \
        scenario_end();                                                                            \
        if (!made)                                                                                 \
            SKIP("there is no openssl command");                                                   \
    }
TLS_SCENARIOS(X)
#undef X

int main(int argc, char **argv)
{
    inject_init();
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        abort();
#define X(name) {#name, run_##name},
    return RUN(argc, argv, SCENARIOS(X) CLUSTER_SCENARIOS(X) TLS_SCENARIOS(X));
#undef X
}
