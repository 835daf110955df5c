/* race_runs.h -- for tests with race.h: a run of a session, functions that end runs, and rounds of
 * runs that are ended so. */
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

/* ---- Rounds of runs that are ended at the instant at which they end ---- */
typedef struct race_model {
    leat_graph *g;
    leat_out x;         /* fed */
    leat_out y[2];      /* fetched in turn */
    leat_out put, take; /* enqueues an element; dequeues one */
} race_model;

/* After each run that was cancelled, a run that is not cancelled, in the same memory, ends well. */
static inline void race_cancelled(const race_model *m, leat_session *s, int rounds)
{
    race r;
    race_init(&r);
    for (int i = rounds; i > 0; i--) {
        leat_cancellation *c = leat_cancellation_new();
        race_start(&r, race_cancel, c);
        bool well = race_ended_well(
            race_run(s, m->x, m->y[i % 2], &(leat_run_options){.cancellation = c}), LEAT_CANCELLED);
        CHECK_OK(race_run(s, m->x, m->y[0], NULL));
        race_await(&r, well);
        leat_cancellation_free(c);
    }
    race_release(&r);
}

/* The element that a run waits for is enqueued at about the run's deadline. An element that came
 * too late is dequeued within rest_ms. */
static inline void race_timed_out(const race_model *m, leat_session *s, int rounds, int rest_ms)
{
    race r;
    race_init(&r);
    r.fixed_ns = 1000000;
    for (int i = rounds; i > 0; i--) {
        race_target p = {s, m->put};
        race_start(&r, race_run_target, &p);
        bool well =
            race_ended_well(race_run(s, m->x, m->take, &(leat_run_options){.timeout_ms = 1}),
                            LEAT_DEADLINE_EXCEEDED);
        race_await(&r, well);
        if (!well)
            race_ended_well(race_run(s, m->x, m->take, &(leat_run_options){.timeout_ms = rest_ms}),
                            LEAT_DEADLINE_EXCEEDED);
    }
    race_release(&r);
}

/* The session is closed while a run ends. A partial run that is freed last keeps the session from
 * being freed before. */
static inline void race_closed(const race_model *m, leat_session *(*open)(const race_model *m),
                               int rounds)
{
    leat_tensor *x = leat_scalar_float(2);
    race r;
    race_init(&r);
    for (int i = rounds; i > 0; i--) {
        leat_session *s = open(m);
        leat_partial *p = NULL;
        CHECK_OK(race_run(s, m->x, m->y[i % 2], NULL)); /* compiles it */
        CHECK_OK(leat_session_partial(s, &m->x, 1, &m->y[0], 1, NULL, 0, &p));
        race_start(&r, race_close, s);
        bool well = race_ended_well(race_run(s, m->x, m->y[i % 2], NULL), LEAT_CANCELLED);
        leat_status fed = leat_partial_run(p, LEAT_FEED({m->x, x}), LEAT_NO_FETCH);
        leat_partial_free(p); /* at about the time at which it ends */
        leat_status_free(fed);
        race_await(&r, well);
    }
    race_release(&r);
    leat_tensor_unref(x);
}

#endif
