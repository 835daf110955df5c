/* const.c -- Const, and placeholders, which must be fed. */
#include "kernels/cpu/cpu.h"

static leat_status const_run(leat_kernel *k)
{
    leat_kernel_set(k, 0, leat_tensor_ref(leat_node_tensor(leat_kernel_node(k), "value")));
    return NULL;
}

static leat_status placeholder(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    leat_shape s = leat_node_shape(n, "shape");
    return leat_error(INVALID_ARGUMENT,
                      "You must feed a value for placeholder tensor '%s' with dtype %s%s%s",
                      leat_node_name(n), leat_dtype_name(leat_node_type(n, "dtype")),
                      s.rank >= 0 ? " and shape " : "", s.rank >= 0 ? leat_shape_show(&s).s : "");
}

static leat_status with_default(leat_kernel *k)
{
    leat_kernel_forward(k, 0, 0);
    return NULL;
}

const leat_kernel_def leat_any_const[] = {
    {.op = "Const", .run = const_run, .host = "output"},
    {.op = "Placeholder", .run = placeholder},
    {.op = "PlaceholderWithDefault", .run = with_default, .flags = LEAT_KERNEL_ANY_MEMORY},
    {0},
};
