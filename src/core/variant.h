/* variant.h -- variants that can be written to messages and files: those that hold one number, which
 * TensorFlow's graphs may have as constants, and the positions of iterators. */
#ifndef LEAT_CORE_VARIANT_H
#define LEAT_CORE_VARIANT_H

#include <leat/tensor.h>

/* Makes a variant of this type name ("int", "float", "double", "bool") from the bytes of a number;
 * false if there is no such type or the number of bytes is wrong. */
bool leat_number_variant(const char *type_name, const void *bytes, size_t n, leat_variant *out);
/* The bytes of the number in v; NULL if it holds none. */
const void *leat_number_variant_bytes(const leat_variant *v, size_t *n_out);
/* The position of an iterator: n bytes, which are copied. Its type has TensorFlow's name. False if
 * there is no memory for them. */
bool leat_position_variant(const void *bytes, size_t n, leat_variant *out);
const void *leat_position_variant_bytes(const leat_variant *v, size_t *n_out);
/* Both of the above, for codecs: makes a variant of a type name and the bytes of its object, and
 * gives these bytes; NULL if the variant is of another type. */
bool leat_variant_decode(const char *type_name, const void *bytes, size_t n, leat_variant *out);
const void *leat_variant_encode(const leat_variant *v, size_t *n_out);
/* a + b; false if they are not numbers of one type. */
bool leat_number_variant_add(const leat_variant *a, const leat_variant *b, leat_variant *out);

#endif
