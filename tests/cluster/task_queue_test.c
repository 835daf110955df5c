/* task_queue_test.c -- queues and accumulators on a server: those with a shared_name are shared by
 * all sessions, others belong to one session; a session that is closed while it waits takes no
 * element. */
#include <leat/leat.h>
#include <pthread.h>

#include "test.h"
#include "waiters.h"

typedef struct fixture {
    leat_server *server;
    leat_graph *g;
    leat_session *s[2];
    leat_out own, shared, put_own, put_shared, size_own, size_shared, take, apply, count, mean;
} fixture;

static fixture begin(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_components c = LEAT_COMPONENTS({LEAT_INT32, leat_shape()});
    leat_out one = leat_scalar(f.g, LEAT_INT32, 1);
    f.own = leat_fifo_queue(f.g, 10, c, .name = "own");
    f.shared = leat_fifo_queue(f.g, 10, c, .shared_name = "q");
    f.put_own = leat_enqueue(f.own, one);
    f.put_shared = leat_enqueue(f.shared, one);
    f.size_own = leat_queue_size(f.own);
    f.size_shared = leat_queue_size(f.shared);
    f.take = leat_dequeue(f.shared);
    leat_out acc = leat_accumulator(f.g, LEAT_FLOAT, leat_shape(), .shared_name = "a");
    leat_out zero = leat_scalar(f.g, LEAT_INT64, 0);
    f.apply = leat_accumulator_apply(acc, leat_scalar(f.g, LEAT_FLOAT, 3), zero);
    f.count = leat_accumulator_num_accumulated(acc);
    f.mean = leat_accumulator_take(acc, leat_scalar(f.g, LEAT_INT32, 2));
    CHECK_OK(leat_graph_status(f.g));
    CHECK_OK(leat_server_start_local(&f.server));
    for (int i = 0; i < 2; i++)
        CHECK_OK(leat_session_open(f.g, &f.s[i], .target = leat_server_target(f.server)));
    return f;
}

static void end(fixture *f)
{
    leat_session_close(f->s[0]);
    leat_session_close(f->s[1]);
    leat_graph_free(f->g);
    leat_server_free(f->server);
}

static leat_status run(leat_session *s, leat_out target)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(leat_done(target)));
}

static double value(leat_session *s, leat_out x)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    double v = leat_tensor_at(t, 0);
    leat_tensor_unref(t);
    return v;
}

static void own_and_shared(void)
{
    fixture f = begin();
    CHECK_OK(run(f.s[0], f.put_own));
    CHECK_OK(run(f.s[0], f.put_shared));
    CHECK_OK(run(f.s[0], f.apply));
    CHECK_NEAR(value(f.s[0], f.size_own), 1, 0);
    CHECK_NEAR(value(f.s[1], f.size_own), 0, 0);
    CHECK_NEAR(value(f.s[1], f.size_shared), 1, 0);
    CHECK_NEAR(value(f.s[1], f.count), 1, 0);
    CHECK_OK(run(f.s[1], f.apply));
    CHECK_NEAR(value(f.s[0], f.mean), 3, 0);
    end(&f);
}

typedef struct waiter {
    leat_session *s;
    leat_out x;
    leat_status status;
    pthread_t thread;
} waiter;

static void *wait_main(void *arg)
{
    waiter *w = arg;
    w->status = run(w->s, w->x);
    return NULL;
}

static void closed_while_waiting(void)
{
    fixture f = begin();
    waiter w[2] = {{.s = f.s[0], .x = f.take}, {.s = f.s[0], .x = f.mean}};
    for (int i = 0; i < 2; i++)
        pthread_create(&w[i].thread, NULL, wait_main, &w[i]);
    CHECK_SOON(waiters_at_queue(f.s[0], "q") + waiters_at_accumulator(f.s[0], "a") == 2);
    leat_session_close(f.s[0]);
    f.s[0] = NULL;
    for (int i = 0; i < 2; i++) {
        pthread_join(w[i].thread, NULL);
        CHECK_ERROR(w[i].status, CANCELLED, "cancelled");
    }
    CHECK_OK(run(f.s[1], f.put_shared));
    CHECK_OK(run(f.s[1], f.apply));
    CHECK_OK(run(f.s[1], f.apply));
    CHECK_NEAR(value(f.s[1], f.size_shared), 1, 0);
    CHECK_NEAR(value(f.s[1], f.count), 2, 0);
    end(&f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"own_and_shared", own_and_shared},
               {"closed_while_waiting", closed_while_waiting});
}
