/* construct.c -- the constructors of ops.h that do more than call leat_op. */
#include <leat/ops.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "graph/graph_int.h"

leat_out leat_op_of(leat_loc at, const char *op, const leat_out *x, int n, const leat_arg *args)
{
    leat_graph *g = NULL;
    for (int i = 0; i < n && !g; i++)
        g = x[i].node ? x[i].node->graph : NULL;
    if (!g) /* a missing gradient stays one, which the run that uses it names */
        return n > 0 ? x[0] : (leat_out){0};
    const leat_op_info *info = leat_op_find(op);
    bool list =
        info && info->n_in == 1 && (info->in[0].number_attr >= 0 || info->in[0].list_attr >= 0);
    int n_args = 0;
    while (args[n_args].kind != LEAT_ARG_END)
        n_args++;
    leat_arg *all = leat_new_array(leat_arg, n + n_args + 1);
    int k = 0;
    if (list)
        all[k++] = leat_ins(x, n);
    for (int i = 0; !list && i < n; i++)
        all[k++] = leat_in(x[i]);
    memcpy(all + k, args, sizeof(*args) * (size_t)n_args);
    leat_out y = leat_op_at(at, g, op, all);
    free(all);
    return y;
}

leat_out leat_const_at(leat_loc at, leat_graph *g, const leat_tensor *value)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    leat_status s = leat_tensor_check(value, __func__);
    if (s)
        return leat_graph_fail(g, at, s);
    return leat_op_at(
        at, g, "Const",
        LEAT_ARGS(leat_attr_type("dtype", value->dtype), leat_attr_tensor("value", value)));
}

/* A constant; takes the tensor. */
static leat_out const_of(leat_loc at, leat_graph *g, leat_status s, leat_tensor *t,
                         const char *name)
{
    if (s)
        return leat_graph_fail(g, at, s);
    leat_out y = leat_op_at(at, g, "Const",
                            LEAT_ARGS(leat_attr_type("dtype", t->dtype),
                                      leat_attr_tensor("value", t), leat_name(name)));
    leat_tensor_unref(t);
    return y;
}

/* Large tensors of one value are made by Fill when the graph runs, instead of being stored in the
 * graph. */
leat_out leat_full_named_at(leat_loc at, leat_graph *g, leat_dtype t, leat_shape s, double v,
                            const char *name)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    if (leat_shape_count(&s) >= 1000) {
        leat_name_scope_enter(g, name ? name : "Fill");
        leat_dtype index = LEAT_INT32;
        for (int i = 0; i < s.rank; i++)
            index = s.dim[i] > INT32_MAX ? LEAT_INT64 : index;
        leat_out shape = leat_int_vector_named(at, g, index, s.dim, s.rank, "shape_as_tensor");
        leat_out value = leat_full_named_at(at, g, t, leat_shape(), v, "Const");
        leat_out y =
            leat_op_at(at, g, "Fill",
                       LEAT_ARGS(leat_in(shape), leat_in(value), leat_name(leat_name_scope(g))));
        leat_name_scope_leave(g);
        return y;
    }
    leat_tensor *c = NULL;
    leat_status status = leat_tensor_new(t, s, &c);
    for (int64_t i = 0; !status && i < c->count; i++)
        leat_tensor_set_at(c, i, v);
    return const_of(at, g, status, c, name);
}

leat_out leat_full_at(leat_loc at, leat_graph *g, leat_dtype t, leat_shape s, double v)
{
    return leat_full_named_at(at, g, t, s, v, NULL);
}

leat_out leat_scalar_at(leat_loc at, leat_graph *g, leat_dtype t, double v)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    if (t == LEAT_INVALID) /* x is the result of a mistake */
        return (leat_out){g->poison, 0};
    return leat_full_at(at, g, t, leat_shape(), v);
}

leat_out leat_int_vector_named(leat_loc at, leat_graph *g, leat_dtype t, const int64_t *v, int n,
                               const char *name)
{
    leat_tensor *c = NULL;
    leat_status s = leat_tensor_new(t, leat_shape(n < 0 ? 0 : n), &c);
    for (int i = 0; !s && i < n; i++) {
        if (t == LEAT_INT64)
            ((int64_t *)c->data)[i] = v[i];
        else
            ((int32_t *)c->data)[i] = (int32_t)v[i];
    }
    return const_of(at, g, s, c, name);
}

leat_out leat_int_vector_at(leat_loc at, leat_graph *g, leat_dtype t, const int64_t *v, int n)
{
    return leat_int_vector_named(at, g, t, v, n, NULL);
}

leat_out leat_string_at(leat_loc at, leat_graph *g, const char *s)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    if (!s)
        return leat_graph_fail(g, at,
                               leat_error(INVALID_ARGUMENT, "%s: the string is NULL", __func__));
    leat_tensor *c = NULL;
    leat_status status = leat_tensor_of_string(s, strlen(s), &c);
    return const_of(at, g, status, c, NULL);
}

leat_out leat_cast_at(leat_loc at, leat_out x, leat_dtype t)
{
    if (leat_dtype_base(leat_out_dtype(x)) == t)
        return x;
    return leat_op_of(at, "Cast", &x, 1, LEAT_ARGS(leat_attr_type("DstT", t)));
}

leat_out leat_conj_at(leat_loc at, leat_out x)
{
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    if (t != LEAT_COMPLEX64 && t != LEAT_COMPLEX128)
        return x;
    return leat_op_of(at, "Conj", &x, 1, LEAT_ARGS());
}

leat_out leat_concat_at(leat_loc at, const leat_out *xs, int n, leat_out axis)
{
    if (n < 1 || !xs[0].node)
        return (leat_out){0};
    if (n == 1)
        return leat_op_of(at, "Identity", xs, 1, LEAT_ARGS());
    return leat_op_at(at, xs[0].node->graph, "ConcatV2", LEAT_ARGS(leat_ins(xs, n), leat_in(axis)));
}

leat_out leat_dynamic_stitch_at(leat_loc at, const leat_out *indices, const leat_out *data, int n)
{
    if (n < 1 || !data[0].node)
        return (leat_out){0};
    return leat_op_at(at, data[0].node->graph, "DynamicStitch",
                      LEAT_ARGS(leat_ins(indices, n), leat_ins(data, n)));
}

leat_out leat_reduce_all_at(leat_loc at, const char *op, leat_out x)
{
    if (!x.node)
        return (leat_out){0};
    leat_graph *g = x.node->graph;
    leat_shape s = leat_out_shape(x);
    leat_out axes;
    if (s.rank >= 0) {
        int64_t all[LEAT_MAX_RANK];
        for (int i = 0; i < s.rank; i++)
            all[i] = i;
        axes = leat_int_vector_at(at, g, LEAT_INT32, all, s.rank);
    } else {
        leat_out rank = leat_op_of(at, "Rank", &x, 1, LEAT_ARGS());
        const leat_out range[3] = {leat_scalar_at(at, g, LEAT_INT32, 0), rank,
                                   leat_scalar_at(at, g, LEAT_INT32, 1)};
        axes = leat_op_of(at, "Range", range, 3, LEAT_ARGS());
    }
    const leat_out in[2] = {x, axes};
    return leat_op_of(at, op, in, 2, LEAT_ARGS());
}

leat_out leat_clip_by_value_at(leat_loc at, leat_out x, double low, double high)
{
    if (!x.node)
        return (leat_out){0};
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    leat_out below[2] = {x, leat_scalar_at(at, x.node->graph, t, high)};
    leat_out above[2] = {leat_op_of(at, "Minimum", below, 2, LEAT_ARGS()),
                         leat_scalar_at(at, x.node->graph, t, low)};
    return leat_op_of(at, "Maximum", above, 2, LEAT_ARGS());
}

static int by_device(const void *a, const void *b)
{
    return strcmp((*(leat_node *const *)a)->device, (*(leat_node *const *)b)->device);
}

/* Adds one NoOp for each device, so that the completions of a device's nodes are counted there.
 * Fills args. */
static void group_by_device(leat_loc at, leat_graph *g, const leat_out *x, int n, leat_arg *args)
{
    leat_node **nodes = leat_new_array(leat_node *, n + 1);
    leat_arg *mine = leat_new_array(leat_arg, n + 1);
    int n_nodes = 0, k = 0;
    for (int i = 0; i < n; i++)
        if (x[i].node)
            nodes[n_nodes++] = x[i].node;
    qsort(nodes, (size_t)n_nodes, sizeof(*nodes), by_device);
    for (int i = 0, end; i < n_nodes; i = end) {
        for (end = i; end < n_nodes && by_device(&nodes[i], &nodes[end]) == 0; end++)
            mine[end - i] = leat_after((leat_out){nodes[end], -1});
        mine[end - i] = (leat_arg){0};
        leat_device_enter(g, nodes[i]->device);
        args[k++] = leat_after(leat_op_at(at, g, "NoOp", mine));
        leat_device_leave(g);
    }
    free(nodes);
    free(mine);
}

leat_out leat_group_at(leat_loc at, leat_graph *g, const leat_out *x, int n, const char *name)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    leat_arg *args = leat_new_array(leat_arg, n + 2);
    const char *device = NULL;
    bool several = false;
    int k = 0;
    leat_name_scope_enter(g, name && name[0] ? name : "group_deps");
    for (int i = 0; i < n; i++) {
        if (!x[i].node)
            continue;
        args[k++] = leat_after(x[i]);
        several |= device && strcmp(device, x[i].node->device) != 0;
        device = x[i].node->device;
    }
    if (several) {
        memset(args, 0, sizeof(*args) * (size_t)(n + 2));
        group_by_device(at, g, x, n, args);
        for (k = 0; args[k].kind; k++)
            ;
    }
    args[k] = leat_name(leat_name_scope(g));
    if (device && !several)
        leat_device_enter(g, device);
    leat_out y = leat_op_at(at, g, "NoOp", args);
    if (device && !several)
        leat_device_leave(g);
    leat_name_scope_leave(g);
    free(args);
    return y;
}
