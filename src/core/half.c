/* half.c -- binary16 and bfloat16 to and from float, by bits: to nearest even, NaN stays NaN. */
#include <leat/tensor.h>

#include <string.h>

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

leat_bfloat16 leat_bfloat16_from_float(float f)
{
    uint32_t u = bits_of(f);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (leat_bfloat16){(uint16_t)(u >> 16 | 0x40)};
    return (leat_bfloat16){(uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}
