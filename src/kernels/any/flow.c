/* flow.c -- the kernels of the flow ops, which choose the output that a value is passed to. The
 * executor handles frames and dead values. */
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

const leat_kernel_def leat_any_flow[] = {
    {.op = "NoOp", .run = nothing},
    {.op = "ControlTrigger", .run = nothing},
    {.op = "Identity", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "RefIdentity", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "StopGradient", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "PreventGradient", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "IdentityN", .run = pass_all, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "Switch", .run = switch_run, .flags = LEAT_KERNEL_ANY_MEMORY, .host = "pred"},
    {.op = "RefSwitch", .run = switch_run, .flags = LEAT_KERNEL_ANY_MEMORY, .host = "pred"},
    {.op = "Merge", .run = merge_run, .flags = LEAT_KERNEL_ANY_MEMORY, .host = "value_index"},
    {.op = "RefMerge", .run = merge_run, .flags = LEAT_KERNEL_ANY_MEMORY, .host = "value_index"},
    {.op = "RefSelect", .run = select_run, .flags = LEAT_KERNEL_ANY_MEMORY, .host = "index"},
    {.op = "Enter", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "RefEnter", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "Exit", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "RefExit", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "NextIteration", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "RefNextIteration", .run = pass, .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "LoopCond", .run = pass, .host = "input, output"},
    {0},
};
