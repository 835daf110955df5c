/* sparse.h -- a sparse tensor among a kernel's inputs: indices, values and the dense shape. */
#ifndef LEAT_CPU_SPARSE_H
#define LEAT_CPU_SPARSE_H

#include "kernels/cpu/cpu.h"

typedef struct leat_sparse {
    const leat_tensor *indices; /* (n, rank) of int64 */
    const leat_tensor *values;  /* (n) */
    leat_shape shape;           /* dense */
    int64_t n;
    int rank;
} leat_sparse;

/* Inputs i, i+1, i+2; their shapes are checked, the indices' values are not. */
leat_status leat_sparse_input(leat_kernel *k, int i, leat_sparse *out) LEAT_MUST_CHECK;
/* Checks that indices are inside the shape, in row-major order if `ordered`, and without
 * duplicates: "indices[1] = [0,7] is out of bounds: need 0 <= index < [3,5]". */
leat_status leat_sparse_check(const leat_sparse *s, bool ordered) LEAT_MUST_CHECK;
static inline const int64_t *leat_sparse_at(const leat_sparse *s, int64_t i)
{
    return AT(int64_t, s->indices) + i * s->rank;
}
/* The flat index, in a dense tensor of this shape, of the first `rank` numbers at `place`. */
static inline int64_t leat_place_flat(const leat_shape *s, int rank, const int64_t *place)
{
    int64_t at = 0;
    for (int d = 0; d < rank; d++)
        at = at * s->dim[d] + place[d];
    return at;
}

#endif
