/* memory_file.h -- bytes as a file with a path, in memory, for readers that open files. */
#ifndef LEAT_FUZZ_MEMORY_FILE_H
#define LEAT_FUZZ_MEMORY_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The path of a file that has these bytes until the next call. */
static inline const char *memory_file(const void *bytes, size_t n)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("input", 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
        abort();
    return path;
}

#endif
