/* linalg.c -- decompositions of matrices: Qr, computed in double precision by reflections. */
#include <complex.h>
#include <float.h>

#include "core/element.h"
#include "kernels/cpu/cpu.h"

enum { FAR = 8 }; /* elements whose time it takes to step down a column */

#define N double
#define NAME(f) real_##f
#define CONJ(x) (x)
#define REAL(x) (x)
#include "kernels/cpu/qr.inc"
#undef N
#undef NAME
#undef CONJ
#undef REAL

#define N double complex
#define NAME(f) complex_##f
#define CONJ(x) conj(x)
#define REAL(x) creal(x)
#include "kernels/cpu/qr.inc"
#undef N
#undef NAME
#undef CONJ
#undef REAL

/* Converts n numbers from and to the doubles, or pairs of doubles, in which the kernel computes. */
static void widen(const leat_tensor *t, int64_t from, int64_t n, void *out)
{
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == LEAT_FLOAT)
            ((double *)out)[i] = (double)AT(float, t)[from + i];
        else if (t->dtype == LEAT_DOUBLE)
            ((double *)out)[i] = AT(double, t)[from + i];
        else if (t->dtype == LEAT_COMPLEX64)
            ((leat_complex128 *)out)[i] =
                (leat_complex128){(double)AT(leat_complex64, t)[from + i].re,
                                  (double)AT(leat_complex64, t)[from + i].im};
        else
            ((leat_complex128 *)out)[i] = AT(leat_complex128, t)[from + i];
    }
}

static void narrow(const void *in, leat_tensor *t, int64_t to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == LEAT_FLOAT)
            AT(float, t)[to + i] = (float)((const double *)in)[i];
        else if (t->dtype == LEAT_DOUBLE)
            AT(double, t)[to + i] = ((const double *)in)[i];
        else if (t->dtype == LEAT_COMPLEX64)
            AT(leat_complex64, t)
        [to + i] = (leat_complex64){(float)((const leat_complex128 *)in)[i].re,
                                    (float)((const leat_complex128 *)in)[i].im};
        else AT(leat_complex128, t)[to + i] = ((const leat_complex128 *)in)[i];
    }
}

static leat_status scratch(leat_kernel *k, int64_t n, leat_tensor **out)
{
    leat_shape s = {.rank = 1, .dim = {n}};
    return leat_kernel_temp(k, LEAT_COMPLEX128, &s, out);
}

/* Sets the elements below the diagonal of r, which held the reflections, to 0. */
static void upper(void *a, int64_t m, int64_t n, bool complex_numbers)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < i && j < n; j++) {
            if (complex_numbers)
                ((leat_complex128 *)a)[i * n + j] = (leat_complex128){0, 0};
            else
                ((double *)a)[i * n + j] = 0;
        }
    }
}

static leat_status qr_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    LEAT_REQUIRE(x->shape.rank >= 2, INVALID_ARGUMENT, "Input tensor 0 must have rank >= 2, got %d",
                 x->shape.rank);
    leat_shape sq = x->shape, sr = x->shape;
    int64_t m = sq.dim[sq.rank - 2], n = sq.dim[sq.rank - 1], least = m < n ? m : n;
    int64_t p = leat_node_bool(leat_kernel_node(k), "full_matrices") ? m : least;
    bool complex_numbers = x->dtype == LEAT_COMPLEX64 || x->dtype == LEAT_COMPLEX128;
    sq.dim[sq.rank - 1] = p;
    sr.dim[sr.rank - 2] = p;
    leat_tensor *q, *r, *a, *tau, *wide;
    LEAT_TRY(leat_kernel_out(k, 0, &sq, &q));
    LEAT_TRY(leat_kernel_out(k, 1, &sr, &r));
    LEAT_TRY(scratch(k, m * n, &a));
    LEAT_TRY(scratch(k, least, &tau));
    LEAT_TRY(scratch(k, m * p, &wide));
    int64_t matrices = 1;
    for (int d = 0; d < x->shape.rank - 2; d++)
        matrices *= x->shape.dim[d];
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < matrices; i++) {
        widen(x, i * m * n, m * n, a->data);
        if (complex_numbers)
            complex_decompose(a->data, m, n, tau->data, wide->data, p, &look);
        else
            real_decompose(a->data, m, n, tau->data, wide->data, p, &look);
        if (leat_look_over(&look, m * p))
            return leat_kernel_check(k);
        upper(a->data, m, n, complex_numbers);
        narrow(wide->data, q, i * m * p, m * p);
        narrow(a->data, r, i * p * n, p * n);
    }
    return NULL;
}

const leat_kernel_def leat_cpu_linalg[] = {
    {.op = "Qr",
     .where = {{"T", LEAT_T(FLOAT) | LEAT_T(DOUBLE) | LEAT_TYPES_COMPLEX}},
     .run = qr_run,
     .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
