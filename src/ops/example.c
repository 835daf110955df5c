/* example.c -- ParseExample, ParseSingleExample and ParseExampleV2, which TensorFlow 2 clients use:
 * tensors from serialized tensorflow.Examples. */
#include "ops/infer_util.h"

/* dense_shapes[i] is known but for its first dimension. */
static leat_status check_dense(leat_infer *c, int i, leat_shape *out)
{
    int n;
    const leat_shape *shapes = leat_node_shapes(leat_infer_node(c), "dense_shapes", &n);
    LEAT_REQUIRE(i < n, INVALID_ARGUMENT, "len(dense_keys) != len(dense_shapes)");
    bool good = shapes[i].rank >= 0;
    for (int d = 1; d < shapes[i].rank; d++)
        good &= shapes[i].dim[d] >= 0;
    LEAT_REQUIRE(good, INVALID_ARGUMENT,
                 "dense_shapes[%d] has unknown rank or unknown inner dimensions: %s", i,
                 leat_shape_show(&shapes[i]).s);
    *out = shapes[i];
    return NULL;
}

/* Outputs: indices, values and shapes of n_sparse sparse tensors of this rank, then dense tensors,
 * whose shapes begin with batch. */
static leat_status set_outputs(leat_infer *c, int n_sparse, int n_dense, int rank,
                               const leat_shape *batch)
{
    for (int i = 0; i < n_sparse; i++) {
        leat_infer_out(c, i, leat_shape(-1, rank));
        leat_infer_out(c, n_sparse + i, leat_shape(-1));
        leat_infer_out(c, 2 * n_sparse + i, leat_shape(rank));
    }
    for (int i = 0; i < n_dense; i++) {
        leat_shape s;
        LEAT_TRY(check_dense(c, i, &s));
        leat_infer_out(c, 3 * n_sparse + i, leat_shape_concat(batch, &s, 0));
    }
    return NULL;
}

static leat_status parse_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const int n_sparse = (int)leat_node_int(n, "Nsparse"),
              n_dense = (int)leat_node_int(n, "Ndense");
    int n_types;
    leat_shape batch, unused;
    leat_node_types(n, "sparse_types", &n_types);
    LEAT_REQUIRE(n_sparse == n_types, INVALID_ARGUMENT, "len(sparse_keys) != len(sparse_types)");
    leat_node_types(n, "Tdense", &n_types);
    LEAT_REQUIRE(n_dense == n_types, INVALID_ARGUMENT, "len(dense_keys) != len(dense_types)");
    LEAT_TRY(leat_infer_rank(c, 0, 1, &batch));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    return set_outputs(c, n_sparse, n_dense, 2, &batch);
}

static leat_status parse_single_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const int num_sparse = (int)leat_node_int(n, "num_sparse");
    int keys, types;
    leat_shape batch;
    leat_node_strings(n, "sparse_keys", &keys);
    leat_node_types(n, "sparse_types", &types);
    LEAT_REQUIRE(num_sparse == keys && num_sparse == types, INVALID_ARGUMENT,
                 "num_sparse (%d) must match the size of sparse_keys (%d) and sparse_types (%d)",
                 num_sparse, keys, types);
    leat_node_strings(n, "dense_keys", &keys);
    leat_node_types(n, "Tdense", &types);
    LEAT_REQUIRE(keys == types, INVALID_ARGUMENT, "len(dense_keys) != len(dense_types)");
    LEAT_TRY(leat_infer_rank(c, 0, 0, &batch));
    return set_outputs(c, num_sparse, types, 1, &batch);
}

/* serialized is a scalar or a vector. */
static leat_status parse_v2_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const leat_shape batch = leat_infer_in(c, 0);
    int n_sparse, n_dense, n_ragged, n_splits;
    leat_node_types(n, "sparse_types", &n_sparse);
    leat_node_types(n, "Tdense", &n_dense);
    leat_node_types(n, "ragged_value_types", &n_ragged);
    leat_node_types(n, "ragged_split_types", &n_splits);
    LEAT_REQUIRE(batch.rank <= 1, INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                 batch.rank);
    LEAT_REQUIRE(n_sparse == leat_node_int(n, "num_sparse") && n_ragged == n_splits,
                 INVALID_ARGUMENT,
                 "num_sparse must match the size of sparse_types, and ragged_value_types that of "
                 "ragged_split_types");
    LEAT_TRY(set_outputs(c, n_sparse, n_dense, batch.rank < 0 ? -1 : batch.rank + 1, &batch));
    for (int i = 3 * n_sparse + n_dense; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, leat_shape(-1));
    return NULL;
}

#define KINDS "list({float, int64, string}) >= 0"

const leat_op_def leat_ops_example[] = {
    {.name = "ParseExample",
     .inputs = "serialized: string, names: string, sparse_keys: Nsparse * string, "
               "dense_keys: Ndense * string, dense_defaults: Tdense",
     .outputs = "sparse_indices: Nsparse * int64, sparse_values: sparse_types, "
                "sparse_shapes: Nsparse * int64, dense_values: Tdense",
     .attrs = "Nsparse: int >= 0; Ndense: int >= 0; sparse_types: " KINDS "; Tdense: " KINDS
              "; dense_shapes: list(shape) >= 0",
     .shape = parse_shape,
     .grad = leat_grad_none},
    {.name = "ParseSingleExample",
     .inputs = "serialized: string, dense_defaults: Tdense",
     .outputs = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
                "sparse_shapes: num_sparse * int64, dense_values: Tdense",
     .attrs = "num_sparse: int >= 0; sparse_keys: list(string) >= 0; "
              "dense_keys: list(string) >= 0; sparse_types: " KINDS "; Tdense: " KINDS
              "; dense_shapes: list(shape) >= 0",
     .shape = parse_single_shape,
     .grad = leat_grad_none},
    {.name = "ParseExampleV2",
     .inputs = "serialized: string, names: string, sparse_keys: string, dense_keys: string, "
               "ragged_keys: string, dense_defaults: Tdense",
     .outputs = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
                "sparse_shapes: num_sparse * int64, dense_values: Tdense, "
                "ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types",
     .attrs = "Tdense: " KINDS "; num_sparse: int >= 0; sparse_types: " KINDS
              "; ragged_value_types: " KINDS
              "; ragged_split_types: list({int32, int64}) >= 0; dense_shapes: list(shape) >= 0",
     .shape = parse_v2_shape,
     .grad = leat_grad_none},
    {0},
};
