/* distributions.c -- uniform, normal and truncated normal numbers from a Philox stream. */
#define _GNU_SOURCE /* sincosf */
#include "kernels/cpu/distributions.h"

/* ---- Random bits as the fraction of a number in [1, 2) ---- */

float leat_uniform_float(uint32_t x)
{
    uint32_t bits = 127u << 23 | (x & 0x7fffff);
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f - 1.0f;
}

double leat_uniform_double(uint32_t x0, uint32_t x1)
{
    uint64_t bits = (uint64_t)1023 << 52 | (uint64_t)(x0 & 0xfffff) << 32 | x1;
    double d;
    memcpy(&d, &bits, sizeof(d));
    return d - 1.0;
}

static leat_half uniform_half(uint32_t x)
{
    leat_half h = {(uint16_t)(15u << 10 | (x & 0x3ff))};
    return leat_half_from_float(leat_half_to_float(h) - 1.0f);
}

static leat_bfloat16 uniform_bfloat16(uint32_t x)
{
    leat_bfloat16 h = {(uint16_t)(127u << 7 | (x & 0x7f))};
    return leat_bfloat16_from_float(leat_bfloat16_to_float(h) - 1.0f);
}

/* ---- Box-Muller: two uniform numbers give two normal ones ---- */

static void box_muller_float(uint32_t x0, uint32_t x1, float out[2])
{
    float u1 = leat_uniform_float(x0);
    if (u1 < 1.0e-7f)
        u1 = 1.0e-7f; /* a lower bound for the logarithm */
    float angle = (float)(2.0f * M_PI * leat_uniform_float(x1)), radius = sqrtf(-2.0f * logf(u1));
    sincosf(angle, &out[0], &out[1]);
    out[0] *= radius;
    out[1] *= radius;
}

void leat_box_muller_double(const uint32_t x[4], double out[2])
{
    double u1 = leat_uniform_double(x[0], x[1]);
    if (u1 < 1.0e-7)
        u1 = 1.0e-7;
    double angle = 2 * M_PI * leat_uniform_double(x[2], x[3]), radius = sqrt(-2.0 * log(u1));
    sincos(angle, &out[0], &out[1]);
    out[0] *= radius;
    out[1] *= radius;
}

/* ---- Groups ---- */

#define SAME(x) (x)
#define UNIFORM(name, T, from)                                                                     \
    static void name(const leat_distribution *d, leat_philox *p, void *out)                        \
    {                                                                                              \
        uint32_t x[4];                                                                             \
        leat_philox_next(p, x);                                                                    \
        for (int i = 0; i < 4; i++)                                                                \
            ((T *)out)[i] = from(x[i]);                                                            \
    }
UNIFORM(make_uniform_float, float, leat_uniform_float)
UNIFORM(make_uniform_half, leat_half, uniform_half)
UNIFORM(make_uniform_bfloat16, leat_bfloat16, uniform_bfloat16)

static void make_uniform_double(const leat_distribution *d, leat_philox *p, void *out)
{
    uint32_t x[4];
    leat_philox_next(p, x);
    for (int i = 0; i < 2; i++)
        ((double *)out)[i] = leat_uniform_double(x[2 * i], x[2 * i + 1]);
}

static void make_int32(const leat_distribution *d, leat_philox *p, void *out)
{
    uint32_t x[4];
    leat_philox_next(p, x);
    for (int i = 0; i < 4; i++)
        ((int32_t *)out)[i] = (int32_t)((uint32_t)d->low + x[i] % (uint32_t)d->range);
}

static void make_int64(const leat_distribution *d, leat_philox *p, void *out)
{
    uint32_t x[4];
    leat_philox_next(p, x);
    for (int i = 0; i < 2; i++) {
        uint64_t bits = x[2 * i] | (uint64_t)x[2 * i + 1] << 32;
        ((int64_t *)out)[i] = (int64_t)((uint64_t)d->low + bits % d->range);
    }
}

#define NORMAL(name, T, from)                                                                      \
    static void make_normal_##name(const leat_distribution *d, leat_philox *p, void *out)          \
    {                                                                                              \
        uint32_t x[4];                                                                             \
        float f[2];                                                                                \
        leat_philox_next(p, x);                                                                    \
        for (int i = 0; i < 4; i += 2) {                                                           \
            box_muller_float(x[i], x[i + 1], f);                                                   \
            ((T *)out)[i] = from(f[0]);                                                            \
            ((T *)out)[i + 1] = from(f[1]);                                                        \
        }                                                                                          \
    }                                                                                              \
    /* Numbers that are two or more standard deviations from zero are drawn again. */              \
    static void make_truncated_##name(const leat_distribution *d, leat_philox *p, void *out)       \
    {                                                                                              \
        leat_philox_single s = {.gen = p, .used = 4};                                              \
        for (int n = 0; n < 4;) {                                                                  \
            float f[2];                                                                            \
            uint32_t x0 = leat_philox_one(&s), x1 = leat_philox_one(&s);                           \
            box_muller_float(x0, x1, f);                                                           \
            for (int i = 0; i < 2 && n < 4; i++)                                                   \
                if (fabsf(f[i]) < 2.0f)                                                            \
                    ((T *)out)[n++] = from(f[i]);                                                  \
        }                                                                                          \
    }
NORMAL(float, float, SAME)
NORMAL(half, leat_half, leat_half_from_float)
NORMAL(bfloat16, leat_bfloat16, leat_bfloat16_from_float)

static void make_normal_double(const leat_distribution *d, leat_philox *p, void *out)
{
    uint32_t x[4];
    leat_philox_next(p, x);
    leat_box_muller_double(x, out);
}

static void make_truncated_double(const leat_distribution *d, leat_philox *p, void *out)
{
    for (int n = 0; n < 2;) {
        double both[2];
        make_normal_double(d, p, both);
        for (int i = 0; i < 2 && n < 2; i++)
            if (fabs(both[i]) < 2.0)
                ((double *)out)[n++] = both[i];
    }
}

leat_distribution leat_distribution_of(leat_distribution_kind kind, leat_dtype t)
{
#define ROW(name, ns, stride)                                                                      \
    {                                                                                              \
        [LEAT_HALF] = {make_##name##_half, 4, stride, ns},                                         \
        [LEAT_BFLOAT16] = {make_##name##_bfloat16, 4, stride, ns},                                 \
        [LEAT_FLOAT] = {make_##name##_float, 4, stride, ns},                                       \
        [LEAT_DOUBLE] = {make_##name##_double, 2, (stride + 1) / 2, ns},                           \
    }
    /* For each truncated normal number, 256 numbers of the stream are reserved. */
    static const leat_distribution table[][LEAT_UINT64 + 1] = {
        [LEAT_UNIFORM] = ROW(uniform, 15, 1),
        [LEAT_NORMAL] = ROW(normal, 60, 1),
        [LEAT_TRUNCATED_NORMAL] = ROW(truncated, 80, 256),
        [LEAT_UNIFORM_INT] =
            {[LEAT_INT32] = {make_int32, 4, 1, 20}, [LEAT_INT64] = {make_int64, 2, 1, 30}},
    };
    return table[kind][t];
}

typedef struct fill_args {
    const leat_distribution *d;
    leat_philox p;
    leat_tensor *y;
    size_t size; /* bytes of an element */
} fill_args;

static void fill_part(void *arg, int64_t begin, int64_t end)
{
    fill_args *a = arg;
    const leat_distribution *d = a->d;
    for (int64_t g = begin; g < end; g++) {
        leat_philox p = a->p;
        leat_philox_skip(&p, (uint64_t)g * (uint64_t)d->stride);
        char *out = (char *)a->y->data + (size_t)(g * d->group) * a->size;
        int64_t left = a->y->count - g * d->group;
        if (left >= d->group) {
            d->make(d, &p, out);
        } else {
            double last[4];
            d->make(d, &p, last);
            memcpy(out, last, (size_t)left * a->size);
        }
    }
}

void leat_distribution_fill(leat_kernel *k, const leat_distribution *d, leat_philox p,
                            leat_tensor *y)
{
    fill_args a = {d, p, y, leat_dtype_size(y->dtype)};
    leat_kernel_for(k, y->count / d->group + (y->count % d->group != 0), d->ns, fill_part, &a);
}
