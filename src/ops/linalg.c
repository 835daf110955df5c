/* linalg.c -- decompositions of matrices: Qr. */
#include "ops/infer_util.h"

/* (..., m, n) gives q, (..., m, p), and r, (..., p, n); p is the smaller of m and n, or m. */
static leat_status qr_shape(leat_infer *c)
{
    leat_shape x;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 2, &x));
    if (x.rank < 0)
        return NULL;
    int64_t m = x.dim[x.rank - 2], n = x.dim[x.rank - 1], p = m;
    if (!leat_node_bool(leat_infer_node(c), "full_matrices"))
        p = m < 0 || n < 0 ? (m == 0 || n == 0 ? 0 : -1) : m < n ? m : n;
    x.dim[x.rank - 1] = p;
    leat_infer_out(c, 0, x);
    x.dim[x.rank - 2] = p;
    x.dim[x.rank - 1] = n;
    leat_infer_out(c, 1, x);
    return NULL;
}

const leat_op_def leat_ops_linalg[] = {
    {.name = "Qr",
     .inputs = "input: T",
     .outputs = "q: T, r: T",
     .attrs = "full_matrices: bool = false; T: {double, float, half, complex64, complex128}",
     .shape = qr_shape,
     .grad = leat_grad_missing},
    {0},
};
