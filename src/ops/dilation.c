/* dilation.c -- Dilation2D, grayscale dilation: the largest sum of an image and a filter over each
 * window; and the ops that its gradient adds. */
#include <leat/ops.h>

#include "ops/window.h"

static leat_status dilation_shape(leat_infer *c)
{
    leat_shape x, filter;
    int64_t strides[4], rates[4], unused;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &x));
    LEAT_TRY(leat_infer_rank(c, 1, 3, &filter));
    LEAT_TRY(leat_infer_int32s(c, "strides", "Dilation2D requires the stride", 4, strides));
    LEAT_TRY(leat_infer_int32s(c, "rates", "Dilation2D requires the rates", 4, rates));
    leat_shape y = leat_shape(x.dim[0], -1, -1, filter.dim[2]);
    if (x.dim[1] >= 0 && x.dim[2] >= 0 && filter.dim[0] >= 0 && filter.dim[1] >= 0) {
        LEAT_TRY(leat_dim_merge(x.dim[3], filter.dim[2], &unused));
        const bool same = strcmp(leat_node_string(leat_infer_node(c), "padding"), "SAME") == 0;
        for (int d = 0; d < 2; d++) {
            int64_t window;
            LEAT_REQUIRE(leat_mul_ok(filter.dim[d] - 1, rates[1 + d], &window) &&
                             window < INT32_MAX,
                         INVALID_ARGUMENT, "rates of %" PRId64 " are too large", rates[1 + d]);
            LEAT_TRY(
                leat_dim_windows(x.dim[1 + d], window + 1, strides[1 + d], same, &y.dim[1 + d]));
        }
    }
    leat_infer_out(c, 0, y);
    return NULL;
}

static leat_status like_filter(leat_infer *c)
{
    leat_infer_out(c, 0, leat_infer_in(c, 1));
    return NULL;
}

static leat_out backprop(leat_grad *g, const char *op)
{
    const leat_node *n = leat_grad_node(g);
    int strides_n, rates_n;
    const int64_t *strides = leat_node_ints(n, "strides", &strides_n);
    const int64_t *rates = leat_node_ints(n, "rates", &rates_n);
    return LEAT_OP3(op, leat_grad_input(g, 0), leat_grad_input(g, 1), leat_grad_out(g, 0),
                    leat_attr_ints("strides", strides, strides_n),
                    leat_attr_ints("rates", rates, rates_n),
                    leat_attr_string("padding", leat_node_string(n, "padding")));
}

static leat_status dilation_grad(leat_grad *g)
{
    LEAT_TRY(leat_grad_in(g, 0, backprop(g, "Dilation2DBackpropInput")));
    return leat_grad_in(g, 1, backprop(g, "Dilation2DBackpropFilter"));
}

#define DILATION(name_, inputs_, output_, shape_, grad_)                                           \
    {                                                                                              \
        .name = name_, .inputs = inputs_, .outputs = output_ ": T",                                \
        .attrs = "T: realnumbertype; strides: list(int) >= 4; rates: list(int) >= 4; "             \
                 "padding: {'SAME', 'VALID'}",                                                     \
        .shape = shape_, .grad = grad_                                                             \
    }

const leat_op_def leat_ops_dilation[] = {
    DILATION("Dilation2D", "input: T, filter: T", "output", dilation_shape, dilation_grad),
    DILATION("Dilation2DBackpropInput", "input: T, filter: T, out_backprop: T", "in_backprop",
             leat_shape_unchanged, leat_grad_missing),
    DILATION("Dilation2DBackpropFilter", "input: T, filter: T, out_backprop: T", "filter_backprop",
             like_filter, leat_grad_missing),
    {0},
};
