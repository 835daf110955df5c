/* py_func.c -- PyFunc and its relatives: functions of the client's own Python process, which no
 * server has. Graphs with such nodes can be made and run as long as the nodes are not. */
#include <leat/extend.h>

#define ROW(op, more, ...)                                                                         \
    {                                                                                              \
        .name = op, .inputs = "input: Tin", .outputs = "output: Tout",                             \
        .attrs = "token: string; " more "Tin: list(type) >= 0; Tout: list(type) >= 0",             \
        .shape = leat_shape_any, .grad = leat_grad_missing, __VA_ARGS__                            \
    }

const leat_op_def leat_ops_py_func[] = {
    ROW("PyFunc", "", .flags = LEAT_OP_STATEFUL),
    ROW("PyFuncStateless", ""),
    ROW("EagerPyFunc", "is_async: bool = false; ", .flags = LEAT_OP_STATEFUL),
    {0},
};
