/* stack.c -- stacks of tensors, behind handles that live for one step. The gradient of a loop
 * pushes values of an iteration and pops them when it runs backwards. */
#include <leat/extend.h>

static leat_status push_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_infer_in(c, 1));
    return NULL;
}

const leat_op_def leat_ops_stack[] = {
    {.name = "StackV2",
     .inputs = "max_size: int32",
     .outputs = "handle: resource",
     .attrs = "elem_type: type; stack_name: string = ''",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "StackPushV2",
     .inputs = "handle: resource, elem: T",
     .outputs = "output: T",
     .attrs = "T: type; swap_memory: bool = false",
     .shape = push_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "StackPopV2",
     .inputs = "handle: resource",
     .outputs = "elem: elem_type",
     .attrs = "elem_type: type",
     .shape = leat_shape_any,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "StackCloseV2",
     .inputs = "handle: resource",
     .shape = leat_shape_none,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
