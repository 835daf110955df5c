/* files.h -- for tests of files: paths, reading whole files, a directory for each test. */
#ifndef LEAT_TEST_FILES_H
#define LEAT_TEST_FILES_H

#include "io/file.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

/* A path in the test's own directory in the build. Valid until the fourth call after this one. */
static inline const char *here(const char *name)
{
    static char paths[4][512];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, 512, "%s/io_files", LEAT_BINARY_DIR);
    mkdir(p, 0777);
    snprintf(p, 512, "%s/io_files/%s", LEAT_BINARY_DIR, name);
    return p;
}

/* A path of a file that TensorFlow made. */
static inline const char *theirs(const char *name)
{
    static char paths[4][512];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, 512, "%s/tests/io/data/%s", LEAT_SOURCE_DIR, name);
    return p;
}

static inline void same_file(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    CHECK_OK(leat_file_read(a, &x, &n));
    CHECK_OK(leat_file_read(b, &y, &m));
    if (n != m || !x || !y || memcmp(x, y, n) != 0) {
        test_failures++;
        printf("%s (%zu bytes) and %s (%zu bytes) differ\n", a, n, b, m);
    }
    free(x);
    free(y);
}

static inline void copy_file(const char *from, const char *to)
{
    char *x = NULL;
    size_t n = 0;
    CHECK_OK(leat_file_read(from, &x, &n));
    CHECK_OK(leat_file_write(to, x, n));
    free(x);
}

#endif
