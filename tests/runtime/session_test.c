/* session_test.c -- runs: feeds, fetches, errors, frames, threads, time-outs. */
#include "test.h"

#include <leat/leat.h>
#include <pthread.h>
#include <unistd.h>

#include "core/thread.h"
#include "graph/graph_int.h"
#include "waiters.h"

static float run_float(leat_session *s, leat_out y)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    float v = t ? (float)leat_tensor_at(t, 0) : NAN;
    leat_tensor_unref(t);
    return v;
}

static void feed_and_fetch(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1));
    leat_out y = leat_relu(x);
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    float v[3] = {-1, 2, -3};
    leat_tensor *in, *out = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3), v, &in));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
        CHECK_NEAR(leat_tensor_at(out, 0), 0, 0);
        CHECK_NEAR(leat_tensor_at(out, 1), 2, 0);
        leat_tensor_unref(out);
    }
    CHECK_NEAR(leat_tensor_at(in, 0), -1, 0); /* what was fed is as it was */
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &out}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "You must feed a value for placeholder tensor 'Placeholder'");
    leat_tensor *wrong = leat_scalar_int32(1);
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, wrong}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "was fed int32");
    leat_tensor_unref(wrong);
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
}

/* while (i < limit) i = i + 1, by hand: the frames of the executor without the builders. */
static leat_out loop(leat_graph *g, leat_out limit)
{
    leat_arg frame = leat_attr_string("frame_name", "loop"),
             invariant = leat_attr_bool("is_constant", true);
    leat_out enter = LEAT_OP1("Enter", leat_scalar(g, LEAT_INT32, 0), frame);
    leat_out ins[2] = {enter, enter};
    leat_out merge = LEAT_OPN("Merge", ins, 2);
    leat_out most = LEAT_OP1("Enter", limit, frame, invariant);
    leat_out one = LEAT_OP1("Enter", leat_scalar(g, LEAT_INT32, 1), frame, invariant);
    leat_out cond = LEAT_OP1("LoopCond", leat_less(merge, most));
    leat_out sw = LEAT_OP2("Switch", merge, cond);
    leat_out next = LEAT_OP1("NextIteration", leat_add(leat_output(sw, 1), one));
    leat_out exit = LEAT_OP1("Exit", leat_output(sw, 0));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_node_set_input(merge.node, 1, next));
    return exit;
}

static void loop_by_hand(void)
{
    leat_graph *g = leat_graph_new();
    leat_out exit = loop(g, leat_scalar(g, LEAT_INT32, 1000));
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s, .no_optimization = true));
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(run_float(s, exit), 1000, 0);
    leat_session_close(s);
    leat_graph_free(g);
}

static void *cancel_soon(void *arg)
{
    usleep(20000);
    leat_cancel_runs(arg);
    return NULL;
}

static void *close_soon(void *arg)
{
    CHECK_SOON(runs_of(arg) == 1);
    leat_session_close(arg);
    return NULL;
}

/* A loop that takes minutes ends at its deadline, when it is cancelled, and with its session. */
static void endless(void)
{
    leat_graph *g = leat_graph_new();
    leat_out exit = loop(g, leat_scalar(g, LEAT_INT32, 2000000000));
    leat_session *s;
    leat_tensor *t;
    pthread_t thread;
    CHECK_OK(leat_session_open(g, &s, .no_optimization = true));
    CHECK_ERROR(leat_session_run_with(s, &(leat_run_options){.timeout_ms = 20}, LEAT_NO_FEED,
                                      LEAT_FETCH({exit, &t}), LEAT_NO_TARGET),
                DEADLINE_EXCEEDED, "Timed out");
    leat_cancellation *c = leat_cancellation_new();
    pthread_create(&thread, NULL, cancel_soon, c);
    CHECK_ERROR(leat_session_run_with(s, &(leat_run_options){.cancellation = c}, LEAT_NO_FEED,
                                      LEAT_FETCH({exit, &t}), LEAT_NO_TARGET),
                CANCELLED, "cancelled");
    pthread_join(thread, NULL);
    leat_cancellation_free(c);
    pthread_create(&thread, NULL, close_soon, s);
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({exit, &t}), LEAT_NO_TARGET),
                CANCELLED, "Step was cancelled by an explicit call to `Session::Close()`.");
    pthread_join(thread, NULL);
    leat_graph_free(g);
}

static void partial(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_placeholder(g, LEAT_FLOAT, leat_shape()),
             b = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_out x = leat_add(a, a), y = leat_mul(x, b);
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    leat_tensor *three = leat_scalar_float(3), *four = leat_scalar_float(4), *t = NULL;
    for (int i = 0; i < 10; i++) {
        leat_partial *p;
        CHECK_OK(
            leat_session_partial(s, (leat_out[]){a, b}, 2, (leat_out[]){x, y}, 2, NULL, 0, &p));
        CHECK_OK(leat_partial_run(p, LEAT_FEED({a, three}), LEAT_FETCH({x, &t})));
        CHECK_NEAR(leat_tensor_at(t, 0), 6, 0);
        leat_tensor_unref(t);
        CHECK_ERROR(leat_partial_run(p, LEAT_FEED({a, three}), LEAT_NO_FETCH), INVALID_ARGUMENT,
                    "has already been fed");
        CHECK_ERROR(leat_partial_run(p, LEAT_NO_FEED, LEAT_FETCH({y, &t})), INVALID_ARGUMENT,
                    "can't be computed from the feeds that have been fed so far");
        CHECK_OK(leat_partial_run(p, LEAT_FEED({b, four}), LEAT_FETCH({y, &t})));
        CHECK_NEAR(leat_tensor_at(t, 0), 24, 0);
        leat_tensor_unref(t);
        leat_partial_free(p);
        /* One that is given up half-way. */
        CHECK_OK(
            leat_session_partial(s, (leat_out[]){a, b}, 2, (leat_out[]){x, y}, 2, NULL, 0, &p));
        CHECK_OK(leat_partial_run(p, LEAT_FEED({a, three}), LEAT_NO_FETCH));
        leat_partial_free(p);
    }
    /* What was not named at the beginning. */
    leat_partial *p;
    CHECK_OK(leat_session_partial(s, &a, 1, &x, 1, NULL, 0, &p));
    CHECK_ERROR(leat_partial_run(p, LEAT_FEED({b, four}), LEAT_NO_FETCH), INVALID_ARGUMENT,
                "The feed Placeholder_1:0 was not specified in partial_run_setup.");
    CHECK_ERROR(leat_partial_run(p, LEAT_NO_FEED, LEAT_FETCH({y, &t})), INVALID_ARGUMENT,
                "The fetch Mul:0 was not specified in partial_run_setup.");
    leat_partial_free(p);
    leat_tensor_unref(three);
    leat_tensor_unref(four);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Its step waits for feeds, which the caller could not give while it runs the step itself. */
static void partial_without_thread(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_placeholder(g, LEAT_FLOAT, leat_shape()), x = leat_add(a, a);
    leat_session *s;
    leat_partial *p;
    CHECK_OK(leat_session_open(g, &s));
    __atomic_store_n(&leat_threads_refused, 1, __ATOMIC_SEQ_CST);
    CHECK_ERROR(leat_session_partial(s, &a, 1, &x, 1, NULL, 0, &p), RESOURCE_EXHAUSTED,
                "No thread can be started for a partial run: Resource temporarily unavailable");
    __atomic_store_n(&leat_threads_refused, 0, __ATOMIC_SEQ_CST);
    CHECK_OK(leat_session_partial(s, &a, 1, &x, 1, NULL, 0, &p));
    leat_partial_free(p);
    leat_session_close(s);
    leat_graph_free(g);
}

static void traced(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_scalar(g, LEAT_FLOAT, 2), y = leat_add(a, a, leat_name("sum"));
    leat_session *s;
    leat_metadata *m = NULL;
    leat_tensor *t = NULL;
    void *bytes = NULL;
    char *json = NULL;
    size_t n = 0;
    CHECK_OK(leat_session_open(g, &s, .no_optimization = true));
    CHECK_OK(leat_session_run_with(s, &(leat_run_options){.metadata_out = &m}, LEAT_NO_FEED,
                                   LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    CHECK_OK(leat_metadata_to_binary(m, &bytes, &n));
    CHECK(n > 100);
    CHECK_OK(leat_metadata_to_chrome(m, &json));
    CHECK(json && strstr(json, "\"name\":\"sum\"") && strstr(json, "\"traceEvents\""));
    free(bytes);
    free(json);
    leat_metadata_free(m);
    leat_tensor_unref(t);
    leat_session_close(s);
    leat_graph_free(g);
}

static void mistakes_stick(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3));
    leat_out y = leat_op(g, "NoSuchOp", leat_in(x));
    leat_out z = leat_relu(y); /* nothing more is reported */
    CHECK_ERROR(leat_graph_status(g), NOT_FOUND, "Op type not registered 'NoSuchOp'");
    CHECK_ERROR(leat_graph_status(g), NOT_FOUND, "session_test.c:");
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    leat_tensor *t;
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({z, &t}), LEAT_NO_TARGET), NOT_FOUND,
                "NoSuchOp");
    leat_session_close(s);
    leat_graph_free(g);
}

typedef struct many {
    leat_session *s;
    leat_out x, y;
    int failures;
} many;

static void *run_many(void *arg)
{
    many *m = arg;
    for (int i = 0; i < 500; i++) {
        leat_tensor *in = leat_scalar_float((float)i), *out = NULL;
        leat_status s =
            leat_session_run(m->s, LEAT_FEED({m->x, in}), LEAT_FETCH({m->y, &out}), LEAT_NO_TARGET);
        m->failures += s || leat_tensor_at(out, 0) != i;
        leat_status_free(s);
        leat_tensor_unref(in);
        leat_tensor_unref(out);
    }
    return NULL;
}

static void many_threads(void)
{
    leat_graph *g = leat_graph_new();
    many m = {.x = leat_placeholder(g, LEAT_FLOAT, leat_shape())};
    m.y = m.x;
    for (int i = 0; i < 20; i++)
        m.y = leat_relu(leat_identity(m.y));
    CHECK_OK(leat_session_open(g, &m.s));
    many each[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        each[i] = m;
        pthread_create(&threads[i], NULL, run_many, &each[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(each[i].failures, 0);
    }
    leat_session_close(m.s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"feed_and_fetch", feed_and_fetch}, {"loop_by_hand", loop_by_hand},
               {"endless", endless}, {"partial", partial},
               {"partial_without_thread", partial_without_thread}, {"traced", traced},
               {"mistakes_stick", mistakes_stick}, {"many_threads", many_threads});
}
