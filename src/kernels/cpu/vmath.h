/* vmath.h -- exp, expm1, log, log1p, tanh and the logistic function of one float, without a
 * branch or a call, so that the compiler makes vectors of the loops they stand in.
 *
 * Errors are at most 1 unit in the last place for exp and log, 1.5 for expm1 and log1p, 2.5 for
 * tanh and sigmoid (tests/kernels/vmath_test.c measures them).
 * Infinity, NaN, overflow and denormal numbers are as in the C library; errno is left alone.
 * Polynomials are Chebyshev fits, good to 1e-8 and better, over the reduced ranges.
 */
#ifndef LEAT_KERNELS_CPU_VMATH_H
#define LEAT_KERNELS_CPU_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t leat_vbits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}

static inline float leat_vfloat(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

/* x = n ln 2 + r with r in about [-ln 2 / 2, ln 2 / 2]: gives e^r - 1, and 2^n as a product of
 * two factors, each of which is a normal number for n in [-252, 254]. */
static inline float leat_vexp_reduce(float x, float *scale0, float *scale1)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    const float t = x * 1.44269504f + magic, n = t - magic;
    float r = x - n * 0.693359375f; /* exact: the factor has 9 bits */
    r = r + n * 2.12194440e-4f;
    float p = 1.99004438e-4f;
    p = p * r + 1.39345445e-3f;
    p = p * r + 8.33329706e-3f;
    p = p * r + 4.16664568e-2f;
    p = p * r + 0.166666667f;
    p = p * r + 0.500000001f;
    const int32_t whole = (int32_t)(leat_vbits(t) - leat_vbits(magic)), half = whole >> 1;
    *scale0 = leat_vfloat((uint32_t)(half + 127) << 23);
    *scale1 = leat_vfloat((uint32_t)(whole - half + 127) << 23);
    return p * (r * r) + r;
}

static inline float leat_vexp(float x)
{
    float a, b;
    x = x < -104.0f ? -104.0f : x; /* gives 0; NaN stays */
    x = x > 89.0f ? 89.0f : x;     /* gives infinity */
    const float q = leat_vexp_reduce(x, &a, &b);
    return (q + 1.0f) * a * b;
}

static inline float leat_vexpm1(float x)
{
    float a, b;
    const float y = x < -80.0f ? -80.0f : x > 89.0f ? 89.0f : x;
    const float q = leat_vexp_reduce(y, &a, &b), s = a * b;
    const float small = s * q + (s - 1.0f), large = (q + 1.0f) * a * b;
    const float z = y > 40.0f ? large : small;
    return x == 0.0f ? x : z; /* -0 stays */
}

static inline float leat_vlog(float x)
{
    const float tiny = 1.17549435e-38f; /* denormal numbers are made normal first */
    const float y = x < tiny ? x * 8388608.0f : x;
    /* y = m 2^e with m in [sqrt(1/2), sqrt(2)) */
    const uint32_t i = leat_vbits(y) - 0x3f3504f3u;
    const float e = (float)((int32_t)i >> 23) - (x < tiny ? 23.0f : 0.0f);
    const float f = leat_vfloat((i & 0x007fffffu) + 0x3f3504f3u) - 1.0f, z = f * f;
    float p = 7.14819172e-2f;
    p = p * f - 0.115717757f;
    p = p * f + 0.116624362f;
    p = p * f - 0.12410998f;
    p = p * f + 0.142498146f;
    p = p * f - 0.166684806f;
    p = p * f + 0.200007128f;
    p = p * f - 0.249999891f;
    p = p * f + 0.333333311f;
    p = p * f * z - 2.12194440e-4f * e - 0.5f * z;
    float v = e * 0.693359375f + (f + p);
    v = x < INFINITY ? v : x; /* and NaN */
    v = x == 0.0f ? -INFINITY : v;
    return x < 0.0f ? NAN : v;
}

static inline float leat_vlog1p(float x)
{
    const float u = 1.0f + x, lost = (x - (u - 1.0f)) / u;
    float v = leat_vlog(u) + lost;
    v = x < INFINITY && x > -1.0f ? v : leat_vlog(u); /* the ends, and NaN */
    return x == 0.0f ? x : v;
}

static inline float leat_vtanh(float x)
{
    const uint32_t sign = leat_vbits(x) & 0x80000000u;
    const float a = fabsf(x), q = leat_vexpm1(2.0f * (a > 10.0f ? 10.0f : a));
    return leat_vfloat(leat_vbits(q / (q + 2.0f)) | sign);
}

/* 1 / (1 + e^-x), also where e^-x would overflow. */
static inline float leat_vsigmoid(float x)
{
    const float e = leat_vexp(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

#endif
