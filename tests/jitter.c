/* jitter.c -- a library that makes threads late, for tests: LD_PRELOAD=build/libjitter.so.
 *
 * Every second thread starts up to 300 ms late, and one in 3,000 calls that take or release a
 * mutex, or send or receive a message, sleeps for up to 30 ms. A test that relies on time, and a
 * race that needs a thread to stand still at the wrong place, then show within a few runs, on a
 * machine that is idle, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { START_US = 300000, CALL_US = 30000, CALLS = 3000 };

static uint32_t draw(void)
{
    static _Thread_local uint64_t state;
    if (!state) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        state = (uint64_t)t.tv_nsec * 7919 + (uint64_t)syscall(SYS_gettid);
    }
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

/* Not by usleep or nanosleep: a test may have replaced them, and they are points of cancellation.
 */
static void sleep_up_to(uint32_t us)
{
    struct timespec t = {.tv_nsec = 1000L * (long)(draw() % us)};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

static void sometimes(void)
{
    if (draw() % CALLS == 0)
        sleep_up_to(CALL_US);
}

/* The function of this name that the program would call without this library. */
#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real)                                                                                     \
        *(void **)&real = dlsym(RTLD_NEXT, #name);

typedef struct start {
    void *(*fn)(void *arg);
    void *arg;
} start;

static void *start_late(void *p)
{
    start s = *(start *)p;
    free(p);
    if (draw() % 2)
        sleep_up_to(START_US);
    return s.fn(s.arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    REAL(pthread_create)
    start *s = malloc(sizeof(*s));
    if (!s)
        return real(thread, attr, fn, arg);
    *s = (start){fn, arg};
    int failed = real(thread, attr, start_late, s);
    if (failed)
        free(s);
    return failed;
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
    REAL(pthread_mutex_lock)
    sometimes();
    return real(m);
}

int pthread_mutex_unlock(pthread_mutex_t *m)
{
    REAL(pthread_mutex_unlock)
    int failed = real(m);
    sometimes();
    return failed;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    REAL(sendmsg)
    sometimes();
    return real(fd, m, flags);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    REAL(recvmsg)
    sometimes();
    return real(fd, m, flags);
}
