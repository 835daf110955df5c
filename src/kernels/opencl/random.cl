/* random.cl -- uniform, normal and truncated normal numbers from a stream of Philox (kernels/cpu/
 * philox.h), in TensorFlow's sequences. A round makes a group of four numbers; `stride` samples of
 * the stream belong to it. */
typedef struct philox {
    uint counter[4], key[2];
} philox;

DEVICE void philox_skip(philox *p, ulong n)
{
    const ulong low = p->counter[0] | (ulong)p->counter[1] << 32, sum = low + n;
    p->counter[0] = (uint)sum;
    p->counter[1] = (uint)(sum >> 32);
    if (sum < low && ++p->counter[2] == 0)
        ++p->counter[3];
}

DEVICE uint4 philox_next(philox *p)
{
    uint c0 = p->counter[0], c1 = p->counter[1], c2 = p->counter[2], c3 = p->counter[3];
    uint k0 = p->key[0], k1 = p->key[1];
    for (int round = 0; round < 10; round++) {
        const ulong a = (ulong)0xD2511F53 * c0, b = (ulong)0xCD9E8D57 * c2;
        c0 = (uint)(b >> 32) ^ c1 ^ k0;
        c1 = (uint)b;
        c2 = (uint)(a >> 32) ^ c3 ^ k1;
        c3 = (uint)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    philox_skip(p, 1);
    return (uint4)(c0, c1, c2, c3);
}

/* Bits as the fraction of a number in [1, 2), less 1. */
DEVICE float unit(uint x)
{
    return as_float(127u << 23 | (x & 0x7fffff)) - 1.0f;
}

/* Two uniform numbers give two normal ones (Box and Muller). */
DEVICE float2 normal_pair(uint x0, uint x1)
{
    const float radius = sqrt(-2.0f * log(fmax(unit(x0), 1.0e-7f)));
    const float angle = 6.2831853071795865f * unit(x1);
    return radius * (float2)(sin(angle), cos(angle));
}

DEVICE void put_group(GLOBAL float *y, long group, int n, float4 v)
{
    const long at = group * 4;
    y[at] = v.x;
    if (at + 1 < n)
        y[at + 1] = v.y;
    if (at + 2 < n)
        y[at + 2] = v.z;
    if (at + 3 < n)
        y[at + 3] = v.w;
}

#define GROUPS(name, stride, ...)                                                                  \
    KERNEL name(TENSOR(y), const philox start, int n)                                              \
    {                                                                                              \
        EACH_ROW(g, (n + 3L) / 4)                                                                  \
        {                                                                                          \
            philox p = start;                                                                      \
            float4 v;                                                                              \
            philox_skip(&p, (ulong)g * stride);                                                    \
            __VA_ARGS__                                                                            \
            put_group(OF(float, y), g, n, v);                                                      \
        }                                                                                          \
    }
GROUPS(uniform, 1, {
    const uint4 x = philox_next(&p);
    v = (float4)(unit(x.x), unit(x.y), unit(x.z), unit(x.w));
})
GROUPS(normal, 1, {
    const uint4 x = philox_next(&p);
    v = (float4)(normal_pair(x.x, x.y), normal_pair(x.z, x.w));
})
/* Numbers that are two or more standard deviations from zero are drawn again. */
GROUPS(truncated, 256, {
    float kept[4];
    for (int found = 0; found < 4;) {
        const uint4 x = philox_next(&p);
        const float4 f = (float4)(normal_pair(x.x, x.y), normal_pair(x.z, x.w));
        const float drawn[4] = {f.x, f.y, f.z, f.w};
        for (int i = 0; i < 4 && found < 4; i++)
            if (fabs(drawn[i]) < 2.0f)
                kept[found++] = drawn[i];
    }
    v = (float4)(kept[0], kept[1], kept[2], kept[3]);
})
