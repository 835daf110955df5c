/* remap.c -- warm starts from models with another vocabulary: GenerateVocabRemapping finds the old
 * numbers of new words, LoadAndRemapMatrix reads a matrix of a checkpoint with its rows and columns
 * in the new order. */
#include "ops/infer_util.h"

static leat_status vocabulary_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 0, &s));
    LEAT_TRY(leat_infer_rank(c, 1, 0, &s));
    leat_infer_out(c, 0, leat_shape(leat_node_int(leat_infer_node(c), "num_new_vocab")));
    leat_infer_out(c, 1, leat_shape());
    return NULL;
}

static leat_status matrix_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 1, 0, &s));
    leat_infer_out(c, 0, leat_shape(leat_node_int(n, "num_rows"), leat_node_int(n, "num_cols")));
    return NULL;
}

const leat_op_def leat_ops_remap[] = {
    {.name = "GenerateVocabRemapping",
     .inputs = "new_vocab_file: string, old_vocab_file: string",
     .outputs = "remapping: int64, num_present: int32",
     .attrs = "new_vocab_offset: int >= 0; num_new_vocab: int >= 0; "
              "old_vocab_size: int >= -1 = -1",
     .shape = vocabulary_shape,
     .grad = leat_grad_none},
    {.name = "LoadAndRemapMatrix",
     .inputs = "ckpt_path: string, old_tensor_name: string, row_remapping: int64, "
               "col_remapping: int64, initializing_values: float",
     .outputs = "output_matrix: float",
     .attrs = "num_rows: int >= 0; num_cols: int >= 1; max_rows_in_memory: int = -1",
     .shape = matrix_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
