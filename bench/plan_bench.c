/* plan_bench.c -- what it costs to compile a graph, by the number of its nodes: time of building,
 * of importing a GraphDef and of each stage of compiling, and bytes a node of graph and plan.
 *
 *     plan_bench [--stages] KIND NODES...     for example: plan_bench chain 1000 10000 100000
 *     plan_bench [--stages] FILE.pb...        graphs of files; all that no other node uses is run
 *
 * KIND: chain (Neg after Neg), identities (Identity after Identity), sum (an AddN of n values),
 * fan (n consumers of a value), variables (n variables, initialised by a NoOp with n control
 * inputs), grid (each node adds the two before it), gradients (a net of n / 50 layers, with
 * gradients and updates), constants (sums of constants, which are folded). --stages prints the time
 * of each stage.
 */
#include <leat/leat.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/session_int.h"

typedef struct built {
    leat_graph *g;
    leat_out *feeds, *targets;
    int n_feeds, n_targets;
} built;

static double ms_since(int64_t begin_ns)
{
    return (double)(leat_now_ns() - begin_ns) / 1e6;
}

static double bytes_in_use(void)
{
    const struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

static leat_out matrix(built *b)
{
    leat_out x = leat_placeholder(b->g, LEAT_FLOAT, leat_shape(2, 2));
    b->feeds = malloc(sizeof(*b->feeds));
    b->feeds[b->n_feeds++] = x;
    return x;
}

static void run_one(built *b, leat_out x)
{
    b->targets = malloc(sizeof(*b->targets));
    b->targets[b->n_targets++] = x;
}

static void chain(built *b, int n)
{
    leat_out x = matrix(b);
    for (int i = 0; i < n; i++)
        x = leat_neg(x);
    run_one(b, x);
}

static void identities(built *b, int n)
{
    leat_out x = matrix(b);
    for (int i = 0; i < n; i++)
        x = leat_identity(x);
    run_one(b, leat_neg(x));
}

static void sum(built *b, int n)
{
    leat_out *x = calloc((size_t)n, sizeof(*x));
    for (int i = 0; i < n; i++)
        x[i] = leat_random_uniform(b->g, leat_shape(2, 2));
    run_one(b, leat_add_n(x, n));
    free(x);
}

static void fan(built *b, int n)
{
    leat_out x = matrix(b), *y = calloc((size_t)n / 2, sizeof(*y));
    for (int i = 0; i < n / 2; i++)
        y[i] = leat_mul(x, leat_scalar(b->g, LEAT_FLOAT, i + 2));
    run_one(b, leat_add_n(y, n / 2));
    free(y);
}

static void variables(built *b, int n)
{
    leat_out zeros = leat_zeros(b->g, LEAT_FLOAT, leat_shape(2, 2));
    for (int i = 0; i < n / 3; i++)
        leat_variable(b->g, "v", zeros);
    run_one(b, leat_global_variables_initializer(b->g));
}

static void grid(built *b, int n)
{
    int side = 1;
    while (side * side < n)
        side++;
    leat_out *row = calloc((size_t)side, sizeof(*row)), x = matrix(b);
    for (int i = 0; i < side; i++)
        row[i] = x;
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++)
            row[j] = leat_add(row[j], j ? row[j - 1] : x);
    run_one(b, row[side - 1]);
    free(row);
}

static void gradients(built *b, int n)
{
    leat_out x = matrix(b), start = leat_zeros(b->g, LEAT_FLOAT, leat_shape(2, 2));
    for (int i = 0; i < n / 50; i++) {
        leat_out w = leat_variable(b->g, "w", start);
        x = leat_tanh(leat_matmul(x, w));
    }
    run_one(b, leat_minimize(leat_gradient_descent(.learning_rate = 0.1), leat_reduce_sum(x)));
}

static void constants(built *b, int n)
{
    leat_out x = leat_scalar(b->g, LEAT_FLOAT, 1);
    for (int i = 0; i < n / 2; i++)
        x = leat_add(x, leat_scalar(b->g, LEAT_FLOAT, i));
    run_one(b, leat_add(matrix(b), x));
}

static const struct {
    const char *name;
    void (*build)(built *b, int n);
} kinds[] = {{"chain", chain},
             {"identities", identities},
             {"sum", sum},
             {"fan", fan},
             {"variables", variables},
             {"grid", grid},
             {"gradients", gradients},
             {"constants", constants}};

/* All nodes that no other node uses. */
static void run_ends(built *b)
{
    const int n = leat_graph_nodes(b->g);
    bool *used = calloc((size_t)n + 1, sizeof(*used));
    b->targets = calloc((size_t)n + 1, sizeof(*b->targets));
    for (int i = 0; i < n; i++) {
        const leat_node *x = b->g->nodes[i];
        for (int k = 0; k < x->n_in; k++)
            used[x->in[k].node->id] = true;
        for (int k = 0; k < x->n_controls; k++)
            used[x->controls[k]->id] = true;
    }
    for (int i = 0; i < n; i++)
        if (!used[i])
            b->targets[b->n_targets++] = (leat_out){b->g->nodes[i], -1};
    free(used);
}

static leat_status read_graph(const char *path, leat_graph *g)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    fseek(f, 0, SEEK_END);
    const size_t size = (size_t)ftell(f);
    char *bytes = malloc(size + 1);
    rewind(f);
    if (fread(bytes, 1, size, f) != size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    leat_status s = leat_graph_from_binary(g, bytes, size, NULL);
    free(bytes);
    return s;
}

static double import_ms(const leat_graph *g)
{
    void *bytes;
    size_t size;
    LEAT_DIE_ON_ERROR(leat_graph_to_binary(g, &bytes, &size));
    const int64_t begin = leat_now_ns();
    leat_graph *copy = leat_graph_new();
    LEAT_DIE_ON_ERROR(leat_graph_from_binary(copy, bytes, size, NULL));
    const double ms = ms_since(begin);
    leat_graph_free(copy);
    free(bytes);
    return ms;
}

static void measure(const char *name, built *b, double build_ms, double graph_bytes, bool stages)
{
    const double nodes = leat_graph_nodes(b->g), import = import_ms(b->g);
    leat_session *s;
    LEAT_DIE_ON_ERROR(leat_session_open(b->g, &s));
    leat_request q = {
        .feeds = b->feeds, .n_feeds = b->n_feeds, .targets = b->targets, .n_targets = b->n_targets};
    leat_stage_times times = {0};
    leat_plan_options o = {.devices = s->devices, .n_devices = s->n_devices, .times = &times};
    leat_plan *plan;
    const double before = bytes_in_use();
    const int64_t begin = leat_now_ns();
    leat_status bad = leat_plan_new(b->g, &q, &o, &plan);
    const double ms = ms_since(begin), plan_bytes = bytes_in_use() - before;
    if (bad) {
        printf("%-12s %8.0f  %s\n", name, nodes, leat_status_message(bad));
    } else {
        printf("%-12s %8.0f %9.1f %9.1f %9.1f %9.2f %8.0f %8.0f\n", name, nodes, build_ms, import,
               ms, ms * 1e3 / nodes, graph_bytes / nodes, plan_bytes / nodes);
        for (int i = 0; stages && i < times.n; i++)
            printf("    %-14s %9.1f ms\n", times.v[i].name, (double)times.v[i].ns / 1e6);
        leat_plan_free(plan);
    }
    fflush(stdout);
    leat_status_free(bad);
    leat_session_close(s);
    leat_graph_free(b->g);
    free(b->feeds);
    free(b->targets);
}

static void measure_built(const char *name, void (*build)(built *, int), int n, bool stages)
{
    built b = {0};
    const double before = bytes_in_use();
    const int64_t begin = leat_now_ns();
    b.g = leat_graph_new();
    build(&b, n);
    const double ms = ms_since(begin), bytes = bytes_in_use() - before;
    LEAT_DIE_ON_ERROR(leat_graph_status(b.g));
    measure(name, &b, ms, bytes, stages);
}

static void measure_file(const char *path, bool stages)
{
    built b = {0};
    const double before = bytes_in_use();
    const int64_t begin = leat_now_ns();
    b.g = leat_graph_new();
    leat_status bad = read_graph(path, b.g);
    const double ms = ms_since(begin), bytes = bytes_in_use() - before;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (bad) {
        printf("%-12s %s\n", name, leat_status_message(bad));
        leat_status_free(bad);
        leat_graph_free(b.g);
        return;
    }
    run_ends(&b);
    measure(name, &b, ms, bytes, stages);
}

int main(int argc, char **argv)
{
    int at = 1;
    const bool stages = at < argc && strcmp(argv[at], "--stages") == 0;
    at += stages;
    void (*build)(built *, int) = NULL;
    for (size_t i = 0; at < argc && i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(argv[at], kinds[i].name) == 0)
            build = kinds[i].build;
    if (at >= argc || (build && at + 1 >= argc)) {
        fprintf(stderr, "usage: plan_bench [--stages] KIND NODES... | FILE.pb...\n");
        return 2;
    }
    printf("%-12s %8s %9s %9s %9s %9s %8s %8s\n", "graph", "nodes", "build ms", "import ms",
           "plan ms", "us/node", "graph B", "plan B");
    for (int i = build ? at + 1 : at; i < argc; i++) {
        if (build)
            measure_built(argv[at], build, atoi(argv[i]), stages);
        else
            measure_file(argv[i], stages);
    }
    return 0;
}
