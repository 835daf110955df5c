/* tensor_list.c -- lists of tensors in variants, which loops and conds made of functions use. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status stack_shape(leat_infer *c)
{
    leat_shape s, n = leat_shape(leat_node_int(leat_infer_node(c), "num_elements"));
    LEAT_TRY(leat_infer_value_shape(c, 1, &s));
    leat_infer_out(c, 0, leat_shape_concat(&n, &s, 0));
    return NULL;
}

static leat_status gather_shape(leat_infer *c)
{
    leat_shape s, indices = leat_infer_in(c, 1);
    LEAT_TRY(leat_infer_value_shape(c, 2, &s));
    leat_infer_out(c, 0, leat_shape_concat(&indices, &s, 0));
    return NULL;
}

static leat_status item_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, 2, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status pop_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, 1, &s));
    leat_infer_out(c, 0, leat_shape());
    leat_infer_out(c, 1, s);
    return NULL;
}

static leat_status concat_shape(leat_infer *c)
{
    leat_shape s;
    if (leat_infer_inputs(c) > 1)
        LEAT_TRY(leat_infer_value_shape(c, 1, &s));
    else
        s = leat_node_shape(leat_infer_node(c), "element_shape");
    if (s.rank > 0)
        s.dim[0] = -1;
    leat_infer_out(c, 0, s);
    leat_infer_out(c, 1, leat_shape(-1));
    return NULL;
}

/* The dtype and shape of a list's items are those of its handle. */
static leat_status make_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, 0, &s));
    leat_infer_out(c, 0, leat_shape());
    leat_infer_out_handle(c, 0, leat_node_type(leat_infer_node(c), "element_dtype"), s);
    return NULL;
}

static leat_status pass_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape s, x = leat_infer_in(c, leat_infer_inputs(c) - 1);
    leat_infer_out(c, 0, leat_shape());
    if (leat_infer_in_handle(c, 0, &t, &s)) {
        LEAT_TRY(leat_shape_merge(&s, &x, &s));
        leat_infer_out_handle(c, 0, t, s);
    }
    return NULL;
}

static leat_status element_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape s;
    if (leat_infer_in_handle(c, 0, &t, &s) && s.rank >= 0)
        leat_infer_out(c, 0, leat_shape(s.rank));
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
         "output_handle: variant", ELEMENT, pass_shape),
    LIST("TensorListPushBackBatch", "input_handles: variant, tensor: element_dtype",
         "output_handles: variant", ELEMENT, leat_shape_unchanged),
    LIST("TensorListPopBack", "input_handle: variant, element_shape: int32",
         "output_handle: variant, tensor: element_dtype", ELEMENT, pop_shape),
    LIST("TensorListGetItem", "input_handle: variant, index: int32, element_shape: int32",
         "item: element_dtype", ELEMENT, item_shape),
    LIST("TensorListSetItem", "input_handle: variant, index: int32, item: element_dtype",
         "output_handle: variant", ELEMENT, pass_shape),
    {.name = "TensorListResize",
     .inputs = "input_handle: variant, size: int32",
     .outputs = "output_handle: variant",
     .shape = leat_shape_scalar,
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
         "output_handle: variant", ELEMENT SHAPE, leat_shape_scalar),
    LIST("TensorListScatter", "tensor: element_dtype, indices: int32, element_shape: shape_type",
         "output_handle: variant", ELEMENT SHAPE, leat_shape_scalar),
    LIST("TensorListScatterV2",
         "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
         "output_handle: variant", ELEMENT SHAPE, leat_shape_scalar),
    LIST("TensorListScatterIntoExistingList",
         "input_handle: variant, tensor: element_dtype, indices: int32", "output_handle: variant",
         ELEMENT, leat_shape_scalar),
    LIST("TensorListSplit", "tensor: element_dtype, element_shape: shape_type, lengths: int64",
         "output_handle: variant", ELEMENT SHAPE, leat_shape_scalar),
    LIST("TensorListConcatLists", "input_a: variant, input_b: variant", "output: variant", ELEMENT,
         leat_shape_unchanged),
    {0},
};
