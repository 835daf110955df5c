/* half.c -- binary16 and bfloat16 to and from float, by bits: to nearest even, NaN stays NaN. */
#include "core/half.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float leat_half_to_float(leat_half h)
{
    uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16;
    uint32_t exponent = (h.bits >> 10) & 0x1f, mantissa = h.bits & 0x3ff;
    if (exponent == 0x1f) /* infinity or NaN; the payload stays */
        return float_of(sign | 0x7f800000 | mantissa << 13);
    if (exponent != 0)
        return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float small = (float)mantissa * 0x1p-24f; /* zero or subnormal: exact */
    return sign ? -small : small;
}

leat_half leat_half_from_float(float f)
{
    uint32_t u = bits_of(f), magnitude = u & 0x7fffffff;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    uint16_t bits;
    if (magnitude > 0x7f800000) { /* NaN: quiet, with the upper part of its payload */
        bits = (uint16_t)(0x7e00 | (magnitude >> 13 & 0x1ff));
    } else if (magnitude >= 0x477ff000) { /* 65520 and above round to infinity */
        bits = 0x7c00;
    } else if (magnitude < 0x38800000) {
        /* Below 2^-14: adding 0.5 moves the half's last bit (2^-24) to the float's last bit, and
         * the addition rounds to nearest even. */
        bits = (uint16_t)(bits_of(float_of(magnitude) + 0.5f) - 0x3f000000);
    } else {
        uint32_t odd = magnitude >> 13 & 1;
        bits = (uint16_t)((magnitude - 0x38000000 + 0xfff + odd) >> 13);
    }
    return (leat_half){sign | bits};
}

float leat_bfloat16_to_float(leat_bfloat16 h)
{
    return float_of((uint32_t)h.bits << 16);
}

static inline uint16_t bfloat16_bits(uint32_t u)
{
    const uint32_t nan = u >> 16 | 0x40, rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

leat_bfloat16 leat_bfloat16_from_float(float f)
{
    return (leat_bfloat16){bfloat16_bits(bits_of(f))};
}

/* ---- Many ---- */
#if defined(__x86_64__)
/* Processors with F16C convert eight halves at a time. Gives the number of elements converted. */
__attribute__((target("avx2,f16c"))) static int64_t widen_eights(const leat_half *x, float *y,
                                                                 int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    return i;
}

__attribute__((target("avx2,f16c"))) static int64_t narrow_eights(const float *x, leat_half *y,
                                                                  int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

static bool has_eights(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
static int64_t widen_eights(const leat_half *x, float *y, int64_t n)
{
    return 0;
}

static int64_t narrow_eights(const float *x, leat_half *y, int64_t n)
{
    return 0;
}

static bool has_eights(void)
{
    return false;
}
#endif

void leat_halves_to_floats(const leat_half *x, float *y, int64_t n)
{
    for (int64_t i = has_eights() ? widen_eights(x, y, n) : 0; i < n; i++)
        y[i] = leat_half_to_float(x[i]);
}

void leat_halves_from_floats(const float *x, leat_half *y, int64_t n)
{
    for (int64_t i = has_eights() ? narrow_eights(x, y, n) : 0; i < n; i++)
        y[i] = leat_half_from_float(x[i]);
}

void leat_bfloat16s_to_floats(const leat_bfloat16 *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = float_of((uint32_t)x[i].bits << 16);
}

void leat_bfloat16s_from_floats(const float *x, leat_bfloat16 *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i].bits = bfloat16_bits(bits_of(x[i]));
}
