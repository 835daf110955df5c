/* transpose.c -- Transpose, ConjugateTranspose, InvertPermutation. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status transpose_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), perm = leat_infer_in(c, 1);
    const leat_tensor *p = leat_infer_value(c, 1);
    int64_t n = leat_shape_count(&perm);
    if (in.rank < 0 && n < 0)
        return NULL;
    int64_t rank = in.rank >= 0 ? in.rank : n;
    if (in.rank < 0 && rank < 2) /* scalars and vectors are not changed by a transposition */
        return NULL;
    LEAT_TRY(leat_shape_with_rank(&in, rank, &in));
    LEAT_TRY(leat_shape_with_rank(&perm, 1, &perm));
    LEAT_REQUIRE(n < 0 || n == rank, INVALID_ARGUMENT,
                 "Dimension must be %" PRId64 " but is %" PRId64, rank, n);
    leat_shape out = leat_shape_unknown_dims((int)rank);
    for (int i = 0; p && i < out.rank; i++) {
        int64_t from = leat_int_at(p, i);
        LEAT_REQUIRE(from >= 0 && from < rank, INVALID_ARGUMENT,
                     "perm dim %" PRId64 " is out of range of input rank %" PRId64, from, rank);
        out.dim[i] = in.dim[from];
    }
    leat_infer_out(c, 0, out);
    return NULL;
}

static leat_status invert_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status transpose_grad(leat_grad *g)
{
    return leat_grad_in(
        g, 0, leat_transpose(leat_grad_out(g, 0), leat_invert_permutation(leat_grad_input(g, 1))));
}

static leat_status conjugate_grad(leat_grad *g)
{
    return leat_grad_in(g, 0,
                        LEAT_OP2("ConjugateTranspose", leat_grad_out(g, 0),
                                 leat_invert_permutation(leat_grad_input(g, 1))));
}

const leat_op_def leat_ops_transpose[] = {
    {.name = "Transpose",
     .inputs = "x: T, perm: Tperm",
     .outputs = "y: T",
     .attrs = "T: type; Tperm: {int32, int64} = DT_INT32",
     .shape = transpose_shape,
     .grad = transpose_grad},
    {.name = "ConjugateTranspose",
     .inputs = "x: T, perm: Tperm",
     .outputs = "y: T",
     .attrs = "T: type; Tperm: {int32, int64} = DT_INT32",
     .shape = transpose_shape,
     .grad = conjugate_grad},
    {.name = "InvertPermutation",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {int32, int64} = DT_INT32",
     .shape = invert_shape,
     .grad = leat_grad_none},
    {0},
};
