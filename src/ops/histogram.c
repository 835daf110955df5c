/* histogram.c -- counting: Bincount, Bucketize, HistogramFixedWidth. */
#include "ops/infer_util.h"

static leat_status bincount_shape(leat_infer *c)
{
    leat_shape unused;
    int64_t n;
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    bool known = leat_infer_int(c, 1, &n);
    LEAT_REQUIRE(!known || n >= 0, INVALID_ARGUMENT, "size (%lld) must be non-negative",
                 (long long)n);
    leat_infer_out(c, 0, leat_shape(known ? n : -1));
    return NULL;
}

static leat_status histogram_shape(leat_infer *c)
{
    leat_shape range, unused;
    int64_t n;
    LEAT_TRY(leat_infer_rank(c, 1, 1, &range));
    LEAT_REQUIRE(range.dim[0] < 0 || range.dim[0] == 2, INVALID_ARGUMENT,
                 "Dimension must be 2 but is %lld", (long long)range.dim[0]);
    LEAT_TRY(leat_infer_rank(c, 2, 0, &unused));
    bool known = leat_infer_int(c, 2, &n);
    LEAT_REQUIRE(!known || n > 0, INVALID_ARGUMENT, "Requires nbins > 0: %lld", (long long)n);
    leat_infer_out(c, 0, leat_shape(known ? n : -1));
    return NULL;
}

const leat_op_def leat_ops_histogram[] = {
    {.name = "Bincount",
     .inputs = "arr: int32, size: int32, weights: T",
     .outputs = "bins: T",
     .attrs = "T: {int32, int64, float, double}",
     .shape = bincount_shape,
     .grad = leat_grad_none},
    {.name = "Bucketize",
     .inputs = "input: T",
     .outputs = "output: int32",
     .attrs = "T: {int32, int64, float, double}; boundaries: list(float)",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing},
    {.name = "HistogramFixedWidth",
     .inputs = "values: T, value_range: T, nbins: int32",
     .outputs = "out: dtype",
     .attrs = "T: {int32, int64, float, double}; dtype: {int32, int64} = DT_INT32",
     .shape = histogram_shape,
     .grad = leat_grad_none},
    {0},
};
