/* bounds_test.c -- what a run may cost: memory of graphs and plans by their nodes, and time, which
 * its deadline, its cancellation and the end of its session bound also while the graph is compiled
 * and while a kernel runs. */
#include "test.h"

#include <leat/leat.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/block.h"
#include "runtime/session_int.h"

#if LEAT_ASAN || defined(__SANITIZE_THREAD__)
enum { INSTRUMENTED = 1 };
#else
enum { INSTRUMENTED = 0 };
#endif

/* ---- Memory ---- */

static double bytes_in_use(void)
{
    const struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

/* Compiles g to run this; prints bytes a node, of which there are at most `most`. */
static void check_bytes(const char *what, leat_graph *g, double graph_bytes, leat_out feed,
                        leat_out target, double most)
{
    leat_session *s;
    leat_plan *plan;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    const leat_request q = {
        .feeds = &feed, .n_feeds = feed.node != NULL, .targets = &target, .n_targets = 1};
    const leat_plan_options o = {.devices = s->devices, .n_devices = s->n_devices};
    const double before = bytes_in_use();
    CHECK_OK(leat_plan_new(g, &q, &o, &plan));
    const double plan_bytes = bytes_in_use() - before, n = leat_graph_nodes(g);
    printf("%s: %.0f nodes, %.0f bytes a node, in the plan %.0f\n", what, n, graph_bytes / n,
           plan_bytes / n);
    if (!INSTRUMENTED) {
        CHECK(graph_bytes / n < most);
        CHECK(plan_bytes / n < most);
    }
    leat_plan_free(plan);
    leat_session_close(s);
}

static void bytes_a_node(void)
{
    const double before = bytes_in_use();
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 2)), y = x;
    for (int i = 0; i < 20000; i++)
        y = leat_neg(y);
    check_bytes("chain", g, bytes_in_use() - before, x, y, 1000);
    leat_graph_free(g);
}

/* A NoOp with many control inputs, of nodes that passes remove (an Identity), merge (equal nodes)
 * and turn into NoOps (values that nobody uses). */
static void many_control_inputs(void)
{
    enum { N = 10000 };
    static leat_out after[N];
    const double before = bytes_in_use();
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 2));
    for (int i = 0; i < N; i += 4) {
        after[i] = leat_random_uniform(g, leat_shape(1));
        after[i + 1] = leat_identity(after[i]);
        after[i + 2] = leat_neg(x);
        after[i + 3] = leat_no_op(g, leat_after(after[i]));
    }
    leat_out all = leat_group_at(LEAT_AT, g, after, N, NULL);
    check_bytes("star", g, bytes_in_use() - before, x, all, 2000);
    leat_graph_free(g);
}

/* Runs fn in a process that may use so much more memory; gives its exit code. */
static int with_memory(int64_t bytes, int (*fn)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        long pages = 0;
        FILE *f = fopen("/proc/self/statm", "r");
        if (!f || fscanf(f, "%ld", &pages) != 1)
            _exit(99);
        const rlim_t most = (rlim_t)(pages * sysconf(_SC_PAGESIZE) + bytes);
        setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
        _exit(fn());
    }
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether s is RESOURCE_EXHAUSTED with these words. */
static int is_exhausted(leat_status s, const char *node, const char *words)
{
    const char *text = leat_status_message(s);
    if (leat_status_code(s) == LEAT_RESOURCE_EXHAUSTED && strstr(text, node) && strstr(text, words))
        return 0;
    fprintf(stderr, "got: %s\n", s ? text : "OK");
    return 1;
}

static int double_strings(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_string_const(g, "0123456789abcdef");
    for (int i = 0; i < 40; i++)
        x = LEAT_OPN("StringJoin", ((leat_out[]){x, x}), 2);
    leat_session *s;
    leat_tensor *t = NULL;
    if (leat_session_open(g, &s))
        return 2;
    return is_exhausted(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET),
                        "StringJoin", "no memory for a string of");
}

static int many_outputs(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_zeros(g, LEAT_FLOAT, leat_shape(1 << 20));
    for (int i = 0; i < 64 && !g->status; i++)
        LEAT_OP2("Split", leat_scalar(g, LEAT_INT32, 0), x, leat_attr_int("num_split", 1 << 20),
                 leat_name("pieces"));
    return is_exhausted(leat_graph_status(g), "pieces", "outputs");
}

static void no_memory(void)
{
    if (INSTRUMENTED)
        SKIP("sanitizers need address space");
    CHECK_INT(with_memory(INT64_C(1) << 30, double_strings), 0);
    CHECK_INT(with_memory(INT64_C(1) << 30, many_outputs), 0);
}

/* ---- Time ---- */

static leat_out long_chain(leat_graph *g, int n, leat_out *x)
{
    leat_out y = *x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 2));
    for (int i = 0; i < n; i++)
        y = leat_neg(y);
    return y;
}

static void stops_compiling(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x, y = long_chain(g, 30000, &x);
    leat_session *s;
    leat_tensor *in, *out = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(2, 2), &in));
    CHECK_OK(leat_session_open(g, &s));
    const leat_run_options o = {.timeout_ms = 1};
    CHECK_ERROR(
        leat_session_run_with(s, &o, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET),
        DEADLINE_EXCEEDED, "while the graph was compiled (");

    leat_cancellation *c = leat_cancellation_new();
    leat_cancel_runs(c);
    const leat_request q = {.feeds = &x, .n_feeds = 1, .targets = &y, .n_targets = 1};
    const leat_plan_options p = {
        .devices = s->devices, .n_devices = s->n_devices, .cancellation = c};
    leat_plan *plan;
    CHECK_ERROR(leat_plan_new(g, &q, &p, &plan), CANCELLED, "while the graph was compiled (prune)");
    leat_cancellation_free(c);

    CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
    leat_tensor_unref(in);
    leat_tensor_unref(out);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Products that take seconds end soon after the deadline; so do constants, of which some are
 * folded. */
static void check_products(leat_graph *g, leat_out x, int n, leat_feeds feeds, const char *words)
{
    leat_out y = x;
    for (int i = 0; i < n; i++)
        y = leat_matmul(y, x);
    leat_session *s;
    leat_tensor *out = NULL;
    CHECK_OK(leat_session_open(g, &s));
    const leat_run_options o = {.timeout_ms = 300};
    const int64_t begin = leat_now_ns();
    leat_status bad = leat_session_run_with(s, &o, feeds, LEAT_FETCH({y, &out}), LEAT_NO_TARGET);
    const double seconds = (double)(leat_now_ns() - begin) / 1e9;
    printf("%.2f s: %s\n", seconds, leat_status_message(bad));
    CHECK_ERROR(bad, DEADLINE_EXCEEDED, words);
    CHECK(seconds < (INSTRUMENTED ? 20 : 5));
    leat_session_close(s);
    leat_graph_free(g);
}

static void stops_kernels(void)
{
    const int64_t n = INSTRUMENTED ? 3000 : 6000;
    leat_tensor *ones;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(n, n), &ones));
    for (int64_t i = 0; i < n * n; i++)
        ((float *)leat_tensor_mutable(ones))[i] = 1;
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(n, n));
    check_products(g, x, 3, LEAT_FEED({x, ones}), "(MatMul");
    leat_tensor_unref(ones);

    g = leat_graph_new();
    x = leat_fill(leat_ints(g, 512, 512), leat_scalar(g, LEAT_FLOAT, 1));
    check_products(g, x, 2000, LEAT_NO_FEED, "Timed out");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"bytes_a_node", bytes_a_node},
               {"many_control_inputs", many_control_inputs}, {"no_memory", no_memory},
               {"stops_compiling", stops_compiling}, {"stops_kernels", stops_kernels});
}
