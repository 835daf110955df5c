/* flow.c -- the kernels of the flow ops: which output a value leaves by. What frames and dead
 * values mean is the executor's business. */
#include "kernels/cpu/cpu.h"

static leat_status nothing(leat_kernel *k)
{
    return NULL;
}

static leat_status pass(leat_kernel *k)
{
    leat_kernel_forward(k, 0, 0);
    return NULL;
}

static leat_status pass_all(leat_kernel *k)
{
    for (int i = 0; i < leat_kernel_inputs(k); i++)
        leat_kernel_forward(k, i, i);
    return NULL;
}

static leat_status switch_run(leat_kernel *k)
{
    const leat_tensor *pred = leat_kernel_in(k, 1);
    LEAT_REQUIRE(pred->shape.rank == 0, INVALID_ARGUMENT,
                 "The second input must be a scalar, but it has shape %s",
                 leat_shape_show(&pred->shape).s);
    leat_kernel_forward(k, AT(bool, pred)[0], 0); /* the other output stays dead */
    return NULL;
}

static leat_status merge_run(leat_kernel *k)
{
    for (int i = 0; i < leat_kernel_inputs(k); i++) {
        if (k->in[i].dead || (!k->in[i].tensor && !k->in[i].var))
            continue;
        leat_shape scalar = {0};
        leat_tensor *index;
        LEAT_TRY(leat_kernel_out(k, 1, &scalar, &index));
        AT(int32_t, index)[0] = i;
        leat_kernel_forward(k, 0, i);
        return NULL;
    }
    return leat_error(INTERNAL, "Merge ran without a live input");
}

static leat_status select_run(leat_kernel *k)
{
    const leat_tensor *index = leat_kernel_in(k, 0);
    int n = leat_kernel_inputs(k) - 1;
    LEAT_REQUIRE(index->shape.rank == 0, INVALID_ARGUMENT,
                 "Index must be a scalar, but it has shape %s", leat_shape_show(&index->shape).s);
    int32_t i = AT(int32_t, index)[0];
    LEAT_REQUIRE(i >= 0 && i < n, INVALID_ARGUMENT, "Index must be in the range [0, %d) but got %d",
                 n, i);
    leat_kernel_forward(k, 0, i + 1);
    return NULL;
}

const leat_kernel_def leat_cpu_flow[] = {
    {.op = "NoOp", .run = nothing},
    {.op = "ControlTrigger", .run = nothing},
    {.op = "Identity", .run = pass},
    {.op = "RefIdentity", .run = pass},
    {.op = "IdentityN", .run = pass_all},
    {.op = "Switch", .run = switch_run},
    {.op = "RefSwitch", .run = switch_run},
    {.op = "Merge", .run = merge_run},
    {.op = "RefMerge", .run = merge_run},
    {.op = "RefSelect", .run = select_run},
    {.op = "Enter", .run = pass},
    {.op = "RefEnter", .run = pass},
    {.op = "Exit", .run = pass},
    {.op = "RefExit", .run = pass},
    {.op = "NextIteration", .run = pass},
    {.op = "RefNextIteration", .run = pass},
    {.op = "LoopCond", .run = pass},
    {0},
};
