/* map.c -- open addressing with linear probing, at most 3/4 full. Removing an entry shifts later
 * entries of the same run back, so there are no tombstones and lookups do not become slower with
 * removals. */
#include "core/map.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/alloc.h"

struct leat_map_slot {
    const char *key; /* NULL: a free slot */
    void *value;
    uint32_t n;
    uint32_t hash; /* its lower half: enough for 2^32 slots */
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiply and fold, eight bytes at a time. The values are stable within a process only. */
uint64_t leat_hash(const void *bytes, size_t n, uint64_t seed)
{
    const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xd1b54a32d192ed03u;
    const unsigned char *p = bytes;
    uint64_t h = seed ^ mix(k0 ^ n, k1);
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = mix(h ^ word, k0) + k1;
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < n; i++)
        tail |= (uint64_t)p[i] << (8 * i);
    return mix(h ^ tail, k1) ^ mix(h, k0);
}

uint64_t leat_hash_secret(void)
{
    static atomic_uint_fast64_t secret;
    uint_fast64_t x = atomic_load_explicit(&secret, memory_order_relaxed);
    if (x)
        return x;
    uint64_t drawn;
    if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn)) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        const uint64_t rest[] = {(uint64_t)t.tv_sec, (uint64_t)t.tv_nsec, (uintptr_t)&secret};
        drawn = leat_hash(rest, sizeof(rest), 0);
    }
    drawn |= 1;
    return atomic_compare_exchange_strong(&secret, &x, drawn) ? drawn : x;
}

/* The slot that holds the key, or the free slot where it would be inserted. cap is not 0. */
static struct leat_map_slot *find(const leat_map *m, const void *key, size_t n, uint32_t hash)
{
    size_t i = hash & (m->cap - 1);
    for (;; i = (i + 1) & (m->cap - 1)) {
        struct leat_map_slot *s = &m->slots[i];
        if (!s->key || (s->hash == hash && s->n == n && memcmp(s->key, key, n) == 0))
            return s;
    }
}

static void grow(leat_map *m)
{
    leat_map bigger = *m;
    bigger.cap = m->cap ? m->cap * 2 : 16;
    bigger.slots = leat_new_array(struct leat_map_slot, bigger.cap);
    for (size_t i = 0; i < m->cap; i++) {
        struct leat_map_slot *s = &m->slots[i];
        if (!s->key)
            continue;
        size_t j = s->hash & (bigger.cap - 1);
        while (bigger.slots[j].key)
            j = (j + 1) & (bigger.cap - 1);
        bigger.slots[j] = *s;
    }
    free(m->slots);
    *m = bigger;
}

void leat_map_release(leat_map *m)
{
    for (size_t i = 0; i < m->cap && !m->borrows_keys; i++)
        free((char *)m->slots[i].key);
    free(m->slots);
    *m = (leat_map){.borrows_keys = m->borrows_keys, .seed = m->seed};
}

void *leat_map_get_n(const leat_map *m, const void *key, size_t n)
{
    if (m->n == 0)
        return NULL;
    struct leat_map_slot *s = find(m, key, n, (uint32_t)leat_hash(key, n, m->seed));
    return s->key ? s->value : NULL;
}

void *leat_map_get(const leat_map *m, const char *key)
{
    return leat_map_get_n(m, key, strlen(key));
}

static char *copy_of(const void *key, size_t n)
{
    char *copy = leat_xmalloc(n + 1);
    if (n)
        memcpy(copy, key, n);
    copy[n] = '\0';
    return copy;
}

void *leat_map_put_n(leat_map *m, const void *key, size_t n, void *value)
{
    if (m->n + 1 > m->cap - m->cap / 4)
        grow(m);
    const uint32_t hash = (uint32_t)leat_hash(key, n, m->seed);
    struct leat_map_slot *s = find(m, key, n, hash);
    void *old = s->key ? s->value : NULL;
    if (!s->key) {
        s->key = m->borrows_keys ? key : copy_of(key, n);
        s->n = (uint32_t)n;
        s->hash = hash;
        m->n++;
    }
    s->value = value;
    return old;
}

void *leat_map_put(leat_map *m, const char *key, void *value)
{
    return leat_map_put_n(m, key, strlen(key), value);
}

void *leat_map_remove(leat_map *m, const char *key)
{
    return leat_map_remove_n(m, key, strlen(key));
}

void *leat_map_remove_n(leat_map *m, const void *key, size_t n)
{
    if (m->n == 0)
        return NULL;
    size_t mask = m->cap - 1;
    struct leat_map_slot *s = find(m, key, n, (uint32_t)leat_hash(key, n, m->seed));
    if (!s->key)
        return NULL;
    void *value = s->value;
    if (!m->borrows_keys)
        free((char *)s->key);
    m->n--;
    size_t hole = (size_t)(s - m->slots);
    for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
        size_t home = m->slots[i].hash & mask;
        if (((i - home) & mask) >=
            ((i - hole) & mask)) { /* the hole is between the entry's home slot and i */
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct leat_map_slot){0};
    return value;
}

bool leat_map_next(const leat_map *m, size_t *i, const char **key, void **value)
{
    while (*i < m->cap) {
        const struct leat_map_slot *s = &m->slots[(*i)++];
        if (!s->key)
            continue;
        if (key)
            *key = s->key;
        if (value)
            *value = s->value;
        return true;
    }
    return false;
}
