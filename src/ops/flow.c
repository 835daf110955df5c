/* flow.c -- Identity and NoOp, and the ops of control flow: Switch, Merge, and the frames of loops.
 * The executor implements them; this file has their shapes. Gradients of the loop ops are made by
 * control_flow_grad.c. */
#include <leat/extend.h>
#include <leat/ops.h>

#include "graph/control_flow.h"

static leat_status switch_shape(leat_infer *c)
{
    leat_shape pred;
    LEAT_TRY(leat_infer_rank(c, 1, 0, &pred));
    for (int i = 0; i < 2; i++)
        leat_infer_out(c, i, leat_infer_in(c, 0));
    leat_dtype t;
    leat_shape s;
    if (leat_infer_in_handle(c, 0, &t, &s))
        for (int i = 0; i < 2; i++)
            leat_infer_out_handle(c, i, t, s);
    return NULL;
}

/* The shape that all inputs agree on; if a back edge is not set yet, the shape is unknown. */
static leat_status merge_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0);
    for (int i = 1; i < leat_infer_inputs(c); i++) {
        leat_shape x = leat_infer_in(c, i);
        if (s.rank != x.rank)
            s = leat_shape_unknown();
        for (int d = 0; d < s.rank; d++)
            s.dim[d] = s.dim[d] == x.dim[d] ? s.dim[d] : -1;
    }
    leat_infer_out(c, 0, s);
    leat_infer_out(c, 1, leat_shape());
    return NULL;
}

static leat_status pass_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape s;
    leat_infer_out(c, 0, leat_infer_in(c, 0));
    if (leat_infer_in_handle(c, 0, &t, &s))
        leat_infer_out_handle(c, 0, t, s);
    return NULL;
}

static leat_status identity_n_shape(leat_infer *c)
{
    for (int i = 0; i < leat_infer_inputs(c); i++)
        leat_infer_out(c, i, leat_infer_in(c, i));
    return NULL;
}

static leat_status identity_grad(leat_grad *g)
{
    return leat_grad_in_value(g, 0, leat_grad_out_value(g, 0));
}

static leat_status identity_n_grad(leat_grad *g)
{
    for (int i = 0; i < leat_node_inputs(leat_grad_node(g)); i++)
        if (leat_grad_has_out(g, i))
            LEAT_TRY(leat_grad_in_value(g, i, leat_grad_out_value(g, i)));
    return NULL;
}

#define ENTER_ATTRS                                                                                \
    "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10"

/* The shape of all candidates, if it is the same. */
static leat_status select_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 1), unused;
    LEAT_TRY(leat_infer_rank(c, 0, 0, &unused));
    for (int i = 2; i < leat_infer_inputs(c); i++) {
        leat_shape x = leat_infer_in(c, i);
        if (!leat_shape_known(&x) || !leat_shape_equal(&s, &x))
            return NULL;
    }
    if (leat_shape_known(&s))
        leat_infer_out(c, 0, s);
    return NULL;
}

const leat_op_def leat_ops_flow[] = {
    {.name = "NoOp", .shape = leat_shape_none, .grad = leat_grad_none, .role = LEAT_ROLE_NO_OP},
    {.name = "ControlTrigger",
     .shape = leat_shape_none,
     .grad = leat_grad_none,
     .role = LEAT_ROLE_TRIGGER},
    {.name = "Identity",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = pass_shape,
     .grad = identity_grad,
     .flags = LEAT_OP_IDENTITY},
    {.name = "RefIdentity",
     .inputs = "input: Ref(T)",
     .outputs = "output: Ref(T)",
     .attrs = "T: type",
     .shape = pass_shape,
     .grad = identity_grad,
     .flags = LEAT_OP_UNINITIALIZED | LEAT_OP_IDENTITY | LEAT_OP_NO_EFFECTS},
    {.name = "IdentityN",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: list(type) >= 1",
     .shape = identity_n_shape,
     .grad = identity_n_grad},
    {.name = "Switch",
     .inputs = "data: T, pred: bool",
     .outputs = "output_false: T, output_true: T",
     .attrs = "T: type",
     .shape = switch_shape,
     .grad = leat_switch_grad,
     .role = LEAT_ROLE_SWITCH},
    {.name = "RefSwitch",
     .inputs = "data: Ref(T), pred: bool",
     .outputs = "output_false: Ref(T), output_true: Ref(T)",
     .attrs = "T: type",
     .shape = switch_shape,
     .grad = leat_switch_grad,
     .flags = LEAT_OP_UNINITIALIZED | LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_SWITCH},
    {.name = "Merge",
     .inputs = "inputs: N * T",
     .outputs = "output: T, value_index: int32",
     .attrs = "T: type; N: int >= 1",
     .shape = merge_shape,
     .grad = leat_merge_grad,
     .role = LEAT_ROLE_MERGE},
    {.name = "RefSelect",
     .inputs = "index: int32, inputs: Ref(N * T)",
     .outputs = "output: Ref(T)",
     .attrs = "T: type; N: int >= 1",
     .shape = select_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_NO_EFFECTS},
    {.name = "RefMerge",
     .inputs = "inputs: N * Ref(T)",
     .outputs = "output: Ref(T), value_index: int32",
     .attrs = "T: type; N: int >= 1",
     .shape = merge_shape,
     .grad = leat_merge_grad,
     .flags = LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_MERGE},
    {.name = "Enter",
     .inputs = "data: T",
     .outputs = "output: T",
     .attrs = ENTER_ATTRS,
     .shape = pass_shape,
     .grad = leat_enter_grad,
     .role = LEAT_ROLE_ENTER},
    {.name = "RefEnter",
     .inputs = "data: Ref(T)",
     .outputs = "output: Ref(T)",
     .attrs = ENTER_ATTRS,
     .shape = pass_shape,
     .grad = leat_enter_grad,
     .flags = LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_ENTER},
    {.name = "Exit",
     .inputs = "data: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = pass_shape,
     .grad = leat_exit_grad,
     .role = LEAT_ROLE_EXIT},
    {.name = "RefExit",
     .inputs = "data: Ref(T)",
     .outputs = "output: Ref(T)",
     .attrs = "T: type",
     .shape = pass_shape,
     .grad = leat_exit_grad,
     .flags = LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_EXIT},
    {.name = "NextIteration",
     .inputs = "data: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = pass_shape,
     .grad = leat_next_iteration_grad,
     .role = LEAT_ROLE_NEXT_ITERATION},
    {.name = "RefNextIteration",
     .inputs = "data: Ref(T)",
     .outputs = "output: Ref(T)",
     .attrs = "T: type",
     .shape = pass_shape,
     .grad = leat_next_iteration_grad,
     .flags = LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_NEXT_ITERATION},
    {.name = "LoopCond",
     .inputs = "input: bool",
     .outputs = "output: bool",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_none,
     .role = LEAT_ROLE_LOOP_COND},
    {0},
};
