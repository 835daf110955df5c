/* tensor_list.c -- lists of tensors in variants, which loops and conds made of functions use. */
#include <leat/ops.h>

#include "ops/infer_util.h"

/* A list's handle has the dtype and the shape of its items, which may be unknown: items of a list
 * whose shape is unknown may differ in shape. */
static leat_dtype element_type(leat_infer *c)
{
    return leat_node_type(leat_infer_node(c), "element_dtype");
}

/* Gives the shape of the items of the list that input i is. */
static leat_status items_of(leat_infer *c, int i, const char *does, leat_shape *out)
{
    leat_dtype t;
    *out = leat_shape_unknown();
    if (leat_infer_in_handle(c, i, &t, out) && t != LEAT_INVALID)
        LEAT_REQUIRE(t == element_type(c), INVALID_ARGUMENT,
                     "Trying to %s list with wrong element dtype. List has type %s but expected "
                     "type %s",
                     does, leat_dtype_name(t), leat_dtype_name(element_type(c)));
    return NULL;
}

/* The same for an op whose input `value` is a shape that the items have. */
static leat_status items_like(leat_infer *c, int value, leat_shape *out)
{
    leat_shape want;
    LEAT_TRY(items_of(c, 0, "read from", out));
    LEAT_TRY(leat_infer_value_shape(c, value, &want));
    return leat_shape_merge(out, &want, out);
}

/* ---- Ops that read ---- */
static leat_status stack_shape(leat_infer *c)
{
    leat_shape s, n = leat_shape(leat_node_int(leat_infer_node(c), "num_elements"));
    LEAT_TRY(items_like(c, 1, &s));
    leat_infer_out(c, 0, leat_shape_concat(&n, &s, 0));
    return NULL;
}

static leat_status gather_shape(leat_infer *c)
{
    leat_shape s, indices = leat_infer_in(c, 1);
    LEAT_TRY(items_like(c, 2, &s));
    leat_infer_out(c, 0, leat_shape_concat(&indices, &s, 0));
    return NULL;
}

static leat_status item_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(items_like(c, 2, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status pop_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(
        items_of(c, 0, "read from", &s)); /* As in TensorFlow, element_shape is not looked at. */
    leat_infer_out(c, 0, leat_shape());
    leat_infer_pass_handle(c, 0, 0);
    leat_infer_out(c, 1, s);
    return NULL;
}

static leat_status concat_shape(leat_infer *c)
{
    leat_shape s, want;
    if (leat_infer_inputs(c) > 1) {
        LEAT_TRY(items_like(c, 1, &s));
    } else {
        want = leat_node_shape(leat_infer_node(c), "element_shape");
        LEAT_TRY(items_of(c, 0, "read from", &s));
        LEAT_TRY(leat_shape_merge(&s, &want, &s));
    }
    if (s.rank == 0)
        s = leat_shape(-1); /* The kernel refuses scalars. */
    if (s.rank > 0)
        s.dim[0] = -1;
    leat_infer_out(c, 0, s);
    leat_infer_out(c, 1, leat_shape(-1));
    return NULL;
}

static leat_status element_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape s;
    bool known = leat_infer_in_handle(c, 0, &t, &s);
    leat_infer_out(c, 0, leat_shape(known && s.rank >= 0 ? s.rank : -1));
    return NULL;
}

/* ---- Ops that make lists, or change one ---- */
/* The items of the new list have the shape that input `value` is. */
static leat_status list_of(leat_infer *c, int value)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, value, &s));
    leat_infer_out(c, 0, leat_shape());
    leat_infer_out_handle(c, 0, element_type(c), s);
    return NULL;
}

static leat_status make_shape(leat_infer *c)
{
    return list_of(c, 0);
}

static leat_status scatter_shape(leat_infer *c)
{
    return list_of(c, 2);
}

/* Input 0 has the items one behind the other: with a dimension of their own in front, or, if split,
 * along their first dimension. */
static leat_status divided(leat_infer *c, bool split)
{
    leat_shape x, want, front = split ? leat_shape(-1) : leat_shape();
    LEAT_TRY(leat_infer_value_shape(c, 1, &want));
    x = leat_infer_in(c, 0);
    x = leat_shape_concat(&front, &x, x.rank > 0); /* The kernel refuses scalars. */
    LEAT_TRY(leat_shape_merge(&x, &want, &x));
    return list_of(c, 1);
}

static leat_status from_tensor_shape(leat_infer *c)
{
    return divided(c, false);
}

static leat_status split_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &unused));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &unused));
    return divided(c, true);
}

/* What is pushed is compared with the shape of the list's items when the op runs. */
static leat_status push_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(items_of(c, 0, "push to", &s));
    leat_infer_out(c, 0, leat_shape());
    leat_infer_out_handle(c, 0, element_type(c), s);
    return NULL;
}

static leat_status push_batch_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(items_of(c, 0, "push to", &s));
    LEAT_TRY(leat_shape_unchanged(c));
    leat_infer_out_handle(c, 0, element_type(c), s);
    return NULL;
}

static leat_status set_item_shape(leat_infer *c)
{
    leat_dtype t = element_type(c);
    leat_shape s = leat_shape_unknown(), item = leat_infer_in(c, 2);
    leat_infer_in_handle(c, 0, &t, &s); /* The kernel compares the dtypes. */
    LEAT_TRY(leat_shape_merge(&item, &s, &item));
    leat_infer_out(c, 0, leat_shape());
    leat_infer_out_handle(c, 0, t, s);
    return NULL;
}

static leat_status scatter_into_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank_at_least(c, 1, 1, &unused));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &unused));
    return push_shape(c);
}

static leat_status resize_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    leat_infer_out(c, 0, leat_shape());
    leat_infer_pass_handle(c, 0, 0);
    return NULL;
}

static leat_status concat_lists_shape(leat_infer *c)
{
    leat_shape a, b;
    LEAT_TRY(items_of(c, 0, "read from", &a));
    LEAT_TRY(items_of(c, 1, "read from", &b));
    LEAT_TRY(leat_shape_merge(&a, &b, &a));
    LEAT_TRY(leat_shape_merged(c));
    leat_infer_out_handle(c, 0, element_type(c), a);
    return NULL;
}

#define LIST(name_, inputs_, outputs_, attrs_, shape_)                                             \
    {                                                                                              \
        .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_, .shape = shape_,   \
        .grad = leat_grad_missing                                                                  \
    }
#define ELEMENT "element_dtype: type"
#define SHAPE "; shape_type: {int32, int64}"

const leat_op_def leat_ops_tensor_list[] = {
    LIST("EmptyTensorList", "element_shape: shape_type, max_num_elements: int32", "handle: variant",
         ELEMENT SHAPE, make_shape),
    LIST("TensorListReserve", "element_shape: shape_type, num_elements: int32", "handle: variant",
         ELEMENT SHAPE, make_shape),
    LIST("TensorListLength", "input_handle: variant", "length: int32", NULL, leat_shape_scalar),
    LIST("TensorListElementShape", "input_handle: variant", "element_shape: shape_type",
         "shape_type: {int32, int64}", element_shape),
    LIST("TensorListPushBack", "input_handle: variant, tensor: element_dtype",
         "output_handle: variant", ELEMENT, push_shape),
    LIST("TensorListPushBackBatch", "input_handles: variant, tensor: element_dtype",
         "output_handles: variant", ELEMENT, push_batch_shape),
    LIST("TensorListPopBack", "input_handle: variant, element_shape: int32",
         "output_handle: variant, tensor: element_dtype", ELEMENT, pop_shape),
    LIST("TensorListGetItem", "input_handle: variant, index: int32, element_shape: int32",
         "item: element_dtype", ELEMENT, item_shape),
    LIST("TensorListSetItem", "input_handle: variant, index: int32, item: element_dtype",
         "output_handle: variant", ELEMENT, set_item_shape),
    {.name = "TensorListResize",
     .inputs = "input_handle: variant, size: int32",
     .outputs = "output_handle: variant",
     .shape = resize_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    LIST("TensorListStack", "input_handle: variant, element_shape: int32", "tensor: element_dtype",
         ELEMENT "; num_elements: int = -1", stack_shape),
    LIST("TensorListGather", "input_handle: variant, indices: int32, element_shape: int32",
         "values: element_dtype", ELEMENT, gather_shape),
    LIST("TensorListConcat", "input_handle: variant", "tensor: element_dtype, lengths: int64",
         ELEMENT "; element_shape: shape = { unknown_rank: true }", concat_shape),
    LIST("TensorListConcatV2",
         "input_handle: variant, element_shape: shape_type, leading_dims: int64",
         "tensor: element_dtype, lengths: int64", ELEMENT SHAPE, concat_shape),
    LIST("TensorListFromTensor", "tensor: element_dtype, element_shape: shape_type",
         "output_handle: variant", ELEMENT SHAPE, from_tensor_shape),
    LIST("TensorListScatter", "tensor: element_dtype, indices: int32, element_shape: shape_type",
         "output_handle: variant", ELEMENT SHAPE, scatter_shape),
    LIST("TensorListScatterV2",
         "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
         "output_handle: variant", ELEMENT SHAPE, scatter_shape),
    LIST("TensorListScatterIntoExistingList",
         "input_handle: variant, tensor: element_dtype, indices: int32", "output_handle: variant",
         ELEMENT, scatter_into_shape),
    LIST("TensorListSplit", "tensor: element_dtype, element_shape: shape_type, lengths: int64",
         "output_handle: variant", ELEMENT SHAPE, split_shape),
    LIST("TensorListConcatLists", "input_a: variant, input_b: variant", "output: variant", ELEMENT,
         concat_lists_shape),
    {0},
};
