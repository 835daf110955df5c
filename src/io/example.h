/* example.h -- what the kernels need of examples, beyond leat/io.h. */
#ifndef LEAT_IO_EXAMPLE_H
#define LEAT_IO_EXAMPLE_H

#include <leat/io.h>

/* Adds the feature `key`, without values, if it is not there. kind: STRING, FLOAT, INT64, or INVALID
 * for a feature without a kind. */
leat_status leat_example_add_none(leat_example *e, const char *key,
                                  leat_dtype kind) LEAT_MUST_CHECK;

#endif
