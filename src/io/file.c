/* file.c -- reading files, and writing them so that they appear whole (see file.h). */
#define _GNU_SOURCE
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "io/path.h"

enum {
    BUFFER = 64 * 1024, /* bytes of small writes that are gathered */
    /* Bytes after which the kernel is asked to start writing them to the disk. */
    EAGER = 8 * 1024 * 1024,
    AT_ONCE = 1 << 30, /* bytes of one system call, which can write up to 2 GB */
};

struct leat_file {
    int fd;
    int64_t size;
    char *path;
};

struct leat_new_file {
    int fd;
    char *path, *temp;
    int64_t size;    /* bytes written, gathered bytes included */
    int64_t flushed; /* bytes that the kernel was asked to write to the disk */
    size_t gathered;
    char buffer[BUFFER];
};

leat_status leat_file_error(const char *path, int err)
{
    char text[128];
    return leat_status_new(leat_errno_code(err), __FILE__, __LINE__, "%s; %s", path,
                           strerror_r(err, text, sizeof(text)));
}

static const char *kind_of(mode_t mode)
{
    return S_ISFIFO(mode)                   ? "a pipe"
           : S_ISSOCK(mode)                 ? "a socket"
           : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                            : "no file";
}

/* A pipe or a device could make the reader wait for ever, or never end. */
static leat_status check_regular(const char *path, int fd, struct stat *st)
{
    const int err = fstat(fd, st) != 0 ? errno : S_ISDIR(st->st_mode) ? EISDIR : 0;
    if (err)
        return leat_file_error(path, err);
    LEAT_REQUIRE(S_ISREG(st->st_mode), INVALID_ARGUMENT, "%s is %s: only regular files can be read",
                 path, kind_of(st->st_mode));
    return NULL;
}

leat_status leat_file_open(const char *path, leat_file **out)
{
    struct stat st;
    int fd;
    LEAT_TRY(leat_path_open(path, O_RDONLY | O_NONBLOCK, &fd)); /* waits for no pipe's writer */
    leat_status s = check_regular(path, fd, &st);
    if (s) {
        close(fd);
        return s;
    }
    leat_file *f = leat_new(leat_file);
    *f = (leat_file){fd, st.st_size, leat_xstrdup(path)};
    *out = f;
    return NULL;
}

void leat_file_close(leat_file *f)
{
    if (!f)
        return;
    close(f->fd);
    free(f->path);
    free(f);
}

int64_t leat_file_size(const leat_file *f)
{
    return f->size;
}

int64_t leat_file_measure(const leat_file *f)
{
    struct stat st;
    return fstat(f->fd, &st) == 0 ? st.st_size : f->size;
}

const char *leat_file_path(const leat_file *f)
{
    return f->path;
}

leat_status leat_file_read_at(leat_file *f, void *bytes, size_t n, int64_t offset)
{
    for (char *p = bytes; n;) {
        ssize_t got = pread(f->fd, p, n < AT_ONCE ? n : AT_ONCE, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return leat_file_error(f->path, errno);
        LEAT_REQUIRE(got > 0, DATA_LOSS, "%s; ends at byte %lld, %zu more were expected", f->path,
                     (long long)offset, n);
        p += got;
        n -= (size_t)got;
        offset += got;
    }
    return NULL;
}

size_t leat_file_read_cached(leat_file *f, void *bytes, size_t n, int64_t offset)
{
#ifdef RWF_NOWAIT
    const struct iovec to = {bytes, n < AT_ONCE ? n : AT_ONCE};
    const ssize_t got = preadv2(f->fd, &to, 1, offset, RWF_NOWAIT);
    return got > 0 ? (size_t)got : 0;
#else
    return 0;
#endif
}

leat_status leat_file_read(const char *path, char **bytes, size_t *n)
{
    leat_file *f;
    LEAT_TRY(leat_file_open(path, &f));
    size_t size = (size_t)f->size;
    char *p = malloc(size + 1);
    leat_status s =
        p ? leat_file_read_at(f, p, size, 0)
          : leat_error(RESOURCE_EXHAUSTED, "%s; no memory for its %zu bytes", path, size);
    leat_file_close(f);
    if (s) {
        free(p);
        return s;
    }
    p[size] = 0;
    *bytes = p;
    *n = size;
    return NULL;
}

static uint64_t some_number(void)
{
    static atomic_uint_fast64_t count;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t x = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    x ^= (uint64_t)getpid() << 40 ^ atomic_fetch_add(&count, 1) << 20;
    return x * UINT64_C(0x9e3779b97f4a7c15);
}

leat_status leat_new_file_open(const char *path, leat_new_file **out)
{
    char *dir = leat_path_dir(path);
    leat_status s = leat_dir_make(dir);
    free(dir);
    LEAT_TRY(s);
    size_t n = strlen(path) + 40;
    char *temp = leat_xmalloc(n);
    int fd = -1;
    do {
        leat_status_free(s);
        snprintf(temp, n, "%s.tempstate%llu", path, (unsigned long long)some_number());
        s = leat_path_open(temp, O_WRONLY | O_CREAT | O_EXCL, &fd);
    } while (leat_status_code(s) == LEAT_ALREADY_EXISTS);
    if (s) {
        free(temp);
        return s;
    }
    leat_new_file *f = leat_xmalloc(sizeof(*f));
    f->fd = fd;
    f->path = leat_xstrdup(path);
    f->temp = temp;
    f->size = f->flushed = 0;
    f->gathered = 0;
    *out = f;
    return NULL;
}

int64_t leat_new_file_size(const leat_new_file *f)
{
    return f->size;
}

static leat_status write_out(leat_new_file *f, const char *p, size_t n)
{
    while (n) {
        ssize_t put = write(f->fd, p, n < AT_ONCE ? n : AT_ONCE);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return leat_file_error(f->temp, errno);
        p += put;
        n -= (size_t)put;
    }
    return NULL;
}

static leat_status flush(leat_new_file *f)
{
    size_t n = f->gathered;
    f->gathered = 0;
    return write_out(f, f->buffer, n);
}

leat_status leat_new_file_write(leat_new_file *f, const void *bytes, size_t n)
{
    f->size += (int64_t)n;
    if (n > BUFFER - f->gathered)
        LEAT_TRY(flush(f));
    if (n > BUFFER) {
        LEAT_TRY(write_out(f, bytes, n));
    } else if (n) {
        memcpy(f->buffer + f->gathered, bytes, n);
        f->gathered += n;
    }
    /* The disk writes while the caller makes the next bytes, so that fsync waits less. */
    if (f->size - f->flushed >= EAGER) {
#ifdef SYNC_FILE_RANGE_WRITE
        sync_file_range(f->fd, f->flushed, f->size - f->flushed, SYNC_FILE_RANGE_WRITE);
#endif
        f->flushed = f->size;
    }
    return NULL;
}

leat_status leat_new_file_sync(leat_new_file *f)
{
    LEAT_TRY(flush(f));
    if (fsync(f->fd) != 0 && errno != EINVAL) /* EINVAL: pipes and devices have no disk */
        return leat_file_error(f->temp, errno);
    int rc = close(f->fd);
    f->fd = -1;
    return rc == 0 ? NULL : leat_file_error(f->temp, errno);
}

leat_status leat_new_file_publish(leat_new_file *f)
{
    LEAT_TRY(leat_path_rename(f->temp, f->path));
    free(f->temp);
    f->temp = NULL;
    return NULL;
}

void leat_new_file_free(leat_new_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    if (f->temp)
        leat_status_free(leat_path_remove(f->temp));
    free(f->temp);
    free(f->path);
    free(f);
}

leat_status leat_file_write(const char *path, const void *bytes, size_t n)
{
    leat_new_file *f;
    LEAT_TRY(leat_new_file_open(path, &f));
    leat_status s = leat_new_file_write(f, bytes, n);
    if (!s)
        s = leat_new_file_sync(f);
    if (!s)
        s = leat_new_file_publish(f);
    leat_new_file_free(f);
    LEAT_TRY(s);
    char *dir = leat_path_dir(path);
    s = leat_dir_sync(dir);
    free(dir);
    return s;
}
