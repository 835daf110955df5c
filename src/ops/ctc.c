/* ctc.c -- connectionist temporal classification (Graves, 2006): the loss of sequences whose labels
 * are not aligned with time, and decoders that find likely sequences. The last class is the blank.
 */
#include <leat/ops.h>

#include "ops/infer_util.h"

/* inputs is (time, batch, classes), sequence_length (input `lengths`) is (batch). */
static leat_status ctc_inputs(leat_infer *c, int lengths, leat_shape *inputs)
{
    leat_shape n;
    LEAT_TRY(leat_infer_rank(c, 0, 3, inputs));
    LEAT_TRY(leat_infer_rank(c, lengths, 1, &n));
    return leat_dim_merge(inputs->dim[1], n.dim[0], &inputs->dim[1]);
}

static leat_status loss_shape(leat_infer *c)
{
    leat_shape inputs, indices, values;
    int64_t unused;
    LEAT_TRY(leat_infer_rank(c, 1, 2, &indices));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &values));
    LEAT_TRY(leat_dim_merge(indices.dim[0], values.dim[0], &unused));
    LEAT_TRY(ctc_inputs(c, 3, &inputs));
    leat_infer_out(c, 0, leat_shape(inputs.dim[1]));
    leat_infer_out(c, 1, inputs);
    return NULL;
}

/* Sparse tensors of `paths` outputs each: all indices, all values, all shapes; then the scores. */
static leat_status decoder_shape(leat_infer *c)
{
    const int paths = (leat_infer_outputs(c) - 1) / 3;
    leat_shape inputs;
    LEAT_TRY(ctc_inputs(c, 1, &inputs));
    for (int i = 0; i < paths; i++) {
        leat_infer_out(c, i, leat_shape(-1, 2));
        leat_infer_out(c, paths + i, leat_shape(-1));
        leat_infer_out(c, 2 * paths + i, leat_shape(2));
    }
    leat_infer_out(c, 3 * paths, leat_shape(inputs.dim[1], paths));
    return NULL;
}

/* The op gives dloss/dinputs itself, as its output 1 (time, batch, classes). */
static leat_status loss_grad(leat_grad *g)
{
    leat_out back = leat_prevent_gradient(
        leat_grad_output(g, 1),
        leat_attr_string("message", "Currently there is no way to take the second derivative of "
                                    "ctc_loss due to the fused implementation's interaction with "
                                    "tf.gradients()"));
    leat_out axis = leat_scalar(leat_grad_graph(g), LEAT_INT32, -1);
    return leat_grad_in(g, 0, leat_mul(leat_expand_dims(leat_grad_out(g, 0), axis), back));
}

const leat_op_def leat_ops_ctc[] = {
    {.name = "CTCLoss",
     .inputs = "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32",
     .outputs = "loss: T, gradient: T",
     .attrs = "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; "
              "ignore_longer_outputs_than_inputs: bool = false; T: {float, double} = DT_FLOAT",
     .shape = loss_shape,
     .grad = loss_grad},
    {.name = "CTCGreedyDecoder",
     .inputs = "inputs: T, sequence_length: int32",
     .outputs = "decoded_indices: int64, decoded_values: int64, decoded_shape: int64, "
                "log_probability: T",
     .attrs = "merge_repeated: bool = false; T: {float, double} = DT_FLOAT",
     .shape = decoder_shape,
     .grad = leat_grad_none},
    {.name = "CTCBeamSearchDecoder",
     .inputs = "inputs: T, sequence_length: int32",
     .outputs = "decoded_indices: top_paths * int64, decoded_values: top_paths * int64, "
                "decoded_shape: top_paths * int64, log_probability: T",
     .attrs = "beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true; "
              "T: {float, double} = DT_FLOAT",
     .shape = decoder_shape,
     .grad = leat_grad_none},
    {0},
};
