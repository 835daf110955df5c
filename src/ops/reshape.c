/* reshape.c -- Reshape, ExpandDims, Squeeze: the same elements in another shape. */
#include <leat/ops.h>

#include "ops/infer_util.h"

/* The product of the known dims, and the one unknown dim: -1 none, -2 several. */
static leat_status known(const leat_shape *s, int64_t *product, int *unknown)
{
    *product = 1;
    *unknown = -1;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0)
            *unknown = *unknown == -1 ? i : -2;
        else
            LEAT_TRY(leat_dim_mul(*product, s->dim[i], product));
    }
    return NULL;
}

static leat_status divide(int64_t a, int64_t by, int64_t *out)
{
    LEAT_REQUIRE(a % by == 0, INVALID_ARGUMENT,
                 "Dimension size must be evenly divisible by %" PRId64 " but is %" PRId64, by, a);
    *out = a / by;
    return NULL;
}

static leat_status reshape_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), out;
    LEAT_TRY(leat_infer_value_shape(c, 1, &out));
    leat_infer_out(c, 0, out);
    leat_infer_pass_handle(c, 0, 0);
    if (in.rank < 0 || out.rank < 0)
        return NULL;
    int64_t in_n, out_n, unused;
    int in_i, out_i;
    LEAT_TRY(known(&in, &in_n, &in_i));
    LEAT_TRY(known(&out, &out_n, &out_i));
    if (in_i == -2 || out_i == -2)
        return NULL;
    if (in_i == -1 && out_i == -1)
        LEAT_REQUIRE(in_n == out_n, INVALID_ARGUMENT,
                     "Cannot reshape a tensor with %" PRId64 " elements to shape %s (%" PRId64
                     " elements)",
                     in_n, leat_shape_show(&out).s, out_n);
    else if (in_i == -1 && out_n > 0)
        LEAT_TRY(divide(in_n, out_n, &out.dim[out_i]));
    else if (out_i == -1 && in_n > 0)
        LEAT_TRY(divide(out_n, in_n, &unused));
    leat_infer_out(c, 0, out);
    return NULL;
}

static leat_status expand_dims_shape(leat_infer *c)
{
    const leat_tensor *t = leat_infer_value(c, 1);
    leat_shape s = leat_infer_in(c, 0);
    LEAT_REQUIRE(!t || t->count == 1, INVALID_ARGUMENT,
                 "'dim' input must be a tensor with a single value");
    if (!t || s.rank < 0)
        return NULL;
    int64_t dim = leat_int_at(t, 0);
    LEAT_REQUIRE(dim >= -s.rank - 1 && dim <= s.rank, INVALID_ARGUMENT,
                 "dim %" PRId64 " not in the interval [%d, %d].", dim, -s.rank - 1, s.rank);
    dim += dim < 0 ? s.rank + 1 : 0;
    leat_shape front = leat_shape_make((int)dim, s.dim);
    if (s.rank == LEAT_MAX_RANK)
        return NULL;
    front.dim[front.rank++] = 1;
    leat_infer_out(c, 0, leat_shape_concat(&front, &s, (int)dim));
    leat_infer_pass_handle(c, 0, 0);
    return NULL;
}

static leat_status squeeze_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0), out = leat_shape();
    if (s.rank < 0)
        return NULL;
    int n;
    const int64_t *dims = leat_node_ints(leat_infer_node(c), "squeeze_dims", &n);
    uint32_t asked = 0;
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(dims[i] >= -s.rank && dims[i] < s.rank, INVALID_ARGUMENT,
                     "squeeze_dims[%d] not in [%d,%d).", i, -s.rank, s.rank);
        asked |= 1u << (dims[i] < 0 ? dims[i] + s.rank : dims[i]);
    }
    for (int i = 0; i < s.rank; i++) {
        bool match = asked >> i & 1;
        LEAT_REQUIRE(!match || s.dim[i] < 0 || s.dim[i] == 1, INVALID_ARGUMENT,
                     "Can not squeeze dim[%d], expected a dimension of 1, got %" PRId64, i,
                     s.dim[i]);
        if (s.dim[i] < 0 && n == 0)
            return NULL;
        if (!match && (s.dim[i] != 1 || n > 0))
            out.dim[out.rank++] = s.dim[i];
    }
    leat_infer_out(c, 0, out);
    leat_infer_pass_handle(c, 0, 0);
    return NULL;
}

static leat_status back_grad(leat_grad *g)
{
    return leat_grad_in(g, 0,
                        leat_reshape(leat_grad_out(g, 0), leat_shape_of(leat_grad_input(g, 0))));
}

const leat_op_def leat_ops_reshape[] = {
    {.name = "Reshape",
     .inputs = "tensor: T, shape: Tshape",
     .outputs = "output: T",
     .attrs = "T: type; Tshape: {int32, int64} = DT_INT32",
     .shape = reshape_shape,
     .grad = back_grad,
     .flags = LEAT_OP_RESHAPES},
    {.name = "ExpandDims",
     .inputs = "input: T, dim: Tdim",
     .outputs = "output: T",
     .attrs = "T: type; Tdim: {int32, int64} = DT_INT32",
     .shape = expand_dims_shape,
     .grad = back_grad,
     .flags = LEAT_OP_RESHAPES},
    {.name = "Squeeze",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type; squeeze_dims: list(int) >= 0 = []",
     .shape = squeeze_shape,
     .grad = back_grad,
     .flags = LEAT_OP_RESHAPES},
    {0},
};
