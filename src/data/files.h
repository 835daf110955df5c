/* files.h -- the files of the data sets that users know: where they are, and how they come there.
 *
 * The files of a set are looked for in the directory that the program names, in ../shared/data/SET
 * from the current directory, and in the cache, ~/.cache/leat/SET ($XDG_CACHE_HOME/leat, or
 * $LEAT_DATA_CACHE, where these are set). If none has all of them, they are downloaded into the
 * cache: from the addresses in this program, or from $LEAT_DATA_URL/SET/FILE where that is set;
 * LEAT_DATA_URL=none forbids downloads.
 */
#ifndef LEAT_DATA_FILES_H
#define LEAT_DATA_FILES_H

#include "core/strbuf.h"

typedef struct leat_data_file {
    const char *name; /* without .gz or .xz */
    /* What is downloaded: name, size and MD5 sum (in hexadecimal), all as they are published. */
    const char *remote;
    size_t size;
    const char *md5;
} leat_data_file;

typedef struct leat_data_set {
    const char *name, *title; /* "mnist", "MNIST" */
    const char *url;          /* the directory of the files */
    const leat_data_file *files;
    int n;
    /* Writes the files of what was downloaded as `remote` to dir. NULL: the download is the file.
     */
    leat_status (*unpack)(const char *dir, const leat_data_file *f, const char *bytes, size_t n);
} leat_data_set;

/* Gives the directory that has the files; *dir_out is NULL if there is none, and then *why_out is a
 * text that says what was tried. Both are freed with free(). data_dir may be NULL. */
leat_status leat_data_find(const leat_data_set *set, const char *data_dir, char **dir_out,
                           char **why_out) LEAT_MUST_CHECK;
/* Gives the path of a file, with .gz, .xz or neither, whichever can be opened; free with free().
 * NOT_FOUND: there is none. */
leat_status leat_data_path(const char *dir, const char *name, char **path_out) LEAT_MUST_CHECK;
/* Adds the bytes of a file, decompressed, to `to`, which is checked; at most `most` of them.
 * DATA_LOSS: the file is damaged, or larger. */
leat_status leat_data_read(const char *dir, const char *name, size_t most,
                           leat_strbuf *to) LEAT_MUST_CHECK;

#endif
