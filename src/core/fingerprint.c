/* fingerprint.c -- FarmHash's Fingerprint64 (Pike, Google, 2014), the MurmurHash64A that TensorFlow
 * calls Hash64, and SipHash-2-4 (Aumasson and Bernstein, 2012). */
#include "core/fingerprint.h"

#include <string.h>

static uint64_t fetch64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static uint64_t fetch32(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static uint64_t rotate_right(uint64_t v, int n)
{
    return v >> n | v << (64 - n);
}

/* ---- Fingerprint64 ---- */

static const uint64_t k0 = UINT64_C(0xc3a5c85c97cb3127);
static const uint64_t k1 = UINT64_C(0xb492b66fbe98f273);
static const uint64_t k2 = UINT64_C(0x9ae16a3b2f90404f);

static uint64_t shift_mix(uint64_t v)
{
    return v ^ v >> 47;
}

static uint64_t mix2(uint64_t u, uint64_t v, uint64_t mul)
{
    uint64_t a = shift_mix((u ^ v) * mul);
    return shift_mix((v ^ a) * mul) * mul;
}

static uint64_t up_to_16(const uint8_t *s, size_t n)
{
    uint64_t mul = k2 + n * 2;
    if (n >= 8) {
        uint64_t a = fetch64(s) + k2, b = fetch64(s + n - 8);
        return mix2(rotate_right(b, 37) * mul + a, (rotate_right(a, 25) + b) * mul, mul);
    }
    if (n >= 4)
        return mix2(n + (fetch32(s) << 3), fetch32(s + n - 4), mul);
    if (n > 0) {
        uint32_t y = s[0] + ((uint32_t)s[n >> 1] << 8), z = (uint32_t)n + ((uint32_t)s[n - 1] << 2);
        return shift_mix(y * k2 ^ z * k0) * k2;
    }
    return k2;
}

/* Mixes the first and last 16 bytes; *y is used for the rest of longer inputs. */
static uint64_t ends_of(const uint8_t *s, size_t n, uint64_t a, uint64_t mul, uint64_t *y)
{
    uint64_t b = fetch64(s + 8), c = fetch64(s + n - 8) * mul, d = fetch64(s + n - 16) * k2;
    *y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
    return mix2(*y, a + rotate_right(b + k2, 18) + c, mul);
}

static uint64_t up_to_64(const uint8_t *s, size_t n)
{
    uint64_t mul = k2 + n * 2, y;
    if (n <= 32)
        return ends_of(s, n, fetch64(s) * k1, mul, &y);
    uint64_t a = fetch64(s) * k2, z = ends_of(s, n, a, mul, &y);
    uint64_t e = fetch64(s + 16) * mul, f = fetch64(s + 24);
    uint64_t g = (y + fetch64(s + n - 32)) * mul, h = (z + fetch64(s + n - 24)) * mul;
    return mix2(rotate_right(e + f, 43) + rotate_right(g, 30) + h, e + rotate_right(f + a, 18) + g,
                mul);
}

typedef struct two {
    uint64_t first, second;
} two;

static two weak32(const uint8_t *s, uint64_t a, uint64_t b)
{
    uint64_t w = fetch64(s), x = fetch64(s + 8), y = fetch64(s + 16), z = fetch64(s + 24), c;
    a += w;
    b = rotate_right(b + a + z, 21);
    c = a;
    a += x + y;
    b += rotate_right(a, 44);
    return (two){a + z, b + c};
}

typedef struct state {
    uint64_t x, y, z;
    two v, w;
} state;

/* One block of 64 bytes; for the last one `by` is 9. */
static void block(state *t, const uint8_t *s, uint64_t mul, uint64_t by)
{
    t->x = rotate_right(t->x + t->y + t->v.first + fetch64(s + 8), 37) * mul;
    t->y = rotate_right(t->y + t->v.second + fetch64(s + 48), 42) * mul;
    t->x ^= t->w.second * by;
    t->y += t->v.first * by + fetch64(s + 40);
    t->z = rotate_right(t->z + t->w.first, 33) * mul;
    t->v = weak32(s, t->v.second * mul, t->x + t->w.first);
    t->w = weak32(s + 32, t->z + t->w.second, t->y + fetch64(s + 16));
    uint64_t z = t->z;
    t->z = t->x;
    t->x = z;
}

uint64_t leat_fingerprint64(const void *bytes, size_t n)
{
    const uint8_t *s = bytes;
    if (n <= 64)
        return n <= 16 ? up_to_16(s, n) : up_to_64(s, n);
    const uint64_t seed = 81;
    state t = {.x = seed, .y = seed * k1 + 113};
    t.z = shift_mix(t.y * k2 + 113) * k2;
    t.x = t.x * k2 + fetch64(s);
    const uint8_t *end = s + (n - 1) / 64 * 64, *last = s + n - 64;
    do {
        block(&t, s, k1, 1);
        s += 64;
    } while (s != end);
    uint64_t mul = k1 + ((t.z & 0xff) << 1);
    t.w.first += (n - 1) & 63;
    t.v.first += t.w.first;
    t.w.first += t.v.first;
    block(&t, last, mul, 9);
    return mix2(mix2(t.v.first, t.w.first, mul) + shift_mix(t.y) * k0 + t.z,
                mix2(t.v.second, t.w.second, mul) + t.x, mul);
}

/* ---- Hash64 ---- */

uint64_t leat_hash64(const void *bytes, size_t n)
{
    return leat_hash64_with(bytes, n, UINT64_C(0xdecafcaffe));
}

uint64_t leat_hash64_with(const void *bytes, size_t n, uint64_t seed)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const uint8_t *p = bytes;
    uint64_t h = seed ^ (n * m);
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t k = fetch64(p) * m;
        h = (h ^ (k ^ k >> 47) * m) * m;
    }
    for (size_t i = n; i > 0; i--)
        h ^= (uint64_t)p[i - 1] << (8 * (i - 1));
    if (n > 0)
        h *= m;
    h = shift_mix(h) * m;
    return shift_mix(h);
}

/* ---- SipHash-2-4 ---- */

static void rounds(uint64_t v[4], int n)
{
    while (n-- > 0) {
        v[0] += v[1];
        v[1] = rotate_right(v[1], 51) ^ v[0];
        v[0] = rotate_right(v[0], 32);
        v[2] += v[3];
        v[3] = rotate_right(v[3], 48) ^ v[2];
        v[0] += v[3];
        v[3] = rotate_right(v[3], 43) ^ v[0];
        v[2] += v[1];
        v[1] = rotate_right(v[1], 47) ^ v[2];
        v[2] = rotate_right(v[2], 32);
    }
}

static void absorb(uint64_t v[4], uint64_t m)
{
    v[3] ^= m;
    rounds(v, 2);
    v[0] ^= m;
}

uint64_t leat_siphash(const uint64_t key[2], const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint64_t v[4] = {UINT64_C(0x736f6d6570736575) ^ key[0], UINT64_C(0x646f72616e646f6d) ^ key[1],
                     UINT64_C(0x6c7967656e657261) ^ key[0], UINT64_C(0x7465646279746573) ^ key[1]};
    uint64_t last = (uint64_t)n << 56;
    for (; n >= 8; p += 8, n -= 8)
        absorb(v, fetch64(p));
    for (size_t i = 0; i < n; i++)
        last |= (uint64_t)p[i] << (8 * i);
    absorb(v, last);
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
