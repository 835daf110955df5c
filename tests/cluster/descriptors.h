/* descriptors.h -- a process that has used up its descriptors. */
#ifndef LEAT_TEST_DESCRIPTORS_H
#define LEAT_TEST_DESCRIPTORS_H

#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static struct rlimit descriptors_before;

/* No more descriptors can be opened; those that are open stay so. */
static inline void descriptors_refuse(void)
{
    getrlimit(RLIMIT_NOFILE, &descriptors_before);
    struct rlimit none = descriptors_before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
}

static inline void descriptors_allow(void)
{
    setrlimit(RLIMIT_NOFILE, &descriptors_before);
}

/* Waits for this time. True if the threads of the process have been idle for most of it. */
static inline bool idle_for_ms(int ms)
{
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    usleep((unsigned)ms * 1000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    return (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6 < ms / 4.0;
}

#endif
