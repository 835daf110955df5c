/* broadcast.c -- BroadcastTo and Tile, which repeat a tensor; BroadcastArgs and
 * BroadcastGradientArgs, which compute with shapes. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status broadcast_to_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), out;
    LEAT_TRY(leat_infer_rank(c, 1, 1, &out));
    LEAT_TRY(leat_infer_value_shape(c, 1, &out));
    leat_infer_out(c, 0, out);
    if (in.rank < 0 || out.rank < 0)
        return NULL;
    LEAT_REQUIRE(in.rank <= out.rank, INVALID_ARGUMENT,
                 "Shape must be at most rank %d but is rank %d", out.rank, in.rank);
    for (int i = 1; i <= in.rank; i++)
        if (in.dim[in.rank - i] > 1)
            LEAT_TRY(
                leat_dim_merge(in.dim[in.rank - i], out.dim[out.rank - i], &out.dim[out.rank - i]));
    leat_infer_out(c, 0, out);
    return NULL;
}

/* dy is summed over the dimensions along which x was repeated. */
static leat_status broadcast_to_grad(leat_grad *g)
{
    leat_out shape = leat_grad_input(g, 1);
    leat_dtype t = leat_dtype_base(leat_out_dtype(shape));
    leat_out x_shape = leat_shape_of(leat_grad_input(g, 0), leat_attr_type("out_type", t));
    leat_out axes = leat_output(leat_broadcast_gradient_args(shape, x_shape), 1);
    leat_out sum = leat_sum(leat_grad_out(g, 0), axes, leat_attr_bool("keep_dims", true));
    return leat_grad_in(g, 0, leat_reshape(sum, x_shape));
}

static leat_status tile_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), multiples, v;
    LEAT_TRY(leat_infer_rank(c, 1, 1, &v));
    LEAT_TRY(leat_infer_value_shape(c, 1, &multiples));
    if (in.rank >= 0) {
        LEAT_TRY(leat_shape_with_rank(&multiples, in.rank, &multiples));
        LEAT_TRY(leat_dim_merge(v.dim[0], in.rank, &v.dim[0]));
    }
    if (multiples.rank < 0)
        return NULL;
    LEAT_TRY(leat_shape_with_rank(&in, multiples.rank, &in));
    for (int i = 0; i < in.rank; i++)
        LEAT_TRY(leat_dim_mul(in.dim[i], multiples.dim[i], &in.dim[i]));
    leat_infer_out(c, 0, in);
    return NULL;
}

/* Each dimension of dy is split into (multiple, dim), and summed over the multiples. */
static leat_status tile_grad(leat_grad *g)
{
    leat_graph *graph = leat_grad_graph(g);
    leat_out multiples = leat_grad_input(g, 1);
    leat_dtype t = leat_dtype_base(leat_out_dtype(multiples));
    leat_out pair[2] = {multiples,
                        leat_shape_of(leat_grad_input(g, 0), leat_attr_type("out_type", t))};
    leat_out apart = leat_reshape(leat_pack(pair, 2, 1), leat_ints(graph, -1));
    leat_out axes = leat_range(leat_scalar(graph, LEAT_INT32, 0), leat_size_of(apart),
                               leat_scalar(graph, LEAT_INT32, 2));
    return leat_grad_in(g, 0, leat_sum(leat_reshape(leat_grad_out(g, 0), apart), axes));
}

static leat_status args_shape(leat_infer *c)
{
    leat_shape a, b;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &a));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &b));
    int64_t more = a.dim[0] > b.dim[0] ? a.dim[0] : b.dim[0];
    leat_infer_out(c, 0, leat_shape(a.dim[0] < 0 || b.dim[0] < 0 ? -1 : more));
    return NULL;
}

const leat_op_def leat_ops_broadcast[] = {
    {.name = "BroadcastTo",
     .inputs = "input: T, shape: Tidx",
     .outputs = "output: T",
     .attrs = "T: type; Tidx: {int32, int64} = DT_INT32",
     .shape = broadcast_to_shape,
     .grad = broadcast_to_grad},
    {.name = "Tile",
     .inputs = "input: T, multiples: Tmultiples",
     .outputs = "output: T",
     .attrs = "T: type; Tmultiples: {int32, int64} = DT_INT32",
     .shape = tile_shape,
     .grad = tile_grad},
    {.name = "BroadcastArgs",
     .inputs = "s0: T, s1: T",
     .outputs = "r0: T",
     .attrs = "T: {int32, int64} = DT_INT32",
     .shape = args_shape,
     .grad = leat_grad_missing},
    {.name = "BroadcastGradientArgs",
     .inputs = "s0: T, s1: T",
     .outputs = "r0: T, r1: T",
     .attrs = "T: {int32, int64} = DT_INT32",
     .shape = leat_shape_two_vectors,
     .grad = leat_grad_none},
    {0},
};
