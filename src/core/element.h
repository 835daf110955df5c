/* element.h -- sizes of elements; elements that own something: strings, handles and variants. */
#ifndef LEAT_CORE_ELEMENT_H
#define LEAT_CORE_ELEMENT_H

#include "core/buffer.h"

enum { LEAT_DTYPE_MAX = LEAT_UINT64 };
extern const uint8_t leat_dtype_sizes[LEAT_DTYPE_MAX + 1];

/* Bytes of an element of a tensor; 0 for references and unknown dtypes, which tensors cannot
 * have. */
static inline size_t leat_element_size(leat_dtype t)
{
    return (unsigned)t <= LEAT_DTYPE_MAX ? leat_dtype_sizes[t] : 0;
}
static inline bool leat_dtype_managed(leat_dtype t)
{
    return t == LEAT_STRING || t == LEAT_RESOURCE || t == LEAT_VARIANT;
}
/* Releases what n elements own; they are empty afterwards. Does nothing for numbers. */
void leat_elements_release(leat_dtype t, void *data, int64_t n);
/* Drops the reference that v holds. The stack does not grow with the nesting of variants. */
void leat_variant_drop(leat_variant v);

#endif
