/* rnn.h -- recurrent nets: cells, and what runs a cell over the steps of sequences.
 *
 *     leat_cell *layers[2];
 *     for (int i = 0; i < 2; i++)
 *         layers[i] = leat_dropout_cell(leat_basic_lstm_cell(g, 200), .output_keep_prob = 0.5);
 *     leat_cell *cell = leat_multi_cell(g, layers, 2);
 *     leat_out state[4];                                  -- c and h of both layers
 *     leat_out y = leat_dynamic_rnn(cell, x, state);      -- x is (batch, time, depth)
 *
 * Variables have the names and shapes that TensorFlow's cells of tf.nn.rnn_cell and tf.contrib.rnn
 * give them ("rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel"), so that checkpoints can be
 * exchanged; a cell of its kind computes what TensorFlow's computes. The functions here build
 * nodes; a mistake is recorded in the graph (leat_graph_status).
 */
#ifndef LEAT_RNN_H
#define LEAT_RNN_H

#include <leat/control.h>
#include <leat/nn.h>

/* ---- Cells. A cell lives as long as its graph. Its variables are made when it is first used, in
 * the variable scope that is open then; every later use shares them. A constructor with a mistake
 * gives a cell all the same, whose steps add no nodes. ---- */
typedef struct leat_cell leat_cell;

/* The state of a cell is a list of tensors (batch, size): c and h of an LSTM, h of the others; of
 * several layers one after another. */
LEAT_API int leat_cell_states(const leat_cell *c);
LEAT_API int64_t leat_cell_state_size(const leat_cell *c, int i);
LEAT_API int64_t leat_cell_output_size(const leat_cell *c);
/* Writes a state of zeros, leat_cell_states(c) tensors. batch_size below 0: that of `like`, at run
 * time. */
#define leat_cell_zero_state(c, batch_size, dtype, state_out)                                      \
    leat_cell_zero_state_at(LEAT_AT, c, batch_size, LEAT_STRUCT(leat_out, NULL, 0), dtype, state_out)
#define leat_cell_zero_state_like(c, x, state_out)                                                 \
    leat_cell_zero_state_at(LEAT_AT, c, -1, x, LEAT_INVALID, state_out)
LEAT_API void leat_cell_zero_state_at(leat_loc at, const leat_cell *c, int64_t batch_size,
                                      leat_out like, leat_dtype t, leat_out *state_out);
/* One step: gives the output (batch, output size) for x (batch, depth) and a state, and writes the
 * next state; state_out may be `state`. */
#define leat_cell_step(c, x, state, state_out) leat_cell_step_at(LEAT_AT, c, x, state, state_out)
LEAT_API leat_out leat_cell_step_at(leat_loc at, leat_cell *c, leat_out x, const leat_out *state,
                                    leat_out *state_out);

typedef struct leat_cell_options {
    leat_given given;       /* set by the macro */
    const char *name;       /* of the variable scope; default: TensorFlow's, "basic_lstm_cell" ... */
    const char *activation; /* an op of one input; default "Tanh" */
    /* Defaults: for kernels and peepholes the scope's initializer or Glorot; for biases zeros, for
     * those of a GRU's gates ones. Only LSTM and GRU cells have the first, GRU cells the second. */
    leat_initializer initializer, bias_initializer;
    double forget_bias;       /* LSTMs: added to the forget gate; default 1 */
    bool use_peepholes;       /* LSTM and block LSTM cells */
    double cell_clip;         /* LSTM and block LSTM cells: c is cut to +-cell_clip; default: not */
    int64_t num_proj;         /* LSTM cells: the output is projected to this size; default: not */
    double proj_clip;         /* the projected output is cut to +-proj_clip; default: not */
    int num_unit_shards, num_proj_shards; /* LSTM cells: slices of the kernels; default 1 */
    /* Cells with layer normalisation: */
    bool no_layer_norm;
    double norm_gain, norm_shift; /* initial gamma and beta; default 1 and 0 */
    double keep_prob;             /* of the new input of c; default 1 */
    int64_t seed;                 /* of that dropout */
} leat_cell_options;

/* act(x, h times kernel + bias) */
#define leat_basic_rnn_cell(g, units, ...)                                                         \
    leat_basic_rnn_cell_at(g, units, LEAT_GIVEN_OPTIONS(leat_cell_options, __VA_ARGS__))
LEAT_API leat_cell *leat_basic_rnn_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o);
#define leat_basic_lstm_cell(g, units, ...)                                                        \
    leat_basic_lstm_cell_at(g, units, LEAT_GIVEN_OPTIONS(leat_cell_options, __VA_ARGS__))
LEAT_API leat_cell *leat_basic_lstm_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o);
/* The LSTM with peepholes, clipping and projection. */
#define leat_lstm_cell(g, units, ...)                                                              \
    leat_lstm_cell_at(g, units, LEAT_GIVEN_OPTIONS(leat_cell_options, __VA_ARGS__))
LEAT_API leat_cell *leat_lstm_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o);
#define leat_gru_cell(g, units, ...)                                                               \
    leat_gru_cell_at(g, units, LEAT_GIVEN_OPTIONS(leat_cell_options, __VA_ARGS__))
LEAT_API leat_cell *leat_gru_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o);
/* tf.contrib.rnn.LayerNormBasicLSTMCell */
#define leat_layer_norm_lstm_cell(g, units, ...)                                                   \
    leat_layer_norm_lstm_cell_at(g, units, LEAT_GIVEN_OPTIONS(leat_cell_options, __VA_ARGS__))
LEAT_API leat_cell *leat_layer_norm_lstm_cell_at(leat_graph *g, int64_t units,
                                                 const leat_cell_options *o);
/* The same as the cells above, a step being one op: LSTMBlockCell and GRUBlockCell. Their variables
 * are "lstm_cell/kernel" ... and "gru_cell/gates/kernel" ..., those of TensorFlow's LSTMBlockCell
 * and GRUBlockCellV2. */
#define leat_block_lstm_cell(g, units, ...)                                                        \
    leat_block_lstm_cell_at(g, units, LEAT_GIVEN_OPTIONS(leat_cell_options, __VA_ARGS__))
LEAT_API leat_cell *leat_block_lstm_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o);
#define leat_block_gru_cell(g, units, ...)                                                         \
    leat_block_gru_cell_at(g, units, LEAT_GIVEN_OPTIONS(leat_cell_options, __VA_ARGS__))
LEAT_API leat_cell *leat_block_gru_cell_at(leat_graph *g, int64_t units, const leat_cell_options *o);

/* Layers: the output of each cell is the input of the next. Copies the array.
 *     leat_cell *leat_multi_cell(leat_graph *g, leat_cell *const *cells, int n); */
#define leat_multi_cell(g, ...) leat_multi_cell_at(LEAT_AT, g, __VA_ARGS__)
LEAT_API leat_cell *leat_multi_cell_at(leat_loc at, leat_graph *g, leat_cell *const *cells, int n);
typedef struct leat_dropout_cell_options {
    leat_given given; /* set by the macro */
    /* Probabilities that an element of the input, the output and the next state is kept; default 1.
     * The c of an LSTM is always kept. */
    double input_keep_prob, output_keep_prob, state_keep_prob;
    /* The same elements are dropped at every step; input_size is then required if elements of the
     * input are. */
    bool variational;
    int64_t input_size;
    leat_dtype dtype; /* variational: of what is drawn; float if not set */
    int64_t seed;
} leat_dropout_cell_options;
#define leat_dropout_cell(cell, ...)                                                               \
    leat_dropout_cell_at(LEAT_AT, cell, LEAT_GIVEN_OPTIONS(leat_dropout_cell_options, __VA_ARGS__))
LEAT_API leat_cell *leat_dropout_cell_at(leat_loc at, leat_cell *cell,
                                         const leat_dropout_cell_options *o);
/* Adds the input to the output, which must have the same size. */
LEAT_API leat_cell *leat_residual_cell(leat_cell *cell);
/* The steps of the cell are placed on this device. */
LEAT_API leat_cell *leat_device_cell(leat_cell *cell, const char *device);

/* A cell of your own. */
typedef struct leat_cell_def {
    const char *name; /* of its variable scope; NULL: it has none */
    int n_states;
    const int64_t *state_sizes; /* n_states */
    const bool *keep_state;     /* n_states: dropout leaves this one as it is; NULL: none */
    int64_t output_size;
    /* Makes the variables, for inputs (batch, input_size); called once. NULL: it has none. */
    void (*build)(leat_graph *g, void *arg, int64_t input_size, leat_dtype t);
    /* Gives the output and writes n_states tensors to next. */
    leat_out (*step)(leat_graph *g, void *arg, leat_out x, const leat_out *state, leat_out *next);
    void *arg; /* outlives the graph */
} leat_cell_def;
/* Copies the definition and its arrays.
 *     leat_cell *leat_cell_new(leat_graph *g, const leat_cell_def *def); */
#define leat_cell_new(g, ...) leat_cell_new_at(LEAT_AT, g, __VA_ARGS__)
LEAT_API leat_cell *leat_cell_new_at(leat_loc at, leat_graph *g, const leat_cell_def *def);

/* ---- Running a cell over sequences. Functions that write states write leat_cell_states(cell)
 * tensors; NULL: they are not wanted. ---- */
typedef struct leat_rnn_options {
    leat_given given;              /* set by the macro */
    const leat_out *initial_state; /* as many tensors as the cell has states; NULL: zeros */
    /* The lengths of the sequences, int32 or int64 (batch): beyond them outputs are 0, and states
     * stay what they are. Not set: all steps. A length below 0 counts as 0, one beyond the number
     * of steps as that number. */
    leat_out sequence_length;
    bool time_major;            /* dynamic: x and the result are (time, batch, depth) */
    bool swap_memory;           /* dynamic: as in leat_while_options */
    int parallel_iterations;    /* dynamic: default 32 */
    const leat_out *initial_state_bw; /* bidirectional: of the second cell */
    const char *scope;          /* the variable scope; default "rnn" or "bidirectional_rnn" */
} leat_rnn_options;
/* Unrolled: x has n inputs (batch, depth), and y gets n outputs (batch, output size). */
#define leat_static_rnn(cell, x, n, y, state_out, ...)                                             \
    leat_static_rnn_at(LEAT_AT, cell, x, n, y, state_out,                                          \
                       LEAT_GIVEN_OPTIONS(leat_rnn_options, __VA_ARGS__))
LEAT_API void leat_static_rnn_at(leat_loc at, leat_cell *cell, const leat_out *x, int n, leat_out *y,
                                 leat_out *state_out, const leat_rnn_options *o);
/* A loop over the steps of x (batch, time, depth); gives (batch, time, output size). */
#define leat_dynamic_rnn(cell, x, state_out, ...)                                                  \
    leat_dynamic_rnn_at(LEAT_AT, cell, x, state_out,                                               \
                        LEAT_GIVEN_OPTIONS(leat_rnn_options, __VA_ARGS__))
LEAT_API leat_out leat_dynamic_rnn_at(leat_loc at, leat_cell *cell, leat_out x, leat_out *state_out,
                                      const leat_rnn_options *o);
/* Two cells, the second of which goes through the sequences from their ends: y gets two outputs. */
#define leat_bidirectional_dynamic_rnn(fw, bw, x, y, state_fw_out, state_bw_out, ...)              \
    leat_bidirectional_dynamic_rnn_at(LEAT_AT, fw, bw, x, y, state_fw_out, state_bw_out,           \
                                      LEAT_GIVEN_OPTIONS(leat_rnn_options, __VA_ARGS__))
LEAT_API void leat_bidirectional_dynamic_rnn_at(leat_loc at, leat_cell *fw, leat_cell *bw,
                                                leat_out x, leat_out *y, leat_out *state_fw_out,
                                                leat_out *state_bw_out, const leat_rnn_options *o);
/* Unrolled: each of the n outputs is that of fw followed by that of bw, along dimension 1. */
#define leat_static_bidirectional_rnn(fw, bw, x, n, y, state_fw_out, state_bw_out, ...)            \
    leat_static_bidirectional_rnn_at(LEAT_AT, fw, bw, x, n, y, state_fw_out, state_bw_out,         \
                                     LEAT_GIVEN_OPTIONS(leat_rnn_options, __VA_ARGS__))
LEAT_API void leat_static_bidirectional_rnn_at(leat_loc at, leat_cell *fw, leat_cell *bw,
                                               const leat_out *x, int n, leat_out *y,
                                               leat_out *state_fw_out, leat_out *state_bw_out,
                                               const leat_rnn_options *o);
/* A layer of LSTM whose steps are one op (BlockLSTM), tf.contrib.rnn.LSTMBlockFusedCell: x is (time,
 * batch, depth), the result (time, batch, units); writes c and h. The variables are
 * "lstm_fused_cell/kernel" ... Of the options of sequences, initial_state and sequence_length are
 * used. */
#define leat_block_lstm(x, units, state_out, rnn_options, ...)                                     \
    leat_block_lstm_at(LEAT_AT, x, units, state_out, rnn_options,                                  \
                       LEAT_GIVEN_OPTIONS(leat_cell_options, __VA_ARGS__))
LEAT_API leat_out leat_block_lstm_at(leat_loc at, leat_out x, int64_t units, leat_out *state_out,
                                     const leat_rnn_options *rnn_options, const leat_cell_options *o);

/* What raw_rnn's function reads and writes. */
typedef struct leat_raw_step {
    leat_out time;          /* int32 scalar: the step that is prepared */
    leat_out output;        /* of the cell; in the first call its node is NULL */
    const leat_out *state;  /* of the cell; NULL in the first call */
    const leat_out *passed; /* what the call before wrote to `pass`; NULL in the first call */
    /* To be written: */
    leat_out finished;    /* bool (batch): sequences that have no such step */
    leat_out input;       /* of the step (batch, depth) */
    leat_out *next_state; /* in the first call the initial state; later it holds `state` already */
    leat_out emit;        /* later it holds `output` already; a NULL node in the first call means that
                           * what is emitted is like the output, else it is a tensor of the shape
                           * of a sequence's part */
    leat_out *pass;       /* n_passed tensors for the next call; they hold `passed` already */
} leat_raw_step;
typedef void (*leat_raw_rnn_fn)(leat_graph *g, void *arg, leat_raw_step *step);
typedef struct leat_raw_rnn_options {
    leat_given given;
    int n_passed; /* tensors that the function hands to its next call; default 0 */
    leat_out *passed_out; /* gets their last values; NULL: they are not wanted */
    bool swap_memory;
    int parallel_iterations; /* default 32 */
    const char *scope;       /* default "rnn" */
} leat_raw_rnn_options;
/* A loop whose inputs, states and ends a function determines: fn is called once before the loop,
 * for step 0, and once in its body, for the step after the present one. The loop ends when all
 * sequences are finished. Gives what was emitted, (time, batch, ...). */
#define leat_raw_rnn(cell, fn, arg, state_out, ...)                                                \
    leat_raw_rnn_at(LEAT_AT, cell, fn, arg, state_out,                                             \
                    LEAT_GIVEN_OPTIONS(leat_raw_rnn_options, __VA_ARGS__))
LEAT_API leat_out leat_raw_rnn_at(leat_loc at, leat_cell *cell, leat_raw_rnn_fn fn, void *arg,
                                  leat_out *state_out, const leat_raw_rnn_options *o);

#endif
