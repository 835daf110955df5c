/* coordinator_test.c -- threads that stop together, threads that fill queues. */
#include <leat/leat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "test.h"

/* ---- Coordinators ---- */

typedef struct thread {
    leat_coordinator *c;
    atomic_int rounds;
    leat_status error; /* given at the end */
    atomic_bool stubborn;
} thread;

static leat_status work(void *arg)
{
    thread *t = arg;
    while (!leat_coordinator_wait_for_stop(t->c, 1) || atomic_load(&t->stubborn))
        atomic_fetch_add(&t->rounds, 1);
    return t->error;
}

static void stop_together(void)
{
    leat_coordinator *c = leat_coordinator_new();
    thread t[3] = {{.c = c}, {.c = c}, {.c = c}};
    CHECK(!leat_coordinator_wait_for_stop(c, 5));
    for (int i = 0; i < 3; i++)
        CHECK_OK(leat_coordinator_start(c, "worker", work, &t[i]));
    CHECK(!leat_coordinator_should_stop(c));
    leat_coordinator_request_stop(c, NULL);
    CHECK(leat_coordinator_should_stop(c));
    CHECK(leat_coordinator_wait_for_stop(c, -1));
    CHECK_OK(leat_coordinator_join(c));
    CHECK(leat_coordinator_joined(c));
    leat_coordinator_clear_stop(c);
    CHECK(!leat_coordinator_should_stop(c) && !leat_coordinator_joined(c));
    leat_coordinator_free(c);
}

static leat_status fails(void *arg)
{
    (void)arg;
    return leat_error(INTERNAL, "First");
}

static leat_status ends(void *arg)
{
    (void)arg;
    return leat_error(OUT_OF_RANGE, "No more");
}

static void first_error(void)
{
    leat_coordinator *c = leat_coordinator_new();
    thread t = {.c = c, .error = leat_error(ABORTED, "Second")};
    CHECK_OK(leat_coordinator_start(c, "a", work, &t));
    CHECK_OK(leat_coordinator_start(c, "b", fails, NULL));
    CHECK_ERROR(leat_coordinator_join(c), INTERNAL, "First");
    CHECK_ERROR(leat_coordinator_status(c), INTERNAL, "First");
    leat_coordinator_clear_stop(c);
    CHECK_OK(leat_coordinator_start(c, "c", ends, NULL)); /* the end of a queue is no error */
    CHECK_OK(leat_coordinator_join(c));
    CHECK_OK(leat_coordinator_status(c));
    leat_coordinator_free(c);
}

/* All threads ended by themselves, without a request to stop. */
static leat_status nothing(void *arg)
{
    (void)arg;
    return NULL;
}

static void ended_by_themselves(void)
{
    leat_coordinator *c = leat_coordinator_new();
    for (int i = 0; i < 4; i++)
        CHECK_OK(leat_coordinator_start(c, "short", nothing, NULL));
    CHECK_OK(leat_coordinator_join(c));
    CHECK(!leat_coordinator_should_stop(c));
    leat_coordinator_free(c);
}

static leat_status give_id(void *id)
{
    atomic_store((atomic_int *)id, (int)syscall(SYS_gettid));
    return NULL;
}

static bool thread_ended(int id)
{
    return id && syscall(SYS_tgkill, getpid(), id, 0) != 0;
}

static void who_goes_on_is_named(void)
{
    static thread t;
    atomic_int polite = 0;
    leat_coordinator *c = leat_coordinator_new();
    t = (thread){.c = c, .stubborn = true};
    CHECK_OK(leat_coordinator_start(c, "deaf", work, &t));
    CHECK_OK(leat_coordinator_start(c, "polite", give_id, &polite));
    CHECK_SOON(thread_ended(atomic_load(&polite)));
    leat_coordinator_request_stop(c, NULL);
    CHECK_ERROR(leat_coordinator_join(c, .grace_ms = 20), DEADLINE_EXCEEDED,
                "Coordinator stopped with threads still running: deaf");
    CHECK_OK(leat_coordinator_join(c, .grace_ms = 1));
    atomic_store(&t.stubborn, false);
    leat_coordinator_free(c); /* the thread keeps what it needs */
    usleep(50 * 1000);
}

static leat_status count(void *arg)
{
    return atomic_fetch_add((atomic_int *)arg, 1) == 3 ? leat_error(OUT_OF_RANGE, "Enough") : NULL;
}

static void loops(void)
{
    leat_coordinator *c = leat_coordinator_new();
    atomic_int n = 0;
    CHECK_OK(leat_coordinator_loop(c, "loop", 1, count, &n));
    CHECK_OK(leat_coordinator_join(c));
    CHECK_INT(atomic_load(&n), 4);
    leat_coordinator_free(c);
}

/* ---- Queue runners ---- */

typedef struct fixture {
    leat_graph *g;
    leat_session *s;
    leat_coordinator *c;
    leat_out queue, var, init, count, take;
} fixture;

/* Two runners put what a counter gives, up to a limit, into a queue. */
static fixture begin(int limit, int threads)
{
    fixture f = {.g = leat_graph_new(), .c = leat_coordinator_new()};
    f.queue = leat_fifo_queue(f.g, 4, LEAT_COMPONENTS({LEAT_INT32, leat_shape()}));
    f.var = leat_op(f.g, "VariableV2", leat_attr_shape("shape", leat_shape()),
                    leat_attr_type("dtype", LEAT_INT32));
    f.init = leat_assign(f.var, leat_scalar(f.g, LEAT_INT32, 0));
    f.count = leat_op(f.g, "CountUpTo", leat_in(f.var), leat_attr_int("limit", limit));
    f.take = leat_dequeue(f.queue);
    leat_out put = leat_enqueue(f.queue, f.count), ops[] = {put, put, put};
    leat_queue_runner(f.queue, ops, threads);
    CHECK_OK(leat_graph_status(f.g));
    CHECK_OK(leat_session_open(f.g, &f.s));
    return f;
}

static void end(fixture *f)
{
    leat_coordinator_free(f->c);
    leat_session_close(f->s);
    leat_graph_free(f->g);
}

static leat_status run(leat_session *s, leat_out target)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(target));
}

static void to_the_end(void)
{
    fixture f = begin(50, 3);
    CHECK_OK(run(f.s, f.init));
    CHECK_OK(leat_start_queue_runners(f.g, f.s, f.c));
    CHECK_OK(leat_start_queue_runners(f.g, f.s, f.c)); /* they run already */
    leat_status s = NULL;
    double sum = 0;
    for (;;) {
        leat_tensor *t = NULL;
        s = leat_session_run(f.s, LEAT_NO_FEED, LEAT_FETCH({f.take, &t}), LEAT_NO_TARGET);
        if (s)
            break;
        sum += leat_tensor_at(t, 0);
        leat_tensor_unref(t);
    }
    CHECK_ERROR(s, OUT_OF_RANGE, "is closed and has insufficient elements");
    CHECK_NEAR(sum, 50 * 49 / 2, 0);
    leat_coordinator_request_stop(f.c, NULL);
    CHECK_OK(leat_coordinator_join(f.c, .grace_ms = 5000));
    end(&f);
}

/* Threads that wait for a full queue stop, too. */
static void stopped_half_way(void)
{
    fixture f = begin(1 << 30, 2);
    CHECK_OK(run(f.s, f.init));
    CHECK_OK(leat_start_queue_runners(f.g, f.s, f.c));
    CHECK_OK(run(f.s, f.take));
    usleep(5 * 1000);
    leat_coordinator_request_stop(f.c, NULL);
    CHECK_OK(leat_coordinator_join(f.c, .grace_ms = 5000));
    end(&f);
}

static void error_of_a_runner(void)
{
    fixture f = begin(10, 1); /* the counter has no value */
    CHECK_OK(leat_start_queue_runners(f.g, f.s, f.c));
    CHECK_ERROR(leat_coordinator_join(f.c, .grace_ms = 5000), FAILED_PRECONDITION,
                "Attempting to use uninitialized value");
    end(&f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"stop_together", stop_together}, {"first_error", first_error},
               {"ended_by_themselves", ended_by_themselves},
               {"who_goes_on_is_named", who_goes_on_is_named}, {"loops", loops},
               {"to_the_end", to_the_end}, {"stopped_half_way", stopped_half_way},
               {"error_of_a_runner", error_of_a_runner});
}
