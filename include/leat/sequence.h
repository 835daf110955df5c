/* sequence.h -- losses of sequences, and what a net says in sequences: connectionist temporal
 * classification (Graves, 2006), edit distances.
 *
 * The functions here build nodes; a mistake is recorded in the graph (leat_graph_status).
 */
#ifndef LEAT_SEQUENCE_H
#define LEAT_SEQUENCE_H

#include <leat/embedding.h>

typedef struct leat_sequence_loss_options {
    leat_given given; /* set by the macro */
    /* Losses are added over the steps, or over the examples, and divided by the sum of their
     * weights. Default true. */
    bool average_across_timesteps, average_across_batch;
    /* Losses are added and divided by the number of weights that are not 0. One of these options
     * can only be set if the one above for the same dimension is set to false. */
    bool sum_over_timesteps, sum_over_batch;
    /* Gives the loss (n) of labels (n) and logits (n, classes). Default: softmax cross entropy. */
    leat_out (*loss)(void *arg, leat_out labels, leat_out logits);
    void *arg;
    const char *name; /* "sequence_loss" */
} leat_sequence_loss_options;
/* The weighted cross entropy of logits (batch, time, classes) and targets (batch, time), which are
 * classes; weights are (batch, time). The result is a scalar, (batch), (time) or (batch, time).
 * tf.contrib.seq2seq.sequence_loss */
#define leat_sequence_loss(logits, targets, weights, ...)                                          \
    leat_sequence_loss_at(LEAT_AT, logits, targets, weights,                                       \
                          LEAT_GIVEN_OPTIONS(leat_sequence_loss_options, __VA_ARGS__))
LEAT_API leat_out leat_sequence_loss_at(leat_loc at, leat_out logits, leat_out targets,
                                        leat_out weights, const leat_sequence_loss_options *o);

/* ---- Connectionist temporal classification. inputs are logits (time, batch, classes), of which
 * the last class is the blank; sequence_length is (batch), int32. ---- */
typedef struct leat_ctc_loss_options {
    leat_given given;                  /* set by the macro */
    bool preprocess_collapse_repeated; /* labels that repeat the one before are left out */
    bool ctc_merge_repeated;           /* default true */
    /* Sequences whose labels do not fit into their steps have a loss of 0; default: they are an
     * error. */
    bool ignore_longer_outputs_than_inputs;
    bool batch_major; /* inputs are (batch, time, classes) */
} leat_ctc_loss_options;
/* The loss of each sequence, (batch). labels are (batch, any number), of int32. */
#define leat_ctc_loss(labels, inputs, sequence_length, ...)                                        \
    leat_ctc_loss_at(LEAT_AT, labels, inputs, sequence_length,                                     \
                     LEAT_GIVEN_OPTIONS(leat_ctc_loss_options, __VA_ARGS__))
LEAT_API leat_out leat_ctc_loss_at(leat_loc at, leat_sparse_value labels, leat_out inputs,
                                   leat_out sequence_length, const leat_ctc_loss_options *o);
typedef struct leat_ctc_decoder_options {
    leat_given given;    /* set by the macro */
    bool merge_repeated; /* a class that repeats the one before is given once; default true */
    int beam_width;      /* of the beam search; default 100 */
    int top_paths;       /* of the beam search: how many sequences it gives; default 1 */
} leat_ctc_decoder_options;
/* Takes the most likely class of each step. Writes the classes of each sequence (batch, longest),
 * int64, and gives the sums of the negated logits, (batch, 1). */
#define leat_ctc_greedy_decoder(inputs, sequence_length, decoded_out, ...)                         \
    leat_ctc_greedy_decoder_at(LEAT_AT, inputs, sequence_length, decoded_out,                      \
                               LEAT_GIVEN_OPTIONS(leat_ctc_decoder_options, __VA_ARGS__))
LEAT_API leat_out leat_ctc_greedy_decoder_at(leat_loc at, leat_out inputs, leat_out sequence_length,
                                             leat_sparse_value *decoded_out,
                                             const leat_ctc_decoder_options *o);
/* Finds the most likely sequences, the best first. Writes top_paths of them, as above, and gives
 * the logarithms of their probabilities, (batch, top_paths). */
#define leat_ctc_beam_search_decoder(inputs, sequence_length, decoded_out, ...)                    \
    leat_ctc_beam_search_decoder_at(LEAT_AT, inputs, sequence_length, decoded_out,                 \
                                    LEAT_GIVEN_OPTIONS(leat_ctc_decoder_options, __VA_ARGS__))
LEAT_API leat_out leat_ctc_beam_search_decoder_at(leat_loc at, leat_out inputs,
                                                  leat_out sequence_length,
                                                  leat_sparse_value *decoded_out,
                                                  const leat_ctc_decoder_options *o);

typedef struct leat_edit_distance_options {
    bool not_normalized; /* do not divide by the length of the truth */
} leat_edit_distance_options;
/* How many insertions, deletions and replacements make the truth of a hypothesis (Levenshtein): of
 * sequences along the last dimension, whose other dimensions are those of the result. */
#define leat_edit_distance(hypothesis, truth, ...)                                                 \
    leat_edit_distance_at(LEAT_AT, hypothesis, truth,                                              \
                          LEAT_OPTIONS(leat_edit_distance_options, __VA_ARGS__))
LEAT_API leat_out leat_edit_distance_at(leat_loc at, leat_sparse_value hypothesis,
                                        leat_sparse_value truth,
                                        const leat_edit_distance_options *o);

#endif
