/* word2vec.c -- Skipgram, which reads pairs of neighbouring words from a text, and NegTrain, which
 * trains vectors of words on such pairs (Mikolov, 2013). TensorFlow calls both deprecated. */
#include "ops/infer_util.h"

const leat_op_def leat_ops_word2vec[] = {
    {.name = "Skipgram",
     .inputs = "",
     .outputs = "vocab_word: string, vocab_freq: int32, words_per_epoch: int64, "
                "current_epoch: int32, total_words_processed: int64, examples: int32, "
                "labels: int32",
     .attrs = "filename: string; batch_size: int; window_size: int = 5; min_count: int = 5; "
              "subsample: float = 0.001",
     .shape = leat_shape_any,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "NegTrain",
     .inputs = "w_in: Ref(float), w_out: Ref(float), examples: int32, labels: int32, lr: float",
     .outputs = "",
     .attrs = "vocab_count: list(int); num_negative_samples: int",
     .shape = leat_shape_none,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
