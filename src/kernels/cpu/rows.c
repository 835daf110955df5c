/* rows.c -- see rows.h. */
#include "kernels/cpu/rows.h"

leat_status leat_rows_find(const leat_node *n, const char *op, leat_rows *out)
{
    leat_attr type = *leat_node_attr(n, "T");
    leat_node like = {.name = n->name,
                      .op = leat_op_find(op),
                      .in = n->in + n->n_in - 1, /* any operand of the tree, for its dtype */
                      .n_in = 1,
                      .attrs = &type,
                      .n_attrs = 1,
                      .graph = n->graph};
    LEAT_REQUIRE(like.op, INVALID_ARGUMENT, "%s: there is no op %s", n->name, op);
    LEAT_REQUIRE(like.op->def->flags & LEAT_OP_CWISE, INVALID_ARGUMENT,
                 "%s: op %s is not element-wise", n->name, op);
    const leat_kernel_def *def;
    bool via_float;
    LEAT_TRY(leat_kernel_find(&like, "CPU", &def, &via_float));
    LEAT_REQUIRE(def->flags & LEAT_KERNEL_ROWS, INVALID_ARGUMENT,
                 "%s: the kernel of op %s is not made of rows", n->name, op);
    *out = (leat_rows){0};
    if (like.op->n_in == 1)
        return def->init(&like, &out->one);
    out->same = like.op->def->shape != leat_shape_broadcast_binary;
    return def->init(&like, &out->two);
}
