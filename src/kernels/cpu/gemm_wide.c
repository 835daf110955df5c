/* gemm_wide.c -- whether products use vectors of 64 bytes where the processor has AVX-512.
 *
 * Processors with AVX-512 differ in what such vectors bring. Those with two multipliers of 64 bytes
 * (Intel's servers but the smallest, AMD's from Zen 5 on) multiply twice as fast with them. With
 * one such multiplier, or with units of 32 bytes that work on the halves of a vector (Zen 4), they
 * are no faster, and lose where the number of columns is not a multiple of 16: measured on Zen 4, 2
 * % faster where it is, 4 to 14 % slower where it is not. Neither the features nor the model of the
 * processor tell reliably which kind it is: models that share a number have one multiplier or two,
 * and a virtual machine may show a model that is not the host's. So the first product measures it,
 * by chains of multiply-adds in registers, which take some microseconds. A wrong answer costs speed
 * and nothing else, because both sizes give the same bits.
 */
#include "kernels/cpu/gemm_int.h"

#include <pthread.h>
#include <stdatomic.h>

#if HAS_WIDE_VECTORS
#include <x86intrin.h>

enum { CHAINS = 12, STEPS = 200, ROUNDS = 8 };

/* Cycles, or what the processor counts as such, of CHAINS * STEPS multiply-adds of vectors. */
#define CYCLES(VEC, name, ADD)                                                                     \
    static __attribute__((noinline)) uint64_t name(void)                                           \
    {                                                                                              \
        VEC x[CHAINS];                                                                             \
        VEC factor = {0};                                                                          \
        for (int i = 0; i < CHAINS; i++)                                                           \
            x[i] = factor;                                                                         \
        __asm__ volatile("" : "+v"(factor));                                                       \
        const uint64_t begin = __rdtsc();                                                          \
        for (int n = 0; n < STEPS; n++) {                                                          \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)                              \
            {                                                                                      \
                x[i] = ADD(factor, factor, x[i]);                                                  \
                __asm__ volatile("" : "+v"(x[i]));                                                 \
            }                                                                                      \
        }                                                                                          \
        return __rdtsc() - begin;                                                                  \
    }
CYCLES(__m256, narrow_cycles, _mm256_fmadd_ps)
CYCLES(__m512, wide_cycles, _mm512_fmadd_ps)

static atomic_int wide = -1; /* -1: not measured yet */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The least of several rounds each: a round may be interrupted, and the first ones with vectors of
 * 64 bytes are slow while the processor powers their units up. */
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
