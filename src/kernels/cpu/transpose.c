/* transpose.c -- Transpose, ConjugateTranspose, InvertPermutation. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"

static leat_status read_perm(const leat_tensor *t, int rank, int64_t *perm)
{
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "perm must be a vector, not %s",
                 leat_shape_show(&t->shape).s);
    LEAT_REQUIRE(t->count == rank, INVALID_ARGUMENT,
                 "transpose expects a vector of size %d. But input(1) is a vector of size %" PRId64,
                 rank, t->count);
    uint32_t seen = 0;
    for (int i = 0; i < rank; i++) {
        perm[i] = leat_index_at(t, i);
        LEAT_REQUIRE(perm[i] >= 0 && perm[i] < rank, INVALID_ARGUMENT,
                     "%" PRId64 " is out of range [0 .. %d)", perm[i], rank);
        seen |= 1u << perm[i];
    }
    for (int i = 0; i < rank; i++)
        LEAT_REQUIRE(seen >> i & 1, INVALID_ARGUMENT, "%d is missing from {%s}.", i,
                     leat_ints_show(t, ",").s);
    return NULL;
}

/* Dims of size 1 do not matter: only the order of the others does. */
static bool stays(const leat_shape *s, const int64_t *perm)
{
    int64_t last = -1;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[perm[i]] == 1)
            continue;
        if (perm[i] < last)
            return false;
        last = perm[i];
    }
    return true;
}

/* The input itself is the output if nothing moves, unless the output will be written to. */
static leat_status transpose_to(leat_kernel *k, bool share, leat_tensor **out)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    int64_t perm[LEAT_MAX_RANK], from[LEAT_MAX_RANK], to[LEAT_MAX_RANK];
    LEAT_TRY(read_perm(leat_kernel_in(k, 1), x->shape.rank, perm));
    leat_shape s;
    leat_tensor *y;
    s.rank = x->shape.rank;
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = x->shape.dim[perm[i]];
    if (share && stays(&x->shape, perm)) {
        LEAT_TRY(leat_tensor_reshape(x, s, &y));
        leat_kernel_set(k, 0, y);
        return NULL;
    }
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    *out = y;
    leat_move m;
    leat_strides(&x->shape, from);
    leat_strides(&s, to);
    leat_move_begin(&m);
    for (int i = 0; i < s.rank; i++)
        leat_move_dim(&m, s.dim[i], to[i], from[perm[i]]);
    return leat_move_run(k, &m, x->dtype, y->data, x->data);
}

static leat_status transpose(leat_kernel *k)
{
    leat_tensor *y;
    return transpose_to(k, true, &y);
}

static leat_status conjugate_transpose(leat_kernel *k)
{
    leat_tensor *y = NULL;
    LEAT_TRY(transpose_to(k, false, &y));
    for (int64_t i = 0; i < y->count; i++) {
        if (y->dtype == LEAT_COMPLEX64)
            AT(leat_complex64, y)[i].im = -AT(leat_complex64, y)[i].im;
        else
            AT(leat_complex128, y)[i].im = -AT(leat_complex128, y)[i].im;
    }
    return NULL;
}

#define INVERT(T)                                                                                  \
    static leat_status invert_##T(const T *x, T *y, int64_t n)                                     \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = -1;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            LEAT_REQUIRE(x[i] >= 0 && x[i] < n, INVALID_ARGUMENT,                                  \
                         "%" PRId64 " is not between 0 and %" PRId64, (int64_t)x[i], n);           \
            LEAT_REQUIRE(y[x[i]] == -1, INVALID_ARGUMENT,                                          \
                         "%" PRId64 " is duplicated in the input.", (int64_t)x[i]);                \
            y[x[i]] = (T)i;                                                                        \
        }                                                                                          \
        return NULL;                                                                               \
    }
INVERT(int32_t)
INVERT(int64_t)

static leat_status invert(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_REQUIRE(x->shape.rank == 1, INVALID_ARGUMENT, "invert_permutation expects a 1D vector.");
    LEAT_REQUIRE(x->count < INT32_MAX, INVALID_ARGUMENT,
                 "permutation of nonnegative int32s must have <= int32 max elements");
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    return x->dtype == LEAT_INT32 ? invert_int32_t(x->data, y->data, x->count)
                                  : invert_int64_t(x->data, y->data, x->count);
}

#define NOT_COMPLEX (LEAT_TYPES_ANY & ~LEAT_TYPES_COMPLEX)

const leat_kernel_def leat_cpu_transpose[] = {
    {.op = "Transpose", .run = transpose},
    {.op = "ConjugateTranspose", .where = {{"T", NOT_COMPLEX}}, .run = transpose},
    {.op = "ConjugateTranspose", .where = {{"T", LEAT_TYPES_COMPLEX}}, .run = conjugate_transpose},
    {.op = "InvertPermutation", .run = invert},
    {0},
};
