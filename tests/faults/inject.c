/* inject.c -- replaces functions of the C library by ones that can fail (see inject.h).
 *
 * CALL(type, function, value, errno, named, parameters, arguments) replaces one function; the
 * build reads these lines, and links with --wrap=function for each of them. value is what a call
 * returns that fails. UNCOUNTED does the same for functions of Leat within which nothing fails.
 * errno is the likely one: the memory, the descriptors or the disk of a real machine are exhausted,
 * or a peer has gone. */
#define _GNU_SOURCE
#include "faults/inject.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <zlib.h>

enum {
    LARGE = 1 << 20,  /* bytes from which allocations by leat_x... are counted */
    SITE_FRAMES = 10, /* frames of the stack by which inject_record tells calls apart */
};

static inject_state *state;
static __thread int uncounted; /* > 0: within a function that ends the process by itself */
static __thread bool busy;     /* within should_fail, which may call what it replaces */

inject_state *inject_init(void)
{
    if (!state) {
        void *frame;
        state =
            mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (state == MAP_FAILED)
            abort();
        backtrace(&frame, 1); /* The first call loads a library. */
    }
    return state;
}

/* A program that another one has started finds its state in the file that LEAT_INJECT names. */
__attribute__((constructor)) static void from_environment(void)
{
    void *frame;
    const char *path = getenv("LEAT_INJECT");
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    backtrace(&frame, 1);
    inject_state *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED)
        abort();
    state = shared;
}

static void lock(void)
{
    while (atomic_exchange(&state->lock, 1))
        sched_yield();
}

static void unlock(void)
{
    atomic_store(&state->lock, 0);
}

inject_fault inject_failed(void)
{
    lock();
    const inject_fault f = state->fault;
    unlock();
    return f;
}

static void arm(long n, bool stays, bool recording)
{
    inject_init();
    lock();
    state->fault = (inject_fault){0};
    state->n_sites = 0;
    unlock();
    atomic_store(&state->fail, n);
    atomic_store(&state->stays, stays);
    atomic_store(&state->recording, recording);
    atomic_store(&state->failed, false);
    atomic_store(&state->calls, 0);
    atomic_store(&state->armed, true);
}

void inject_arm(long n, bool stays)
{
    arm(n, stays, false);
}

void inject_record(void)
{
    arm(0, false, true);
}

void inject_disarm(void)
{
    atomic_store(&state->armed, false);
}

static void note_site(long call)
{
    void *frames[SITE_FRAMES + 2];
    const int n = backtrace(frames, SITE_FRAMES + 2);
    unsigned long hash = 5381;
    for (int i = 2; i < n; i++)
        hash = hash * 1000003 + (uintptr_t)frames[i];
    lock();
    int i = 0;
    while (i < state->n_sites && state->sites[i].hash != hash)
        i++;
    if (i == state->n_sites && i < INJECT_SITES)
        state->sites[state->n_sites++] = (struct inject_site){hash, call};
    unlock();
}

/* Counts a call; true if it is to fail, with errno set. */
static bool should_fail(const char *function, int error, bool named)
{
    if (!state || uncounted || busy || !atomic_load(&state->armed))
        return false;
    const long call = atomic_fetch_add(&state->calls, 1) + 1;
    busy = true;
    if (state->recording)
        note_site(call);
    const long n = atomic_load(&state->fail);
    const bool fails = n && (atomic_load(&state->stays) ? call >= n : call == n);
    if (fails && call == n) {
        inject_fault f = {.function = function, .error = error, .named = named};
        f.n_frames = backtrace(f.frames, INJECT_FRAMES);
        lock();
        state->fault = f;
        unlock();
        atomic_store(&state->failed, true);
    }
    busy = false;
    if (fails)
        errno = error;
    return fails;
}

int __real_fstat(int fd, struct stat *st);
static bool is_file(int fd)
{
    struct stat st;
    return state && atomic_load(&state->armed) && __real_fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

#define CALL(type, function, value, error, named, parameters, arguments)                           \
    type __real_##function parameters;                                                             \
    type __wrap_##function parameters;                                                             \
    type __wrap_##function parameters                                                              \
    {                                                                                              \
        return should_fail(#function, error, named) ? value : __real_##function arguments;         \
    }
/* For functions that return the error instead of setting errno. */
#define RETURNS(type, function, error, named, parameters, arguments)                               \
    CALL(type, function, error, error, named, parameters, arguments)
/* For functions that release what they were given even if they fail. */
#define ENDS(type, function, value, error, named, parameters, arguments)                           \
    type __real_##function parameters;                                                             \
    type __wrap_##function parameters;                                                             \
    type __wrap_##function parameters                                                              \
    {                                                                                              \
        const bool fails = should_fail(#function, error, named);                                   \
        type result = __real_##function arguments;                                                 \
        if (fails)                                                                                 \
            errno = error;                                                                         \
        return fails ? value : result;                                                             \
    }
/* For functions that are called again until they succeed: only the n-th call fails. */
#define ONCE(type, function, value, error, named, parameters, arguments)                           \
    type __real_##function parameters;                                                             \
    type __wrap_##function parameters;                                                             \
    type __wrap_##function parameters                                                              \
    {                                                                                              \
        const bool later = state && state->stays && atomic_load(&state->failed);                   \
        return !later && should_fail(#function, error, named) ? value                              \
                                                              : __real_##function arguments;       \
    }
/* For functions that cannot fail for other descriptors than files, such as an eventfd. */
#define ON_FILES(type, function, value, error, named, parameters, arguments)                       \
    type __real_##function parameters;                                                             \
    type __wrap_##function parameters;                                                             \
    type __wrap_##function parameters                                                              \
    {                                                                                              \
        return is_file(fd) && should_fail(#function, error, named) ? value                         \
                                                                   : __real_##function arguments;  \
    }
#define UNCOUNTED(type, function, size, parameters, arguments)                                     \
    type __real_##function parameters;                                                             \
    type __wrap_##function parameters;                                                             \
    type __wrap_##function parameters                                                              \
    {                                                                                              \
        const int counts = (size) >= LARGE ? 0 : 1;                                                \
        uncounted += counts;                                                                       \
        type result = __real_##function arguments;                                                 \
        uncounted -= counts;                                                                       \
        return result;                                                                             \
    }

struct leat_arena;

/* ---- Leat's allocations that end the process ---- */
UNCOUNTED(void *, leat_xmalloc, n, (size_t n), (n))
UNCOUNTED(void *, leat_xcalloc, n *size, (size_t n, size_t size), (n, size))
UNCOUNTED(void *, leat_xrealloc, n, (void *p, size_t n), (p, n))
UNCOUNTED(void *, leat_xaligned, n, (size_t align, size_t n), (align, n))
UNCOUNTED(char *, leat_xstrdup, strlen(s), (const char *s), (s))
UNCOUNTED(char *, leat_xstrndup, strnlen(s, n), (const char *s, size_t n), (s, n))
UNCOUNTED(void *, leat_arena_alloc, size, (struct leat_arena * a, size_t size), (a, size))
UNCOUNTED(char *, leat_arena_strdup, strlen(s), (struct leat_arena * a, const char *s), (a, s))
UNCOUNTED(char *, leat_arena_strndup, n, (struct leat_arena * a, const char *s, size_t n),
          (a, s, n))
UNCOUNTED(void *, leat_arena_memdup, n, (struct leat_arena * a, const void *p, size_t n), (a, p, n))
UNCOUNTED(void *, leat_block_xalloc_slow, size, (size_t size), (size))

/* ---- Memory ---- */
CALL(void *, malloc, NULL, ENOMEM, true, (size_t n), (n))
CALL(void *, calloc, NULL, ENOMEM, true, (size_t n, size_t size), (n, size))
CALL(void *, realloc, NULL, ENOMEM, true, (void *p, size_t n), (p, n))
CALL(void *, aligned_alloc, NULL, ENOMEM, true, (size_t align, size_t n), (align, n))
CALL(char *, strdup, NULL, ENOMEM, true, (const char *s), (s))
CALL(char *, strndup, NULL, ENOMEM, true, (const char *s, size_t n), (s, n))
RETURNS(int, posix_memalign, ENOMEM, true, (void **p, size_t align, size_t n), (p, align, n))
CALL(void *, mmap, MAP_FAILED, ENOMEM, true,
     (void *p, size_t n, int prot, int flags, int fd, off_t offset),
     (p, n, prot, flags, fd, offset))
CALL(FILE *, open_memstream, NULL, ENOMEM, true, (char **text, size_t *n), (text, n))
CALL(gzFile, gzopen, NULL, ENOMEM, true, (const char *path, const char *mode), (path, mode))
CALL(gzFile, gzdopen, NULL, ENOMEM, true, (int fd, const char *mode), (fd, mode))

/* ---- Threads and processes ---- */
RETURNS(int, pthread_create, EAGAIN, true,
        (pthread_t * t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg),
        (t, attr, fn, arg))
RETURNS(int, pthread_key_create, EAGAIN, true, (pthread_key_t * key, void (*fn)(void *)), (key, fn))
RETURNS(int, pthread_setspecific, ENOMEM, true, (pthread_key_t key, const void *p), (key, p))
CALL(int, sched_setaffinity, -1, EPERM, false, (pid_t pid, size_t n, const cpu_set_t *set),
     (pid, n, set))

/* ---- Files ---- */
CALL(int, access, -1, EACCES, false, (const char *path, int mode), (path, mode))
CALL(int, fstat, -1, EIO, true, (int fd, struct stat *st), (fd, st))
CALL(int, stat, -1, EIO, true, (const char *path, struct stat *st), (path, st))
CALL(int, fstatat, -1, EIO, true, (int dir, const char *path, struct stat *st, int flags),
     (dir, path, st, flags))
ON_FILES(ssize_t, read, -1, EIO, true, (int fd, void *p, size_t n), (fd, p, n))
CALL(ssize_t, pread, -1, EIO, true, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
ON_FILES(ssize_t, write, -1, ENOSPC, true, (int fd, const void *p, size_t n), (fd, p, n))
CALL(ssize_t, pwrite, -1, ENOSPC, true, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
CALL(int, fsync, -1, EIO, true, (int fd), (fd))
CALL(int, ftruncate, -1, ENOSPC, true, (int fd, off_t n), (fd, n))
CALL(int, sync_file_range, -1, EIO, false, (int fd, off64_t at, off64_t n, unsigned flags),
     (fd, at, n, flags))
CALL(int, renameat, -1, ENOSPC, true, (int a, const char *from, int b, const char *to),
     (a, from, b, to))
CALL(int, linkat, -1, ENOSPC, true, (int a, const char *from, int b, const char *to, int flags),
     (a, from, b, to, flags))
CALL(int, unlinkat, -1, EIO, true, (int dir, const char *path, int flags), (dir, path, flags))
CALL(int, mkdir, -1, ENOSPC, true, (const char *path, mode_t mode), (path, mode))
CALL(int, mkdirat, -1, ENOSPC, true, (int dir, const char *path, mode_t mode), (dir, path, mode))
CALL(DIR *, fdopendir, NULL, ENOMEM, true, (int fd), (fd))
CALL(struct dirent *, readdir, NULL, EIO, true, (DIR * dir), (dir))
CALL(char *, realpath, NULL, EIO, true, (const char *path, char *to), (path, to))
CALL(ssize_t, readlink, -1, EIO, true, (const char *path, char *to, size_t n), (path, to, n))
CALL(char *, getcwd, NULL, ENOENT, true, (char *to, size_t n), (to, n))
CALL(ssize_t, getrandom, -1, ENOSYS, true, (void *p, size_t n, unsigned flags), (p, n, flags))
CALL(FILE *, fopen, NULL, EMFILE, true, (const char *path, const char *mode), (path, mode))
CALL(FILE *, fdopen, NULL, ENOMEM, true, (int fd, const char *mode), (fd, mode))
CALL(char *, fgets, (f->_flags |= _IO_ERR_SEEN, NULL), EIO, false, (char *to, int n, FILE *f),
     (to, n, f))
CALL(size_t, fread, (f->_flags |= _IO_ERR_SEEN, 0), EIO, true,
     (void *p, size_t size, size_t n, FILE *f), (p, size, n, f))
CALL(size_t, fwrite, (f->_flags |= _IO_ERR_SEEN, 0), ENOSPC, false,
     (const void *p, size_t size, size_t n, FILE *f), (p, size, n, f))
CALL(int, fflush, EOF, ENOSPC, false, (FILE * f), (f))
ENDS(int, fclose, EOF, ENOSPC, false, (FILE * f), (f))
ENDS(int, close, -1, EIO, false, (int fd), (fd))

/* ---- Sockets and other descriptors ---- */
CALL(int, socket, -1, EMFILE, true, (int domain, int type, int protocol), (domain, type, protocol))
CALL(int, bind, -1, EACCES, false, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
CALL(int, listen, -1, EADDRINUSE, true, (int fd, int n), (fd, n))
CALL(int, connect, -1, ECONNREFUSED, false, (int fd, const struct sockaddr *a, socklen_t n),
     (fd, a, n))
CALL(int, accept4, -1, EMFILE, false, (int fd, struct sockaddr *a, socklen_t *n, int flags),
     (fd, a, n, flags))
CALL(ssize_t, send, -1, ECONNRESET, false, (int fd, const void *p, size_t n, int flags),
     (fd, p, n, flags))
CALL(ssize_t, sendmsg, -1, ECONNRESET, false, (int fd, const struct msghdr *m, int flags),
     (fd, m, flags))
CALL(ssize_t, recv, -1, ECONNRESET, false, (int fd, void *p, size_t n, int flags),
     (fd, p, n, flags))
CALL(ssize_t, recvmsg, -1, ECONNRESET, false, (int fd, struct msghdr *m, int flags), (fd, m, flags))
CALL(int, setsockopt, -1, ENOBUFS, false, (int fd, int level, int name, const void *p, socklen_t n),
     (fd, level, name, p, n))
CALL(int, getsockopt, -1, ENOBUFS, false, (int fd, int level, int name, void *p, socklen_t *n),
     (fd, level, name, p, n))
CALL(int, getsockname, -1, ENOBUFS, false, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
CALL(int, getpeername, -1, ENOTCONN, false, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
CALL(int, getaddrinfo, EAI_MEMORY, ENOMEM, false,
     (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **to),
     (host, port, hints, to))
ONCE(int, poll, -1, ENOMEM, false, (struct pollfd * v, nfds_t n, int ms), (v, n, ms))
CALL(int, epoll_create1, -1, EMFILE, true, (int flags), (flags))
CALL(int, timerfd_create, -1, EMFILE, true, (int clock, int flags), (clock, flags))
CALL(int, eventfd, -1, EMFILE, true, (unsigned value, int flags), (value, flags))
CALL(int, memfd_create, -1, EMFILE, true, (const char *name, unsigned flags), (name, flags))
CALL(int, pipe2, -1, EMFILE, true, (int *fds, int flags), (fds, flags))

/* ---- Functions whose arguments vary ---- */
#define VARIES(type, function, parameters)                                                         \
    type __wrap_##function parameters;                                                             \
    type __wrap_##function parameters

int __real_openat(int dir, const char *path, int flags, ...);
VARIES(int, openat, (int dir, const char *path, int flags, ...))
{
    va_list v;
    va_start(v, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(v, mode_t) : 0;
    va_end(v);
    return should_fail("openat", EMFILE, true) ? -1 : __real_openat(dir, path, flags, mode);
}

int __real_open(const char *path, int flags, ...);
VARIES(int, open, (const char *path, int flags, ...))
{
    va_list v;
    va_start(v, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(v, mode_t) : 0;
    va_end(v);
    return should_fail("open", EMFILE, true) ? -1 : __real_open(path, flags, mode);
}

/* Commands of fcntl that Leat uses have an int, or nothing. */
int __real_fcntl(int fd, int command, ...);
VARIES(int, fcntl, (int fd, int command, ...))
{
    va_list v;
    va_start(v, command);
    const long arg = va_arg(v, long);
    va_end(v);
    return should_fail("fcntl", EMFILE, false) ? -1 : __real_fcntl(fd, command, arg);
}

/* openat2 alone can fail: the other system calls that Leat makes by number wait or wake. */
long __real_syscall(long number, ...);
VARIES(long, syscall, (long number, ...))
{
    long a[6];
    va_list v;
    va_start(v, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(v, long);
    va_end(v);
    if (number == SYS_openat2 && should_fail("openat2", EMFILE, true))
        return -1;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* What is in an epoll instance can be changed and removed without memory. */
int __real_epoll_ctl(int fd, int op, int of, struct epoll_event *e);
VARIES(int, epoll_ctl, (int fd, int op, int of, struct epoll_event *e))
{
    const bool adds = op == EPOLL_CTL_ADD;
    return adds && should_fail("epoll_ctl", ENOSPC, true) ? -1 : __real_epoll_ctl(fd, op, of, e);
}

/* Without its machine's id, a task connects by TCP, with TLS where it is configured: sockets within
 * a machine are not encrypted. */
bool inject_machine_unknown;
const char *__real_leat_machine_id(void);
VARIES(const char *, leat_machine_id, (void))
{
    return inject_machine_unknown ? "" : __real_leat_machine_id();
}

VARIES(int, asprintf, (char **to, const char *format, ...))
{
    va_list v;
    va_start(v, format);
    const int n = should_fail("asprintf", ENOMEM, true) ? -1 : vasprintf(to, format, v);
    va_end(v);
    return n;
}

VARIES(char *, leat_arena_printf, (struct leat_arena * a, const char *format, ...))
{
    char *text = NULL;
    va_list v;
    va_start(v, format);
    const int n = vasprintf(&text, format, v);
    va_end(v);
    if (n < 0)
        abort();
    char *copy = __wrap_leat_arena_memdup(a, text, (size_t)n + 1);
    free(text);
    return copy;
}
