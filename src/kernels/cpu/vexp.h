/* vexp.h -- the exponential without branches or calls, so that loops over it become vectors. */
#ifndef LEAT_CPU_VEXP_H
#define LEAT_CPU_VEXP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* 2^n for n in [-126, 127] */
static inline float leat_exp2i(int32_t n)
{
    uint32_t bits = (uint32_t)(n + 127) << 23;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* e^x to about an ulp: x = n*ln2 + r, e^r by a polynomial of degree 7 (after Cephes), 2^n put into
 * the exponent in two steps, so that results may be denormal or infinite. NaN stays NaN. */
static inline float leat_expf(float x)
{
    const float shift =
        12582912.0f; /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
    float c = x > 89.0f ? 89.0f : x;
    c = c < -105.0f ? -105.0f : c;
    float t = c * 1.44269504088896341f + shift, whole = t - shift;
    uint32_t low, base;
    memcpy(&low, &t, sizeof(low));
    memcpy(&base, &shift, sizeof(base));
    int32_t n = (int32_t)(low - base), half = n >> 1;
    float r = c - whole * 0.693359375f - whole * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    return p * leat_exp2i(half) * leat_exp2i(n - half);
}

static inline double leat_exp(double x)
{
    return exp(x);
}

#endif
