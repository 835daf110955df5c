/* token.c -- where a program finds the token that every call must carry. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/transport.h"

/* Fails for a file that every user of the machine may read or write, or that its group may write.
 * Pipes and devices are not checked, because their modes do not say where the bytes read from them
 * come from. */
static leat_status check_mode(const char *file, int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        LEAT_REQUIRE(!(st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)), PERMISSION_DENIED,
                     "%s: others may %s this file (mode %03o), so it keeps no secret: chmod 600 %s",
                     file, st.st_mode & S_IROTH ? "read" : "write", (unsigned)st.st_mode & 0777,
                     file);
    return NULL;
}

static leat_status read_file(const char *file, char *token, size_t size, size_t *n_out)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    LEAT_REQUIRE(fd >= 0, NOT_FOUND, "%s: %s", file, strerror(errno));
    leat_status s = check_mode(file, fd);
    size_t n = 0;
    for (ssize_t got = 1; !s && got > 0 && n < size; n += (size_t)got) {
        got = read(fd, token + n, size - n);
        if (got < 0) {
            s = leat_error(UNKNOWN, "%s: %s", file, strerror(errno));
            got = 0;
        }
    }
    close(fd);
    *n_out = n;
    return s;
}

leat_status leat_token_read(const char *file, char token_out[LEAT_TOKEN_SIZE])
{
    char text[LEAT_TOKEN_SIZE + 2]; /* The longest token, and "\r\n". */
    size_t n = 0;
    if (!file) {
        const char *token = getenv("LEAT_TOKEN");
        n = token ? strlen(token) : 0;
        LEAT_REQUIRE(n < LEAT_TOKEN_SIZE, INVALID_ARGUMENT,
                     "LEAT_TOKEN is longer than %d characters", LEAT_TOKEN_SIZE - 1);
        memcpy(token_out, n ? token : "", n + 1);
        return NULL;
    }
    LEAT_TRY(read_file(file, text, sizeof text, &n));
    while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    LEAT_REQUIRE(n && n < LEAT_TOKEN_SIZE && !memchr(text, 0, n) && !memchr(text, '\n', n),
                 INVALID_ARGUMENT, "%s: wants one line of text, of at most %d characters", file,
                 LEAT_TOKEN_SIZE - 1);
    memcpy(token_out, text, n);
    token_out[n] = 0;
    return NULL;
}
