/* common_lm.h -- a language model, that of TensorFlow's PTB tutorial: an embedding, layers of LSTM
 * over the steps of a batch, and a softmax over the vocabulary. A batch goes on where the one
 * before it ended: its states are fetched and fed again. ptb trains it on words, char_rnn on
 * characters. */
#ifndef COMMON_LM_H
#define COMMON_LM_H

#include <leat/leat.h>

enum {
    LM_MOST_LAYERS = 8,
    LM_MOST_STATES = 2 * LM_MOST_LAYERS,
    LM_MOST_STEPS = 1000,
    LM_MOST_FEEDS = LM_MOST_STATES + 3
};

typedef struct lm_config {
    int64_t vocab_size, hidden_size, num_layers, num_steps, batch_size;
    double keep_prob;   /* of the outputs of layers while training; 1: no dropout */
    double forget_bias; /* added to the forget gates */
    /* "basic": a step of a layer is many ops; "block": it is one op, LSTMBlockCell; "fused": all
     * steps of a layer are one op, BlockLSTM. Variables of block and fused have the same names. */
    const char *rnn_mode;
    /* Above 0: training compares each word with so many others that are drawn, not with all, and
     * needs their rows of softmax_w alone, which then is (vocabulary, hidden). */
    int64_t num_sampled;
    /* The number of variables that embedding, softmax_w and softmax_b are each cut into, by words.
     * 0 means one. */
    int slices;
    const char *home; /* the device of the embedding; NULL: where the other nodes are */
} lm_config;

typedef struct lm_model {
    lm_config c;
    leat_out x, y;   /* int32 placeholders (batch, steps): ids, and the ids that follow them */
    leat_out logits; /* (steps * batch, vocabulary); a NULL node if words are drawn instead */
    leat_out cost;   /* the cross entropy, summed over the steps, and averaged over the batch */
    leat_out first[LM_MOST_STATES], last[LM_MOST_STATES]; /* the states around the steps */
    int n_states;
    leat_tensor *state[LM_MOST_STATES], *next[LM_MOST_STATES];
} lm_model;

/* NULL, or what is wrong with the configuration. */
leat_status lm_check(const lm_config *c) LEAT_MUST_CHECK;
/* Adds the model to the graph. The variables are of the open variable scope, and have the names of
 * the tutorial's: "embedding", "RNN/multi_rnn_cell/cell_0/lstm_cell/kernel", "softmax_w" ... */
void lm_build(leat_graph *g, const lm_config *c, bool training, lm_model *m);

/* ---- Steps: lm_begin; then feed, fetch, run and lm_advance, over and over; lm_end ---- */
leat_status lm_begin(leat_session *s, lm_model *m) LEAT_MUST_CHECK; /* states of zeros */
/* Writes the feeds of x, y (which may be NULL) and the states; gives their number, less than
 * LM_MOST_FEEDS. Borrows the tensors. */
int lm_feeds(const lm_model *m, const leat_tensor *x, const leat_tensor *y, leat_feed *feeds);
/* Writes the fetches of the states; gives their number. */
int lm_fetches(lm_model *m, leat_fetch *fetches);
void lm_advance(lm_model *m); /* after a run: what was fetched is fed next */
void lm_end(lm_model *m);     /* also after an error */

/* ---- Drawing text, with a model of batch size 1 and one step ---- */
typedef struct lm_sampler {
    lm_model m;
    leat_out temperature, drawn;
} lm_sampler;
void lm_sampler_build(leat_graph *g, const lm_config *c, lm_sampler *d);
/* The model reads `id`, and draws the next one; *next_out is not written if next_out is NULL. */
leat_status lm_sampler_next(leat_session *s, lm_sampler *d, int id, double temperature,
                            int *next_out) LEAT_MUST_CHECK;

/* ---- A loss or gradients that are not finite ---- */
/* True if s says that a node made for it found a tensor that is not finite. */
bool lm_diverged(leat_status s);
/* Runs `checks` (leat_add_check_numerics) on these feeds, and adds the first op that gives a NaN or
 * an infinity to s. Takes s. */
leat_status lm_name_op(leat_session *session, leat_feeds feeds, leat_out checks, leat_status s);

#endif
