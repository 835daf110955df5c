/* assert.c -- Assert, Print and PrintV2: ops that print the values of tensors. */
#include <leat/extend.h>
#include <leat/ops.h>

static leat_status print_v2_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0);
    LEAT_REQUIRE(s.rank == 0, INVALID_ARGUMENT, "input must be a scalar, but has rank: %d", s.rank);
    return NULL;
}

static leat_status print_grad(leat_grad *g)
{
    return leat_grad_in_value(g, 0, leat_grad_out_value(g, 0));
}

const leat_op_def leat_ops_assert[] = {
    {.name = "Assert",
     .inputs = "condition: bool, data: T",
     .attrs = "T: list(type) >= 1; summarize: int = 3",
     .shape = leat_shape_none,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "Print",
     .inputs = "input: T, data: U",
     .outputs = "output: T",
     .attrs = "T: type; U: list(type) >= 0; message: string = ''; first_n: int = -1; "
              "summarize: int = 3",
     .shape = leat_shape_unchanged,
     .grad = print_grad,
     .flags = LEAT_OP_STATEFUL},
    {.name = "PrintV2",
     .inputs = "input: string",
     .attrs = "output_stream: string = 'stderr'; end: string = '\n'",
     .shape = print_v2_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
