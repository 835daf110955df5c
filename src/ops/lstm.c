/* lstm.c -- LSTM cells as one op: LSTMBlockCell (one step), BlockLSTM and BlockLSTMV2 (all steps of
 * a sequence), and the ops that their gradients add. A cell of C units has four gates, whose
 * weights are the columns of w, (inputs + C, 4C): input, cell input, forget, output; the second and
 * third are exchanged in the forms V2. */
#include <leat/nn.h>

#include "ops/infer_util.h"

static leat_status cell_shape(leat_infer *c)
{
    leat_shape x, cs_prev;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &x));
    LEAT_TRY(leat_infer_rank(c, 1, 2, &cs_prev));
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, leat_shape(x.dim[0], cs_prev.dim[1]));
    return NULL;
}

static leat_status cell_grad_shape(leat_infer *c)
{
    leat_shape x, cs_prev;
    int64_t gates;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &x));
    LEAT_TRY(leat_infer_rank(c, 1, 2, &cs_prev));
    LEAT_TRY(leat_dim_mul(cs_prev.dim[1], 4, &gates));
    leat_infer_out(c, 0, leat_shape(x.dim[0], cs_prev.dim[1]));
    leat_infer_out(c, 1, leat_shape(x.dim[0], gates));
    for (int i = 2; i < 5; i++)
        leat_infer_out(c, i, leat_shape(cs_prev.dim[1]));
    return NULL;
}

static leat_status block_shape(leat_infer *c)
{
    leat_shape x, b;
    LEAT_TRY(leat_infer_rank(c, 1, 3, &x));
    LEAT_TRY(leat_infer_rank(c, leat_infer_inputs(c) - 1, 1, &b));
    LEAT_REQUIRE(b.dim[0] < 0 || b.dim[0] % 4 == 0, INVALID_ARGUMENT,
                 "Dimension size must be evenly divisible by 4 but is %" PRId64, b.dim[0]);
    const int64_t units = b.dim[0] < 0 ? -1 : b.dim[0] / 4;
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, leat_shape(x.dim[0], x.dim[1], units));
    return NULL;
}

/* Output i is the gradient of input i + 1. */
static leat_status block_grad_shape(leat_infer *c)
{
    static const int rank[] = {3, 2, 2, 2, 1, 1, 1, 1};
    for (int i = 0; i < leat_infer_outputs(c); i++) {
        leat_shape s;
        LEAT_TRY(leat_infer_rank(c, i + 1, rank[i], &s));
        leat_infer_out(c, i, s);
    }
    return NULL;
}

enum { X, CS_PREV, H_PREV, W, WCI, WCF, WCO, B, CELL_INPUTS };
enum { I, CS, F, O, CI, CO, H };

/* The number of columns of x, (batch, columns), as part of an index: (0, columns). */
static leat_out columns_of(leat_out x)
{
    leat_graph *g = leat_node_graph(x.node);
    const leat_shape s = leat_out_shape(x);
    if (s.rank == 2 && s.dim[1] >= 0)
        return leat_ints(g, 0, s.dim[1]);
    return leat_mul(leat_shape_of(x), leat_ints(g, 0, 1));
}

static leat_status cell_grad(leat_grad *g)
{
    leat_graph *graph = leat_grad_graph(g);
    const bool peephole = leat_node_bool(leat_grad_node(g), "use_peephole");
    leat_out in[16];
    for (int i = 0; i < CELL_INPUTS; i++)
        in[i] = leat_grad_input(g, i);
    for (int i = I; i <= CO; i++)
        in[CELL_INPUTS + i] = leat_grad_output(g, i);
    in[14] = leat_grad_out(g, CS);
    in[15] = leat_grad_out(g, H);
    leat_out cs_prev_grad = leat_op_of(LEAT_AT, "LSTMBlockCellGrad", in, 16,
                                       LEAT_ARGS(leat_attr_bool("use_peephole", peephole)));
    leat_out gates = leat_output(cs_prev_grad, 1), axis = leat_scalar(graph, LEAT_INT32, 1);
    leat_out xh_grad = leat_matmul(gates, in[W], leat_attr_bool("transpose_b", true));
    leat_out xh = leat_concat(((leat_out[]){in[X], in[H_PREV]}), 2, axis);
    leat_out x_grad = leat_slice(xh_grad, leat_ints(graph, 0, 0), leat_shape_of(in[X]));
    leat_out h_grad = leat_slice(xh_grad, columns_of(in[X]), leat_shape_of(in[H_PREV]));
    LEAT_TRY(leat_grad_in(g, X, x_grad));
    LEAT_TRY(leat_grad_in(g, CS_PREV, cs_prev_grad));
    LEAT_TRY(leat_grad_in(g, H_PREV, h_grad));
    LEAT_TRY(leat_grad_in(g, W, leat_matmul(xh, gates, leat_attr_bool("transpose_a", true))));
    for (int i = WCI; i <= WCO; i++)
        LEAT_TRY(leat_grad_in(g, i, leat_output(cs_prev_grad, 2 + i - WCI)));
    return leat_grad_in(g, B, leat_bias_add_grad(gates));
}

/* TensorFlow 1.15 registers the gradient of BlockLSTM for BlockLSTMV2, too, whose gates are in
 * another order: what it computes then is wrong. */
static leat_status block_grad_by(leat_grad *g, const char *op)
{
    const bool peephole = leat_node_bool(leat_grad_node(g), "use_peephole");
    leat_out in[18];
    for (int i = 0; i < 9; i++)
        in[i] = leat_grad_input(g, i);
    for (int i = I; i <= H; i++)
        in[9 + i] = leat_grad_output(g, i);
    in[16] = leat_grad_out(g, CS);
    in[17] = leat_grad_out(g, H);
    leat_out d =
        leat_op_of(LEAT_AT, op, in, 18, LEAT_ARGS(leat_attr_bool("use_peephole", peephole)));
    for (int i = 0; i < 8; i++)
        LEAT_TRY(leat_grad_in(g, i + 1, leat_output(d, i)));
    return NULL;
}

static leat_status block_grad(leat_grad *g)
{
    return block_grad_by(g, "BlockLSTMGrad");
}

static leat_status block_v2_grad(leat_grad *g)
{
    return block_grad_by(g, "BlockLSTMGradV2");
}

#define INPUTS "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T"
#define OUTPUTS "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T"
#define BLOCK_GRAD(name_)                                                                          \
    {                                                                                              \
        .name = name_,                                                                             \
        .inputs = "seq_len_max: int64, " INPUTS ", " OUTPUTS ", cs_grad: T, h_grad: T",            \
        .outputs = "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, "          \
                   "wcf_grad: T, wco_grad: T, b_grad: T",                                          \
        .attrs = "use_peephole: bool; T: {half, float}", .shape = block_grad_shape,                \
        .grad = leat_grad_missing                                                                  \
    }

const leat_op_def leat_ops_lstm[] = {
    {.name = "LSTMBlockCell",
     .inputs = INPUTS,
     .outputs = OUTPUTS,
     .attrs = "forget_bias: float = 1.0; cell_clip: float = 3.0; use_peephole: bool = false; "
              "T: {half, float}",
     .shape = cell_shape,
     .grad = cell_grad},
    {.name = "LSTMBlockCellGrad",
     .inputs = INPUTS ", i: T, cs: T, f: T, o: T, ci: T, co: T, cs_grad: T, h_grad: T",
     .outputs = "cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
     .attrs = "use_peephole: bool; T: {half, float}",
     .shape = cell_grad_shape,
     .grad = leat_grad_missing},
    {.name = "BlockLSTM",
     .inputs = "seq_len_max: int64, " INPUTS,
     .outputs = OUTPUTS,
     .attrs = "forget_bias: float = 1.0; cell_clip: float = 3.0; use_peephole: bool = false; "
              "T: {half, float}",
     .shape = block_shape,
     .grad = block_grad},
    {.name = "BlockLSTMV2",
     .inputs = "seq_len_max: int64, " INPUTS,
     .outputs = OUTPUTS,
     .attrs = "cell_clip: float = 0.0; use_peephole: bool = false; T: {half, float}",
     .shape = block_shape,
     .grad = block_v2_grad},
    BLOCK_GRAD("BlockLSTMGrad"),
    BLOCK_GRAD("BlockLSTMGradV2"),
    {0},
};
