/* graph_ops.c -- DatasetToGraph, DatasetFromGraph: a dataset as the bytes of a GraphDef that makes
 * it, for another device, task or time. */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "graph/graphdef.h"
#include "kernels/dataset/origin.h"
#include "proto/wire.h"
#include "runtime/callable_int.h"

/* ---- DatasetToGraph ---- */

static leat_status check_listed(const char *const *listed, int n)
{
    for (int i = 0; i < n; i++)
        LEAT_REQUIRE(leat_op_find(listed[i]), NOT_FOUND, "Op type not registered '%s'", listed[i]);
    return NULL;
}

static leat_status give_bytes(leat_kernel *k, const leat_graph *g)
{
    void *bytes;
    size_t size;
    leat_tensor *y;
    LEAT_TRY(leat_graph_to_binary(g, &bytes, &size));
    leat_status s = leat_kernel_out(k, 0, &(leat_shape){0}, &y);
    if (!s && !leat_string_set(AT(leat_string, y), bytes, size))
        s = leat_error(RESOURCE_EXHAUSTED, "OOM when copying the graph of a dataset, %zu bytes",
                       size);
    free(bytes);
    return s;
}

static leat_status to_graph_run(leat_kernel *k)
{
    leat_dataset *d;
    leat_graph *g;
    int n = 0;
    const char *const *listed = leat_node_strings(leat_kernel_node(k), "stateful_whitelist", &n);
    LEAT_TRY(check_listed(listed, n));
    LEAT_TRY(leat_dataset_in(leat_kernel_in(k, 0), &d));
    LEAT_TRY(leat_dataset_graph(d, &g));
    leat_status s = leat_dataset_graph_check(g, listed, n);
    if (!s)
        s = give_bytes(k, g);
    leat_graph_free(g);
    return s;
}

/* ---- DatasetFromGraph: the graph becomes a function, which is called once ---- */

/* Takes the _Retval out of p. Gives the name of the output that it returns. */
static leat_status take_result(Leat__GraphDef *p, char **out)
{
    size_t kept = 0;
    *out = NULL;
    for (size_t i = 0; i < p->n_node; i++) {
        Leat__NodeDef *n = p->node[i];
        if (strcmp(n->op, "_Retval") != 0) {
            p->node[kept++] = n;
            continue;
        }
        if (n->n_input && !*out)
            *out = leat_xstrdup(n->input[0]);
        leat_proto_free(n);
    }
    p->n_node = kept;
    LEAT_REQUIRE(*out, INVALID_ARGUMENT, "The graph has no _Retval node that returns a dataset");
    return NULL;
}

static leat_status import(leat_graph *g, const void *bytes, size_t size, leat_out *out)
{
    Leat__GraphDef *p;
    char *result = NULL;
    LEAT_TRY(LEAT_UNPACK(graph_def, bytes, size, &p));
    leat_status s = take_result(p, &result);
    if (!s)
        s = leat_graph_from_proto(g, p, "");
    if (!s)
        s = leat_graph_find_out(g, result, out);
    leat_proto_free(p);
    free(result);
    return s;
}

/* Gives a set of callables with the function; *func and its name live as long as g. */
static leat_status set_of(leat_kernel *k, leat_graph *g, leat_out result, const leat_func **func,
                          leat_callables **out)
{
    static const leat_dtype variant[] = {LEAT_VARIANT};
    char name[40] = "DatasetFromGraph_graph";
    for (int i = 1; leat_function_find(g, name); i++)
        snprintf(name, sizeof(name), "DatasetFromGraph_graph_%d", i);
    LEAT_TRY(leat_function_of_graph(g, name, &result, 1));
    leat_out call = leat_op(g, "PartitionedCall", leat_ins(NULL, 0), leat_attr_func("f", name),
                            leat_attr_types("Tout", variant, 1));
    LEAT_TRY(leat_graph_status(g));
    const leat_plan_options o = {.devices = &k->device, .n_devices = 1, .soft_placement = true};
    LEAT_TRY(leat_callables_of(&g, 1, &o, out));
    *func = leat_node_attr(call.node, "f")->func;
    return NULL;
}

static leat_status function_of(leat_kernel *k, leat_callable **out)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    leat_graph *g = leat_graph_new();
    leat_callables *set = NULL;
    const leat_func *f = NULL;
    leat_out result = {0};
    leat_status s = NULL;
    if (t->shape.rank != 0)
        s = leat_error(INVALID_ARGUMENT, "graph_def must be a scalar");
    if (!s)
        s = import(g, AT(leat_string, t)->data, AT(leat_string, t)->size, &result);
    if (!s)
        s = set_of(k, g, result, &f, &set);
    if (!s)
        s = leat_callables_get(set, f, false, k->device->name, out);
    leat_callables_forget_nodes(set);
    leat_graph_free(g);
    if (s)
        leat_callables_unref(set);
    return leat_status_prefix(s, "graph_def: ");
}

typedef struct call {
    leat_kernel *k;
    leat_callable *f; /* a reference, which is the only one but those of the dataset */
} call;

static void called(void *arg, leat_status s, leat_tensor **results, int n)
{
    call *c = arg;
    leat_dataset *d;
    leat_kernel *k = c->k;
    if (!s)
        s = leat_dataset_in(results[0], &d);
    if (!s)
        leat_kernel_set(k, 0, leat_tensor_ref(results[0]));
    for (int i = 0; i < n; i++)
        leat_tensor_unref(results[i]);
    leat_callable_unref(c->f);
    free(c);
    leat_kernel_done(k, s);
}

static void from_graph_run(leat_kernel *k)
{
    leat_callable *f = NULL;
    leat_status s = function_of(k, &f);
    if (s) {
        leat_kernel_done(k, s);
        return;
    }
    call *c = leat_new(call);
    *c = (call){k, f};
    leat_callable_start(f, NULL, 0, &(leat_callable_options){.kernel = k}, called, c);
}

const leat_kernel_def leat_data_kernels_graph_ops[] = {
    {.op = "DatasetToGraph", .run = to_graph_run},
    {.op = "DatasetFromGraph", .run_async = from_graph_run},
    {0},
};
