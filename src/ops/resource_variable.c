/* resource_variable.c -- variables behind resource handles: VarHandleOp and the ops that read and
 * assign them. */
#include <leat/extend.h>
#include <leat/ops.h>

#include "ops/resource_variable.h"

leat_status leat_infer_variable(leat_infer *c, leat_shape *out)
{
    leat_dtype t, want = leat_node_type(leat_infer_node(c), "dtype");
    bool known = leat_infer_in_handle(c, 0, &t, out);
    LEAT_REQUIRE(!known || t == want, INVALID_ARGUMENT,
                 "Trying to read variable with wrong dtype. Expected %s got %s", leat_dtype_name(t),
                 leat_dtype_name(want));
    return NULL;
}

static leat_status handle_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    leat_infer_out(c, 0, leat_shape());
    leat_infer_out_handle(c, 0, leat_node_type(n, "dtype"), leat_node_shape(n, "shape"));
    return NULL;
}

static leat_status read_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_variable(c, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status assign_shape(leat_infer *c)
{
    leat_shape s, value = leat_infer_in(c, 1);
    LEAT_TRY(leat_infer_variable(c, &s));
    return leat_shape_merge(&s, &value, &s);
}

static leat_status variable_shape_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape s;
    leat_infer_in_handle(c, 0, &t, &s);
    leat_infer_out(c, 0, leat_shape(s.rank));
    return NULL;
}

static leat_status count_up_to_shape(leat_infer *c)
{
    leat_dtype t, want = leat_node_type(leat_infer_node(c), "T");
    leat_shape s;
    LEAT_REQUIRE(leat_infer_in_handle(c, 0, &t, &s), INVALID_ARGUMENT,
                 "Handle has no shape/type information.");
    LEAT_REQUIRE(t == want, INVALID_ARGUMENT, "Data types do not match: %s and %s",
                 leat_dtype_name(want), leat_dtype_name(t));
    LEAT_REQUIRE(s.rank <= 0, INVALID_ARGUMENT, "Shape must be rank 0 but is rank %d", s.rank);
    leat_infer_out(c, 0, leat_shape());
    return NULL;
}

static leat_status read_grad(leat_grad *g)
{
    return leat_grad_in_value(g, 0, leat_grad_out_value(g, 0));
}

const leat_op_def leat_ops_resource_variable[] = {
    {.name = "VarHandleOp",
     .outputs = "resource: resource",
     .attrs = "container: string = ''; shared_name: string = ''; dtype: type; shape: shape",
     .shape = handle_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL | LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_HANDLE},
    {.name = "ReadVariableOp",
     .inputs = "resource: resource",
     .outputs = "value: dtype",
     .attrs = "dtype: type",
     .shape = read_shape,
     .grad = read_grad,
     .flags = LEAT_OP_STATEFUL | LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_READ},
    {.name = "AssignVariableOp",
     .inputs = "resource: resource, value: dtype",
     .attrs = "dtype: type",
     .shape = assign_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "AssignAddVariableOp",
     .inputs = "resource: resource, value: dtype",
     .attrs = "dtype: type",
     .shape = assign_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL,
     .gradient = "value"},
    {.name = "AssignSubVariableOp",
     .inputs = "resource: resource, value: dtype",
     .attrs = "dtype: type",
     .shape = assign_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL,
     .gradient = "value"},
    {.name = "VarIsInitializedOp",
     .inputs = "resource: resource",
     .outputs = "is_initialized: bool",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL,
     .role = LEAT_ROLE_IS_INITIALIZED},
    {.name = "VariableShape",
     .inputs = "input: resource",
     .outputs = "output: out_type",
     .attrs = "out_type: {int32, int64} = DT_INT32",
     .shape = variable_shape_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "DestroyResourceOp",
     .inputs = "resource: resource",
     .attrs = "ignore_lookup_error: bool = true",
     .shape = leat_shape_none,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "ResourceCountUpTo",
     .inputs = "resource: resource",
     .outputs = "output: T",
     .attrs = "limit: int; T: {int32, int64}",
     .shape = count_up_to_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL,
     .role = LEAT_ROLE_COUNTER},
    {0},
};
