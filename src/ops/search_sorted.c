/* search_sorted.c -- LowerBound, UpperBound: the positions at which values would be inserted into
 * sorted rows. */
#include <leat/extend.h>

static leat_status bound_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &unused));
    LEAT_TRY(leat_infer_rank(c, 1, 2, &unused));
    leat_infer_out(c, 0, leat_infer_in(c, 1));
    return NULL;
}

#define BOUND(op)                                                                                  \
    {                                                                                              \
        .name = op, .inputs = "sorted_inputs: T, values: T", .outputs = "output: out_type",        \
        .attrs = "T: type; out_type: {int32, int64} = DT_INT32", .shape = bound_shape,             \
        .grad = leat_grad_missing                                                                  \
    }

const leat_op_def leat_ops_search_sorted[] = {
    BOUND("LowerBound"),
    BOUND("UpperBound"),
    {0},
};
