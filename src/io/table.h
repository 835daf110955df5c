/* table.h -- LevelDB-style tables of sorted keys and values, TensorFlow's index files.
 *
 * A file is blocks of entries, a block that says where these are, and a footer. In a block each key
 * says how much of the one before it shares; each 16th is whole. Blocks have a CRC and
 * may be compressed. What is written is, byte for byte, what TensorFlow writes: blocks of 256 KB,
 * not compressed.
 */
#ifndef LEAT_IO_TABLE_H
#define LEAT_IO_TABLE_H

#include <leat/status.h>
#include "core/arena.h"
#include "core/strbuf.h"

typedef struct leat_table_entry {
    const char *key, *value; /* any bytes */
    size_t n_key, n_value;
} leat_table_entry;

/* A whole table in memory. */
typedef struct leat_table {
    leat_table_entry *entries; /* in the order of their keys, no two alike */
    size_t n, cap;
    char *bytes; /* of the file */
    size_t n_bytes;
    leat_arena arena; /* keys, and blocks that were compressed */
    size_t in_arena;  /* bytes, bounded by the file's size */
} leat_table;

/* Reads a file. DATA_LOSS says what is broken, with TensorFlow's words. */
leat_status leat_table_open(const char *path, leat_table **out) LEAT_MUST_CHECK;
/* The same for bytes at hand; takes them (from malloc), even on failure. */
leat_status leat_table_parse(char *bytes, size_t n, leat_table **out) LEAT_MUST_CHECK;
const leat_table_entry *leat_table_find(const leat_table *t, const void *key, size_t n);
void leat_table_free(leat_table *t); /* of NULL does nothing */

typedef struct leat_block_writer {
    leat_strbuf bytes, last_key;
    uint32_t *restarts;
    size_t n_restarts, cap;
    int interval, since; /* entries between restarts; since the last one */
} leat_block_writer;

/* {0} is a new one. Keys come in order. */
typedef struct leat_table_writer {
    leat_strbuf out; /* the file */
    leat_block_writer data, index;
    leat_strbuf last_key;
    size_t n;
    int pending; /* a block was written whose index entry waits for the next key */
    uint64_t pending_offset, pending_size;
} leat_table_writer;

void leat_table_add(leat_table_writer *w, const void *key, size_t n_key, const void *value,
                    size_t n_value);
void leat_table_finish(leat_table_writer *w); /* out is complete */
void leat_table_writer_release(leat_table_writer *w);

#endif
