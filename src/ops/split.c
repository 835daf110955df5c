/* split.c -- Split, SplitV, and Unpack, which removes the dimension that it splits. */
#include <stdlib.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "core/strbuf.h"
#include "ops/infer_util.h"

/* The axis at input i, counted from the front; -1 if it is not known. */
static leat_status split_axis(leat_infer *c, int i, int rank, int64_t *axis)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, i, 0, &unused));
    if (!leat_infer_int(c, i, axis)) {
        *axis = -1;
        return NULL;
    }
    if (rank >= 0) {
        LEAT_REQUIRE(*axis >= -rank && *axis < rank, INVALID_ARGUMENT,
                     "Dimension size, given by scalar input %" PRId64 " must be in range [-%d, %d)",
                     *axis, rank, rank);
        *axis += *axis < 0 ? rank : 0;
    }
    return NULL;
}

static leat_status split_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 1);
    int n = leat_infer_outputs(c);
    int64_t axis;
    LEAT_TRY(split_axis(c, 0, s.rank, &axis));
    if (axis < 0) {
        s = leat_shape_unknown_dims(s.rank);
    } else if (s.rank >= 0 && s.dim[axis] >= 0) {
        LEAT_REQUIRE(s.dim[axis] % n == 0, INVALID_ARGUMENT,
                     "Dimension size must be evenly divisible by %d but is %" PRId64
                     "\n\tNumber of ways to split should evenly divide the split dimension",
                     n, s.dim[axis]);
        s.dim[axis] /= n;
    }
    for (int i = 0; i < n; i++)
        leat_infer_out(c, i, s);
    return NULL;
}

static leat_status cannot_split(int64_t all, const leat_tensor *sizes)
{
    leat_strbuf list = {0};
    for (int64_t i = 0; i < sizes->count; i++)
        leat_strbuf_printf(&list, "%s%" PRId64, i ? "," : "", leat_int_at(sizes, i));
    leat_status s = leat_error(INVALID_ARGUMENT,
                               "can't split axis of size %" PRId64 " into pieces of size [%s]", all,
                               leat_strbuf_text(&list));
    leat_strbuf_release(&list);
    return s;
}

static leat_status split_v_sizes(leat_infer *c, leat_shape s, int64_t axis, const leat_tensor *t)
{
    int n = leat_infer_outputs(c);
    int64_t sum = 0, all = s.dim[axis];
    bool open = false;
    LEAT_REQUIRE(t->count == n, INVALID_ARGUMENT,
                 "Length of size_splits should be equal to num_outputs");
    for (int i = 0; i < n; i++) {
        int64_t size = leat_int_at(t, i);
        LEAT_REQUIRE(size != -1 || !open, INVALID_ARGUMENT, "size_splits can only have one -1");
        open |= size == -1;
        LEAT_REQUIRE(size >= -1, INVALID_ARGUMENT,
                     "Split size at index %d must be >= 0. Got: %" PRId64, i, size);
        if (size > 0)
            LEAT_TRY(leat_dim_add(sum, size, &sum));
    }
    if (all >= 0 && (open ? sum > all : sum != all))
        return cannot_split(all, t);
    for (int i = 0; i < n; i++) {
        int64_t size = leat_int_at(t, i);
        s.dim[axis] = size >= 0 ? size : all < 0 ? -1 : all - sum;
        leat_infer_out(c, i, s);
    }
    return NULL;
}

static leat_status split_v_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0);
    const leat_tensor *sizes = leat_infer_value(c, 1);
    int64_t axis;
    LEAT_TRY(split_axis(c, 2, s.rank, &axis));
    LEAT_REQUIRE(s.rank != 0, INVALID_ARGUMENT, "Can't split scalars");
    if (s.rank < 0)
        return NULL;
    if (sizes && axis >= 0)
        return split_v_sizes(c, s, axis, sizes);
    if (axis >= 0)
        s.dim[axis] = -1;
    else
        s = leat_shape_unknown_dims(s.rank);
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, s);
    return NULL;
}

static leat_status unpack_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0);
    if (s.rank < 0)
        return NULL;
    int64_t axis = leat_node_int(leat_infer_node(c), "axis");
    LEAT_REQUIRE(axis >= -s.rank && axis < s.rank, INVALID_ARGUMENT,
                 "Invalid axis: %" PRId64 "; must be in [%d,%d)", axis, -s.rank, s.rank);
    axis += axis < 0 ? s.rank : 0;
    int n = leat_infer_outputs(c);
    LEAT_REQUIRE(s.dim[axis] < 0 || s.dim[axis] == n, INVALID_ARGUMENT,
                 "Dimension must be %d but is %" PRId64, n, s.dim[axis]);
    leat_shape front = leat_shape_make((int)axis, s.dim);
    s = leat_shape_concat(&front, &s, (int)axis + 1);
    for (int i = 0; i < n; i++)
        leat_infer_out(c, i, s);
    return NULL;
}

/* The gradients of all outputs; freed by the caller. */
static leat_out *grads(leat_grad *g, int *n)
{
    *n = leat_node_outputs(leat_grad_node(g));
    leat_out *dy = leat_new_array(leat_out, *n);
    for (int i = 0; i < *n; i++)
        dy[i] = leat_grad_out(g, i);
    return dy;
}

static leat_status join(leat_grad *g, int value, int axis)
{
    int n;
    leat_out *dy = grads(g, &n);
    leat_out dx = leat_concat(dy, n, leat_grad_input(g, axis));
    free(dy);
    return leat_grad_in(g, value, dx);
}

static leat_status split_grad(leat_grad *g)
{
    return join(g, 1, 0);
}

static leat_status split_v_grad(leat_grad *g)
{
    return join(g, 0, 2);
}

static leat_status unpack_grad(leat_grad *g)
{
    int n;
    leat_out *dy = grads(g, &n);
    leat_out dx = leat_pack(dy, n, leat_node_int(leat_grad_node(g), "axis"));
    free(dy);
    return leat_grad_in(g, 0, dx);
}

const leat_op_def leat_ops_split[] = {
    {.name = "Split",
     .inputs = "split_dim: int32, value: T",
     .outputs = "output: num_split * T",
     .attrs = "num_split: int >= 1; T: type",
     .shape = split_shape,
     .grad = split_grad,
     .role = LEAT_ROLE_SPLIT},
    {.name = "SplitV",
     .inputs = "value: T, size_splits: Tlen, split_dim: int32",
     .outputs = "output: num_split * T",
     .attrs = "num_split: int >= 1; T: type; Tlen: {int32, int64} = DT_INT64",
     .shape = split_v_shape,
     .grad = split_v_grad},
    {.name = "Unpack",
     .inputs = "value: T",
     .outputs = "output: num * T",
     .attrs = "num: int >= 0; T: type; axis: int = 0",
     .shape = unpack_shape,
     .grad = unpack_grad},
    {0},
};
