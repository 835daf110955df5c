/* rearrange.c -- ops that move elements: Roll, NthElement, InplaceUpdate, InplaceAdd, InplaceSub,
 * Empty, ParallelConcat, DataFormatVecPermute, DataFormatDimMap, CompareAndBitpack. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status roll_shape(leat_infer *c)
{
    leat_shape s, shift = leat_infer_in(c, 1), axis = leat_infer_in(c, 2);
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &s));
    LEAT_REQUIRE(shift.rank <= 1 && axis.rank <= 1, INVALID_ARGUMENT,
                 "Shape must be at most rank 1 but is rank %d",
                 shift.rank > 1 ? shift.rank : axis.rank);
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status roll_grad(leat_grad *g)
{
    return leat_grad_in(g, 0,
                        LEAT_OP3("Roll", leat_grad_out(g, 0), leat_neg(leat_grad_input(g, 1)),
                                 leat_grad_input(g, 2)));
}

static leat_status nth_shape(leat_infer *c)
{
    leat_shape s, unused;
    int64_t n;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &s));
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    if (leat_infer_int(c, 1, &n))
        LEAT_REQUIRE(s.rank < 0 || s.dim[s.rank - 1] < 0 || s.dim[s.rank - 1] > n, INVALID_ARGUMENT,
                     "Input must have last dimension > n = %lld but is %lld", (long long)n,
                     (long long)s.dim[s.rank - 1]);
    s.rank -= s.rank > 0;
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status empty_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, 0, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status parallel_concat_shape(leat_infer *c)
{
    leat_shape s = leat_node_shape(leat_infer_node(c), "shape"), row;
    LEAT_REQUIRE(leat_shape_known(&s), INVALID_ARGUMENT, "shape attr must be fully defined.");
    row = s;
    row.dim[0] = 1;
    for (int i = 0; i < leat_infer_inputs(c); i++) {
        leat_shape x = leat_infer_in(c, i), both;
        LEAT_REQUIRE(leat_shape_known(&x), INVALID_ARGUMENT,
                     "All input shapes must be fully defined.");
        LEAT_REQUIRE(x.rank >= 1 && x.dim[0] == 1, INVALID_ARGUMENT,
                     "Size of first dimension must be 1.");
        LEAT_TRY(leat_shape_merge(&x, &row, &both));
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status bitpack_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &s));
    if (s.rank > 0) {
        int64_t *d = &s.dim[s.rank - 1];
        LEAT_REQUIRE(*d < 0 || *d % 8 == 0, INVALID_ARGUMENT,
                     "Dimension size must be evenly divisible by 8 but is %lld", (long long)*d);
        *d = *d < 0 ? -1 : *d / 8;
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

#define INPLACE(name_)                                                                             \
    {                                                                                              \
        .name = name_, .inputs = "x: T, i: int32, v: T", .outputs = "y: T", .attrs = "T: type",    \
        .shape = leat_shape_unchanged, .grad = leat_grad_missing                                   \
    }
#define FORMATS(name_)                                                                             \
    {                                                                                              \
        .name = name_, .inputs = "x: T", .outputs = "y: T",                                        \
        .attrs = "T: {int32, int64} = DT_INT32; src_format: string = 'NHWC'; "                     \
                 "dst_format: string = 'NCHW'",                                                    \
        .shape = leat_shape_unchanged, .grad = leat_grad_missing                                   \
    }

const leat_op_def leat_ops_rearrange[] = {
    {.name = "Roll",
     .inputs = "input: T, shift: Tshift, axis: Taxis",
     .outputs = "output: T",
     .attrs = "T: type; Tshift: {int32, int64}; Taxis: {int32, int64}",
     .shape = roll_shape,
     .grad = roll_grad},
    {.name = "NthElement",
     .inputs = "input: T, n: int32",
     .outputs = "values: T",
     .attrs = "reverse: bool = false; T: realnumbertype",
     .shape = nth_shape,
     .grad = leat_grad_missing},
    INPLACE("InplaceUpdate"),
    INPLACE("InplaceAdd"),
    INPLACE("InplaceSub"),
    {.name = "Empty",
     .inputs = "shape: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: type; init: bool = false",
     .shape = empty_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "ParallelConcat",
     .inputs = "values: N * T",
     .outputs = "output: T",
     .attrs = "N: int >= 1; T: type; shape: shape",
     .shape = parallel_concat_shape,
     .grad = leat_grad_missing},
    FORMATS("DataFormatVecPermute"),
    FORMATS("DataFormatDimMap"),
    {.name = "CompareAndBitpack",
     .inputs = "input: T, threshold: T",
     .outputs = "output: uint8",
     .attrs = "T: {bool, half, float, double, int8, int16, int32, int64}",
     .shape = bitpack_shape,
     .grad = leat_grad_missing},
    {0},
};
