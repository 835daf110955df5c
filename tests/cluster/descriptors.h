/* descriptors.h -- a process that has used up its descriptors. */
#ifndef LEAT_TEST_DESCRIPTORS_H
#define LEAT_TEST_DESCRIPTORS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { DESCRIPTORS = 256 };
static struct rlimit descriptors_before;
static int descriptors_used[DESCRIPTORS], n_descriptors_used;

/* No more descriptors can be opened; those that are open stay so. The limit itself stays above the
 * number of descriptors that a call of poll has, which fails else. */
static inline void descriptors_refuse(void)
{
    getrlimit(RLIMIT_NOFILE, &descriptors_before);
    struct rlimit few = descriptors_before;
    few.rlim_cur = DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int fd; (fd = dup(1)) >= 0;)
        descriptors_used[n_descriptors_used++] = fd;
}

static inline void descriptors_allow(void)
{
    setrlimit(RLIMIT_NOFILE, &descriptors_before);
    while (n_descriptors_used)
        close(descriptors_used[--n_descriptors_used]);
}

static inline double cpu_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

typedef struct spinner {
    atomic_bool stop;
    double ms; /* The CPU time that the thread got. */
} spinner;

static inline void *spin_until(void *arg)
{
    spinner *s = arg;
    while (!atomic_load(&s->stop))
        ;
    s->ms = cpu_ms(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* Waits for this time. True if the threads of the process have been idle for most of it: they got
 * much less CPU time than a thread that spins, which is little on a busy machine. */
static inline bool idle_for_ms(int ms)
{
    spinner s = {0};
    pthread_t t;
    double before = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (pthread_create(&t, NULL, spin_until, &s))
        return false;
    usleep((unsigned)ms * 1000);
    atomic_store(&s.stop, true);
    pthread_join(t, NULL);
    return cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - before - s.ms < s.ms / 4;
}

#endif
