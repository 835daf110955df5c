/* edit_distance.c -- EditDistance between the rows of two sparse tensors. */
#include "ops/infer_util.h"

static leat_status edit_shape(leat_infer *c)
{
    leat_shape a, b;
    LEAT_TRY(leat_infer_value_shape(c, 2, &a));
    LEAT_TRY(leat_infer_value_shape(c, 5, &b));
    if (!leat_shape_known(&a) || !leat_shape_known(&b))
        return NULL;
    LEAT_REQUIRE(a.rank == b.rank && a.rank >= 2, INVALID_ARGUMENT,
                 "Num elements of hypothesis_shape does not match truth_shape: %d vs. %d", a.rank,
                 b.rank);
    a.rank--;
    for (int d = 0; d < a.rank; d++)
        a.dim[d] = a.dim[d] > b.dim[d] ? a.dim[d] : b.dim[d];
    leat_infer_out(c, 0, a);
    return NULL;
}

const leat_op_def leat_ops_edit_distance[] = {
    {.name = "EditDistance",
     .inputs = "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
               "truth_indices: int64, truth_values: T, truth_shape: int64",
     .outputs = "output: float",
     .attrs = "normalize: bool = true; T: type",
     .shape = edit_shape,
     .grad = leat_grad_none},
    {0},
};
