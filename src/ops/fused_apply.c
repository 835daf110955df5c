/* fused_apply.c -- _FusedApply and _FusedResourceApply, which passes/fuse_apply.c makes: op (a
 * dense training op, AssignAdd or AssignSub) on references or handles, whose gradient is a tree of
 * element-wise ops, described as in fused_cwise.c. */
#include <leat/extend.h>

#define INPUTS(vars) vars ", scalars: num_scalars * T, args: num_args * T"
#define ATTRS                                                                                      \
    "op: string; flag: bool = false; T: {float, double}; num_vars: int >= 1; "                     \
    "num_scalars: int >= 0; num_args: int >= 1; ops: list(string); operands: list(int); "          \
    "names: list(string) = []"

const leat_op_def leat_ops_fused_apply[] = {
    {.name = "_FusedApply",
     .inputs = INPUTS("vars: Ref(num_vars * T)"),
     .outputs = "out: Ref(T)",
     .attrs = ATTRS,
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {.name = "_FusedResourceApply",
     .inputs = INPUTS("vars: num_vars * resource"),
     .attrs = ATTRS,
     .shape = leat_shape_none,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
