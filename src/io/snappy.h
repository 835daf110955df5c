/* snappy.h -- reading raw Snappy, as in compressed blocks of tables. Nothing here writes it. */
#ifndef LEAT_IO_SNAPPY_H
#define LEAT_IO_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>

/* The size that the bytes say they have when decoded; false if they do not say. */
bool leat_snappy_size(const void *bytes, size_t n, size_t *out);
/* Decodes into size bytes at out, the size said. False if the bytes are no Snappy of that size. */
bool leat_snappy_decode(const void *bytes, size_t n, void *out, size_t size);

#endif
