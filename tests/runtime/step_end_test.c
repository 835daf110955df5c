/* step_end_test.c -- runs that are cancelled, time out, or lose their session at the instant at
 * which they end. LEAT_ROUNDS=30000 makes it long; ThreadSanitizer and AddressSanitizer see more
 * than the checks here do. */
#include "test.h"

#include <leat/leat.h>

#include "race_runs.h"

/* Values that cross between two devices, and a queue: everything that registers with a step's
 * cancellation. */
static race_model make_model(void)
{
    race_model m = {.g = leat_graph_new()};
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
        m.y[0] = leat_mul(there, leat_scalar(g, LEAT_FLOAT, 3));
        m.take = leat_neg(taken);
        m.y[1] = leat_identity(m.take, leat_after(other)); /* put and take in one run */
    }
    CHECK_OK(leat_graph_status(g));
    return m;
}

static leat_session *open_session(const race_model *m)
{
    leat_session *s = NULL;
    CHECK_OK(leat_session_open(m->g, &s, .cpu_devices = 2, .inter_op_threads = 3));
    return s;
}

static void cancelled(void)
{
    race_model m = make_model();
    leat_session *s = open_session(&m);
    race_cancelled(&m, s, race_rounds(1000));
    leat_session_close(s);
    leat_graph_free(m.g);
}

static void timed_out(void)
{
    race_model m = make_model();
    leat_session *s = open_session(&m);
    race_timed_out(&m, s, race_rounds(1000), 5);
    leat_session_close(s);
    leat_graph_free(m.g);
}

static void closed(void)
{
    race_model m = make_model();
    race_closed(&m, open_session, race_rounds(200));
    leat_graph_free(m.g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"cancelled", cancelled}, {"timed_out", timed_out}, {"closed", closed});
}
