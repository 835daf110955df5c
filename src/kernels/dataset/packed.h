/* packed.h -- elements that are kept for long, such as those in the buffer of a shuffle, or that
 * are copied soon, such as those of a batch: each is one block of memory with the shapes and bytes
 * of its tensors, not several with headers and rounded sizes. Tensors that have other owners, or
 * many bytes, are in the block as references. */
#ifndef LEAT_DATASET_PACKED_H
#define LEAT_DATASET_PACKED_H

#include "kernels/dataset/dataset.h"

typedef struct leat_packed leat_packed;

/* Blocks that can be used again; all zero: none. To be used by one thread at a time. */
typedef struct leat_spares {
    leat_packed *first;
    size_t bytes; /* in all of them */
    struct leat_returns
        *returns; /* where batches return their blocks when they are freed, or NULL */
} leat_spares;
void leat_spares_release(leat_spares *s);

/* Takes *e. A spare block is used if its size fits. */
leat_packed *leat_element_pack(leat_element *e, leat_spares *spares);
/* The element that is one string. NULL if the string is too long for a block, or there is no
 * memory. */
leat_packed *leat_string_pack(const void *bytes, size_t n, leat_spares *spares);
/* Gives the element. The block stays as it is. */
leat_status leat_element_unpack(const leat_packed *p, leat_element *out) LEAT_MUST_CHECK;
/* Whether the block has all the bytes of its tensors, and no references to other memory. */
bool leat_packed_plain(const leat_packed *p);
/* Gives the batch of *n > 0 elements, whose blocks are spare ones or part of the batch then; *n is
 * 0. *n stays as it is, and nothing is given, unless all blocks are plain and their elements have
 * the same types and shapes. */
leat_status leat_packed_batch(leat_packed *const *v, int64_t *n, leat_spares *spares,
                              leat_element *out) LEAT_MUST_CHECK;
/* Makes the processor begin to fetch the block, or only its beginning; of NULL does nothing. */
void leat_packed_fetch(const leat_packed *p, bool all);
/* Drops the element. The block becomes a spare one, or is freed. */
void leat_packed_spare(leat_packed *p, leat_spares *spares);
void leat_packed_free(leat_packed *p); /* of NULL does nothing */

#endif
