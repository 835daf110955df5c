/* mersenne.c -- see mersenne.h. M. Matsumoto and T. Nishimura, "Mersenne Twister: a
 * 623-dimensionally equidistributed uniform pseudorandom number generator", 1998. */
#include "core/mersenne.h"

enum { N = LEAT_MERSENNE_WORDS, M = 156 };

void leat_mersenne_init(leat_mersenne *m, uint64_t seed)
{
    m->word[0] = seed;
    for (int i = 1; i < N; i++) {
        const uint64_t x = m->word[i - 1];
        m->word[i] = UINT64_C(6364136223846793005) * (x ^ x >> 62) + (uint64_t)i;
    }
    m->used = N;
}

static void renew(leat_mersenne *m)
{
    const uint64_t upper = ~UINT64_C(0) << 31, matrix = UINT64_C(0xb5026f5aa96619e9);
    for (int i = 0; i < N; i++) {
        const uint64_t x = (m->word[i] & upper) | (m->word[(i + 1) % N] & ~upper);
        m->word[i] = m->word[(i + M) % N] ^ x >> 1 ^ (x & 1 ? matrix : 0);
    }
    m->used = 0;
}

uint64_t leat_mersenne_next(leat_mersenne *m)
{
    if (m->used == N)
        renew(m);
    uint64_t x = m->word[m->used++];
    x ^= x >> 29 & UINT64_C(0x5555555555555555);
    x ^= x << 17 & UINT64_C(0x71d67fffeda60000);
    x ^= x << 37 & UINT64_C(0xfff7eee000000000);
    return x ^ x >> 43;
}

/* A number below n, as std::uniform_int_distribution draws it. */
static uint64_t below(leat_mersenne *m, uint64_t n)
{
    const uint64_t scale = UINT64_MAX / n;
    uint64_t x;
    do
        x = leat_mersenne_next(m);
    while (x >= n * scale);
    return x / scale;
}

static void swap(void **v, size_t i, size_t j)
{
    void *x = v[i];
    v[i] = v[j];
    v[j] = x;
}

/* Element i changes places with one of the first i + 1. One number is drawn for two elements. */
void leat_mersenne_shuffle(leat_mersenne *m, void **v, size_t n)
{
    size_t i = 1;
    if (n > 0 && n % 2 == 0)
        swap(v, i++, (size_t)below(m, 2));
    for (; i < n; i += 2) {
        const uint64_t x = below(m, (uint64_t)(i + 1) * (i + 2));
        swap(v, i, (size_t)(x / (i + 2)));
        swap(v, i + 1, (size_t)(x % (i + 2)));
    }
}
