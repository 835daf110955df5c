/* cond.c -- see cond.h. */
#include "core/cond.h"

#include <errno.h>
#include <time.h>

void leat_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

bool leat_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t deadline_ns)
{
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    return pthread_cond_timedwait(c, lock, &until) != ETIMEDOUT;
}
