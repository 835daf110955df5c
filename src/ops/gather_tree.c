/* gather_tree.c -- GatherTree, the end of a beam search: the sequences that the beams of the last
 * step stand for. TensorFlow 1.15 defines it in tf.contrib.seq2seq, whose BeamSearchDecoder uses
 * it. */
#include "ops/infer_util.h"

/* step_ids, parent_ids and the result are (time, batch, beams), max_sequence_lengths (batch). */
static leat_status gather_tree_shape(leat_infer *c)
{
    leat_shape steps, parents, lengths, unused;
    LEAT_TRY(leat_infer_rank(c, 0, 3, &steps));
    LEAT_TRY(leat_infer_rank(c, 1, 3, &parents));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &lengths));
    LEAT_TRY(leat_infer_rank(c, 3, 0, &unused));
    LEAT_TRY(leat_shape_merge(&steps, &parents, &steps));
    LEAT_TRY(leat_dim_merge(steps.dim[1], lengths.dim[0], &steps.dim[1]));
    leat_infer_out(c, 0, steps);
    return NULL;
}

const leat_op_def leat_ops_gather_tree[] = {
    {.name = "GatherTree",
     .inputs = "step_ids: T, parent_ids: T, max_sequence_lengths: int32, end_token: T",
     .outputs = "beams: T",
     .attrs = "T: {int32}",
     .shape = gather_tree_shape,
     .grad = leat_grad_missing},
    {0},
};
