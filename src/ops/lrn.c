/* lrn.c -- LRN, local response normalisation over the channels of images: each element is divided
 * by (bias + alpha * the sum of the squares of its neighbours) ^ beta; and LRNGrad. */
#include <leat/ops.h>

#include "ops/infer_util.h"

/* All inputs and the output have one shape, of rank 4. */
static leat_status lrn_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &s));
    for (int i = 1; i < leat_infer_inputs(c); i++) {
        const leat_shape other = leat_infer_in(c, i);
        LEAT_TRY(leat_shape_merge(&s, &other, &s));
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_arg float_attr(leat_grad *g, const char *name)
{
    return leat_attr_float(name, leat_node_float(leat_grad_node(g), name));
}

static leat_status lrn_grad(leat_grad *g)
{
    const int64_t radius = leat_node_int(leat_grad_node(g), "depth_radius");
    return leat_grad_in(g, 0,
                        LEAT_OP3("LRNGrad", leat_grad_out(g, 0), leat_grad_input(g, 0),
                                 leat_grad_output(g, 0), leat_attr_int("depth_radius", radius),
                                 float_attr(g, "bias"), float_attr(g, "alpha"),
                                 float_attr(g, "beta")));
}

#define ATTRS                                                                                      \
    "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; "            \
    "T: {half, bfloat16, float} = DT_FLOAT"

const leat_op_def leat_ops_lrn[] = {
    {.name = "LRN",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = ATTRS,
     .shape = lrn_shape,
     .grad = lrn_grad},
    {.name = "LRNGrad",
     .inputs = "input_grads: T, input_image: T, output_image: T",
     .outputs = "output: T",
     .attrs = ATTRS,
     .shape = lrn_shape,
     .grad = leat_grad_missing},
    {0},
};
