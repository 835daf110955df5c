/* regularizer.c -- L1 and L2 losses of variables, and the sum of the collected losses. */
#include <stdlib.h>

#include "train/train_int.h"

leat_out leat_make_no_loss(leat_out w, const leat_regularizer *self)
{
    (void)w;
    (void)self;
    return (leat_out){0};
}

/* scale * loss, in a scope that is named for the regulariser. */
static leat_out scaled(leat_out w, double scale, const char *name, bool square)
{
    if (scale == 0 || !w.node)
        return (leat_out){0};
    leat_graph *g = leat_graph_of(w);
    leat_name_scope_enter(g, name);
    leat_out by = leat_full_named_at(LEAT_AT, g, leat_dtype_base(leat_out_dtype(w)), leat_shape(),
                                     scale, "scale");
    leat_out size = square ? leat_l2_loss(w) : leat_reduce_sum(leat_abs(w));
    leat_out y = leat_mul(by, size, leat_name(leat_name_scope(g)));
    leat_name_scope_leave(g);
    return y;
}

leat_out leat_make_l1(leat_out w, const leat_regularizer *self)
{
    return scaled(w, self->scale, "l1_regularizer", false);
}

leat_out leat_make_l2(leat_out w, const leat_regularizer *self)
{
    return scaled(w, self->scale, "l2_regularizer", true);
}

leat_out leat_make_l1_l2(leat_out w, const leat_regularizer *self)
{
    leat_out both[2] = {scaled(w, self->scale, "l1_regularizer", false),
                        scaled(w, self->scale2, "l2_regularizer", true)};
    if (both[0].node && both[1].node)
        return leat_add_n(both, 2, leat_name("l1_l2_regularizer"));
    return both[0].node ? both[0] : both[1];
}

leat_out leat_regularization_loss_at(leat_loc at, leat_graph *g, const char *scope)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    static const char name[] = "total_regularization_loss";
    leat_loc outer = leat_at_enter(g, at);
    int n;
    leat_out *losses = leat_collection(g, LEAT_REGULARIZATION_LOSSES, scope, &n), sum;
    if (n == 0)
        sum = leat_scalar(g, LEAT_FLOAT, 0);
    else if (n == 1)
        sum = leat_identity(losses[0], leat_name(name));
    else
        sum = leat_add_n(losses, n, leat_name(name));
    free(losses);
    leat_at_leave(g, outer);
    return sum;
}
