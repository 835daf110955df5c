/* py_func.c -- PyFunc and its relatives fail with the code that they have on TensorFlow's servers.
 */
#include "kernels/cpu/cpu.h"

static leat_status py_func_run(leat_kernel *k)
{
    return leat_error(
        INVALID_ARGUMENT,
        "ValueError: callback %s is not found: it is a Python function, which only the "
        "client's own process has",
        leat_node_string(leat_kernel_node(k), "token"));
}

const leat_kernel_def leat_cpu_py_func[] = {
    {.op = "PyFunc", .run = py_func_run},
    {.op = "PyFuncStateless", .run = py_func_run},
    {.op = "EagerPyFunc", .run = py_func_run},
    {0},
};
