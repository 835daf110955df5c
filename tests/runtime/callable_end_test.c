/* callable_end_test.c -- how calls of functions end: with their step, by a cancellation, at any
 * instant; and callables that outlive the step and the session. */
#include <unistd.h>

#include "callable_ops.h"
#include "waiters.h"

/* ---- Cancellation ---- */

static void dequeues(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out y = leat_op(g, "QueueDequeueV2", leat_in(in[1]), leat_name("wait_here"),
                         leat_attr_types("component_types", (leat_dtype[]){LEAT_FLOAT}, 1));
    out[0] = leat_add(y, in[0]);
}

static void *cancel_soon(void *arg)
{
    usleep(50000);
    leat_cancel_runs(arg);
    return NULL;
}

static void *close_soon(void *arg)
{
    CHECK_SOON(runs_of(arg) == 1);
    leat_session_end_steps(arg);
    return NULL;
}

/* Bodies that wait end with their step. */
static void cancellation(void)
{
    leat_graph *g = leat_graph_new();
    leat_out q = leat_fifo_queue(g, 10, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
    leat_out y = each_of(g, 50, dequeues, q);
    leat_session *s;
    leat_tensor *got = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(leat_session_run_with(s, &(leat_run_options){.timeout_ms = 50}, LEAT_NO_FEED,
                                      LEAT_FETCH({y, &got}), LEAT_NO_TARGET),
                DEADLINE_EXCEEDED, "Timed out waiting for each (TestForEach of F)");
    for (int i = 0; i < 3; i++) {
        leat_cancellation *c = leat_cancellation_new();
        pthread_t thread;
        pthread_create(&thread, NULL, cancel_soon, c);
        CHECK_ERROR(leat_session_run_with(s, &(leat_run_options){.cancellation = c}, LEAT_NO_FEED,
                                          LEAT_FETCH({y, &got}), LEAT_NO_TARGET),
                    CANCELLED, "The run was cancelled");
        pthread_join(thread, NULL);
        leat_cancellation_free(c);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, close_soon, s);
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got}), LEAT_NO_TARGET), CANCELLED,
                "Session::Close()");
    pthread_join(thread, NULL);
    leat_session_close(s);
    leat_graph_free(g);
}

typedef struct canceller {
    leat_cancellation *c;
    int delay_us;
} canceller;

static void *cancel_later(void *arg)
{
    const canceller *x = arg;
    usleep((useconds_t)x->delay_us);
    leat_cancel_runs(x->c);
    return NULL;
}

/* Runs that are cancelled while calls begin and end, at any instant. */
static void cancelled_at_any_time(void)
{
    program p = open_program("Fibonacci", fibonacci);
    uint32_t seed = 1;
    for (int i = 0; i < 300; i++) {
        seed = seed * 1664525 + 1013904223;
        canceller x = {leat_cancellation_new(), (int)(seed >> 21)}; /* up to 2 ms */
        leat_tensor *in = leat_scalar_float(10), *got = NULL;
        pthread_t thread;
        pthread_create(&thread, NULL, cancel_later, &x);
        leat_status s =
            leat_session_run_with(p.s, &(leat_run_options){.cancellation = x.c},
                                  LEAT_FEED({p.x, in}), LEAT_FETCH({p.y, &got}), LEAT_NO_TARGET);
        CHECK(s ? leat_status_code(s) == LEAT_CANCELLED : leat_tensor_at(got, 0) == 55);
        pthread_join(thread, NULL);
        leat_status_free(s);
        leat_tensor_unref(got);
        leat_tensor_unref(in);
        leat_cancellation_free(x.c);
    }
    close_program(&p);
}

/* ---- A callable that is kept ---- */

static void *run_kept(void *arg)
{
    leat_tensor *args[2] = {leat_scalar_float(4), leat_scalar_float(5)}, *y = NULL;
    for (int i = 0; i < 100; i++) {
        CHECK_OK(leat_callable_run(kept, args, 2, NULL, &y));
        if (y)
            CHECK_NEAR(leat_tensor_at(y, 0), 20, 0);
        leat_tensor_unref(y);
    }
    leat_tensor_unref(args[0]);
    leat_tensor_unref(args[1]);
    return NULL;
}

static void outlives_the_session(void)
{
    leat_pool *pool = leat_pool_new(1, "test");
    leat_device *device = NULL;
    CHECK_OK(leat_device_new(&(leat_device_choice){.kind = leat_host_kind(), .job = "localhost"}, 2,
                             pool, &device));
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "F", scaled, NULL, 1, LEAT_FLOAT, LEAT_FLOAT);
    leat_out keeps = leat_op(g, "TestKeep", leat_attr_func("f", "F"));
    leat_session *s;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_new_on(g, &(leat_session_options){0}, &device, 1, NULL, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(keeps)));
    leat_session_close(s);
    leat_graph_free(g);
    pthread_t threads[3];
    for (int i = 0; kept && i < 3; i++)
        pthread_create(&threads[i], NULL, run_kept, NULL);
    for (int i = 0; kept && i < 3; i++)
        pthread_join(threads[i], NULL);
    leat_callable_unref(kept);
    kept = NULL;
    leat_device_close(device);
    leat_pool_free(pool);
}

/* Without a step, a cancellation ends a call. */
static void cancels_what_is_kept(void)
{
    leat_graph *g = leat_graph_new();
    leat_out q = leat_fifo_queue(g, 10, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
    leat_function_define(g, "F", dequeues, NULL, 1, LEAT_FLOAT, LEAT_RESOURCE);
    leat_out keeps = leat_op(g, "TestKeep", leat_attr_func("f", "F"));
    leat_session *s;
    leat_tensor *args[2] = {leat_scalar_float(4), NULL}, *y = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({q, &args[1]}), LEAT_TARGET(keeps)));
    leat_cancellation *c = leat_cancellation_new();
    pthread_t thread;
    pthread_create(&thread, NULL, cancel_soon, c);
    CHECK_ERROR(leat_callable_run(kept, args, 2, &(leat_callable_options){.cancellation = c}, &y),
                CANCELLED, "The call of function F was cancelled");
    pthread_join(thread, NULL);
    leat_cancellation_free(c);
    leat_tensor_unref(args[0]);
    leat_tensor_unref(args[1]);
    leat_callable_unref(kept);
    kept = NULL;
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    register_ops();
    return RUN(argc, argv, {"cancellation", cancellation},
               {"cancelled_at_any_time", cancelled_at_any_time},
               {"outlives_the_session", outlives_the_session},
               {"cancels_what_is_kept", cancels_what_is_kept});
}
