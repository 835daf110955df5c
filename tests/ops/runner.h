/* runner.h -- runs of a session in threads of their own, for tests of ops that wait. */
#ifndef LEAT_TEST_RUNNER_H
#define LEAT_TEST_RUNNER_H

#include <leat/session.h>
#include <pthread.h>

typedef struct runner {
    leat_session *s;
    leat_out target;
    leat_cancellation *cancel;
    leat_status status; /* of the run, when the thread has ended */
    pthread_t thread;
} runner;

static inline void *runner_main(void *arg)
{
    runner *r = arg;
    leat_run_options o = {.cancellation = r->cancel};
    r->status =
        leat_session_run_with(r->s, &o, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(r->target));
    return NULL;
}

#endif
