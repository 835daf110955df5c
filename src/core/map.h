/* map.h -- a hash table from byte strings to pointers. {0} is an empty table. Not thread-safe. Keys
 * are shorter than 4 GB. */
#ifndef LEAT_CORE_MAP_H
#define LEAT_CORE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct leat_map {
    struct leat_map_slot *slots; /* open addressing, power of two */
    size_t n, cap;
    bool borrows_keys; /* set before the first key: keys are not copied, and outlive the table */
    /* Set before the first key, to leat_hash_secret(), if somebody else chooses the keys, who could
     * choose many with one hash. Such a table is walked in another order by each process. */
    uint64_t seed;
} leat_map;

/* Frees the table and its copies of the keys, not the values; it is empty then. */
void leat_map_release(leat_map *m);
void *leat_map_get(const leat_map *m, const char *key);
void *leat_map_get_n(const leat_map *m, const void *key, size_t n);
/* Copies the key, unless the table borrows keys; gives the value that it replaced, or NULL. */
void *leat_map_put(leat_map *m, const char *key, void *value);
void *leat_map_put_n(leat_map *m, const void *key, size_t n, void *value);
void *leat_map_remove(leat_map *m, const char *key); /* gives the value, or NULL */
void *leat_map_remove_n(leat_map *m, const void *key, size_t n);
/* Visits all entries in no particular order: size_t i = 0; while (leat_map_next(m, &i, &key,
 * &value)) */
bool leat_map_next(const leat_map *m, size_t *i, const char **key, void **value);

uint64_t leat_hash(const void *bytes, size_t n, uint64_t seed);
/* A 64-bit number whose every bit depends on all bits of x. */
static inline uint64_t leat_mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}
/* A random number, the same in the whole process: the seed for what others may choose. */
uint64_t leat_hash_secret(void);

#endif
