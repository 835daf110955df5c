/* thread.c -- see thread.h. */
#include "core/thread.h"

#include <errno.h>
#include <stddef.h>

#include "core/bind.h"

int leat_threads_refused;

void leat_signals_block(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

int leat_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
    if (__atomic_load_n(&leat_threads_refused, __ATOMIC_SEQ_CST))
        return EAGAIN;
    pthread_t detached;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (!thread)
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    leat_unbind();
    sigset_t before;
    leat_signals_block(&before);
    int e = pthread_create(thread ? thread : &detached, &attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return e;
}
