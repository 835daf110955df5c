/* range.c -- Range, LinSpace and RaggedRange: numbers at equal intervals. */
#include "ops/infer_util.h"

#include <math.h>

#include "core/buffer.h"

static leat_status scalars(leat_infer *c, const char *const *names)
{
    for (int i = 0; i < 3; i++) {
        leat_shape s;
        leat_status bad = leat_infer_rank(c, i, 0, &s);
        if (bad)
            return leat_status_suffix(bad, "\n\t for '%s'", names[i]);
    }
    return NULL;
}

/* Shape inference reads the values as doubles: sizes up to 2^53 are exact; larger int64 ranges have
 * an unknown shape. */
static leat_status range_shape(leat_infer *c)
{
    static const char *const names[3] = {"start", "limit", "delta"};
    LEAT_TRY(scalars(c, names));
    double v[3];
    for (int i = 0; i < 3; i++) {
        const leat_tensor *t = leat_infer_value(c, i);
        if (!t) {
            leat_infer_out(c, 0, leat_shape(-1));
            return NULL;
        }
        v[i] = leat_tensor_at(t, 0);
    }
    LEAT_REQUIRE(!(v[0] > v[1] && v[2] > 0), INVALID_ARGUMENT,
                 "Requires start <= limit when delta > 0: %g/%g", v[0], v[1]);
    LEAT_REQUIRE(!(v[0] < v[1] && v[2] < 0), INVALID_ARGUMENT,
                 "Requires start >= limit when delta < 0: %g/%g", v[0], v[1]);
    LEAT_REQUIRE(v[2] != 0, INVALID_ARGUMENT, "Requires delta != 0");
    const bool is_float = leat_node_type(leat_infer_node(c), "Tidx") == LEAT_FLOAT;
    double n = is_float ? ceilf(fabsf(((float)v[1] - (float)v[0]) / (float)v[2]))
                        : ceil(fabs((v[1] - v[0]) / v[2]));
    leat_infer_out(c, 0, leat_shape(n >= 0 && n < 0x1p52 ? (int64_t)n : -1));
    return NULL;
}

/* Range(start, limit, 1), as in TensorFlow's reductions over all dimensions. */
static leat_status range_value(leat_infer *c, int out_index, leat_shape *out)
{
    int64_t v[3];
    for (int i = 0; i < 3; i++) {
        leat_shape one;
        LEAT_TRY(leat_infer_known(c, i, &one));
        v[i] = one.rank == 1 ? one.dim[0] : -1;
    }
    if (v[0] < 0 || v[1] < v[0] || v[1] - v[0] > LEAT_MAX_RANK || v[2] != 1)
        return NULL;
    *out = leat_shape_unknown_dims((int)(v[1] - v[0]));
    for (int i = 0; i < out->rank; i++)
        out->dim[i] = v[0] + i;
    return NULL;
}

static leat_status lin_space_shape(leat_infer *c)
{
    static const char *const names[3] = {"start", "stop", "num"};
    LEAT_TRY(scalars(c, names));
    const leat_tensor *num = leat_infer_value(c, 2);
    const int64_t n = num ? (int64_t)leat_tensor_at(num, 0) : -1;
    LEAT_REQUIRE(!num || n > 0, INVALID_ARGUMENT, "Requires num > 0: %lld", (long long)n);
    leat_infer_out(c, 0, leat_shape(n));
    return NULL;
}

/* Vectors have a number for each row. */
static leat_status ragged_range_shape(leat_infer *c)
{
    leat_shape rows = leat_shape(-1);
    int scalars = 0;
    for (int i = 0; i < 3; i++) {
        leat_shape s = leat_infer_in(c, i);
        LEAT_REQUIRE(s.rank <= 1, INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                     s.rank);
        scalars += s.rank == 0;
        if (s.rank == 1)
            LEAT_TRY(leat_shape_merge(&rows, &s, &rows));
    }
    const int64_t n = scalars == 3 ? 1 : rows.dim[0];
    leat_infer_out(c, 0, leat_shape(n < 0 ? -1 : n + 1));
    leat_infer_out(c, 1, leat_shape(-1));
    return NULL;
}

const leat_op_def leat_ops_range[] = {
    {.name = "Range",
     .inputs = "start: Tidx, limit: Tidx, delta: Tidx",
     .outputs = "output: Tidx",
     .attrs = "Tidx: {bfloat16, float, double, int32, int64} = DT_INT32",
     .shape = range_shape,
     .grad = leat_grad_none,
     .value = range_value},
    {.name = "LinSpace",
     .inputs = "start: T, stop: T, num: Tidx",
     .outputs = "output: T",
     .attrs = "T: {bfloat16, float, double}; Tidx: {int32, int64} = DT_INT32",
     .shape = lin_space_shape,
     .grad = leat_grad_none},
    {.name = "RaggedRange",
     .inputs = "starts: T, limits: T, deltas: T",
     .outputs = "rt_nested_splits: Tsplits, rt_dense_values: T",
     .attrs = "T: {bfloat16, float, double, int32, int64} = DT_INT32; "
              "Tsplits: {int32, int64} = DT_INT64",
     .shape = ragged_range_shape,
     .grad = leat_grad_none},
    {0},
};
