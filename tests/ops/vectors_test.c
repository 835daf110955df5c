/* vectors_test.c -- replays what TensorFlow 1.15 computed (tests/vectors): values, errors, inferred
 * shapes and gradients, every case on the graph as it is and on the optimised one.
 *
 *     vectors_test [-v] [--guarded [--slow] | --opencl] [family ...] [op ...]
 *
 * Prints a line per family, then which ops failed, and which ops and kernels Leat does not have
 * yet: those are counted, but do not fail the test. -v tells of each case that failed: the element
 * that differs, what was expected and what came. --guarded runs all that has such a kernel on the
 * device of guarded_device.h; --slow makes its queues wait before each job, so that much is
 * enqueued behind a kernel that has not begun. --opencl runs all that has a kernel for GPUs on two
 * OpenCL devices, PoCL's if POCL_DEVICES does not say otherwise.
 */
#include <signal.h>
#include <unistd.h>
#include "core/map.h"
#include "guarded_device.h"
#include "opencl_devices.h"
#include "vector_replay.h"

static const char *const families[] = {
    "array",       "index", "cwise",  "reduce",  "math",      "nn",       "state",   "training",
    "random",      "flow",  "string", "complex", "extra",     "more",     "summary", "input",
    "image_codec", "image", "conv",   "pool",    "recurrent", "sequence", "static"};
enum { N_FAMILIES = sizeof families / sizeof *families };

/* Names and in how many cases they came up. */
typedef struct report {
    int cases[N_OUTCOMES];
    vec_counts counts;
    leat_map ops, failed, no_op, no_kernel;
} report;

typedef struct wishes { /* of the command line */
    const char **ops;
    int n_ops;
    bool family[N_FAMILIES], verbose;
} wishes;

static char now_running[256]; /* for the handler of crashes */

static void crashed(int sig)
{
    static const char words[] = "crashed in case ";
    ssize_t n = write(2, words, sizeof words - 1);
    n += write(2, now_running, strlen(now_running));
    n += write(2, "\n", 1);
    signal(sig, SIG_DFL);
    raise(n ? sig : SIGABRT);
}

static void count_name(leat_map *m, const char *name)
{
    leat_map_put(m, name, (void *)((intptr_t)leat_map_get(m, name) + 1));
}

/* True if the graph of the case leaves open what comes first. On the CPU its nodes run in the order
 * in which TensorFlow ran them. */
static bool has_no_order(const vec_case *c)
{
    static const char *const cases[] = {
        "AssignAdd/ordered", /* the control edge from the read to the update ends at a fed node */
        "Enter/while/error", /* two iterations fail, neither of which waits for the other */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(c->name, cases[i]) == 0)
            return true;
    return false;
}

/* True if the case is an error that the host finds in the values of a tensor. GPUs of TensorFlow's
 * give no error there either. */
static bool looks_at_values(const vec_case *c)
{
    static const char *const cases[] = {
        "SparseSoftmaxCrossEntropyWithLogits/bad/label",
        "SparseSoftmaxCrossEntropyWithLogits/bad/negative",
        "UnsortedSegmentSum/bad/id",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(c->name, cases[i]) == 0)
            return true;
    /* Rows that do not exist are zero, and are not updated. */
    return (strstr(c->op, "Gather") && (strstr(c->name, "/high") || strstr(c->name, "/low"))) ||
           ((strstr(c->op, "SparseApply") || strstr(c->op, "Scatter")) &&
            (strstr(c->name, "/bad/4") || strstr(c->name, "/bad/-1")));
}

/* True if the case needs a variable in two runs, one of which uses it in a loop with ops that have
 * no kernel for GPUs: that run looks for the variable on the CPU (docs/devices.md). */
static bool moves_a_variable(const vec_case *c)
{
    return strcmp(c->name, "Enter/while/variable") == 0 ||
           strcmp(c->name, "Enter/while/resource") == 0;
}

static bool wanted(const wishes *w, const vec_case *c)
{
    if (vec_devices && has_no_order(c))
        return false;
    if (vec_devices && strncmp(vec_devices, "gpu", 3) == 0 &&
        (looks_at_values(c) || moves_a_variable(c)))
        return false;
    for (int i = 0; i < w->n_ops; i++)
        if (strcmp(w->ops[i], c->op) == 0)
            return true;
    return w->n_ops == 0;
}

static void replay_case(const vec_case *c, leat_arena *arena, const wishes *w, report *r,
                        int *cases)
{
    const char *missing;
    snprintf(now_running, sizeof now_running, "%s", c->name);
    outcome o = vec_replay(c, arena, w->verbose, &r->counts, &missing);
    cases[o]++;
    r->cases[o]++;
    count_name(&r->ops, c->op);
    if (o == FAILED)
        count_name(&r->failed, c->op);
    else if (o != PASSED)
        count_name(o == NO_OP ? &r->no_op : &r->no_kernel, missing);
}

/* False if the file cannot be read. */
static bool replay_family(const char *family, const wishes *w, report *r)
{
    char path[512];
    vec_file f;
    vec_case c;
    leat_arena arena;
    leat_map ops = {0};
    int cases[N_OUTCOMES] = {0};
    snprintf(path, sizeof path, "%s/tests/vectors/%s.vec", LEAT_SOURCE_DIR, family);
    bool ok = vec_open(&f, path);
    leat_arena_init(&arena);
    while (ok && vec_next(&f, &arena, &c)) {
        if (wanted(w, &c)) {
            count_name(&ops, c.op);
            replay_case(&c, &arena, w, r, cases);
        }
        leat_arena_release(&arena);
        leat_arena_init(&arena);
    }
    leat_arena_release(&arena);
    int n = cases[PASSED] + cases[FAILED] + cases[NO_OP] + cases[NO_KERNEL];
    if (n)
        printf("%-9s %3zu ops %5d cases: %5d passed %4d failed %4d without op %4d without kernel\n",
               family, ops.n, n, cases[PASSED], cases[FAILED], cases[NO_OP], cases[NO_KERNEL]);
    ok &= !f.bad;
    if (!ok)
        printf("%s is not a file of vectors, or cut off\n", path);
    leat_map_release(&ops);
    vec_close(&f);
    return ok;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_names(const char *title, leat_map *m)
{
    const char **names = malloc((m->n + 1) * sizeof *names);
    void *value;
    size_t n = 0, i = 0, column = 0;
    while (n < m->n && leat_map_next(m, &i, &names[n], &value))
        n++;
    qsort(names, n, sizeof *names, by_name);
    if (n)
        printf("%s (%zu):", title, n);
    for (i = 0; i < n; i++) {
        if (column + strlen(names[i]) > 90)
            column = 0, printf("\n   ");
        column += (size_t)printf(" %s %ld%s", names[i], (long)(intptr_t)leat_map_get(m, names[i]),
                                 i + 1 < n ? "," : "\n");
    }
    free(names);
    leat_map_release(m);
}

static void read_wishes(int argc, char **argv, wishes *w)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        int f = 0;
        while (f < N_FAMILIES && strcmp(argv[i], families[f]) != 0)
            f++;
        if (f < N_FAMILIES)
            any = w->family[f] = true;
        else if (strcmp(argv[i], "-v") == 0)
            w->verbose = true;
        else if (strcmp(argv[i], "--guarded") == 0)
            vec_devices = "guarded:1";
        else if (strcmp(argv[i], "--opencl") == 0)
            vec_devices = "gpu:2";
        else if (strcmp(argv[i], "--slow") == 0)
            guarded_pause_us = 300;
        else
            w->ops[w->n_ops++] = argv[i];
    }
    for (int f = 0; f < N_FAMILIES && !any; f++)
        w->family[f] = true;
}

int main(int argc, char **argv)
{
    report r = {0};
    wishes w = {.ops = calloc((size_t)argc + 1, sizeof *w.ops)};
    bool ok = true;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGSEGV, crashed);
    signal(SIGFPE, crashed);
    signal(SIGABRT, crashed);
    read_wishes(argc, argv, &w);
    const bool opencl = vec_devices && strcmp(vec_devices, "gpu:2") == 0;
    if (opencl)
        setenv("POCL_DEVICES", "basic basic", 0);
    if (opencl && !test_has_gpus(2)) {
        printf("skipped: there are no two OpenCL devices; pocl-opencl-icd makes them\n");
        free(w.ops);
        return 0;
    }
    LEAT_DIE_ON_ERROR(leat_device_kind_register(&guarded_kind));
    for (int f = 0; f < N_FAMILIES; f++)
        if (w.family[f])
            ok &= replay_family(families[f], &w, &r);
    printf("%zu ops, %d values, %d gradients, %d errors, %d inferred shapes\n", r.ops.n,
           r.counts.values, r.counts.gradients, r.counts.errors, r.counts.shapes);
    print_names("failed", &r.failed);
    print_names("ops that are missing", &r.no_op);
    print_names("kernels that are missing", &r.no_kernel);
    leat_map_release(&r.ops);
    free(w.ops);
    printf("%d passed, %d failed, %d skipped\n", r.cases[PASSED], r.cases[FAILED],
           r.cases[NO_OP] + r.cases[NO_KERNEL]);
    return ok && r.cases[PASSED] && !r.cases[FAILED] ? 0 : 1;
}
