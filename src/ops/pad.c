/* pad.c -- Pad, PadV2, MirrorPad and MirrorPadGrad, which adds the borders to the elements that
 * they mirror. */
#include <leat/ops.h>

#include "ops/infer_util.h"

/* paddings is (rank, 2). Gives the rank as far as it is known, and the input's shape of that
 * rank. */
static leat_status pad_rank(leat_infer *c, leat_shape *in, int64_t *rank)
{
    leat_shape pads;
    *in = leat_infer_in(c, 0);
    LEAT_TRY(leat_infer_rank(c, 1, 2, &pads));
    LEAT_REQUIRE(pads.dim[1] < 0 || pads.dim[1] == 2, INVALID_ARGUMENT,
                 "Dimension must be 2 but is %" PRId64, pads.dim[1]);
    *rank = pads.dim[0];
    if (*rank >= 0)
        LEAT_TRY(leat_shape_with_rank(in, *rank, in));
    else
        *rank = in->rank;
    return NULL;
}

static leat_status padded(leat_infer *c, bool grad)
{
    leat_shape in;
    int64_t rank = -1;
    LEAT_TRY(pad_rank(c, &in, &rank));
    const leat_tensor *t = leat_infer_value(c, 1);
    if (in.rank < 0 || !t) {
        leat_infer_out(c, 0, leat_shape_unknown_dims((int)rank));
        return NULL;
    }
    for (int i = 0; i < in.rank; i++) {
        int64_t before = leat_int_at(t, 2 * i), after = leat_int_at(t, 2 * i + 1), both;
        LEAT_REQUIRE(before >= 0 && after >= 0, INVALID_ARGUMENT, "Paddings must be non-negative");
        LEAT_TRY(leat_dim_add(before, after, &both));
        if (grad)
            LEAT_TRY(leat_dim_sub(in.dim[i], both, &in.dim[i]));
        else if (in.dim[i] >= 0)
            LEAT_TRY(leat_dim_add(in.dim[i], both, &in.dim[i]));
    }
    leat_infer_out(c, 0, in);
    return NULL;
}

static leat_status pad_shape(leat_infer *c)
{
    return padded(c, false);
}

static leat_status mirror_grad_shape(leat_infer *c)
{
    return padded(c, true);
}

/* The part of dy without the paddings. */
static leat_status pad_grad(leat_grad *g)
{
    leat_graph *graph = leat_grad_graph(g);
    leat_out x = leat_grad_input(g, 0), paddings = leat_grad_input(g, 1);
    leat_dtype t = leat_dtype_base(leat_out_dtype(paddings));
    leat_out one = leat_scalar(graph, LEAT_INT32, 1);
    leat_out column = leat_pack(((leat_out[]){leat_rank_of(x), one}), 2, 0);
    leat_out front = leat_slice(paddings, leat_ints(graph, 0, 0), column);
    leat_out begin = leat_reshape(front, leat_ints(graph, -1));
    leat_out size = leat_shape_of(x, leat_attr_type("out_type", t));
    return leat_grad_in(g, 0, leat_slice(leat_grad_out(g, 0), begin, size));
}

static leat_status mirror_grad(leat_grad *g)
{
    const char *mode = leat_node_string(leat_grad_node(g), "mode");
    return leat_grad_in(g, 0,
                        LEAT_OP2("MirrorPadGrad", leat_grad_out(g, 0), leat_grad_input(g, 1),
                                 leat_attr_string("mode", mode)));
}

static leat_status mirror_grad_grad(leat_grad *g)
{
    const char *mode = leat_node_string(leat_grad_node(g), "mode");
    return leat_grad_in(g, 0,
                        LEAT_OP2("MirrorPad", leat_grad_out(g, 0), leat_grad_input(g, 1),
                                 leat_attr_string("mode", mode)));
}

#define ATTRS "T: type; Tpaddings: {int32, int64} = DT_INT32"

const leat_op_def leat_ops_pad[] = {
    {.name = "Pad",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = ATTRS,
     .shape = pad_shape,
     .grad = pad_grad},
    {.name = "PadV2",
     .inputs = "input: T, paddings: Tpaddings, constant_values: T",
     .outputs = "output: T",
     .attrs = ATTRS,
     .shape = pad_shape,
     .grad = pad_grad},
    {.name = "MirrorPad",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = ATTRS "; mode: {'REFLECT', 'SYMMETRIC'}",
     .shape = pad_shape,
     .grad = mirror_grad},
    {.name = "MirrorPadGrad",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = ATTRS "; mode: {'REFLECT', 'SYMMETRIC'}",
     .shape = mirror_grad_shape,
     .grad = mirror_grad_grad},
    {0},
};
