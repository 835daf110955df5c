/* step_end_test.c -- runs that are cancelled, time out, or lose their session at the instant at
 * which they end. LEAT_ROUNDS=30000 makes it long; ThreadSanitizer and AddressSanitizer see more
 * than the checks here do. */
#include "test.h"

#include <leat/leat.h>

#include "race_runs.h"

/* Values that cross between two devices, and a queue: everything that registers with a step's
 * cancellation. */
typedef struct model {
    leat_graph *g;
    leat_out x, y;      /* fed, fetched */
    leat_out put, take; /* of a queue; take crosses, too */
    leat_out both;      /* put and take in one run */
} model;

static model make_model(void)
{
    model m = {.g = leat_graph_new()};
    leat_graph *g = m.g;
    leat_out there = {0}, q = {0}, taken = {0}, other = {0};
    m.x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_with_device(g, "/cpu:1")
    {
        there = leat_add(m.x, m.x);
        q = leat_fifo_queue(g, -1, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
        taken = leat_dequeue(q);
        m.put = leat_enqueue(q, leat_scalar(g, LEAT_FLOAT, 1));
        other = leat_enqueue(q, there);
    }
    for (int i = 0; i < 20; i++)
        leat_with_device(g, i % 2 ? "/cpu:1" : "/cpu:0") there = leat_neg(there);
    leat_with_device(g, "/cpu:0")
    {
        m.y = leat_mul(there, leat_scalar(g, LEAT_FLOAT, 3));
        m.take = leat_neg(taken);
        m.both = leat_identity(m.take, leat_after(other));
    }
    CHECK_OK(leat_graph_status(g));
    return m;
}

static leat_session *open_session(const model *m)
{
    leat_session *s = NULL;
    CHECK_OK(leat_session_open(m->g, &s, .cpu_devices = 2, .inter_op_threads = 3));
    return s;
}

/* After each run that was cancelled, a run that is not cancelled, in the same memory, ends well. */
static void cancelled(void)
{
    model m = make_model();
    leat_session *s = open_session(&m);
    race r;
    race_init(&r);
    for (int i = race_rounds(1000); i > 0; i--) {
        leat_cancellation *c = leat_cancellation_new();
        race_start(&r, race_cancel, c);
        bool well = race_ended_well(
            race_run(s, m.x, i % 2 ? m.y : m.both, &(leat_run_options){.cancellation = c}),
            LEAT_CANCELLED);
        CHECK_OK(race_run(s, m.x, m.y, NULL));
        race_await(&r, well);
        leat_cancellation_free(c);
    }
    race_release(&r);
    leat_session_close(s);
    leat_graph_free(m.g);
}

/* The element that a run waits for is enqueued at about the run's deadline. */
static void timed_out(void)
{
    model m = make_model();
    leat_session *s = open_session(&m);
    race r;
    race_init(&r);
    r.fixed_ns = 1000000;
    for (int i = race_rounds(1000); i > 0; i--) {
        race_target p = {s, m.put};
        race_start(&r, race_run_target, &p);
        bool well = race_ended_well(race_run(s, m.x, m.take, &(leat_run_options){.timeout_ms = 1}),
                                    LEAT_DEADLINE_EXCEEDED);
        race_await(&r, well);
        if (!well) /* dequeues an element that came too late */
            race_ended_well(race_run(s, m.x, m.take, &(leat_run_options){.timeout_ms = 5}),
                            LEAT_DEADLINE_EXCEEDED);
    }
    race_release(&r);
    leat_session_close(s);
    leat_graph_free(m.g);
}

/* A partial run that is freed last keeps the session from being freed before. */
static void closed(void)
{
    model m = make_model();
    leat_tensor *x = leat_scalar_float(2);
    race r;
    race_init(&r);
    for (int i = race_rounds(200); i > 0; i--) {
        leat_session *s = open_session(&m);
        leat_partial *p = NULL;
        CHECK_OK(race_run(s, m.x, i % 2 ? m.y : m.both, NULL)); /* compiles it */
        CHECK_OK(leat_session_partial(s, &m.x, 1, &m.y, 1, NULL, 0, &p));
        race_start(&r, race_close, s);
        bool well = race_ended_well(race_run(s, m.x, i % 2 ? m.y : m.both, NULL), LEAT_CANCELLED);
        leat_status fed = leat_partial_run(p, LEAT_FEED({m.x, x}), LEAT_NO_FETCH);
        leat_partial_free(p); /* at about the time at which it ends */
        leat_status_free(fed);
        race_await(&r, well);
    }
    race_release(&r);
    leat_tensor_unref(x);
    leat_graph_free(m.g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"cancelled", cancelled}, {"timed_out", timed_out}, {"closed", closed});
}
