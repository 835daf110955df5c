/* state.c -- variables behind references: VariableV2 and the ops that assign to it. */
#include <leat/extend.h>

static leat_status declared_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_node_shape(leat_infer_node(c), "shape"));
    return NULL;
}

/* In old graphs, [] may mean that the shape is not known. */
static leat_status variable_v1_shape(leat_infer *c)
{
    leat_shape s = leat_node_shape(leat_infer_node(c), "shape");
    leat_infer_out(c, 0, s.rank <= 0 ? leat_shape_unknown() : s);
    return NULL;
}

static leat_status assign_shape(leat_infer *c)
{
    if (leat_node_bool(leat_infer_node(c), "validate_shape"))
        return leat_shape_merged(c);
    leat_infer_out(c, 0, leat_infer_in(c, 1));
    return NULL;
}

static leat_status count_up_to_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 0, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

#define VARIABLE_ATTRS "shape: shape; dtype: type; container: string = ''; shared_name: string = ''"

const leat_op_def leat_ops_state[] = {
    {.name = "VariableV2",
     .outputs = "ref: Ref(dtype)",
     .attrs = VARIABLE_ATTRS,
     .shape = declared_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL | LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_VARIABLE},
    {.name = "Variable",
     .outputs = "ref: Ref(dtype)",
     .attrs = VARIABLE_ATTRS,
     .shape = variable_v1_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL | LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_VARIABLE},
    {.name = "TemporaryVariable",
     .outputs = "ref: Ref(dtype)",
     .attrs = "shape: shape; dtype: type; var_name: string = ''",
     .shape = declared_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "DestroyTemporaryVariable",
     .inputs = "ref: Ref(T)",
     .outputs = "value: T",
     .attrs = "T: type; var_name: string",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {.name = "IsVariableInitialized",
     .inputs = "ref: Ref(dtype)",
     .outputs = "is_initialized: bool",
     .attrs = "dtype: type",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none,
     .flags = LEAT_OP_UNINITIALIZED | LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_IS_INITIALIZED},
    {.name = "Assign",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: type; validate_shape: bool = true; use_locking: bool = true",
     .shape = assign_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_UNINITIALIZED},
    {.name = "AssignAdd",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = leat_shape_merged,
     .grad = leat_grad_none,
     .gradient = "value"},
    {.name = "AssignSub",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = leat_shape_merged,
     .grad = leat_grad_none,
     .gradient = "value"},
    {.name = "CountUpTo",
     .inputs = "ref: Ref(T)",
     .outputs = "output: T",
     .attrs = "limit: int; T: {int32, int64}",
     .shape = count_up_to_shape,
     .grad = leat_grad_missing,
     .role = LEAT_ROLE_COUNTER},
    {0},
};
