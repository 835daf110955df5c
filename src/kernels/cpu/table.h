/* table.h -- tables that look values up by keys.
 *
 * 1. A HashTable gets its entries once, by InitializeTable; others may change at any time.
 * 2. A key is the bytes of its element (of a string: its own). Entries stay in the order they came.
 */
#ifndef LEAT_CPU_TABLE_H
#define LEAT_CPU_TABLE_H

#include <pthread.h>

#include "core/map.h"
#include "kernels/cpu/resource_op.h"

typedef struct leat_table_entry {
    char *key;
    size_t key_n;
    void *value; /* as many elements as the table's value has */
    int64_t at;  /* in entries */
} leat_table_entry;

typedef struct leat_table {
    leat_resource base;
    char *name; /* this and the next four never change */
    leat_dtype key, value;
    leat_shape shape;     /* of a value */
    bool fixed;           /* a HashTable */
    pthread_mutex_t lock; /* guards all below */
    bool ready;           /* has got its entries */
    leat_map index;       /* key -> leat_table_entry */
    leat_table_entry **v;
    int64_t n, cap;
} leat_table;

/* With the lock held. The key is element `i` of keys, the value row `i` of values. An entry of the
 * same key is replaced, or, of a fixed table, must have the same value. */
leat_status leat_table_put(leat_table *t, const leat_tensor *keys, const leat_tensor *values,
                           int64_t i) LEAT_MUST_CHECK;
leat_table_entry *leat_table_get(const leat_table *t, const leat_tensor *keys, int64_t i);
void leat_table_clear(leat_table *t);
/* The table behind input 0; shares it. */
leat_status leat_table_of(leat_kernel *k, leat_table **out) LEAT_MUST_CHECK;
/* A fixed table gets the entries of two vectors; when it has some already, they must be as many. */
leat_status leat_table_fill(leat_table *t, const leat_tensor *keys,
                            const leat_tensor *values) LEAT_MUST_CHECK;

#endif
