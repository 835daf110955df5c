/* vmath.h -- exponential, logarithm and hyperbolic tangent without branches or calls, so that
 * compilers vectorise loops over them. */
#ifndef LEAT_CPU_VMATH_H
#define LEAT_CPU_VMATH_H

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

/* log(x) to about an ulp: x = 2^e m with m near 1, and a polynomial of m - 1 (after Cephes). */
static inline float leat_logf(float x)
{
    const float up = x < 0x1p-126f ? x * 0x1p23f : x; /* denormals become normal */
    uint32_t bits;
    memcpy(&bits, &up, sizeof(bits));
    const uint32_t from = bits - 0x3f3504f3; /* of sqrt(1/2) */
    const float e = (float)((int32_t)from >> 23) - (x < 0x1p-126f ? 23.0f : 0.0f);
    const uint32_t m_bits = (from & 0x007fffff) + 0x3f3504f3;
    float m;
    memcpy(&m, &m_bits, sizeof(m));
    const float r = m - 1.0f, z = r * r;
    float p = 7.0376836292e-2f;
    p = p * r - 1.1514610310e-1f;
    p = p * r + 1.1676998740e-1f;
    p = p * r - 1.2420140846e-1f;
    p = p * r + 1.4249322787e-1f;
    p = p * r - 1.6668057665e-1f;
    p = p * r + 2.0000714765e-1f;
    p = p * r - 2.4999993993e-1f;
    p = p * r + 3.3333331174e-1f;
    float y = r * z * p + e * -2.12194440e-4f - 0.5f * z;
    y = r + y + e * 0.693359375f;
    y = x < INFINITY ? y : x; /* infinity and NaN */
    y = x > 0 || x != x ? y : NAN;
    return x == 0 ? -INFINITY : y;
}

/* tanh(x) to about two ulps: a polynomial near 0, elsewhere 1 - 2 / (e^2x + 1). */
static inline float leat_tanhf(float x)
{
    const float a = x < 0 ? -x : x, z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float near = p * z * x + x, far = 1.0f - 2.0f / (leat_expf(a + a) + 1.0f);
    return a < 0.625f ? near : x < 0 ? -far : far;
}

static inline double leat_exp(double x)
{
    return exp(x);
}

#endif
