/* rnn_cell.h -- what the files of recurrent nets share: a cell, and the checks of its inputs. */
#ifndef LEAT_RNN_CELL_H
#define LEAT_RNN_CELL_H

#include <leat/rnn.h>

#include "train/train_int.h"

enum { LEAT_MOST_STATES = 256, LEAT_MOST_WRAPPED = 64 };

struct leat_cell {
    leat_graph *g;
    leat_cell_def def; /* state_sizes is NULL after a mistake */
    int wrapped;       /* how many cells are inside each other */
    bool built;
    int64_t input_size; /* of the cell that was built */
    leat_dtype dtype;   /* of the cell that was built */
    /* The name scope that the variables' scope opened: all steps are in it. NULL: def.name is. */
    const char *name_scope;
};

/* A copy of the cell's definition in g's arena. `arg` is of the arena, too. The cell has others
 * inside, of which `wrapped` are inside each other; too many are a mistake. */
leat_cell *leat_cell_make(leat_loc at, leat_graph *g, const leat_cell_def *def, int wrapped);
/* A cell that stands for one that could not be made; s, which is taken, says why. */
leat_cell *leat_cell_broken(leat_loc at, leat_graph *g, int n_states, leat_status s);
/* For a function that was given NULL as its cell: records that in the graph of x, if x is a tensor,
 * and gives the result of a mistake. */
leat_out leat_cell_missing(leat_loc at, leat_out x, const char *function);
/* Records that the cells of two directions are of different graphs. */
void leat_cell_of_another(leat_loc at, leat_graph *g);
/* The number of units, of inputs ... of a cell, whose name `what` is. */
leat_status leat_cell_check_size(const char *what, int64_t size) LEAT_MUST_CHECK;
/* Makes the variables, unless they are made. A mistake is recorded in the graph. */
void leat_cell_build(leat_cell *c, int64_t input_size, leat_dtype t);
/* False, and the graph has a mistake, if an earlier mistake left the cell or x without a node. */
bool leat_cell_usable(const leat_cell *c);

/* A copy of the options in g's arena. */
const leat_cell_options *leat_cell_options_keep(leat_graph *g, const leat_cell_options *o);
/* y after the activation of the options. */
leat_out leat_cell_activate(const leat_cell_options *o, leat_out y);
/* The bias or kernel of a cell. */
leat_out leat_cell_variable(leat_graph *g, const char *name, leat_shape s, leat_dtype t,
                            leat_initializer init);
/* concat(x, h) times kernel, plus the bias; both are made by leat_cell_variable. */
leat_out leat_cell_linear(leat_out x, leat_out h, leat_out kernel, leat_out bias);
leat_out leat_cell_concat(leat_out x, leat_out h);
/* Pieces of x along dimension 1. */
void leat_cell_split(leat_out x, int n, leat_out *pieces);

/* ---- Sequences ---- */

/* The lengths as int32 (batch), or a NULL node if there are none. Their number is checked now, or
 * when the graph runs if it is not known; batch_size is as in leat_rnn_zeros. */
leat_out leat_rnn_lengths(leat_graph *g, leat_out lengths, int64_t batch, leat_out batch_size);
/* The initial state that the options give, or zeros of x's batch and dtype; x is (batch, depth). */
void leat_rnn_initial(const leat_cell *c, const leat_out *given, leat_out x, int64_t batch,
                      leat_dtype t, leat_out batch_size, leat_out *state);
/* Zeros (batch, size); batch below 0: batch_size, an int32 scalar, is used. */
leat_out leat_rnn_zeros(leat_graph *g, leat_dtype t, int64_t batch, leat_out batch_size,
                        int64_t size);
/* Where `ended` (bool, batch) is true a, else b. */
leat_out leat_rnn_choose(leat_out ended, leat_out a, leat_out b);
/* Element i of a vector of int32. */
leat_out leat_rnn_element(leat_out vector, int64_t i);

#endif
