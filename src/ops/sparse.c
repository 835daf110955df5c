/* sparse.c -- sparse tensors, as indices, values and a shape: SparseToDense,
 * SparseTensorDenseMatMul. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status to_dense_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, 1, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status to_dense_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0), dv = leat_gather_nd(dy, leat_grad_input(g, 0));
    LEAT_TRY(leat_grad_in(g, 2, dv));
    return leat_grad_in(g, 3, leat_sub(leat_reduce_sum(dy), leat_reduce_sum(dv)));
}

static leat_status product_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    bool flip_a = leat_node_bool(n, "adjoint_a"), flip_b = leat_node_bool(n, "adjoint_b");
    leat_shape a, b, unused;
    int64_t inner;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &unused));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    LEAT_TRY(leat_infer_value_shape(c, 2, &a));
    LEAT_TRY(leat_shape_with_rank(&a, 2, &a));
    LEAT_TRY(leat_infer_rank(c, 3, 2, &b));
    LEAT_TRY(leat_dim_merge(a.dim[!flip_a], b.dim[flip_b], &inner));
    leat_infer_out(c, 0, leat_shape(a.dim[flip_a], b.dim[!flip_b]));
    return NULL;
}

static leat_out transposed(leat_out x)
{
    return leat_transpose(x, leat_ints(leat_node_graph(x.node), 1, 0));
}

/* Column i of the indices. */
static leat_out column(leat_grad *g, int i)
{
    leat_graph *gr = leat_grad_graph(g);
    return leat_gather(leat_grad_input(g, 0), leat_scalar(gr, LEAT_INT32, i),
                       leat_scalar(gr, LEAT_INT32, 1));
}

static leat_status product_grad(leat_grad *g)
{
    const leat_node *n = leat_grad_node(g);
    bool flip_a = leat_node_bool(n, "adjoint_a"), flip_b = leat_node_bool(n, "adjoint_b");
    leat_out dy = leat_grad_out(g, 0), b = leat_grad_input(g, 3);
    leat_out axis = leat_scalar(leat_grad_graph(g), LEAT_INT32, 0);
    leat_out db = LEAT_OP4("SparseTensorDenseMatMul", leat_grad_input(g, 0), leat_grad_input(g, 1),
                           leat_grad_input(g, 2), dy, leat_attr_bool("adjoint_a", !flip_a));
    leat_out rows = leat_gather(dy, column(g, flip_a), axis);
    leat_out columns = leat_gather(flip_b ? transposed(b) : b, column(g, !flip_a), axis);
    LEAT_TRY(
        leat_grad_in(g, 1, leat_sum(leat_mul(rows, columns), leat_ints(leat_grad_graph(g), 1))));
    return leat_grad_in(g, 3, flip_b ? transposed(db) : db);
}

const leat_op_def leat_ops_sparse[] = {
    {.name = "SparseToDense",
     .inputs = "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, "
               "default_value: T",
     .outputs = "dense: T",
     .attrs = "validate_indices: bool = true; T: type; Tindices: {int32, int64}",
     .shape = to_dense_shape,
     .grad = to_dense_grad},
    {.name = "SparseTensorDenseMatMul",
     .inputs = "a_indices: Tindices, a_values: T, a_shape: int64, b: T",
     .outputs = "product: T",
     .attrs = "T: type; Tindices: {int32, int64} = DT_INT64; adjoint_a: bool = false; "
              "adjoint_b: bool = false",
     .shape = product_shape,
     .grad = product_grad},
    {0},
};
