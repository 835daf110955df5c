/* embedding_sparse.c -- lookups by sparse ids, whose rows are combined example by example. */
#include <leat/embedding.h>

#include "graph/given.h"
#include "train/train_int.h"

/* Column 0 of the indices: the example of each id. */
static leat_out examples_of(leat_graph *g, leat_out indices)
{
    leat_out first =
        leat_strided_slice(indices, leat_ints(g, 0, 0), leat_ints(g, 0, 1), leat_ints(g, 1, 1),
                           leat_attr_int("begin_mask", 1), leat_attr_int("end_mask", 1),
                           leat_attr_int("shrink_axis_mask", 2));
    return leat_cast(first, LEAT_INT32);
}

/* The weights, with as many dimensions as rows, so that they broadcast. */
static leat_out as_columns(leat_graph *g, leat_out weights, leat_out rows)
{
    leat_out zero = leat_scalar(g, LEAT_INT32, 0), one = leat_scalar(g, LEAT_INT32, 1);
    leat_out more = leat_expand_dims(leat_sub(leat_rank_of(rows), one), zero);
    const leat_out dims[2] = {leat_shape_of(weights), leat_fill(more, one)};
    return leat_reshape(weights, leat_concat(dims, 2, zero));
}

static leat_out combine_weighted(leat_out rows, leat_out weights, leat_out example,
                                 leat_combiner how)
{
    leat_out sum = leat_segment_sum(leat_mul(rows, weights), example);
    if (how == LEAT_COMBINE_SUM)
        return sum;
    if (how == LEAT_COMBINE_MEAN)
        return leat_div(sum, leat_segment_sum(weights, example));
    leat_out squares = leat_pow(weights, leat_scalar_like(weights, 2));
    return leat_div(sum, leat_sqrt(leat_segment_sum(squares, example)));
}

static leat_out look_up(leat_graph *g, const leat_out *params, int n, leat_sparse_value ids,
                        const leat_sparse_value *weights, const leat_sparse_embedding_options *o)
{
    static const char *const ops[] = {[LEAT_COMBINE_MEAN] = "SparseSegmentMean",
                                      [LEAT_COMBINE_SUM] = "SparseSegmentSum",
                                      [LEAT_COMBINE_SQRTN] = "SparseSegmentSqrtN"};
    const leat_embedding_options options = {
        .given = o->given, .in_blocks = o->in_blocks, .max_norm = o->max_norm};
    leat_out example = examples_of(g, ids.indices);
    leat_out each = LEAT_OP1("Unique", ids.values), which = leat_output(each, 1);
    leat_out rows = leat_embedding_lookup_at(o->given.at, params, n, each, &options);
    const leat_dtype t = leat_dtype_base(leat_out_dtype(rows));
    if (t == LEAT_HALF || t == LEAT_BFLOAT16)
        rows = leat_cast(rows, LEAT_FLOAT);
    if (!weights)
        return LEAT_OP3(ops[o->combiner], rows, which, example);
    rows = leat_gather(rows, which, leat_scalar(g, LEAT_INT32, 0));
    leat_out w = leat_cast(weights->values, leat_dtype_base(leat_out_dtype(rows)));
    return combine_weighted(rows, as_columns(g, w, rows), example, o->combiner);
}

static leat_status check(leat_sparse_value ids, const leat_sparse_embedding_options *o)
{
    LEAT_REQUIRE(ids.indices.node && ids.values.node && ids.dense_shape.node, INVALID_ARGUMENT,
                 "sparse ids need indices, values and a dense_shape");
    LEAT_REQUIRE(!o->weights || o->weights->values.node, INVALID_ARGUMENT,
                 "the weights of sparse ids need values");
    LEAT_REQUIRE((unsigned)o->combiner <= LEAT_COMBINE_SQRTN, INVALID_ARGUMENT,
                 "combiner %d is none of leat_combiner", (int)o->combiner);
    return NULL;
}

/* The graph of a lookup; NULL if there is a mistake, and what to return then is in *y. */
static leat_graph *begin(leat_loc at, const leat_out *params, int n, leat_sparse_value ids,
                         const leat_sparse_embedding_options *o, leat_out *y)
{
    *y = n < 1 ? (leat_out){0} : params[0];
    if (n < 1 || !leat_out_ok(params[0]))
        return NULL;
    leat_graph *g = leat_graph_of(params[0]);
    leat_status s = check(ids, o);
    if (s)
        *y = leat_graph_fail(g, at, s);
    return s ? NULL : g;
}

leat_out leat_embedding_lookup_sparse_at(leat_loc at, const leat_out *params, int n,
                                         leat_sparse_value ids,
                                         const leat_sparse_embedding_options *o)
{
    leat_out y;
    leat_graph *g = begin(at, params, n, ids, o, &y);
    if (!g)
        return y;
    leat_loc outer = leat_at_enter(g, at);
    leat_with_name(g, "embedding_lookup_sparse") y = look_up(g, params, n, ids, o->weights, o);
    leat_at_leave(g, outer);
    return y;
}

/* ---- Safe lookups ---- */

/* The values that are to be kept. */
static leat_sparse_value retain(leat_graph *g, leat_sparse_value x, leat_out keep)
{
    leat_out zero = leat_scalar(g, LEAT_INT32, 0);
    leat_out which = leat_reshape(leat_where(keep), leat_ints(g, -1));
    return (leat_sparse_value){leat_gather(x.indices, which, zero),
                               leat_gather(x.values, which, zero), x.dense_shape};
}

/* A matrix with the same values: all dimensions but the last are one. */
static leat_sparse_value as_matrix(leat_graph *g, leat_sparse_value x, leat_out outer)
{
    leat_out zero = leat_scalar(g, LEAT_INT32, 0);
    leat_out last = leat_gather(x.dense_shape, leat_size_of(outer), zero);
    const leat_out sizes[2] = {leat_prod(outer, leat_ints(g, 0)), last};
    leat_out y = LEAT_OP3("SparseReshape", x.indices, x.dense_shape, leat_pack(sizes, 2, 0));
    return (leat_sparse_value){y, x.values, leat_output(y, 1)};
}

/* Examples without values get one; *empty_out tells which they are. */
static leat_sparse_value fill_rows(leat_sparse_value x, leat_out value, leat_out *empty_out)
{
    leat_out y = LEAT_OP4("SparseFillEmptyRows", x.indices, x.values, x.dense_shape, value);
    *empty_out = leat_output(y, 2);
    return (leat_sparse_value){y, leat_output(y, 1), x.dense_shape};
}

static leat_out look_up_safely(leat_graph *g, const leat_out *params, int n, leat_sparse_value ids,
                               const leat_sparse_embedding_options *o)
{
    const bool has_default = leat_is_given(&o->given, "default_id", o->default_id != 0);
    leat_out rank = leat_size_of(ids.dense_shape), one = leat_scalar(g, LEAT_INT32, 1);
    leat_out outer = leat_slice(ids.dense_shape, leat_ints(g, 0),
                                leat_expand_dims(leat_sub(rank, one), leat_scalar_like(one, 0)));
    leat_sparse_value x = as_matrix(g, ids, outer), w = {0};
    leat_out keep = leat_greater_equal(x.values, leat_scalar_like(x.values, 0)), empty, unused;
    if (o->weights) {
        w = (leat_sparse_value){x.indices, o->weights->values, x.dense_shape};
        if (o->combiner != LEAT_COMBINE_SUM)
            keep = leat_logical_and(keep, leat_greater(w.values, leat_scalar_like(w.values, 0)));
        w = retain(g, w, keep);
        w = fill_rows(w, leat_scalar_like(w.values, 1), &unused);
    }
    x = retain(g, x, keep);
    x = fill_rows(x, leat_scalar_like(x.values, (double)o->default_id), &empty);
    leat_out y = look_up(g, params, n, x, o->weights ? &w : NULL, o);
    if (!has_default)
        y = leat_select(empty, leat_zeros_like(y), y);
    const leat_out sizes[2] = {leat_cast(outer, LEAT_INT32),
                               leat_slice(leat_shape_of(y), leat_ints(g, 1), leat_ints(g, -1))};
    return leat_reshape(y, leat_concat(sizes, 2, leat_scalar(g, LEAT_INT32, 0)));
}

leat_out leat_safe_embedding_lookup_sparse_at(leat_loc at, const leat_out *params, int n,
                                              leat_sparse_value ids,
                                              const leat_sparse_embedding_options *o)
{
    leat_out y;
    leat_graph *g = begin(at, params, n, ids, o, &y);
    if (!g)
        return y;
    leat_loc outer = leat_at_enter(g, at);
    leat_with_name(g, "embedding_lookup") y = look_up_safely(g, params, n, ids, o);
    leat_at_leave(g, outer);
    return y;
}
