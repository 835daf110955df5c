/* segment.c -- reductions of rows by segments: SegmentSum ..., whose ids are sorted, and
 * UnsortedSegmentSum ..., whose ids are in any order, and whose negative ids are ignored. */
#include <leat/extend.h>
#include <leat/ops.h>

#include "ops/infer_util.h"

/* (?, rest of data's shape) */
static leat_status segment_shape(leat_infer *c)
{
    leat_shape data, ids;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &data));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &ids));
    if (data.rank > 0)
        data.dim[0] = -1;
    leat_infer_out(c, 0, data);
    return NULL;
}

/* (num_segments, data's dimensions after those of the ids) */
leat_status leat_shape_unsorted_segment(leat_infer *c)
{
    leat_shape data = leat_infer_in(c, 0), ids = leat_infer_in(c, 1), scalar;
    LEAT_TRY(leat_infer_rank(c, 2, 0, &scalar));
    if (data.rank < 0 || ids.rank < 0) {
        leat_infer_out(c, 0, leat_shape_unknown());
        return NULL;
    }
    LEAT_REQUIRE(data.rank >= ids.rank, INVALID_ARGUMENT,
                 "Shape must be at least rank %d but is rank %d", ids.rank, data.rank);
    for (int d = 0; d < ids.rank; d++) {
        int64_t both;
        LEAT_TRY(leat_dim_merge(data.dim[d], ids.dim[d], &both));
    }
    const leat_tensor *n = leat_infer_value(c, 2);
    const int64_t segments = n ? (int64_t)leat_tensor_at(n, 0) : -1;
    LEAT_REQUIRE(!n || segments >= 0, INVALID_ARGUMENT,
                 "Dimension size, given by scalar input 2 must be non-negative but is %lld",
                 (long long)segments);
    LEAT_REQUIRE(data.rank - ids.rank < LEAT_MAX_RANK, INVALID_ARGUMENT, "Too many dimensions");
    leat_shape out = leat_shape(segments);
    for (int d = ids.rank; d < data.rank; d++)
        out.dim[out.rank++] = data.dim[d];
    leat_infer_out(c, 0, out);
    return NULL;
}

/* ---- Gradients ---- */
static leat_out rows(leat_out x, leat_out ids)
{
    return leat_gather(x, ids, leat_scalar(leat_node_graph(x.node), LEAT_INT32, 0));
}

static leat_status segment_sum_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, rows(leat_grad_out(g, 0), leat_grad_input(g, 1)));
}

/* The gradient of a mean: each row gets its segment's gradient divided by the segment's number of
 * rows. */
static leat_status segment_mean_grad(leat_grad *g)
{
    leat_graph *graph = leat_grad_graph(g);
    leat_out x = leat_grad_input(g, 0), ids = leat_grad_input(g, 1), dy = leat_grad_out(g, 0);
    leat_out one = leat_scalar(graph, LEAT_INT32, 1), zero = leat_scalar(graph, LEAT_INT32, 0);
    leat_out others = leat_expand_dims(leat_sub(leat_rank_of(x), one), zero);
    const leat_out shape[2] = {leat_shape_of(ids), leat_fill(others, one)};
    leat_out ones = leat_fill(leat_concat(shape, 2, zero), leat_scalar_like(dy, 1));
    return leat_grad_in(g, 0, rows(leat_div(dy, leat_segment_sum(ones, ids)), ids));
}

/* The rows that are equal to the extreme share the gradient. */
static leat_status segment_max_min_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), ids = leat_grad_input(g, 1), dy = leat_grad_out(g, 0);
    leat_out chosen = leat_equal(x, rows(leat_grad_output(g, 0), ids));
    leat_out number = leat_segment_sum(leat_cast(chosen, leat_dtype_base(leat_out_dtype(dy))), ids);
    leat_out shares = rows(leat_div(dy, number), ids);
    return leat_grad_in(g, 0, leat_select(chosen, shares, leat_zeros_like(x)));
}

/* Gathers rows by ids that may be negative, for which the rows are zero. `positive` tells, in the
 * shape of the rows, which are not. */
typedef struct dropped {
    leat_out ids, positive; /* ids with 0 instead of negative ones */
} dropped;

static dropped drop_negatives(leat_out params, leat_out ids)
{
    leat_graph *g = leat_node_graph(ids.node);
    dropped d = {.ids = leat_maximum(ids, leat_zeros_like(ids))};
    leat_out like = rows(params, d.ids), zero = leat_scalar(g, LEAT_INT32, 0);
    leat_out one = leat_scalar(g, LEAT_INT32, 1);
    leat_out more = leat_expand_dims(leat_sub(leat_rank_of(like), leat_rank_of(ids)), zero);
    const leat_out shape[2] = {leat_shape_of(ids), leat_fill(more, one)};
    leat_out positive = leat_greater_equal(ids, leat_scalar_like(ids, 0));
    positive = leat_reshape(positive, leat_concat(shape, 2, zero));
    leat_out all = leat_fill(leat_shape_of(like), leat_scalar(g, LEAT_BOOL, 1));
    d.positive = leat_logical_and(positive, all);
    return d;
}

static leat_out rows_or_zero(leat_out params, dropped d)
{
    leat_out x = rows(params, d.ids);
    return leat_select(d.positive, x, leat_zeros_like(x));
}

static leat_status unsorted_sum_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0);
    return leat_grad_in(g, 0, rows_or_zero(dy, drop_negatives(dy, leat_grad_input(g, 1))));
}

static leat_status unsorted_max_min_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), ids = leat_grad_input(g, 1), n = leat_grad_input(g, 2);
    leat_out y = leat_grad_output(g, 0), dy = leat_grad_out(g, 0);
    dropped d = drop_negatives(y, ids);
    leat_out chosen = leat_logical_and(leat_equal(x, rows_or_zero(y, d)), d.positive);
    leat_out counted = leat_cast(chosen, leat_dtype_base(leat_out_dtype(dy)));
    leat_out shares = leat_div(dy, leat_unsorted_segment_sum(counted, ids, n));
    leat_out dx = rows_or_zero(shares, d);
    return leat_grad_in(g, 0, leat_select(chosen, dx, leat_zeros_like(dx)));
}

/* The product of the other elements of the segment: the whole product divided by the element if
 * there are no zeros; with one zero, only its gradient is not zero; with more, all are zero. */
static leat_status unsorted_prod_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), ids = leat_grad_input(g, 1), n = leat_grad_input(g, 2);
    leat_out y = leat_grad_output(g, 0), dy = leat_grad_out(g, 0);
    leat_out is_zero = leat_equal(x, leat_scalar_like(x, 0));
    leat_out zeros = leat_unsorted_segment_sum(leat_cast(is_zero, LEAT_INT32), ids, n);
    leat_out many = leat_greater(zeros, leat_scalar_like(zeros, 1));
    dy = leat_select(many, leat_zeros_like(dy), dy);
    leat_out rest =
        LEAT_OP3("UnsortedSegmentProd", leat_select(is_zero, leat_ones_like(x), x), ids, n);
    dropped d = drop_negatives(dy, ids);
    leat_out others = leat_select(is_zero, rows(rest, d.ids), leat_div(rows(y, d.ids), x));
    return leat_grad_in(g, 0, leat_mul(rows_or_zero(dy, d), others));
}

#define SEGMENT(op, types, gradient)                                                               \
    {                                                                                              \
        .name = op, .inputs = "data: T, segment_ids: Tindices", .outputs = "output: T",            \
        .attrs = "T: " types "; Tindices: {int32, int64}", .shape = segment_shape,                 \
        .grad = gradient                                                                           \
    }
#define UNSORTED(op, types, gradient)                                                              \
    {                                                                                              \
        .name = op, .inputs = "data: T, segment_ids: Tindices, num_segments: Tnumsegments",        \
        .outputs = "output: T",                                                                    \
        .attrs =                                                                                   \
            "T: " types "; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = DT_INT32",     \
        .shape = leat_shape_unsorted_segment, .grad = gradient                                                  \
    }

const leat_op_def leat_ops_segment[] = {
    SEGMENT("SegmentSum", "numbertype", segment_sum_grad),
    SEGMENT("SegmentMean", "numbertype", segment_mean_grad),
    SEGMENT("SegmentProd", "numbertype", leat_grad_missing),
    SEGMENT("SegmentMax", "realnumbertype", segment_max_min_grad),
    SEGMENT("SegmentMin", "realnumbertype", segment_max_min_grad),
    UNSORTED("UnsortedSegmentSum", "numbertype", unsorted_sum_grad),
    UNSORTED("UnsortedSegmentProd", "numbertype", unsorted_prod_grad),
    UNSORTED("UnsortedSegmentMax", "realnumbertype", unsorted_max_min_grad),
    UNSORTED("UnsortedSegmentMin", "realnumbertype", unsorted_max_min_grad),
    {0},
};
