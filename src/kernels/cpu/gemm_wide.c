/* gemm_wide.c -- whether products use vectors of 64 bytes where the processor has AVX-512.
 *
 * Processors with AVX-512 differ in what such vectors bring. Those with two multipliers of 64 bytes
 * (Intel's servers but the smallest, AMD's from Zen 5 on) multiply twice as fast with them. With
 * one such multiplier, or with units of 32 bytes that work on the halves of a vector (Zen 4), they
 * are no faster, and lose where the number of columns is not a multiple of 16: measured on Zen 4, 2
 * % faster where it is, 4 to 14 % slower where it is not. Neither the features nor the model of the
 * processor tell reliably which kind it is: models that share a number have one multiplier or two,
 * and a virtual machine may show a model that is not the host's. So the first product measures it,
 * by chains of multiply-adds in registers, for a fifth of a millisecond. A wrong answer costs speed
 * and nothing else, because both sizes give the same bits.
 */
#include "kernels/cpu/gemm_int.h"

#include <pthread.h>
#include <stdatomic.h>

#if HAS_WIDE_VECTORS
#include <x86intrin.h>

enum { STEPS = 200, ROUNDS = 200 };

/* Twelve chains hide the time that one multiply-add takes. Each is a variable of its own, so that
 * it is in a register. */
#define CHAINS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define BEGIN(i) __typeof__(factor) x##i = factor;
#define STEP(i)                                                                                    \
    x##i = MULTIPLY_ADD(factor, factor, x##i);                                                     \
    __asm__ volatile("" : "+v"(x##i));

/* What the processor counts as cycles, for STEPS multiply-adds of all chains. */
#define CYCLES                                                                                     \
    CHAINS(BEGIN)                                                                                  \
    const uint64_t begin = __rdtsc();                                                              \
    for (int n = 0; n < STEPS; n++) {                                                              \
        CHAINS(STEP)                                                                               \
    }                                                                                              \
    return __rdtsc() - begin;

#define MULTIPLY_ADD _mm256_fmadd_ps
static __attribute__((noinline)) uint64_t narrow_cycles(void)
{
    __m256 factor = _mm256_setzero_ps();
    __asm__ volatile("" : "+v"(factor));
    CYCLES
}
#undef MULTIPLY_ADD

#define MULTIPLY_ADD _mm512_fmadd_ps
static __attribute__((noinline)) uint64_t wide_cycles(void)
{
    __m512 factor = _mm512_setzero_ps();
    __asm__ volatile("" : "+v"(factor));
    CYCLES
}
#undef MULTIPLY_ADD

static atomic_int wide = -1; /* -1: not measured yet */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The least of several rounds each: a round may be interrupted, and the first ones with vectors of
 * 64 bytes are slow, on some processors for 20 us and more, until their units have power. */
static void measure(void)
{
    uint64_t narrow_least = UINT64_MAX, wide_least = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t n = narrow_cycles(), w = wide_cycles();
        narrow_least = n < narrow_least ? n : narrow_least;
        wide_least = w < wide_least ? w : wide_least;
    }
    int unknown = -1;
    atomic_compare_exchange_strong(&wide, &unknown, 2 * wide_least < 3 * narrow_least);
}

bool leat_gemm_wide(void)
{
    const int known = atomic_load_explicit(&wide, memory_order_relaxed);
    if (__builtin_expect(known >= 0, 1))
        return known;
    pthread_once(&once, measure);
    return atomic_load_explicit(&wide, memory_order_relaxed);
}

void leat_gemm_set_wide(bool use)
{
    atomic_store(&wide, use);
}
#else
bool leat_gemm_wide(void)
{
    return false;
}

void leat_gemm_set_wide(bool use)
{
    (void)use;
}
#endif
