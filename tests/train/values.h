/* values.h -- tensors whose elements the Python files of this folder compute, too, and results that
 * are compared with a line of data/. */
#ifndef LEAT_TEST_VALUES_H
#define LEAT_TEST_VALUES_H

#include <leat/leat.h>

#include "train/sequences.h"

/* Element i of tensor number k, as values() in make_rnn.py and make_embedding.py. */
static inline double value(int64_t i, int k)
{
    return 0.6 * sin(0.7 * (double)i + 1.3 * k);
}

static inline leat_tensor *tensor(leat_dtype t, leat_shape s, int k)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, s, &x));
    for (int64_t i = 0; x && i < leat_tensor_count(x); i++) {
        if (t == LEAT_DOUBLE)
            ((double *)leat_tensor_mutable(x))[i] = value(i, k);
        else
            ((float *)leat_tensor_mutable(x))[i] = (float)value(i, k);
    }
    return x;
}

static inline leat_out constant(leat_graph *g, leat_dtype t, leat_shape s, int k)
{
    leat_tensor *v = tensor(t, s, k);
    leat_out c = leat_const(g, v);
    leat_tensor_unref(v);
    return c;
}

/* The elements of the n tensors, one after another, are those of the line, relative to their size
 * if that is above 1. Takes the tensors. */
static inline void check_sequence(const char *file, const char *line, leat_tensor *const *got,
                                  int n, double tolerance)
{
    static double want[2000];
    const int count = sequence_in(file, line, want, 2000);
    int at = 0;
    for (int i = 0; i < n; i++) {
        for (int64_t k = 0; got[i] && k < leat_tensor_count(got[i]); k++, at++) {
            const double x = leat_tensor_at(got[i], k), most = at < count ? fabs(want[at]) : 0;
            if (at < count && !(fabs(x - want[at]) <= tolerance * (most > 1 ? most : 1)))
                test_failures++,
                    printf("%s: element %d is %.7g, want %.7g\n", line, at, x, want[at]);
        }
        leat_tensor_unref(got[i]);
    }
    CHECK_INT(at, count);
}

#endif
