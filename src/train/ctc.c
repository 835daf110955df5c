/* ctc.c -- connectionist temporal classification, and edit distances. */
#include <leat/sequence.h>

#include "graph/given.h"
#include "train/train_int.h"

leat_out leat_ctc_loss_at(leat_loc at, leat_sparse_value labels, leat_out inputs,
                          leat_out sequence_length, const leat_ctc_loss_options *o)
{
    if (!inputs.node || !leat_out_ok(inputs))
        return inputs;
    leat_graph *g = leat_graph_of(inputs);
    leat_loc outer = leat_at_enter(g, at);
    if (o->batch_major)
        inputs = leat_transpose(inputs, leat_ints(g, 1, 0, 2));
    const bool merge =
        leat_given_int_or(&o->given, "ctc_merge_repeated", o->ctc_merge_repeated, true);
    leat_out y = LEAT_OP4(
        "CTCLoss", inputs, labels.indices, labels.values, sequence_length,
        leat_attr_bool("preprocess_collapse_repeated", o->preprocess_collapse_repeated),
        leat_attr_bool("ctc_merge_repeated", merge),
        leat_attr_bool("ignore_longer_outputs_than_inputs", o->ignore_longer_outputs_than_inputs));
    leat_at_leave(g, outer);
    return y;
}

/* Writes the sparse tensors that a decoder gives, and gives its scores. */
static leat_out decoded(leat_out y, int paths, leat_sparse_value *out)
{
    for (int i = 0; i < paths; i++)
        out[i] = (leat_sparse_value){leat_output(y, i), leat_output(y, paths + i),
                                     leat_output(y, 2 * paths + i)};
    return leat_output(y, 3 * paths);
}

leat_out leat_ctc_greedy_decoder_at(leat_loc at, leat_out inputs, leat_out sequence_length,
                                    leat_sparse_value *decoded_out,
                                    const leat_ctc_decoder_options *o)
{
    if (!inputs.node || !leat_out_ok(inputs))
        return decoded(inputs, 1, decoded_out);
    leat_graph *g = leat_graph_of(inputs);
    leat_loc outer = leat_at_enter(g, at);
    const bool merge = leat_given_int_or(&o->given, "merge_repeated", o->merge_repeated, true);
    leat_out y = LEAT_OP2("CTCGreedyDecoder", inputs, sequence_length,
                          leat_attr_bool("merge_repeated", merge));
    leat_at_leave(g, outer);
    return decoded(y, 1, decoded_out);
}

leat_out leat_ctc_beam_search_decoder_at(leat_loc at, leat_out inputs, leat_out sequence_length,
                                         leat_sparse_value *decoded_out,
                                         const leat_ctc_decoder_options *o)
{
    const leat_given *given = &o->given;
    const int paths = (int)leat_given_int_or(given, "top_paths", o->top_paths, 1);
    const int width = (int)leat_given_int_or(given, "beam_width", o->beam_width, 100);
    if (!inputs.node || !leat_out_ok(inputs))
        return decoded(inputs, paths, decoded_out);
    leat_graph *g = leat_graph_of(inputs);
    leat_loc outer = leat_at_enter(g, at);
    const bool merge = leat_given_int_or(given, "merge_repeated", o->merge_repeated, true);
    leat_out y = LEAT_OP2("CTCBeamSearchDecoder", inputs, sequence_length,
                          leat_attr_int("beam_width", width), leat_attr_int("top_paths", paths),
                          leat_attr_bool("merge_repeated", merge));
    leat_at_leave(g, outer);
    return decoded(y, paths, decoded_out);
}

leat_out leat_edit_distance_at(leat_loc at, leat_sparse_value hypothesis, leat_sparse_value truth,
                               const leat_edit_distance_options *o)
{
    if (!hypothesis.indices.node || !leat_out_ok(hypothesis.indices))
        return hypothesis.indices;
    leat_graph *g = leat_graph_of(hypothesis.indices);
    leat_loc outer = leat_at_enter(g, at);
    const leat_out all[] = {hypothesis.indices, hypothesis.values, hypothesis.dense_shape,
                            truth.indices,      truth.values,      truth.dense_shape};
    leat_out y = leat_op_of(at, "EditDistance", all, 6,
                            LEAT_ARGS(leat_attr_bool("normalize", !o->not_normalized)));
    leat_at_leave(g, outer);
    return y;
}
