/* tar.h -- files in a tar archive, which is in memory. */
#ifndef LEAT_DATA_TAR_H
#define LEAT_DATA_TAR_H

#include <leat/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct leat_tar {
    const char *bytes;
    size_t n, at;
} leat_tar;
/* The next regular file: its name, and its bytes, borrowed from the archive. *more_out is false at
 * the end. DATA_LOSS: the archive is damaged. */
leat_status leat_tar_next(leat_tar *t, char name_out[101], const char **bytes_out, size_t *n_out,
                          bool *more_out) LEAT_MUST_CHECK;

#endif
