/* cell_sizes.h -- the sizes that the kernels of recurrent cells check their inputs by. */
#ifndef LEAT_KERNELS_CPU_CELL_SIZES_H
#define LEAT_KERNELS_CPU_CELL_SIZES_H

#include "kernels/cpu/cpu.h"

enum { /* what a dimension of an input must be equal to */
       LEAT_NO_DIM,
       LEAT_OF_ANY_SIZE,
       LEAT_OF_TIME,
       LEAT_OF_BATCH,
       LEAT_OF_INPUTS,
       LEAT_OF_UNITS,
       LEAT_OF_TWICE_UNITS,
       LEAT_OF_GATES, /* 4 * units */
       LEAT_OF_INPUTS_AND_UNITS
};

typedef struct leat_cell_sizes {
    int64_t time, batch, inputs, units;
} leat_cell_sizes;

/* The dimensions of an input, from its first to LEAT_NO_DIM. */
typedef unsigned char leat_cell_dims[4];
/* Checks inputs [first, first + n) in the order of dims. */
leat_status leat_cell_check(leat_kernel *k, int first, int n, const leat_cell_dims *dims,
                            const leat_cell_sizes *s) LEAT_MUST_CHECK;
/* Reads the sizes: time (if x has it), batch and inputs from x, units from the columns of `state`;
 * checks the ranks of both, and that sums of the sizes can be computed. */
leat_status leat_cell_sizes_of(leat_kernel *k, int x, int x_rank, int state,
                               leat_cell_sizes *out) LEAT_MUST_CHECK;

#endif
