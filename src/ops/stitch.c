/* stitch.c -- DynamicStitch and ParallelDynamicStitch, which merge rows by their indices;
 * DynamicPartition, which divides them. */
#include <stdlib.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "ops/infer_util.h"

static leat_status stitch_shape(leat_infer *c)
{
    int n = leat_infer_inputs(c) / 2;
    leat_shape rest = leat_shape_unknown();
    int64_t max = -1;
    bool known = true;
    for (int i = 0; i < n; i++) {
        leat_shape ix = leat_infer_in(c, i), data = leat_infer_in(c, n + i);
        const leat_tensor *t = leat_infer_value(c, i);
        for (int64_t e = 0; t && e < t->count; e++)
            max = leat_int_at(t, e) > max ? leat_int_at(t, e) : max;
        known &= t != NULL;
        if (ix.rank < 0)
            continue;
        LEAT_TRY(leat_shape_merge_prefix(&data, &ix));
        if (data.rank < 0)
            continue;
        leat_shape tail = leat_shape_make(data.rank - ix.rank, data.dim + ix.rank);
        LEAT_TRY(leat_shape_merge(&rest, &tail, &rest));
    }
    leat_shape rows = leat_shape(known ? max + 1 : -1);
    leat_infer_out(c, 0, leat_shape_concat(&rows, &rest, 0));
    return NULL;
}

static leat_status partition_shape(leat_infer *c)
{
    leat_shape data = leat_infer_in(c, 0), parts = leat_infer_in(c, 1), any = leat_shape(-1);
    if (parts.rank < 0 || data.rank < 0)
        return NULL;
    LEAT_TRY(leat_shape_merge_prefix(&data, &parts));
    leat_shape out = leat_shape_concat(&any, &data, parts.rank);
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, out);
    return NULL;
}

static leat_status stitch_grad(leat_grad *g)
{
    int n = leat_node_inputs(leat_grad_node(g)) / 2;
    leat_out zero = leat_scalar(leat_grad_graph(g), LEAT_INT32, 0), dy = leat_grad_out(g, 0);
    for (int i = 0; i < n; i++)
        LEAT_TRY(leat_grad_in(g, n + i, leat_gather(dy, leat_grad_input(g, i), zero)));
    return NULL;
}

/* The row numbers are partitioned in the same way, which gives the row that each gradient belongs
 * to. */
static leat_status partition_grad(leat_grad *g)
{
    leat_graph *graph = leat_grad_graph(g);
    int n = leat_node_outputs(leat_grad_node(g));
    leat_out data = leat_grad_input(g, 0), parts = leat_grad_input(g, 1);
    leat_out zero = leat_scalar(graph, LEAT_INT32, 0), one = leat_scalar(graph, LEAT_INT32, 1);
    leat_out numbers =
        leat_reshape(leat_range(zero, leat_size_of(parts), one), leat_shape_of(parts));
    leat_out split =
        LEAT_OP2("DynamicPartition", numbers, parts, leat_attr_int("num_partitions", n));
    leat_out *x = leat_new_array(leat_out, 2 * n);
    for (int i = 0; i < n; i++) {
        x[i] = leat_output(split, i);
        x[n + i] = leat_grad_out(g, i);
    }
    leat_out dx = leat_dynamic_stitch(x, x + n, n);
    free(x);
    return leat_grad_in(g, 0, leat_reshape(dx, leat_shape_of(data)));
}

const leat_op_def leat_ops_stitch[] = {
    {.name = "DynamicStitch",
     .inputs = "indices: N * int32, data: N * T",
     .outputs = "merged: T",
     .attrs = "N: int >= 1; T: type",
     .shape = stitch_shape,
     .grad = stitch_grad},
    {.name = "ParallelDynamicStitch",
     .inputs = "indices: N * int32, data: N * T",
     .outputs = "merged: T",
     .attrs = "N: int >= 1; T: type",
     .shape = stitch_shape,
     .grad = stitch_grad},
    {.name = "DynamicPartition",
     .inputs = "data: T, partitions: int32",
     .outputs = "outputs: num_partitions * T",
     .attrs = "num_partitions: int >= 1; T: type",
     .shape = partition_shape,
     .grad = partition_grad},
    {0},
};
