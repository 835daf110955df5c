/* arg_reduce.c -- the index of the greatest or least element along a dimension: ArgMax, ArgMin. */
#include <leat/extend.h>

static leat_status arg_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), dimension, out = leat_shape();
    LEAT_TRY(leat_infer_rank(c, 1, 0, &dimension));
    const leat_tensor *value = leat_infer_value(c, 1);
    if (in.rank < 0) {
        out = leat_shape_unknown();
    } else if (in.rank > 1 && !value) {
        out = leat_shape_unknown_dims(in.rank - 1);
    } else if (in.rank > 1) {
        const int64_t given = (int64_t)leat_tensor_at(value, 0);
        const int64_t axis = given < 0 ? given + in.rank : given;
        LEAT_REQUIRE(axis >= 0 && axis < in.rank, INVALID_ARGUMENT,
                     "Dimension (%lld) must be in the range [%d, %d), where %d is the number of "
                     "dimensions in the input.",
                     (long long)given, -in.rank, in.rank, in.rank);
        for (int d = 0; d < in.rank; d++)
            if (d != axis)
                out.dim[out.rank++] = in.dim[d];
    }
    leat_infer_out(c, 0, out);
    return NULL;
}

#define ARG(op)                                                                                    \
    {                                                                                              \
        .name = op, .inputs = "input: T, dimension: Tidx", .outputs = "output: output_type",       \
        .attrs = "T: numbertype; Tidx: {int32, int64} = DT_INT32; "                                \
                 "output_type: {int32, int64} = DT_INT64",                                         \
        .shape = arg_shape, .grad = leat_grad_none                                                 \
    }

const leat_op_def leat_ops_arg_reduce[] = {ARG("ArgMax"), ARG("ArgMin"), {0}};
