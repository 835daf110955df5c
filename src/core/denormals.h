/* denormals.h -- arithmetic without denormal numbers. Some processors take 100 times as long for an
 * operation on a denormal, and training makes many of them: an optimizer's moments of a weight that
 * gets no gradient shrink until they are denormal. TensorFlow's threads take denormal operands for
 * zero and give zero for denormal results; so do kernels, whichever thread runs them. Processors
 * other than x86 have no such cost, and keep denormals, as TensorFlow does there. */
#ifndef LEAT_CORE_DENORMALS_H
#define LEAT_CORE_DENORMALS_H

#if defined(__SSE__)
#include <xmmintrin.h>

enum { LEAT_FLUSH_TO_ZERO = 0x8000, LEAT_DENORMALS_ARE_ZERO = 0x0040 }; /* bits of MXCSR */

/* Switches denormals off in this thread. Returns what leat_denormals_restore needs. */
static inline unsigned leat_denormals_off(void)
{
    const unsigned both = LEAT_FLUSH_TO_ZERO | LEAT_DENORMALS_ARE_ZERO, before = _mm_getcsr();
    if ((before & both) != both)
        _mm_setcsr(before | both);
    return before & both;
}

static inline void leat_denormals_restore(unsigned before)
{
    const unsigned both = LEAT_FLUSH_TO_ZERO | LEAT_DENORMALS_ARE_ZERO;
    if (before != both)
        _mm_setcsr((_mm_getcsr() & ~both) | before);
}

#else

static inline unsigned leat_denormals_off(void)
{
    return 0;
}

static inline void leat_denormals_restore(unsigned before)
{
    (void)before;
}

#endif

#endif
