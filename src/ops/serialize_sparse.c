/* serialize_sparse.c -- sparse tensors as elements of datasets: a string or variant for each of
 * indices, values and shape. */
#include "ops/infer_util.h"

static leat_status check_sparse(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &unused));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    return leat_infer_rank(c, 2, 1, &unused);
}

static leat_status one_shape(leat_infer *c)
{
    LEAT_TRY(check_sparse(c));
    leat_infer_out(c, 0, leat_shape(3));
    return NULL;
}

static leat_status many_shape(leat_infer *c)
{
    LEAT_TRY(check_sparse(c));
    leat_infer_out(c, 0, leat_shape(-1, 3));
    return NULL;
}

static leat_status sparse_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0);
    LEAT_REQUIRE(s.rank < 1 || s.dim[s.rank - 1] < 0 || s.dim[s.rank - 1] == 3, INVALID_ARGUMENT,
                 "Dimension must be 3 but is %" PRId64, s.dim[s.rank - 1]);
    leat_infer_out(c, 0, leat_shape(-1, -1));
    leat_infer_out(c, 1, leat_shape(-1));
    leat_infer_out(c, 2, leat_shape(-1));
    return NULL;
}

#define SERIALIZE                                                                                  \
    .inputs = "sparse_indices: int64, sparse_values: T, sparse_shape: int64",                      \
    .outputs = "serialized_sparse: out_type",                                                      \
    .attrs = "T: type; out_type: {string, variant} = DT_STRING", .grad = leat_grad_missing
const leat_op_def leat_ops_serialize_sparse[] = {
    {.name = "SerializeSparse", SERIALIZE, .shape = one_shape},
    {.name = "SerializeManySparse", SERIALIZE, .shape = many_shape},
    {.name = "DeserializeSparse",
     .inputs = "serialized_sparse: Tserialized",
     .outputs = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     .attrs = "dtype: type; Tserialized: {string, variant} = DT_STRING",
     .shape = sparse_shape,
     .grad = leat_grad_missing},
    {0},
};
