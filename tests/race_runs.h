/* race_runs.h -- for tests with race.h: a run of a session, and functions that end runs. */
#ifndef LEAT_TEST_RACE_RUNS_H
#define LEAT_TEST_RACE_RUNS_H

#include <leat/leat.h>

#include "race.h"
#include "test.h"

/* Feeds 2 to x and fetches y. */
static inline leat_status race_run(leat_session *s, leat_out x, leat_out y,
                                   const leat_run_options *o)
{
    leat_tensor *fed = leat_scalar_float(2), *v = NULL;
    leat_status status =
        leat_session_run_with(s, o, LEAT_FEED({x, fed}), LEAT_FETCH({y, &v}), LEAT_NO_TARGET);
    leat_tensor_unref(fed);
    leat_tensor_unref(v);
    return status;
}

/* True if the run ended without an error. An error of another code fails the test. Takes s. */
static inline bool race_ended_well(leat_status s, leat_code code)
{
    bool well = !s;
    if (s && leat_status_code(s) != code)
        CHECK_OK(s);
    else
        leat_status_free(s);
    return well;
}

/* ---- For race_start ---- */
static inline void race_cancel(void *cancellation)
{
    leat_cancel_runs(cancellation);
}

static inline void race_close(void *session)
{
    leat_session_close(session);
}

typedef struct race_target {
    leat_session *s;
    leat_out target;
} race_target;
static inline void race_run_target(void *arg)
{
    race_target *t = arg;
    CHECK_OK(leat_session_run(t->s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(t->target)));
}

#endif
