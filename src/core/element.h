/* element.h -- elements that own something: strings, handles and variants. */
#ifndef LEAT_CORE_ELEMENT_H
#define LEAT_CORE_ELEMENT_H

#include "core/buffer.h"

static inline bool leat_dtype_managed(leat_dtype t)
{
    return t == LEAT_STRING || t == LEAT_RESOURCE || t == LEAT_VARIANT;
}
/* Releases what n elements own; they are empty afterwards. Does nothing for numbers. */
void leat_elements_release(leat_dtype t, void *data, int64_t n);

#endif
