/* show_graph.c -- leat show for GraphDefs: inputs, outputs, variables, ops, devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct count {
    const char *what;
    int n;
} count;

static int by_count(const void *a, const void *b)
{
    const count *x = a, *y = b;
    return x->n != y->n ? y->n - x->n : strcmp(x->what, y->what);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const count *)a)->what, ((const count *)b)->what);
}

/* Counts the values of what(node) over all nodes and prints them, the most frequent first. */
static void print_counts(const leat_graph *g, const char *title,
                         const char *(*what)(const leat_node *n), const char *empty)
{
    int n = leat_graph_nodes(g), k = 0;
    count *v = cli_array((size_t)n + 1, sizeof(*v));
    for (int i = 0; i < n; i++)
        v[i] = (count){what(leat_graph_node(g, i)), 1};
    qsort(v, (size_t)n, sizeof(*v), by_name);
    for (int i = 0; i < n; i++) {
        if (k && strcmp(v[k - 1].what, v[i].what) == 0)
            v[k - 1].n++;
        else
            v[k++] = v[i];
    }
    qsort(v, (size_t)k, sizeof(*v), by_count);
    printf("%s\n", title);
    for (int i = 0; i < k; i++)
        printf("  %6d  %s\n", v[i].n, v[i].what[0] ? v[i].what : empty);
    free(v);
}

static void print_tensor(leat_out x)
{
    leat_shape s = leat_out_shape(x);
    printf("  %s  %s %s\n", leat_node_name(x.node), leat_dtype_name(leat_out_dtype(x)),
           leat_shape_show(&s).s);
}

static bool is_op(const leat_node *n, const char *op)
{
    return strcmp(leat_node_op(n), op) == 0;
}

static void print_inputs(const leat_graph *g)
{
    bool some = false;
    for (int i = 0; i < leat_graph_nodes(g); i++) {
        leat_node *n = leat_graph_node(g, i);
        if (!is_op(n, "Placeholder") && !is_op(n, "PlaceholderWithDefault"))
            continue;
        printf("%s", some ? "" : "inputs\n");
        print_tensor((leat_out){n, 0});
        some = true;
    }
}

static void print_variables(const leat_graph *g)
{
    int n_vars = 0;
    double bytes = 0;
    for (int i = 0; i < leat_graph_nodes(g); i++) {
        leat_node *n = leat_graph_node(g, i);
        if (!is_op(n, "VariableV2") && !is_op(n, "Variable") && !is_op(n, "VarHandleOp"))
            continue;
        leat_shape s = leat_node_shape(n, "shape");
        leat_dtype t = leat_node_type(n, "dtype");
        printf("%s  %s  %s %s\n", n_vars++ ? "" : "variables\n", leat_node_name(n),
               leat_dtype_name(t), leat_shape_show(&s).s);
        int64_t elements = leat_shape_count(&s);
        bytes += elements > 0 ? (double)elements * (double)leat_dtype_size(t) : 0;
    }
    if (n_vars)
        printf("  %d variables, %.0f bytes\n", n_vars, bytes);
}

/* Nodes that no other uses. */
static void print_outputs(const leat_graph *g)
{
    int n = leat_graph_nodes(g);
    bool some = false;
    char *used = cli_array((size_t)n + 1, 1);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            leat_node *x = leat_graph_node(g, i);
            for (int k = 0; pass == 0 && k < leat_node_inputs(x); k++)
                used[leat_node_index(leat_node_input(x, k).node)] = 1;
            for (int k = 0; pass == 0 && k < leat_node_controls(x); k++)
                used[leat_node_index(leat_node_control(x, k))] = 1;
            if (pass == 0 || used[i])
                continue;
            printf("%s", some ? "" : "outputs\n");
            if (leat_node_outputs(x) > 0)
                print_tensor((leat_out){x, 0});
            else
                printf("  %s  (%s)\n", leat_node_name(x), leat_node_op(x));
            some = true;
        }
    free(used);
}

static double constant_bytes(const leat_graph *g)
{
    double bytes = 0;
    for (int i = 0; i < leat_graph_nodes(g); i++) {
        const leat_node *n = leat_graph_node(g, i);
        const leat_tensor *t = is_op(n, "Const") ? leat_node_tensor(n, "value") : NULL;
        bytes += t ? (double)leat_tensor_bytes(t) : 0;
    }
    return bytes;
}

static void print_summary(const leat_graph *g, const char *path, size_t size)
{
    printf("%s: GraphDef, %zu bytes, %d nodes, %.0f bytes of constants\n", path, size,
           leat_graph_nodes(g), constant_bytes(g));
    print_inputs(g);
    print_outputs(g);
    print_variables(g);
    print_counts(g, "ops", leat_node_op, "");
    print_counts(g, "devices", leat_node_device, "(any)");
}

leat_status cli_show_graph(const char *path, bool text)
{
    leat_graph *g = leat_graph_new();
    size_t size = 0;
    char *all = NULL;
    leat_status s = cli_read_graph(path, g, &size);
    if (!s && text)
        s = leat_graph_to_text(g, &all);
    if (!s && text)
        printf("%s", all);
    else if (!s)
        print_summary(g, path, size);
    free(all);
    leat_graph_free(g);
    return s;
}
