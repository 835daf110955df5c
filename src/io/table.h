/* table.h -- LevelDB-style tables of sorted keys and values, TensorFlow's index files.
 *
 * A file consists of blocks of entries, an index block with their positions, and a footer. In a
 * block each key is stored as the length of the prefix that it shares with the key before, and the
 * rest; each 16th key is stored whole. Blocks have a CRC and may be compressed. Files are written
 * byte for byte as by TensorFlow: blocks of 256 KB, not compressed.
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
    leat_table_entry *entries; /* sorted by key, without duplicates */
    size_t n, cap;
    char *bytes; /* of the file */
    size_t n_bytes;
    leat_arena arena; /* keys, and decompressed blocks */
    size_t in_arena;  /* bytes in the arena; limited by the file's size */
} leat_table;

/* Reads a file. DATA_LOSS says what is damaged, in TensorFlow's words. */
leat_status leat_table_open(const char *path, leat_table **out) LEAT_MUST_CHECK;
/* The same for bytes in memory; takes them (from malloc), even on failure. */
leat_status leat_table_parse(char *bytes, size_t n, leat_table **out) LEAT_MUST_CHECK;
const leat_table_entry *leat_table_find(const leat_table *t, const void *key, size_t n);
void leat_table_free(leat_table *t); /* of NULL does nothing */

typedef struct leat_block_writer {
    leat_strbuf bytes, last_key;
    uint32_t *restarts;
    size_t n_restarts, cap;
    int interval, since; /* number of entries between restarts, and since the last one */
} leat_block_writer;

/* {0} is a new writer. Keys must be added in order. */
typedef struct leat_table_writer {
    leat_strbuf out; /* the file */
    leat_block_writer data, index;
    leat_strbuf last_key;
    size_t n;
    int pending; /* true: the index entry of the last block is made when the next key is known */
    uint64_t pending_offset, pending_size;
} leat_table_writer;

void leat_table_add(leat_table_writer *w, const void *key, size_t n_key, const void *value,
                    size_t n_value);
/* Completes out. RESOURCE_EXHAUSTED if there was no memory for it or for what was added. */
leat_status leat_table_finish(leat_table_writer *w) LEAT_MUST_CHECK;
void leat_table_writer_release(leat_table_writer *w);

#endif
