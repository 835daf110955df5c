/* lstm_step.c -- _LSTMStep and _LSTMStepGrad, which passes/fuse_lstm.c makes of the nodes of a
 * basic LSTM cell. xh, (batch, inputs), has the input of the step and the output of the step
 * before, side by side; the product's columns are the gates i, ci, f, o, each of `units` columns:
 *
 *     i, f, o = sigmoid of the product + b (f: + forget_bias); ci = tanh of it
 *     c = c_prev * f + i * ci;  co = tanh(c);  h = co * o
 *
 * The gradient has the values of these, the gradient dh of h, and that of c, in parts: dh's, and
 * those in the list dc. `gates` is the gradient of the product, dc_prev that of c_prev. */
#include <leat/extend.h>

static leat_status step_shape(leat_infer *c)
{
    leat_shape x, c_prev;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &x));
    LEAT_TRY(leat_infer_rank(c, 3, 2, &c_prev));
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, leat_shape(x.dim[0], c_prev.dim[1]));
    return NULL;
}

static leat_status grad_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &s));
    leat_infer_out(c, 0, leat_shape(s.dim[0], s.dim[1] < 0 ? -1 : 4 * s.dim[1]));
    leat_infer_out(c, 1, s);
    return NULL;
}

const leat_op_def leat_ops_lstm_step[] = {
    {.name = "_LSTMStep",
     .inputs = "xh: T, w: T, b: T, c_prev: T",
     .outputs = "i: T, ci: T, f: T, o: T, c: T, co: T, h: T",
     .attrs = "forget_bias: float = 0; T: {float}",
     .shape = step_shape,
     .grad = leat_grad_missing},
    {.name = "_LSTMStepGrad",
     .inputs = "i: T, ci: T, f: T, o: T, co: T, c_prev: T, dh: T, dc: num_dc * T",
     .outputs = "gates: T, dc_prev: T",
     .attrs = "num_dc: int >= 0; T: {float}",
     .shape = grad_shape,
     .grad = leat_grad_missing},
    {0},
};
