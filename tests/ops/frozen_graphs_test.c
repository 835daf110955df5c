/* frozen_graphs_test.c -- frozen graphs that other people made with TensorFlow, under
 * ../shared/conformance/graphs: X_net.pb, with X_in.npy and X_out.npy, must give that output, on
 * the CPU and on an OpenCL device, PoCL's if POCL_DEVICES does not say otherwise. Prints a table of
 * graphs, the largest difference on each of the two, relative to the largest element of the output,
 * and the ops, those that have no kernel for the OpenCL device in brackets. `frozen_graphs_test
 * every WORD` is about the graphs whose names have the word.
 *
 * The one Placeholder is fed, the last node that no other uses is fetched. Arrays of rank 4 and 5
 * were stored with their channels moved to the front, unless the placeholder itself has them there.
 * Graphs that TensorFlow itself refuses, because a float goes into an op for halves, are refused.
 */
#include "test.h"

#include <dirent.h>
#include <inttypes.h>
#include <leat/leat.h>

#include "core/half.h"
#include "core/strbuf.h"
#include "opencl_devices.h"
#include "runtime/kernel_int.h"

static char root[600];

static bool found(void)
{
    static const char *const places[] = {"../shared", "../../shared"};
    for (int i = 0; i < 2; i++) {
        snprintf(root, sizeof(root), "%s/%s/conformance/graphs", LEAT_SOURCE_DIR, places[i]);
        if (access(root, R_OK) == 0)
            return true;
    }
    return false;
}

static char *read_file(const char *name, const char *end, size_t *size)
{
    char path[1000];
    snprintf(path, sizeof(path), "%s/%s%s", root, name, end);
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    size_t room = 1 << 16, n = 0, got;
    char *data = malloc(room + 1);
    while ((got = fread(data + n, 1, room - n, f)) > 0)
        if ((n += got) == room)
            data = realloc(data, (room *= 2) + 1);
    fclose(f);
    data[n] = 0;
    *size = n;
    return data;
}

/* An array of float32, in C order. */
static leat_tensor *read_npy(const char *name, const char *end)
{
    size_t size;
    char *data = read_file(name, end, &size);
    leat_tensor *t = NULL;
    if (data && size > 12 && memcmp(data, "\x93NUMPY", 6) == 0) {
        const size_t wide = data[6] > 1 ? 4 : 2; /* bytes of the header's length */
        uint32_t length = 0;
        memcpy(&length, data + 8, wide);
        const size_t at = 8 + wide + length;
        char *p = strstr(data + 8 + wide, "'shape'");
        leat_shape s = {0};
        CHECK(strstr(data + 8 + wide, "'<f4'") &&
              strstr(data + 8 + wide, "'fortran_order': False"));
        p = p ? strchr(p, '(') + 1 : NULL;
        for (char *next; p && s.rank < LEAT_MAX_RANK; p = next) {
            int64_t d = strtoll(p, &next, 10);
            if (next == p)
                break;
            s.dim[s.rank++] = d;
            next += strspn(next, ", ");
        }
        if (at <= size && leat_shape_count(&s) * 4 == (int64_t)(size - at))
            CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, s, data + at, &t));
        CHECK(t != NULL);
    }
    free(data);
    return t;
}

/* The shape, and where wanted the elements, with the channels moved from the front to the end. */
static leat_tensor *channels_last(const leat_tensor *t)
{
    leat_shape s = leat_tensor_shape(t), turned = s;
    const int64_t channels = s.dim[1];
    int64_t pixels = 1;
    for (int i = 2; i < s.rank; i++) {
        turned.dim[i - 1] = s.dim[i];
        pixels *= s.dim[i];
    }
    turned.dim[s.rank - 1] = channels;
    const float *from = leat_tensor_data(t);
    float *to = malloc((size_t)leat_shape_count(&s) * sizeof(float) + 1);
    for (int64_t n = 0; n < s.dim[0]; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < pixels; p++)
                to[(n * pixels + p) * channels + c] = from[(n * channels + c) * pixels + p];
    leat_tensor *out;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, turned, to, &out));
    free(to);
    return out;
}

static bool fits(leat_shape known, leat_shape s)
{
    for (int i = 0; known.rank == s.rank && i < s.rank; i++)
        if (known.dim[i] >= 0 && known.dim[i] != s.dim[i])
            return false;
    return known.rank < 0 || known.rank == s.rank;
}

/* True if an op of the graph takes images whose channels come first. */
static bool channels_first(const leat_graph *g)
{
    for (int i = 0; i < leat_graph_nodes(g); i++) {
        const leat_node *n = leat_graph_node(g, i);
        if (leat_node_has(n, "data_format") && !strcmp(leat_node_string(n, "data_format"), "NCHW"))
            return true;
    }
    return false;
}

/* t, or t with the channels last, whichever has the shape. Takes t. */
static leat_tensor *fitting(const leat_graph *g, leat_tensor *t, leat_shape known)
{
    if ((leat_tensor_shape(t).rank != 4 && leat_tensor_shape(t).rank != 5) || channels_first(g))
        return t;
    leat_tensor *turned = channels_last(t);
    if (!fits(known, leat_tensor_shape(turned)) && fits(known, leat_tensor_shape(t))) {
        leat_tensor_unref(turned);
        return t;
    }
    leat_tensor_unref(t);
    return turned;
}

/* t as halves. Takes t. */
static leat_tensor *halves(leat_tensor *t)
{
    leat_shape s = leat_tensor_shape(t);
    leat_tensor *out;
    CHECK_OK(leat_tensor_new(LEAT_HALF, s, &out));
    for (int64_t i = 0; i < leat_shape_count(&s); i++)
        ((leat_half *)leat_tensor_mutable(out))[i] =
            leat_half_from_float((float)leat_tensor_at(t, i));
    leat_tensor_unref(t);
    return out;
}

/* The largest difference, relative to the largest element that is wanted. */
static double difference(const leat_tensor *got, const leat_tensor *want)
{
    leat_shape s = leat_tensor_shape(want);
    double most = 0, size = 1e-6;
    for (int64_t i = 0; i < leat_shape_count(&s); i++) {
        const double a = leat_tensor_at(got, i), b = leat_tensor_at(want, i);
        size = fabs(b) > size ? fabs(b) : size;
        most = fabs(a - b) <= most ? most : fabs(a - b);
    }
    return most / size;
}

static int n_equal, n_waiting, n_lacking, n_refused, n_nodes, n_on_gpu;
static bool has_gpu;

static leat_node *last_unused(const leat_graph *g)
{
    const int n = leat_graph_nodes(g);
    bool *used = calloc((size_t)n + 1, 1);
    for (int i = 0; i < n; i++) {
        const leat_node *node = leat_graph_node(g, i);
        for (int j = 0; j < leat_node_inputs(node); j++)
            used[leat_node_index(leat_node_input(node, j).node)] = true;
    }
    leat_node *last = NULL;
    for (int i = 0; i < n; i++)
        if (!used[i] && leat_node_outputs(leat_graph_node(g, i)) > 0)
            last = leat_graph_node(g, i);
    free(used);
    return last;
}

/* True if GPUs have a kernel for the node. */
static bool runs_on_gpu(const leat_node *n)
{
    const leat_kernel_def *d;
    bool via_float;
    leat_status s = leat_kernel_find(n, "GPU", &d, &via_float);
    const bool found = !s;
    leat_status_free(s);
    return found;
}

/* The names of the ops, each once, but for constants and placeholders. */
static void list_ops(const leat_graph *g, leat_strbuf *b)
{
    for (int i = 0; i < leat_graph_nodes(g); i++) {
        const leat_node *n = leat_graph_node(g, i);
        const char *op = leat_node_op(n);
        bool seen = !strcmp(op, "Const") || !strcmp(op, "Placeholder") || !strcmp(op, "Identity");
        if (!seen && has_gpu) {
            n_nodes++;
            n_on_gpu += runs_on_gpu(n);
        }
        for (int j = 0; j < i && !seen; j++)
            seen = !strcmp(op, leat_node_op(leat_graph_node(g, j)));
        if (!seen)
            leat_strbuf_printf(b, !has_gpu || runs_on_gpu(n) ? " %s" : " [%s]", op);
    }
}

/* Runs the graph on these devices; gives what it lacks of what is wanted. The first run brings both
 * arrays into the form that the graph has. */
static leat_status run(leat_graph *g, const char *devices, bool first, leat_tensor **in,
                       leat_tensor **want, double *out)
{
    leat_node *fetch = last_unused(g), *feed = NULL;
    for (int i = 0; i < leat_graph_nodes(g) && !feed; i++)
        if (!strcmp(leat_node_op(leat_graph_node(g, i)), "Placeholder"))
            feed = leat_graph_node(g, i);
    CHECK(fetch && feed);
    if (!fetch || !feed)
        return NULL;
    const leat_out x = {feed, 0}, y = {fetch, 0};
    if (first)
        *in = fitting(g, *in, leat_out_shape(x));
    if (first && leat_out_dtype(x) == LEAT_HALF)
        *in = halves(*in);
    leat_session *s;
    leat_tensor *got = NULL;
    LEAT_TRY(leat_session_open(g, &s, .devices = devices, .allow_soft_placement = true));
    leat_status status =
        leat_session_run(s, LEAT_FEED({x, *in}), LEAT_FETCH({y, &got}), LEAT_NO_TARGET);
    leat_session_close(s);
    LEAT_TRY(status);
    if (first)
        *want = fitting(g, *want, leat_tensor_shape(got));
    leat_shape a = leat_tensor_shape(got), b = leat_tensor_shape(*want);
    /* Dimensions of size 1 were sometimes lost when the output was stored. */
    *out = leat_shape_count(&a) == leat_shape_count(&b) ? difference(got, *want) : INFINITY;
    leat_tensor_unref(got);
    return NULL;
}

static void try_graph(const char *name)
{
    size_t size;
    leat_tensor *in = read_npy(name, "_in.npy"), *want = read_npy(name, "_out.npy");
    char *bytes = read_file(name, "_net.pb", &size);
    leat_graph *g = leat_graph_new();
    leat_strbuf ops = {0};
    double d = INFINITY;
    leat_status s = leat_graph_from_binary(g, bytes, size, NULL);
    list_ops(g, &ops);
    if (!in || !want) {
        n_lacking++;
        printf("%-46s has no %s\n", name, in ? "output" : "input");
    } else if (s && strstr(leat_status_message(s), "not registered")) {
        n_waiting++;
        printf("%-46s waits: %s\n", name, leat_status_message(s));
    } else if (s &&
               strstr(leat_status_message(s), "has type float that does not match type half")) {
        n_refused++;
        printf("%-46s is refused, by TensorFlow, too: %s\n", name, leat_status_message(s));
    } else {
        double on_gpu = 0;
        if (!s)
            s = run(g, "cpu:1", true, &in, &want, &d);
        if (!s && has_gpu)
            s = run(g, "cpu:1,gpu:1", false, &in, &want, &on_gpu);
        const double most = in && leat_tensor_dtype(in) == LEAT_HALF ? 2e-3 : 1e-4;
        printf("%-46s %9.2g %9.2g %s\n", name, d, on_gpu, leat_strbuf_text(&ops));
        CHECK_OK(leat_status_copy(s));
        CHECK(d < most && on_gpu < most);
        n_equal += d < most && on_gpu < most;
    }
    leat_status_free(s);
    leat_strbuf_release(&ops);
    leat_graph_free(g);
    leat_tensor_unref(in);
    leat_tensor_unref(want);
    free(bytes);
}

static const char *word = "";

static int is_graph(const struct dirent *d)
{
    const size_t n = strlen(d->d_name);
    return n > 7 && !strcmp(d->d_name + n - 7, "_net.pb") && strstr(d->d_name, word);
}

static void every(void)
{
    if (!found())
        SKIP("../shared/conformance/graphs is not there");
    struct dirent **names;
    const int n = scandir(root, &names, is_graph, alphasort);
    CHECK(n > 0);
    printf("%-46s %9s %9s  ops\n", "graph", "CPU", has_gpu ? "OpenCL" : "-");
    for (int i = 0; i < n; i++) {
        names[i]->d_name[strlen(names[i]->d_name) - 7] = 0;
        try_graph(names[i]->d_name);
        free(names[i]);
    }
    free(names);
    printf("%d graphs: %d give their output, %d wait for ops, %d are refused, %d have no input or "
           "output\n",
           n, n_equal, n_waiting, n_refused, n_lacking);
    if (has_gpu)
        printf("%d of their %d nodes have kernels for GPUs\n", n_on_gpu, n_nodes);
}

int main(int argc, char **argv)
{
    if (argc > 2)
        word = argv[2];
    setenv("POCL_DEVICES", "basic basic", 0);
    has_gpu = TEST_MUCH_OPENCL && test_has_gpus(1);
    return RUN(argc > 2 ? 2 : argc, argv, {"every", every});
}
