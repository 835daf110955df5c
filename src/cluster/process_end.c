/* process_end.c -- a limit for the end of a process: what does not end by itself, such as a kernel
 * in a loop or a file system that hangs, does not keep the process. */
#include <leat/cluster.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/log.h"

enum { LAST_SECONDS = 5 }; /* after the grace, for what was cancelled to end */

static void *end_late(void *arg)
{
    static const char text[] = "Something under way did not end in time: it is given up, and the "
                               "process ends\n";
    const struct timespec at = *(struct timespec *)arg;
    free(arg);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
    _exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

void leat_process_end_within(int64_t grace_ms)
{
    sigset_t all, before;
    pthread_t thread;
    struct timespec *at = leat_new(struct timespec);
    clock_gettime(CLOCK_MONOTONIC, at);
    grace_ms = grace_ms < 0 ? 0 : grace_ms;
    at->tv_sec += (time_t)(grace_ms / 1000) + LAST_SECONDS + (grace_ms % 1000 != 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* The thread inherits it. */
    int failed = pthread_create(&thread, NULL, end_late, at);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) {
        pthread_detach(thread);
        return;
    }
    free(at);
    LEAT_LOG(WARNING, "No thread can be started that ends this process if it does not end itself");
}
