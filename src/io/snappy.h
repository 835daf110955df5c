/* snappy.h -- decoding of raw Snappy, as in compressed blocks of tables. There is no encoder. */
#ifndef LEAT_IO_SNAPPY_H
#define LEAT_IO_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>

/* The decoded size, as the stream's header has it; false if the header is not valid. */
bool leat_snappy_size(const void *bytes, size_t n, size_t *out);
/* Decodes into size bytes at out, where size is the one of the header. False if the bytes are not a
 * valid stream of that size. */
bool leat_snappy_decode(const void *bytes, size_t n, void *out, size_t size);

#endif
