/* top_k.c -- TopK, the k largest of each row and their indices; InTopK, whether a class is among
 * the k likeliest. */
#include <leat/extend.h>
#include <leat/nn.h>

#include "core/buffer.h"

/* k is input 1 or an attribute; -1 if it is not known yet. */
static leat_status find_k(leat_infer *c, int64_t *out)
{
    *out = -1;
    if (leat_infer_inputs(c) > 1) {
        leat_shape scalar;
        LEAT_TRY(leat_infer_rank(c, 1, 0, &scalar));
        const leat_tensor *t = leat_infer_value(c, 1);
        if (!t)
            return NULL;
        *out = ((const int32_t *)t->data)[0];
    } else {
        *out = leat_node_int(leat_infer_node(c), "k");
    }
    LEAT_REQUIRE(*out >= 0, INVALID_ARGUMENT,
                 "Dimension size, given by scalar input 1, must be non-negative but is %lld",
                 (long long)*out);
    return NULL;
}

static leat_status top_k_shape(leat_infer *c)
{
    leat_shape s;
    int64_t k;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &s));
    LEAT_TRY(find_k(c, &k));
    if (s.rank > 0) {
        int64_t *last = &s.dim[s.rank - 1];
        LEAT_REQUIRE(*last < 0 || k < 0 || *last >= k, INVALID_ARGUMENT,
                     "input must have last dimension >= k = %lld but is %lld", (long long)k,
                     (long long)*last);
        *last = k;
    }
    leat_infer_out(c, 0, s);
    leat_infer_out(c, 1, s);
    return NULL;
}

static leat_status in_top_k_shape(leat_infer *c)
{
    leat_shape predictions, targets, scalar;
    int64_t batch;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &predictions));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &targets));
    if (leat_infer_inputs(c) > 2)
        LEAT_TRY(leat_infer_rank(c, 2, 0, &scalar));
    LEAT_TRY(leat_dim_merge(predictions.dim[0], targets.dim[0], &batch));
    leat_infer_out(c, 0, leat_shape(batch));
    return NULL;
}

static leat_out last_dim(leat_out shape)
{
    leat_graph *graph = leat_node_graph(shape.node);
    leat_out one = leat_scalar(graph, LEAT_INT32, 1), zero = leat_scalar(graph, LEAT_INT32, 0);
    return leat_gather(shape, leat_sub(leat_size_of(shape), one), zero);
}

/* Each value's gradient is scattered to the index that the value was taken from; indices are
 * counted over all rows. */
static leat_status top_k_grad(leat_grad *g)
{
    leat_graph *graph = leat_grad_graph(g);
    leat_out shape = leat_shape_of(leat_grad_input(g, 0)), indices = leat_grad_output(g, 1);
    leat_out zero = leat_scalar(graph, LEAT_INT32, 0), all = leat_scalar(graph, LEAT_INT32, -1);
    leat_out columns = last_dim(shape);
    leat_out pair[] = {all, last_dim(leat_shape_of(indices))};
    leat_out rows = leat_reshape(indices, leat_pack(pair, 2, 0));
    leat_out n_rows = leat_gather(leat_shape_of(rows), zero, zero);
    /* The index of the first element of each row. */
    leat_out first = leat_range(zero, leat_mul(n_rows, columns), columns);
    leat_out places = leat_add(rows, leat_expand_dims(first, all));
    leat_out flat = leat_ints(graph, -1);
    leat_out dx = leat_unsorted_segment_sum(leat_reshape(leat_grad_out(g, 0), flat),
                                            leat_reshape(places, flat), leat_reduce_prod(shape));
    return leat_grad_in(g, 0, leat_reshape(dx, shape));
}

const leat_op_def leat_ops_top_k[] = {
    {.name = "TopK",
     .inputs = "input: T",
     .outputs = "values: T, indices: int32",
     .attrs = "k: int >= 0; sorted: bool = true; T: realnumbertype",
     .shape = top_k_shape,
     .grad = top_k_grad},
    {.name = "TopKV2",
     .inputs = "input: T, k: int32",
     .outputs = "values: T, indices: int32",
     .attrs = "sorted: bool = true; T: realnumbertype",
     .shape = top_k_shape,
     .grad = top_k_grad},
    {.name = "InTopK",
     .inputs = "predictions: float, targets: T",
     .outputs = "precision: bool",
     .attrs = "k: int; T: {int32, int64} = DT_INT32",
     .shape = in_top_k_shape,
     .grad = leat_grad_missing},
    {.name = "InTopKV2",
     .inputs = "predictions: float, targets: T, k: T",
     .outputs = "precision: bool",
     .attrs = "T: {int32, int64} = DT_INT32",
     .shape = in_top_k_shape,
     .grad = leat_grad_missing},
    {0},
};
