/* select.c -- Select, element by element or row by row, SelectV2, which broadcasts; Where, the
 * indices of elements that are not zero. */
#include <leat/ops.h>

#include "ops/infer_util.h"

/* If both handles have the same dtype and shape, so has the output. */
static leat_status merge_handles(leat_infer *c)
{
    leat_dtype t1, t2;
    leat_shape s1, s2;
    if (!leat_infer_in_handle(c, 1, &t1, &s1) || !leat_infer_in_handle(c, 2, &t2, &s2))
        return NULL;
    LEAT_REQUIRE(t1 == t2, INVALID_ARGUMENT,
                 "Trying to merge handles pointing to different dtypes.");
    LEAT_TRY(leat_shape_merge(&s1, &s2, &s1));
    leat_infer_out_handle(c, 0, t1, s1);
    return NULL;
}

static leat_status select_shape(leat_infer *c)
{
    leat_shape cond = leat_infer_in(c, 0), data = leat_infer_in(c, 1), other = leat_infer_in(c, 2);
    LEAT_TRY(leat_shape_merge(&data, &other, &data));
    if (cond.rank == 1 && data.rank > 0) { /* cond selects rows */
        leat_shape rows = leat_shape(data.dim[0]);
        LEAT_TRY(leat_shape_merge(&cond, &rows, &rows));
    } else if (cond.rank > 0 && data.rank >= 0) {
        LEAT_TRY(leat_shape_merge(&data, &cond, &data));
    }
    leat_infer_out(c, 0, data);
    return merge_handles(c);
}

static leat_status select_v2_shape(leat_infer *c)
{
    leat_shape cond = leat_infer_in(c, 0), t = leat_infer_in(c, 1), e = leat_infer_in(c, 2), out;
    LEAT_TRY(leat_shape_broadcast(&t, &e, &out));
    LEAT_TRY(leat_shape_broadcast(&cond, &out, &out));
    leat_infer_out(c, 0, out);
    return merge_handles(c);
}

static leat_status select_grad(leat_grad *g)
{
    leat_out cond = leat_grad_input(g, 0), dy = leat_grad_out(g, 0);
    leat_out zeros = leat_zeros_like(leat_grad_input(g, 1));
    LEAT_TRY(leat_grad_in(g, 1, leat_select(cond, dy, zeros)));
    return leat_grad_in(g, 2, leat_select(cond, zeros, dy));
}

/* dx, summed over the dimensions along which input i was broadcast. */
static leat_out unbroadcast(leat_grad *g, int i, leat_out dx)
{
    leat_out shape = leat_shape_of(leat_grad_input(g, i));
    leat_out axes = leat_broadcast_gradient_args(shape, leat_shape_of(leat_grad_output(g, 0)));
    return leat_reshape(leat_sum(dx, axes, leat_attr_bool("keep_dims", true)), shape);
}

static leat_status select_v2_grad(leat_grad *g)
{
    leat_out cond = leat_grad_input(g, 0), dy = leat_grad_out(g, 0), zero = leat_scalar_like(dy, 0);
    LEAT_TRY(leat_grad_in(g, 1, unbroadcast(g, 1, LEAT_OP3("SelectV2", cond, dy, zero))));
    return leat_grad_in(g, 2, unbroadcast(g, 2, LEAT_OP3("SelectV2", cond, zero, dy)));
}

static leat_status where_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_shape(-1, leat_infer_in(c, 0).rank));
    return NULL;
}

const leat_op_def leat_ops_select[] = {
    {.name = "Select",
     .inputs = "condition: bool, t: T, e: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = select_shape,
     .grad = select_grad},
    {.name = "SelectV2",
     .inputs = "condition: bool, t: T, e: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = select_v2_shape,
     .grad = select_v2_grad},
    {.name = "Where",
     .inputs = "input: T",
     .outputs = "index: int64",
     .attrs = "T: {numbertype, bool} = DT_BOOL",
     .shape = where_shape,
     .grad = leat_grad_missing},
    {0},
};
