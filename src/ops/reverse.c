/* reverse.c -- Reverse, ReverseV2, ReverseSequence. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status reverse_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), dims;
    LEAT_TRY(leat_infer_rank(c, 1, 1, &dims));
    if (dims.dim[0] >= 0)
        LEAT_TRY(leat_shape_with_rank(&in, dims.dim[0], &in));
    LEAT_REQUIRE(in.rank <= 8, INVALID_ARGUMENT,
                 "reverse does not work on tensors with more than 8 dimensions");
    leat_infer_out(c, 0, in);
    return NULL;
}

static leat_status reverse_v2_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), unused;
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    LEAT_REQUIRE(in.rank <= 8, INVALID_ARGUMENT,
                 "reverse does not work on tensors with more than 8 dimensions");
    const leat_tensor *t = leat_infer_value(c, 1);
    uint32_t seen = 0;
    for (int64_t i = 0; t && in.rank >= 0 && i < t->count; i++) {
        int64_t given = leat_int_at(t, i), axis = given < 0 ? given + in.rank : given;
        LEAT_REQUIRE(axis >= 0 && axis < in.rank, INVALID_ARGUMENT,
                     "'axis'[%" PRId64 "] = %" PRId64 " is out of valid range [0, %d", i, given,
                     in.rank - 1);
        LEAT_REQUIRE(!(seen >> axis & 1), INVALID_ARGUMENT,
                     "axis %" PRId64 " specified more than once.", axis);
        seen |= 1u << axis;
    }
    leat_infer_out(c, 0, in);
    return NULL;
}

static leat_status sequence_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    leat_shape in = leat_infer_in(c, 0), lengths;
    int64_t seq = leat_node_int(n, "seq_dim"), batch = leat_node_int(n, "batch_dim");
    LEAT_TRY(leat_infer_rank(c, 1, 1, &lengths));
    if (in.rank < 0)
        return NULL;
    LEAT_REQUIRE(batch >= 0 && batch < in.rank, INVALID_ARGUMENT,
                 "batch_dim must be < input rank: %" PRId64 " vs. %d", batch, in.rank);
    LEAT_REQUIRE(seq >= 0 && seq < in.rank, INVALID_ARGUMENT,
                 "seq_dim must be < input rank: %" PRId64 " vs. %d", seq, in.rank);
    LEAT_TRY(leat_dim_merge(in.dim[batch], lengths.dim[0], &in.dim[batch]));
    leat_infer_out(c, 0, in);
    return NULL;
}

static leat_status reverse_grad(leat_grad *g)
{
    const char *op = leat_node_op(leat_grad_node(g));
    return leat_grad_in(g, 0, LEAT_OP2(op, leat_grad_out(g, 0), leat_grad_input(g, 1)));
}

static leat_status sequence_grad(leat_grad *g)
{
    const leat_node *n = leat_grad_node(g);
    return leat_grad_in(g, 0,
                        LEAT_OP2("ReverseSequence", leat_grad_out(g, 0), leat_grad_input(g, 1),
                                 leat_attr_int("seq_dim", leat_node_int(n, "seq_dim")),
                                 leat_attr_int("batch_dim", leat_node_int(n, "batch_dim"))));
}

const leat_op_def leat_ops_reverse[] = {
    {.name = "Reverse",
     .inputs = "tensor: T, dims: bool",
     .outputs = "output: T",
     .attrs = "T: {uint8, int8, uint16, int16, int32, int64, bool, half, float, double, "
              "complex64, complex128, string}",
     .shape = reverse_shape,
     .grad = reverse_grad},
    {.name = "ReverseV2",
     .inputs = "tensor: T, axis: Tidx",
     .outputs = "output: T",
     .attrs = "Tidx: {int32, int64} = DT_INT32; T: {uint8, int8, uint16, int16, int32, int64, "
              "bool, bfloat16, half, float, double, complex64, complex128, string}",
     .shape = reverse_v2_shape,
     .grad = reverse_grad},
    {.name = "ReverseSequence",
     .inputs = "input: T, seq_lengths: Tlen",
     .outputs = "output: T",
     .attrs = "seq_dim: int; batch_dim: int = 0; T: type; Tlen: {int32, int64} = DT_INT64",
     .shape = sequence_shape,
     .grad = sequence_grad},
    {0},
};
