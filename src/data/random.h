/* random.h -- a small generator for shuffling and drawing (xoshiro256**, Blackman and Vigna 2018).
 * Its numbers are not TensorFlow's. */
#ifndef LEAT_DATA_RANDOM_H
#define LEAT_DATA_RANDOM_H

#include <stdint.h>

typedef struct leat_rng {
    uint64_t s[4];
} leat_rng;

static inline uint64_t leat_rng_next(leat_rng *r)
{
    uint64_t *s = r->s, x = s[1] * 5, y = s[1] << 17;
    uint64_t result = (x << 7 | x >> 57) * 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= y;
    s[3] = s[3] << 45 | s[3] >> 19;
    return result;
}
/* The state is filled by splitmix64, so that small seeds are far apart. */
static inline void leat_rng_init(leat_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        r->s[i] = z ^ z >> 31;
    }
}
static inline float leat_rng_uniform(leat_rng *r, float low, float high)
{
    return low + (high - low) * (float)(leat_rng_next(r) >> 40) * 0x1p-24f;
}
static inline int64_t leat_rng_below(leat_rng *r, int64_t n)
{
    return (int64_t)((unsigned __int128)leat_rng_next(r) * (uint64_t)n >> 64);
}

#endif
