/* gru.c -- GRUBlockCell, a step of a gated recurrent unit as one op, and the op that its gradient
 * adds. w_ru, (inputs + C, 2C), has the weights of the reset and the update gate, w_c those of the
 * candidate. */
#include <leat/nn.h>

#include "ops/infer_util.h"

static leat_status cell_shape(leat_infer *c)
{
    leat_shape x, h_prev;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &x));
    LEAT_TRY(leat_infer_rank(c, 1, 2, &h_prev));
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, leat_shape(x.dim[0], h_prev.dim[1]));
    return NULL;
}

static leat_status cell_grad_shape(leat_infer *c)
{
    leat_shape x, h_prev, w_ru;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &x));
    LEAT_TRY(leat_infer_rank(c, 1, 2, &h_prev));
    LEAT_TRY(leat_infer_rank(c, 2, 2, &w_ru));
    leat_infer_out(c, 0, x);
    leat_infer_out(c, 1, leat_shape(x.dim[0], h_prev.dim[1]));
    leat_infer_out(c, 2, leat_shape(x.dim[0], h_prev.dim[1]));
    leat_infer_out(c, 3, leat_shape(x.dim[0], w_ru.dim[1]));
    return NULL;
}

enum { X, H_PREV, W_RU, W_C, B_RU, B_C, INPUTS };
enum { R, U, C, H };

/* xh^T d: the gradient of weights whose gates have the gradient d. */
static leat_out weights_grad(leat_out x, leat_out h, leat_out d)
{
    leat_out axis = leat_scalar(leat_node_graph(x.node), LEAT_INT32, 1);
    leat_out xh = leat_concat(((leat_out[]){x, h}), 2, axis);
    return leat_matmul(xh, d, leat_attr_bool("transpose_a", true));
}

static leat_status cell_grad(leat_grad *g)
{
    leat_out in[10];
    for (int i = 0; i < INPUTS; i++)
        in[i] = leat_grad_input(g, i);
    for (int i = R; i <= C; i++)
        in[INPUTS + i] = leat_grad_output(g, i);
    in[9] = leat_grad_out(g, H);
    leat_out d_x = leat_op_of(LEAT_AT, "GRUBlockCellGrad", in, 10, LEAT_ARGS());
    leat_out d_c = leat_output(d_x, 2), d_ru = leat_output(d_x, 3);
    leat_out reset = leat_mul(in[H_PREV], in[INPUTS + R]);
    LEAT_TRY(leat_grad_in(g, X, d_x));
    LEAT_TRY(leat_grad_in(g, H_PREV, leat_output(d_x, 1)));
    LEAT_TRY(leat_grad_in(g, W_RU, weights_grad(in[X], in[H_PREV], d_ru)));
    LEAT_TRY(leat_grad_in(g, W_C, weights_grad(in[X], reset, d_c)));
    LEAT_TRY(leat_grad_in(g, B_RU, leat_bias_add_grad(d_ru)));
    return leat_grad_in(g, B_C, leat_bias_add_grad(d_c));
}

const leat_op_def leat_ops_gru[] = {
    {.name = "GRUBlockCell",
     .inputs = "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T",
     .outputs = "r: T, u: T, c: T, h: T",
     .attrs = "T: {float}",
     .shape = cell_shape,
     .grad = cell_grad},
    {.name = "GRUBlockCellGrad",
     .inputs = "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T",
     .outputs = "d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T",
     .attrs = "T: {float}",
     .shape = cell_grad_shape,
     .grad = leat_grad_missing},
    {0},
};
