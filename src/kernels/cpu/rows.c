/* rows.c -- see rows.h. */
#include "kernels/cpu/rows.h"

leat_status leat_rows_find(const leat_node *n, const char *op, leat_rows *out)
{
    leat_attr type = *leat_node_attr(n, "T");
    leat_node like = {.name = n->name,
                      .op = leat_op_find(op),
                      .in = n->in + n->n_in - 1, /* an operand of the tree */
                      .n_in = 1,
                      .attrs = &type,
                      .n_attrs = 1,
                      .graph = n->graph};
    LEAT_REQUIRE(like.op, INVALID_ARGUMENT, "%s: there is no op %s", n->name, op);
    const leat_kernel_def *def;
    bool via_float;
    LEAT_TRY(leat_kernel_find(&like, "CPU", &def, &via_float));
    *out = (leat_rows){.same = def->run == leat_row2_run_same};
    if (def->run == leat_row1_run)
        return def->init(&like, &out->one);
    LEAT_REQUIRE(def->run == leat_row2_run || out->same, INVALID_ARGUMENT,
                 "%s: op %s is not element-wise", n->name, op);
    return def->init(&like, &out->two);
}
