/* ends.c -- ops by which values enter and leave a compiled graph: _Arg and _Retval for feeds and
 * fetches (_LateArg in partial runs), _Send and _Recv for edges between devices. They are made by
 * passes only. */
#include <leat/extend.h>

#include "graph/function.h"

#define EDGE                                                                                       \
    "tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: "        \
    "string; "                                                                                     \
    "client_terminated: bool = false"

const leat_op_def leat_ops_ends[] = {
    {.name = "_Arg",
     .outputs = "output: T",
     .attrs = "T: type; index: int >= 0",
     .shape = leat_arg_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL | LEAT_OP_NO_EFFECTS,
     .role = LEAT_ROLE_ARG},
    {.name = "_LateArg",
     .outputs = "output: T",
     .attrs = "T: type; index: int >= 0",
     .shape = leat_shape_any,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL,
     .role = LEAT_ROLE_LATE_ARG},
    {.name = "_Retval",
     .inputs = "input: T",
     .attrs = "T: type; index: int >= 0",
     .shape = leat_shape_none,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL,
     .role = LEAT_ROLE_RETVAL},
    {.name = "_Send",
     .inputs = "tensor: T",
     .attrs = "T: type; " EDGE,
     .shape = leat_shape_none,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL,
     .role = LEAT_ROLE_SEND},
    {.name = "_Recv",
     .outputs = "tensor: tensor_type",
     .attrs = "tensor_type: type; " EDGE,
     .shape = leat_shape_any,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL,
     .role = LEAT_ROLE_RECV},
    {0},
};
