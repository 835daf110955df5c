/* block.h -- blocks of up to 32 KB for tensor headers and small buffers: a few ns each.
 *
 * Each thread keeps short lists of free blocks by size class; full lists move in batches to
 * shared ones, where a thread that only allocates finds what another only frees. Both are
 * bounded. Under AddressSanitizer every block comes from malloc, so that it sees misuse. */
#ifndef LEAT_CORE_BLOCK_H
#define LEAT_CORE_BLOCK_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define LEAT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAT_ASAN 1
#endif
#endif
#ifndef LEAT_ASAN
#define LEAT_ASAN 0
#endif

enum { LEAT_BLOCK_MAX = 32 * 1024 };

/* LEAT_ALIGN-aligned, not zeroed, NULL without memory. 1 <= size <= LEAT_BLOCK_MAX. */
void *leat_block_alloc(size_t size);
void leat_block_free(void *p, size_t size); /* the size that was asked for */

#endif
