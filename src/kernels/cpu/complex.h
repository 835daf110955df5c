/* complex.h -- complex numbers in kernels: C's own types, which are laid out as leat_complex64 and
 * leat_complex128 are, and products without C's special treatment of infinities, as in
 * TensorFlow. */
#ifndef LEAT_KERNELS_CPU_COMPLEX_H
#define LEAT_KERNELS_CPU_COMPLEX_H

#include <complex.h>

#include "kernels/cpu/arith.h"

typedef float _Complex leat_c64;
typedef double _Complex leat_c128;
#define LEAT_WIDE_leat_c64 leat_c64
#define LEAT_WIDE_leat_c128 leat_c128

#define LEAT_Y_COMPLEX(X, name) X(name, COMPLEX64, leat_c64) X(name, COMPLEX128, leat_c128)
#define LEAT_ROW_COMPLEX LEAT_TYPES_COMPLEX

static inline leat_c64 leat_make_leat_c64(float re, float im)
{
    union {
        float part[2];
        leat_c64 z;
    } u = {{re, im}};
    return u.z;
}

static inline leat_c128 leat_make_leat_c128(double re, double im)
{
    union {
        double part[2];
        leat_c128 z;
    } u = {{re, im}};
    return u.z;
}

#define LEAT_COMPLEX_MUL(T, re, im)                                                                \
    static inline T leat_mul_##T(T x, T y)                                                         \
    {                                                                                              \
        return leat_make_##T(re(x) * re(y) - im(x) * im(y), re(x) * im(y) + im(x) * re(y));        \
    }
LEAT_COMPLEX_MUL(leat_c64, crealf, cimagf)
LEAT_COMPLEX_MUL(leat_c128, creal, cimag)

#endif
