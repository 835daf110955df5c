/* ctc.h -- what the kernels of connectionist temporal classification share: their inputs, and the
 * decoded sequences. */
#ifndef LEAT_CPU_CTC_H
#define LEAT_CPU_CTC_H

#include "kernels/cpu/cpu.h"

typedef struct leat_ctc {
    const leat_tensor *x;  /* (time, batch, classes) */
    const int32_t *length; /* of each sequence, from 0 to time */
    int64_t time, batch, classes;
    int64_t blank; /* the last class */
} leat_ctc;

/* Checks input 0, the logits, and input `lengths`, sequence_length. Sizes that do not fit are
 * errors of the code `misfit`. */
leat_status leat_ctc_inputs(leat_kernel *k, int lengths, leat_code misfit,
                            leat_ctc *out) LEAT_MUST_CHECK;
/* Logit c of sequence b at time t. */
static inline double leat_ctc_logit(const leat_ctc *a, int64_t t, int64_t b, int64_t c)
{
    const int64_t at = (t * a->batch + b) * a->classes + c;
    return a->x->dtype == LEAT_FLOAT ? (double)AT(float, a->x)[at] : AT(double, a->x)[at];
}

/* The classes that were decoded for one sequence. */
typedef struct leat_ctc_decoded {
    int32_t *label;
    int64_t n;
} leat_ctc_decoded;
/* Writes the outputs 0 to 3 * paths of a decoder, sparse tensors. `all` has the paths of sequence
 * 0, those of sequence 1, and so on. */
leat_status leat_ctc_store(leat_kernel *k, int64_t batch, int64_t paths,
                           const leat_ctc_decoded *all) LEAT_MUST_CHECK;

#endif
