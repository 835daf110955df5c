/* xz.h -- files compressed by xz, by liblzma, which is loaded when it is first needed. */
#ifndef LEAT_DATA_XZ_H
#define LEAT_DATA_XZ_H

#include "core/strbuf.h"

/* Adds the decompressed bytes of the file to `to`, which is checked; at most `most` of them.
 * DATA_LOSS: it is damaged, or larger. NOT_FOUND: there is no such file, or no liblzma. */
leat_status leat_xz_read(const char *path, size_t most, leat_strbuf *to) LEAT_MUST_CHECK;

#endif
