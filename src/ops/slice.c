/* slice.c -- Slice; StridedSlice with its gradient and its assignments. */
#include <leat/ops.h>

#include "ops/infer_util.h"
#include "ops/strided_spec.h"

static leat_status slice_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), begin, size, out;
    LEAT_TRY(leat_infer_rank(c, 1, 1, &begin));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &size));
    LEAT_TRY(leat_shape_merge(&begin, &size, &begin));
    if (begin.dim[0] >= 0)
        LEAT_TRY(leat_shape_with_rank(&in, begin.dim[0], &in));
    const leat_tensor *b = leat_infer_value(c, 1), *t = leat_infer_value(c, 2);
    if (in.rank < 0)
        return NULL;
    if (!t) { /* a size of -1, the rest of the dimension, is read as an unknown size */
        LEAT_TRY(leat_infer_value_shape(c, 2, &out));
        leat_infer_out(c, 0, out.rank == in.rank ? out : leat_shape_unknown_dims(in.rank));
        return NULL;
    }
    out = leat_shape_unknown_dims(in.rank);
    for (int i = 0; i < in.rank && i < t->count; i++) {
        int64_t v = leat_int_at(t, i);
        LEAT_REQUIRE(v >= -1, INVALID_ARGUMENT,
                     "Out of bounds slicing on dimension %d of length %" PRId64
                     ": sizes vector cannot be < -1, but was %" PRId64,
                     i, in.dim[i], v);
        if (v >= 0)
            out.dim[i] = v;
        else if (b && b->count == t->count && leat_int_at(b, i) >= 0)
            LEAT_TRY(leat_dim_sub(in.dim[i], leat_int_at(b, i), &out.dim[i]));
    }
    leat_infer_out(c, 0, out);
    return NULL;
}

/* dy, padded with zeros: `begin` in front, and behind it the rest of the input's size. */
static leat_status slice_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), begin = leat_grad_input(g, 1);
    leat_dtype t = leat_dtype_base(leat_out_dtype(begin));
    leat_graph *graph = leat_grad_graph(g);
    leat_out rank[2] = {leat_rank_of(x), leat_scalar(graph, LEAT_INT32, 1)};
    leat_out column = leat_pack(rank, 2, 0);
    leat_out x_shape = leat_shape_of(x, leat_attr_type("out_type", t));
    leat_out y_shape = leat_shape_of(leat_grad_output(g, 0), leat_attr_type("out_type", t));
    leat_out pads[2] = {
        leat_reshape(begin, column),
        leat_reshape(leat_sub(leat_sub(x_shape, y_shape), begin), column),
    };
    leat_out paddings = leat_concat(pads, 2, leat_scalar(graph, LEAT_INT32, 1));
    return leat_grad_in(g, 0, leat_pad(leat_grad_out(g, 0), paddings));
}

static leat_status strided_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), n = leat_shape(-1), s;
    for (int i = 1; i <= 3; i++) {
        LEAT_TRY(leat_infer_rank(c, i, 1, &s));
        LEAT_TRY(leat_shape_merge(&n, &s, &n));
    }
    const leat_tensor *strides = leat_infer_value(c, 3);
    if (in.rank < 0 || n.dim[0] < 0 || !strides)
        return NULL;
    leat_strided_masks masks = leat_strided_masks_of(leat_infer_node(c));
    leat_strided_spec spec;
    LEAT_TRY(leat_strided_resolve(&in, leat_infer_value(c, 1), leat_infer_value(c, 2), strides,
                                  &masks, &spec));
    leat_infer_out(c, 0, spec.out);
    leat_infer_pass_handle(c, 0, 0);
    return NULL;
}

static leat_status strided_grad_shape(leat_infer *c)
{
    leat_shape out;
    LEAT_TRY(leat_infer_value_shape(c, 0, &out));
    leat_infer_out(c, 0, out);
    return NULL;
}

/* The attributes that a slice and its gradient share. */
#define MASKS(n)                                                                                   \
    leat_attr_int("begin_mask", leat_node_int(n, "begin_mask")),                                   \
        leat_attr_int("end_mask", leat_node_int(n, "end_mask")),                                   \
        leat_attr_int("ellipsis_mask", leat_node_int(n, "ellipsis_mask")),                         \
        leat_attr_int("new_axis_mask", leat_node_int(n, "new_axis_mask")),                         \
        leat_attr_int("shrink_axis_mask", leat_node_int(n, "shrink_axis_mask"))

static leat_status strided_grad(leat_grad *g)
{
    const leat_node *n = leat_grad_node(g);
    leat_dtype t = leat_dtype_base(leat_out_dtype(leat_node_input(n, 1)));
    const leat_out in[5] = {
        leat_shape_of(leat_grad_input(g, 0), leat_attr_type("out_type", t)),
        leat_grad_input(g, 1),
        leat_grad_input(g, 2),
        leat_grad_input(g, 3),
        leat_grad_out(g, 0),
    };
    return leat_grad_in(g, 0, leat_op_of(LEAT_AT, "StridedSliceGrad", in, 5, LEAT_ARGS(MASKS(n))));
}

static leat_status strided_grad_grad(leat_grad *g)
{
    const leat_node *n = leat_grad_node(g);
    return leat_grad_in(g, 4,
                        leat_strided_slice(leat_grad_out(g, 0), leat_grad_input(g, 1),
                                           leat_grad_input(g, 2), leat_grad_input(g, 3), MASKS(n)));
}

/* x[begin] of a vector x that is a shape. */
static leat_status element_value(leat_infer *c, leat_shape *out)
{
    const leat_tensor *begin = leat_infer_value(c, 1);
    leat_shape s;
    leat_status bad = leat_infer_known(c, 0, &s);
    leat_status_free(bad);
    if (bad || !begin || begin->count != 1 || s.rank < 0)
        return NULL;
    int64_t i = (int64_t)leat_tensor_at(begin, 0);
    i += i < 0 ? s.rank : 0;
    *out = leat_shape(i >= 0 && i < s.rank ? s.dim[i] : -1);
    return NULL;
}

/* x[begin:end] with stride 1 of a vector x that is a shape, or one element of it. */
static leat_status strided_value(leat_infer *c, int out_index, leat_shape *out)
{
    const leat_node *n = leat_infer_node(c);
    if (leat_node_int(n, "shrink_axis_mask") == 1)
        return element_value(c, out);
    const leat_tensor *b = leat_infer_value(c, 1), *e = leat_infer_value(c, 2),
                      *stride = leat_infer_value(c, 3);
    *out = leat_shape_unknown();
    if (!b || !e || !stride || b->count != 1 || leat_tensor_at(stride, 0) != 1 ||
        leat_node_int(n, "shrink_axis_mask") || leat_node_int(n, "new_axis_mask") ||
        leat_node_int(n, "ellipsis_mask"))
        return NULL;
    leat_shape s;
    LEAT_TRY(leat_infer_known(c, 0, &s));
    if (s.rank < 0)
        return NULL;
    int64_t from = leat_node_int(n, "begin_mask") & 1 ? 0 : (int64_t)leat_tensor_at(b, 0);
    int64_t to = leat_node_int(n, "end_mask") & 1 ? s.rank : (int64_t)leat_tensor_at(e, 0);
    from += from < 0 ? s.rank : 0;
    to += to < 0 ? s.rank : 0;
    from = from < 0 ? 0 : from > s.rank ? s.rank : from;
    to = to < from ? from : to > s.rank ? s.rank : to;
    *out = leat_shape_make((int)(to - from), s.dim + from);
    return NULL;
}

#define STRIDED_ATTRS                                                                              \
    "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; "                     \
    "ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0"

const leat_op_def leat_ops_slice[] = {
    {.name = "Slice",
     .inputs = "input: T, begin: Index, size: Index",
     .outputs = "output: T",
     .attrs = "T: type; Index: {int32, int64}",
     .shape = slice_shape,
     .grad = slice_grad},
    {.name = "StridedSlice",
     .inputs = "input: T, begin: Index, end: Index, strides: Index",
     .outputs = "output: T",
     .attrs = STRIDED_ATTRS,
     .shape = strided_shape,
     .grad = strided_grad,
     .value = strided_value},
    {.name = "StridedSliceGrad",
     .inputs = "shape: Index, begin: Index, end: Index, strides: Index, dy: T",
     .outputs = "output: T",
     .attrs = STRIDED_ATTRS,
     .shape = strided_grad_shape,
     .grad = strided_grad_grad},
    {.name = "StridedSliceAssign",
     .inputs = "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = STRIDED_ATTRS,
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {.name = "ResourceStridedSliceAssign",
     .inputs = "ref: resource, begin: Index, end: Index, strides: Index, value: T",
     .attrs = STRIDED_ATTRS,
     .shape = leat_shape_none,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
