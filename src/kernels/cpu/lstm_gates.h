/* lstm_gates.h -- the arithmetic of an LSTM cell between its products: gates, state and output from
 * the products of a step, and their gradients. All matrices have a row for each member of the
 * batch, and `units` columns where nothing else is said. */
#ifndef LEAT_KERNELS_CPU_LSTM_GATES_H
#define LEAT_KERNELS_CPU_LSTM_GATES_H

#include <stdbool.h>
#include <stdint.h>

/* The number of the gates' columns in a matrix of four gates. */
typedef struct leat_lstm_order {
    int input, cell, forget, output;
} leat_lstm_order;
#define LEAT_LSTM_ICFO ((leat_lstm_order){0, 1, 2, 3})
#define LEAT_LSTM_IFCO ((leat_lstm_order){0, 2, 1, 3})

/* What is the same in all steps. */
typedef struct leat_lstm_cell {
    int64_t units;
    leat_lstm_order order;
    float forget_bias;
    float clip;                   /* limit of the state's elements; 0 or less: none */
    const float *wci, *wcf, *wco; /* peepholes, `units` elements each; all NULL: none */
} leat_lstm_cell;

/* Gate g of unit u in row r is, before its function, the sum of gates[r * ld + g * distance + u] of
 * both products. The second has the units from `first` on only; its gates may be NULL. */
typedef struct leat_lstm_product {
    const float *gates;
    int64_t ld, distance;
} leat_lstm_product;

typedef struct leat_lstm_step {
    leat_lstm_product product, more;
    int64_t first;
    const float *cs_prev;
    float *i, *cs, *f, *o, *ci, *co, *h;
} leat_lstm_step;
/* Computes units [begin, end) of `rows` rows. */
void leat_lstm_forward(const leat_lstm_cell *c, const leat_lstm_step *s, int64_t rows,
                       int64_t begin, int64_t end);

typedef struct leat_lstm_back {
    const float *cs_prev, *i, *cs, *f, *o, *ci, *co;
    const float *h_grad, *cs_grad;
    const float *cs_more; /* added to cs_grad; NULL: nothing */
    float *gates_grad;    /* (rows, 4 * units) */
    float *cs_prev_grad;  /* may be cs_grad or cs_more */
} leat_lstm_back;
void leat_lstm_backward(const leat_lstm_cell *c, const leat_lstm_back *b, int64_t rows,
                        int64_t begin, int64_t end);

/* Adds, for units [begin, end), the gradients of the peepholes that come from `rows` rows. */
typedef struct leat_lstm_sums {
    const float *gates_grad, *cs_prev, *cs;
    float *wci_grad, *wcf_grad, *wco_grad;
} leat_lstm_sums;
void leat_lstm_add_peepholes(const leat_lstm_cell *c, const leat_lstm_sums *s, int64_t rows,
                             int64_t begin, int64_t end);

#endif
