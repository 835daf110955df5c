/* philox.h -- the counter-based generator Philox 4x32-10 (Salmon et al., "Parallel random numbers:
 * as easy as 1, 2, 3"): four 32-bit numbers from a counter and a key. Any part of the stream can be
 * reached at once, so results do not depend on how the work is split. */
#ifndef LEAT_CPU_PHILOX_H
#define LEAT_CPU_PHILOX_H

#include <stdint.h>

typedef struct leat_philox {
    uint32_t counter[4], key[2];
} leat_philox;

static inline leat_philox leat_philox_of(uint64_t seed, uint64_t seed2)
{
    return (leat_philox){{0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32)},
                         {(uint32_t)seed, (uint32_t)(seed >> 32)}};
}

/* Skips n samples of four numbers. */
static inline void leat_philox_skip(leat_philox *p, uint64_t n)
{
    uint64_t low = p->counter[0] | (uint64_t)p->counter[1] << 32;
    uint64_t sum = low + n;
    p->counter[0] = (uint32_t)sum;
    p->counter[1] = (uint32_t)(sum >> 32);
    if (sum < low && ++p->counter[2] == 0)
        ++p->counter[3];
}

static inline void leat_philox_next(leat_philox *p, uint32_t out[4])
{
    uint32_t c0 = p->counter[0], c1 = p->counter[1], c2 = p->counter[2], c3 = p->counter[3];
    uint32_t k0 = p->key[0], k1 = p->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * c0, b = (uint64_t)0xCD9E8D57 * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
    leat_philox_skip(p, 1);
}

/* The same numbers, one at a time. */
typedef struct leat_philox_single {
    leat_philox *gen;
    uint32_t sample[4];
    int used; /* 4 at first */
} leat_philox_single;

static inline uint32_t leat_philox_one(leat_philox_single *s)
{
    if (s->used == 4) {
        leat_philox_next(s->gen, s->sample);
        s->used = 0;
    }
    return s->sample[s->used++];
}

#endif
