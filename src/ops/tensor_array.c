/* tensor_array.c -- arrays of tensors that live for one step. The order of reads and writes is
 * determined by the flow, a float that is an output of each write and an input of later ops;
 * gradients are written to an array of their own (TensorArrayGradV3), whose flow is the gradient of
 * the flow. */
#include <leat/ops.h>
#include <stdio.h>

#include "ops/infer_util.h"

/* ---- Shapes ---- */

static leat_status flow_shape(leat_infer *c, int flow)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, flow, 0, &unused));
    leat_infer_out(c, 0, leat_shape());
    return NULL;
}

static leat_status array_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 0, &s));
    leat_infer_out(c, 1, leat_shape());
    s = leat_node_shape(n, "element_shape");
    if (leat_shape_known(&s) || leat_node_bool(n, "identical_element_shapes"))
        leat_infer_out_handle(c, 0, leat_node_type(n, "dtype"), s);
    return NULL;
}

static leat_status grad_shape(leat_infer *c)
{
    leat_infer_out(c, 1, leat_shape());
    leat_infer_pass_handle(c, 0, 0);
    return NULL;
}

static leat_status grad_with_shape_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape s, prefix = leat_infer_in(c, 2);
    leat_infer_out(c, 1, leat_shape());
    if (!leat_infer_in_handle(c, 0, &t, &s))
        return NULL;
    bool known = prefix.rank == 1 && prefix.dim[0] >= 0 && prefix.dim[0] <= LEAT_MAX_RANK;
    leat_shape front = known ? leat_shape_unknown_dims((int)prefix.dim[0]) : leat_shape_unknown();
    leat_infer_out_handle(c, 0, t, leat_shape_concat(&front, &s, 0));
    return NULL;
}

static leat_status write_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape s, x = leat_infer_in(c, 2);
    LEAT_TRY(leat_infer_rank(c, 1, 0, &s));
    if (leat_infer_in_handle(c, 0, &t, &s))
        LEAT_TRY(leat_shape_merge(&s, &x, &x));
    return flow_shape(c, 3);
}

static leat_status read_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 1, 0, &s));
    LEAT_TRY(leat_infer_rank(c, 2, 0, &s));
    if (leat_infer_in_handle(c, 0, &t, &s))
        leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status gather_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape indices, s, unused;
    LEAT_TRY(leat_infer_rank(c, 1, 1, &indices));
    LEAT_TRY(leat_infer_rank(c, 2, 0, &unused));
    if (!leat_infer_in_handle(c, 0, &t, &s))
        s = leat_node_shape(leat_infer_node(c), "element_shape");
    leat_infer_out(c, 0, leat_shape_concat(&indices, &s, 0));
    return NULL;
}

static leat_status scatter_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape indices, s, x = leat_infer_in(c, 2), row = leat_shape();
    LEAT_TRY(leat_infer_rank(c, 1, 1, &indices));
    LEAT_TRY(leat_shape_merge_prefix(&x, &indices));
    if (leat_infer_in_handle(c, 0, &t, &s) && x.rank > 0) {
        row = leat_shape_concat(&row, &x, 1);
        LEAT_TRY(leat_shape_merge(&s, &row, &row));
    }
    return flow_shape(c, 3);
}

static leat_status concat_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    leat_infer_out(c, 1, leat_shape(-1));
    return NULL;
}

static leat_status split_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 2, 1, &unused));
    return flow_shape(c, 3);
}

/* ---- Gradients ---- */

/* The array that collects gradients of the array behind input 0, and its flow. Each call of
 * leat_gradients has an array of its own, identified by the first scope of the gradient's name. */
static leat_out grad_array(leat_grad *g, leat_out dy, leat_out flow)
{
    const char *name = leat_node_name(dy.node), *end = name;
    for (const char *at = name; at; at = strchr(at, '/')) {
        at += at != name;
        if (strncmp(at, "gradients", 9) == 0)
            end = at + strcspn(at, "/");
    }
    char source[256];
    snprintf(source, sizeof(source), "%.*s", (int)(end - name), end == name ? "" : name);
    return LEAT_OP2("TensorArrayGradV3", leat_grad_input(g, 0), flow,
                    leat_attr_string("source", end == name ? "gradients" : source));
}

static leat_out second(leat_out x)
{
    return (leat_out){x.node, 1};
}

/* The gradient of an op that writes values: they are read from the array of gradients. */
static leat_status put_grad(leat_grad *g, const char *take_op)
{
    leat_out flow = leat_grad_out(g, 0), a = grad_array(g, flow, flow);
    leat_dtype t = leat_node_type(leat_grad_node(g), "T");
    LEAT_TRY(leat_grad_in(
        g, 2, LEAT_OP3(take_op, a, leat_grad_input(g, 1), second(a), leat_attr_type("dtype", t))));
    return leat_grad_in(g, 3, flow);
}

/* The gradient of an op that reads values: it is written to the array of gradients. */
static leat_status take_grad(leat_grad *g, const char *put_op)
{
    leat_out dy = leat_grad_out(g, 0), a = grad_array(g, dy, leat_grad_input(g, 2));
    return leat_grad_in(g, 2, LEAT_OP4(put_op, a, leat_grad_input(g, 1), dy, second(a)));
}

static leat_status write_grad(leat_grad *g)
{
    return put_grad(g, "TensorArrayReadV3");
}

static leat_status read_grad(leat_grad *g)
{
    return take_grad(g, "TensorArrayWriteV3");
}

static leat_status gather_grad(leat_grad *g)
{
    return take_grad(g, "TensorArrayScatterV3");
}

static leat_status scatter_grad(leat_grad *g)
{
    return put_grad(g, "TensorArrayGatherV3");
}

static leat_status concat_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0), a = grad_array(g, dy, leat_grad_input(g, 1));
    return leat_grad_in(g, 1,
                        LEAT_OP4("TensorArraySplitV3", a, dy, leat_grad_output(g, 1), second(a)));
}

static leat_status split_grad(leat_grad *g)
{
    leat_out flow = leat_grad_out(g, 0), a = grad_array(g, flow, flow);
    leat_dtype t = leat_node_type(leat_grad_node(g), "T");
    LEAT_TRY(leat_grad_in(
        g, 1, LEAT_OP2("TensorArrayConcatV3", a, second(a), leat_attr_type("dtype", t))));
    return leat_grad_in(g, 3, flow);
}

#define ARRAY(name_, inputs_, outputs_, attrs_, shape_, grad_)                                     \
    {                                                                                              \
        .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_, .shape = shape_,   \
        .grad = grad_, .flags = LEAT_OP_STATEFUL                                                   \
    }

const leat_op_def leat_ops_tensor_array[] = {
    ARRAY("TensorArrayV3", "size: int32", "handle: resource, flow: float",
          "dtype: type; element_shape: shape = { unknown_rank: true }; "
          "dynamic_size: bool = false; clear_after_read: bool = true; "
          "identical_element_shapes: bool = false; tensor_array_name: string = ''",
          array_shape, leat_grad_none),
    ARRAY("TensorArrayGradV3", "handle: resource, flow_in: float",
          "grad_handle: resource, flow_out: float", "source: string", grad_shape, leat_grad_none),
    ARRAY("TensorArrayGradWithShape", "handle: resource, flow_in: float, shape_to_prepend: int32",
          "grad_handle: resource, flow_out: float", "source: string", grad_with_shape_shape,
          leat_grad_none),
    ARRAY("TensorArrayWriteV3", "handle: resource, index: int32, value: T, flow_in: float",
          "flow_out: float", "T: type", write_shape, write_grad),
    ARRAY("TensorArrayReadV3", "handle: resource, index: int32, flow_in: float", "value: dtype",
          "dtype: type", read_shape, read_grad),
    ARRAY("TensorArrayGatherV3", "handle: resource, indices: int32, flow_in: float", "value: dtype",
          "dtype: type; element_shape: shape = { unknown_rank: true }", gather_shape, gather_grad),
    ARRAY("TensorArrayScatterV3", "handle: resource, indices: int32, value: T, flow_in: float",
          "flow_out: float", "T: type", scatter_shape, scatter_grad),
    ARRAY("TensorArrayConcatV3", "handle: resource, flow_in: float", "value: dtype, lengths: int64",
          "dtype: type; element_shape_except0: shape = { unknown_rank: true }", concat_shape,
          concat_grad),
    ARRAY("TensorArraySplitV3", "handle: resource, value: T, lengths: int64, flow_in: float",
          "flow_out: float", "T: type", split_shape, split_grad),
    ARRAY("TensorArraySizeV3", "handle: resource, flow_in: float", "size: int32", NULL,
          leat_shape_scalar, leat_grad_none),
    ARRAY("TensorArrayCloseV3", "handle: resource", NULL, NULL, leat_shape_none, leat_grad_none),
    {0},
};
