/* spin.c -- the budget of spinning threads, and Linux's futex calls. */
#define _GNU_SOURCE
#include "core/spin.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/later.h"
#include "core/threadpool.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int cpus = 1, threads = 1;
static atomic_int spinners;

static void count_cpus(void)
{
    cpu_set_t set;
    long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                         : sysconf(_SC_NPROCESSORS_ONLN);
    cpus = n > 1 ? (int)n : 1;
    const char *told = getenv("LEAT_NUM_THREADS");
    int k = told ? atoi(told) : 0;
    threads = k > 0 && k <= 1024 ? k : cpus;
}

int leat_cpu_count(void)
{
    pthread_once(&once, count_cpus);
    return cpus;
}

int leat_default_threads(void)
{
    pthread_once(&once, count_cpus);
    return threads;
}

bool leat_spin_begin(void)
{
    int most = leat_cpu_count() > 1 ? leat_cpu_count() : 0;
    if (atomic_load_explicit(&spinners, memory_order_relaxed) >= most)
        return false;
    if (atomic_fetch_add_explicit(&spinners, 1, memory_order_relaxed) < most)
        return true;
    leat_spin_end();
    return false;
}

void leat_spin_end(void)
{
    atomic_fetch_sub_explicit(&spinners, 1, memory_order_relaxed);
}

bool leat_spin_goes_on(int64_t end_ns)
{
    sched_yield();
    return leat_now_ns() < end_ns;
}

bool leat_futex_wait(void *word, uint32_t value, int64_t deadline_ns)
{
    leat_later_now();
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    /* The bitset form takes an absolute time. */
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
                      deadline_ns ? &until : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
    return rc == 0 || errno != ETIMEDOUT;
}

void leat_futex_wake(void *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}
