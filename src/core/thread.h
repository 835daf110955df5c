/* thread.h -- starts Leat's threads. */
#ifndef LEAT_CORE_THREAD_H
#define LEAT_CORE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts a thread that runs fn(arg). If thread is NULL, the thread is detached. Gives 0, or an
 * errno: EAGAIN if the limit of the user's processes (ulimit -u), or that of the container, is
 * reached. The thread blocks all signals except those that it causes itself and those of profilers:
 * the program's own threads handle its signals. */
int leat_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

/* Blocks in this thread what leat_thread_start blocks in new ones, and gives the signals that were
 * blocked before: for calls of libraries that start threads. pthread_sigmask(SIG_SETMASK, before,
 * NULL) ends it. */
void leat_signals_block(sigset_t *before);

/* What error messages say about a thread that could not be started. */
#define LEAT_NO_THREAD_HINT                                                                        \
    "Is the limit of this user's processes (ulimit -u), or that of the container, reached?"

/* For tests. Atomic: while it is not 0, leat_thread_start starts no thread and gives EAGAIN. */
extern int leat_threads_refused;

#endif
