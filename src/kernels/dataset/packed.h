/* packed.h -- elements that are kept for long, such as those in the buffer of a shuffle: each is
 * one block of memory with the shapes and bytes of its tensors, not several with headers and
 * rounded sizes. Tensors that have other owners, or many bytes, are in the block as references. */
#ifndef LEAT_DATASET_PACKED_H
#define LEAT_DATASET_PACKED_H

#include "kernels/dataset/dataset.h"

typedef struct leat_packed leat_packed;

/* Takes *e. `spare` is a block that was unpacked, or NULL; it is used again if its size fits, else
 * freed. */
leat_packed *leat_element_pack(leat_element *e, leat_packed *spare);
/* Gives the element. The block stays as it is; after leat_packed_empty it is a spare one. */
leat_status leat_element_unpack(const leat_packed *p, leat_element *out) LEAT_MUST_CHECK;
/* Drops the references in the block. Gives p. */
leat_packed *leat_packed_empty(leat_packed *p);
/* Makes the processor begin to fetch the block; of NULL does nothing. */
void leat_packed_fetch(const leat_packed *p);
void leat_packed_free(leat_packed *p); /* of NULL does nothing */

#endif
