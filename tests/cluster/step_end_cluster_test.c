/* step_end_cluster_test.c -- steps over two tasks that are cancelled, time out, lose their session
 * or a task at the instant at which they end. LEAT_ROUNDS=10000 makes it long; ThreadSanitizer and
 * AddressSanitizer see more than the checks here do. */
#include "test.h"

#include <leat/leat.h>

#include "cluster/pair.h"
#include "race_runs.h"

/* A value that goes from the worker to the ps and back, and a queue on the ps. */
static race_model make_model(void)
{
    race_model m = {.g = leat_graph_new()};
    leat_graph *g = m.g;
    leat_out there = {0}, q = {0}, taken = {0};
    leat_with_device(g, "/job:worker/task:0") m.x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_with_device(g, "/job:ps/task:0")
    {
        there = leat_add(m.x, m.x);
        q = leat_fifo_queue(g, -1, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
        taken = leat_dequeue(q);
        m.put = leat_enqueue(q, leat_scalar(g, LEAT_FLOAT, 1));
    }
    leat_with_device(g, "/job:worker/task:0")
    {
        m.y[0] = m.y[1] = leat_mul(there, leat_scalar(g, LEAT_FLOAT, 3));
        m.take = leat_neg(taken);
    }
    CHECK_OK(leat_graph_status(g));
    return m;
}

static pair tasks;

static leat_session *open_session(const race_model *m)
{
    leat_session *s = NULL;
    CHECK_OK(leat_session_open(m->g, &s, .target = leat_server_target(tasks.worker)));
    return s;
}

static void cancelled(void)
{
    pair_start(&tasks, NULL);
    race_model m = make_model();
    leat_session *s = open_session(&m);
    race_cancelled(&m, s, race_rounds(500));
    leat_session_close(s);
    leat_graph_free(m.g);
    pair_stop(&tasks);
}

static void timed_out(void)
{
    pair_start(&tasks, NULL);
    race_model m = make_model();
    leat_session *s = open_session(&m);
    race_timed_out(&m, s, race_rounds(300), 20);
    leat_session_close(s);
    leat_graph_free(m.g);
    pair_stop(&tasks);
}

static void closed(void)
{
    pair_start(&tasks, NULL);
    race_model m = make_model();
    race_closed(&m, open_session, race_rounds(1000) / 10);
    leat_graph_free(m.g);
    pair_stop(&tasks);
}

/* ---- A ps whose part fails ---- */

/* The tensor that the worker has sent without being asked makes the part of the ps fail: the error
 * is the cause, not that what was sent is not needed any more. */
static void failed(void)
{
    pair_start(&tasks, NULL);
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out x = {0}, y = {0};
    leat_with_device(g, "/job:worker/task:0") x = leat_placeholder(g, LEAT_INT32, leat_shape());
    leat_with_device(g, "/job:ps/task:0") y = leat_floor_div(leat_scalar(g, LEAT_INT32, 1), x);
    leat_tensor *zero = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(), (int32_t[]){0}, &zero));
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(tasks.worker)));
    for (int i = race_rounds(200); i > 0 && !test_failures; i--)
        CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, zero}), LEAT_NO_FETCH, LEAT_TARGET(y)),
                    INVALID_ARGUMENT, "by zero");
    leat_tensor_unref(zero);
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&tasks);
}

/* ---- A ps that dies ---- */

static void kill_ps(void *t)
{
    task_end(t);
}

/* The ps is killed while steps run one after the other; a restarted ps serves a new session. */
static void killed(void)
{
    leat_cluster *c = pair_cluster();
    race_model m = make_model();
    leat_server *worker = NULL;
    CHECK_OK(leat_server_start(c, "worker", 0, NULL, &worker));
    race r;
    race_init(&r);
    for (int i = race_rounds(200) / 50; i > 0; i--) {
        task ps = pair_start_ps(c);
        leat_session *s = NULL;
        CHECK_OK(leat_session_open(m.g, &s, .target = leat_server_target(worker),
                                   .open_timeout_ms = 60000));
        CHECK_OK(race_run(s, m.x, m.y[0], NULL));
        r.fixed_ns = 500000;
        race_start(&r, kill_ps, &ps);
        while (race_ended_well(race_run(s, m.x, m.y[0], &(leat_run_options){.timeout_ms = 60000}),
                               LEAT_UNAVAILABLE))
            ;
        race_await(&r, true);
        leat_session_close(s);
    }
    race_release(&r);
    leat_graph_free(m.g);
    leat_server_free(worker);
    leat_cluster_free(c);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return pair_be_ps(argv[3]);
    return RUN(argc, argv, {"cancelled", cancelled}, {"timed_out", timed_out}, {"closed", closed},
               {"failed", failed}, {"killed", killed});
}
