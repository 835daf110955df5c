/* mersenne.h -- the Mersenne Twister of 64 bits (MT19937-64), and how the C++ library of GCC
 * shuffles with it, for orders that TensorFlow's ops have from there. */
#ifndef LEAT_CORE_MERSENNE_H
#define LEAT_CORE_MERSENNE_H

#include <stddef.h>
#include <stdint.h>

enum { LEAT_MERSENNE_WORDS = 312 };
typedef struct leat_mersenne {
    uint64_t word[LEAT_MERSENNE_WORDS];
    int used; /* words that were given since they were last renewed */
} leat_mersenne;

void leat_mersenne_init(leat_mersenne *m, uint64_t seed);
uint64_t leat_mersenne_next(leat_mersenne *m);
/* Puts n pointers, fewer than 2^32, into the order that std::shuffle gives. */
void leat_mersenne_shuffle(leat_mersenne *m, void **v, size_t n);

#endif
