/* cross.c -- Cross, the product of vectors of three. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status cross_shape(leat_infer *c)
{
    leat_shape a, b;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &a));
    LEAT_TRY(leat_infer_rank_at_least(c, 1, 1, &b));
    LEAT_TRY(leat_shape_merge(&a, &b, &a));
    if (a.rank >= 1) {
        int64_t d = a.dim[a.rank - 1];
        LEAT_REQUIRE(d < 0 || d == 3, INVALID_ARGUMENT, "Dimension must be 3 but is %lld",
                     (long long)d);
    }
    leat_infer_out(c, 0, a);
    return NULL;
}

static leat_status cross_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0);
    LEAT_TRY(leat_grad_in(g, 0, LEAT_OP2("Cross", leat_grad_input(g, 1), dy)));
    return leat_grad_in(g, 1, LEAT_OP2("Cross", dy, leat_grad_input(g, 0)));
}

const leat_op_def leat_ops_cross[] = {
    {.name = "Cross",
     .inputs = "a: T, b: T",
     .outputs = "product: T",
     .attrs = "T: realnumbertype",
     .shape = cross_shape,
     .grad = cross_grad},
    {0},
};
