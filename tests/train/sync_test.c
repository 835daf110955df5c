/* sync_test.c -- synchronous replicas: two or three workers as threads on one session, each with
 * its part of one graph. Rounds, backup workers, dropped gradients, replicas that go and come. */
#include <leat/leat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"
#include "train/hook_int.h"
#include "train/session_manager.h"
#include "train/sync_run.h"
#include "waiters.h"

enum { MAX = 3 };
/* w -= 0.1 * mean of the x that the workers were fed. */
typedef struct setup {
    leat_graph *g;
    leat_session *s;
    leat_coordinator *coord;
    leat_out w, step, x[MAX], train[MAX], tokens;
    leat_sync *y[MAX];
    leat_sync_run *run[MAX];
    int n;
} setup;

static void build(setup *u, int n, int aggregate, double lease_secs)
{
    u->n = n;
    u->g = leat_graph_new();
    u->step = leat_global_step(u->g);
    u->w = leat_variable(u->g, "w", leat_zeros(u->g, LEAT_FLOAT, leat_shape(2)));
    for (int i = 0; i < n; i++) {
        u->x[i] = leat_placeholder(u->g, LEAT_FLOAT, leat_shape());
        leat_out loss = leat_mul(leat_reduce_sum(u->w), u->x[i]);
        leat_optimizer *opt = leat_sync_replicas(
            leat_gradient_descent(.learning_rate = 0.1), .replicas_to_aggregate = aggregate,
            .total_num_replicas = n, .lease_secs = lease_secs, .replica = i);
        u->train[i] = leat_minimize(opt, loss, .global_step = u->step);
        leat_optimizer_free(opt);
        u->y[i] = leat_sync_of(u->g);
    }
    u->tokens = leat_sync_tokens(u->y[0], 0);
    leat_out init = leat_global_variables_initializer(u->g);
    leat_out local = leat_local_variables_initializer(u->g);
    CHECK_OK(leat_graph_status(u->g));
    CHECK_OK(leat_session_open(u->g, &u->s));
    CHECK_OK(leat_session_run(u->s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    CHECK_OK(leat_session_run(u->s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(local)));
    u->coord = leat_coordinator_new();
}

static void start(setup *u, int i)
{
    CHECK_OK(leat_sync_start(
        u->y[i], u->s, u->coord,
        &(leat_sync_start_options){.chief = i == 0, .tokens = u->tokens, .max_wait_secs = 20},
        &u->run[i]));
}

static void tear_down(setup *u)
{
    for (int i = 0; i < u->n; i++)
        leat_sync_stop(u->run[i]);
    leat_coordinator_request_stop(u->coord, NULL);
    CHECK_OK(leat_coordinator_join(u->coord));
    leat_coordinator_free(u->coord);
    leat_session_close(u->s);
    leat_graph_free(u->g);
}

/* One step of a worker; waits for its token. */
static leat_status step(setup *u, int i, float x, int64_t timeout_ms)
{
    leat_tensor *v = leat_scalar_float(x);
    leat_run_options o = {.timeout_ms = timeout_ms};
    leat_status e = leat_session_run_with(u->s, &o, LEAT_FEED({u->x[i], v}), LEAT_NO_FETCH,
                                          LEAT_TARGET(u->train[i]));
    leat_tensor_unref(v);
    return e;
}

static double value(setup *u, leat_out x)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(u->s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    double v = t ? leat_tensor_at(t, 0) : NAN;
    leat_tensor_unref(t);
    return v;
}

typedef struct work {
    setup *u;
    int i, steps;
    float x;
    leat_status e;
} work;

static void *worker(void *arg)
{
    work *w = arg;
    for (int k = 0; k < w->steps && !w->e; k++)
        w->e = step(w->u, w->i, w->x, 30000);
    return NULL;
}

/* Goes on until it is told to stop. */
static atomic_bool enough;
static void *busy_worker(void *arg)
{
    work *w = arg;
    while (!atomic_load(&enough))
        leat_status_free(step(w->u, w->i, w->x, 300));
    return NULL;
}

/* Both give one gradient a round; the mean is applied; the global step counts rounds. */
static void rounds(void)
{
    setup u = {0};
    build(&u, 2, 2, 5);
    start(&u, 0);
    start(&u, 1);
    for (int k = 0; k < 10; k++) {
        work w = {&u, 1, 1, 3};
        pthread_t t;
        pthread_create(&t, NULL, worker, &w);
        CHECK_OK(step(&u, 0, 1, 30000));
        pthread_join(t, NULL);
        CHECK_OK(w.e);
    }
    CHECK_INT(value(&u, u.step), 10);
    CHECK_NEAR(value(&u, u.w), -0.1 * 10 * 2, 1e-5);
    CHECK_INT(leat_sync_quorum(u.g), 0); /* the last one made is not the chief's */
    CHECK_INT(atomic_load(&u.y[0]->quorum), 2);
    CHECK_INT(atomic_load(&u.y[0]->n_dropped), 0);
    tear_down(&u);
}

/* Two of three are enough: the third comes too late, is told so, and catches up. */
static void backup(void)
{
    setup u = {0};
    build(&u, 3, 2, 4);
    for (int i = 0; i < 3; i++)
        start(&u, i);
    work w[3] = {{&u, 0, 20, 1}, {&u, 1, 20, 1}, {&u, 2, 1, 1000}};
    pthread_t t[3];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, worker, &w[i]);
    while (value(&u, u.step) < 2)
        usleep(1000);
    pthread_create(&t[2], NULL, worker, &w[2]); /* its gradient is of step 0 */
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 2; i++)
        leat_status_free(w[i].e); /* the third may have taken a token of theirs */
    CHECK_OK(w[2].e);
    CHECK(fabs(value(&u, u.w)) < 10);
    CHECK_SOON(atomic_load(&u.y[2]->n_dropped) >= 1);
    CHECK_INT(atomic_load(&u.y[2]->n_dropped), 1);
    tear_down(&u);
}

/* A replica goes silent in the middle: the other one goes on alone. It comes back: both count. */
static void quorum(void)
{
    setup u = {0};
    build(&u, 2, 2, 2);
    start(&u, 0);
    start(&u, 1);
    work w = {&u, 1, 1, 1};
    pthread_t t;
    for (int k = 0; k < 2; k++) {
        pthread_create(&t, NULL, worker, &w);
        CHECK_OK(step(&u, 0, 1, 30000));
        pthread_join(t, NULL);
        CHECK_OK(w.e);
    }
    CHECK_INT(value(&u, u.step), 2);
    leat_sync_stop(u.run[1]); /* without a word */
    u.run[1] = NULL;
    for (int k = 0; k < 5; k++)
        CHECK_OK(step(&u, 0, 1, 30000));
    CHECK_INT(value(&u, u.step), 7);
    CHECK_NEAR(value(&u, u.w), -0.7, 1e-5);
    CHECK_INT(atomic_load(&u.y[0]->quorum), 1);
    start(&u, 1);
    CHECK_SOON(atomic_load(&u.y[0]->present) == 2);
    w = (work){&u, 1, 0, 3};
    atomic_store(&enough, false);
    pthread_create(&t, NULL, busy_worker, &w);
    for (int k = 0; k < 3; k++)
        CHECK_OK(step(&u, 0, 1, 30000));
    atomic_store(&enough, true);
    pthread_join(t, NULL);
    CHECK_INT(atomic_load(&u.y[0]->quorum), 2);
    tear_down(&u);
}

/* A replica leaves in an orderly way: no lease has to run out. */
static void leaves(void)
{
    setup u = {0};
    build(&u, 2, 2, 60);
    start(&u, 0);
    start(&u, 1);
    work w = {&u, 1, 1, 1};
    pthread_t t;
    pthread_create(&t, NULL, worker, &w);
    CHECK_OK(step(&u, 0, 1, 30000));
    pthread_join(t, NULL);
    leat_sync_finish(u.run[1]);
    CHECK_OK(step(&u, 0, 1, 30000));
    CHECK_OK(step(&u, 0, 1, 30000));
    CHECK_INT(value(&u, u.step), 3);
    tear_down(&u);
}

/* A round is cancelled after it has taken the gradients, and they are lost: they are given anew. */
static void begins_again(void)
{
    setup u = {0};
    build(&u, 2, 2, 2);
    leat_out one = leat_scalar(u.g, LEAT_INT32, 1);
    leat_out take = LEAT_OP2("ResourceAccumulatorTakeGradient", u.y[1]->accumulators[0], one,
                             leat_attr_type("dtype", LEAT_FLOAT));
    start(&u, 0);
    start(&u, 1);
    leat_sync_stop(u.run[1]);
    u.run[1] = NULL;
    work w = {&u, 0, 1, 1};
    pthread_t t;
    pthread_create(&t, NULL, worker, &w);
    /* Its gradient waits for the other's, and the round waits in front of the take that follows. */
    CHECK_SOON(value(&u, u.y[1]->waiting[0]) == 1);
    CHECK_SOON(waiters_at_accumulator(u.s, "w:0/grad_accum") == 1);
    leat_run_options o = {.timeout_ms = 30000};
    leat_status e =
        leat_session_run_with(u.s, &o, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(leat_done(take)));
    CHECK_OK(e); /* served once the round is given up, before it begins again */
    pthread_join(t, NULL);
    CHECK_OK(w.e);
    CHECK_OK(step(&u, 0, 1, 30000));
    CHECK(value(&u, u.step) >= 1);
    tear_down(&u);
}

static void bad(void)
{
    leat_graph *g = leat_graph_new();
    leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_optimizer *opt =
        leat_sync_replicas(leat_gradient_descent(.learning_rate = 1), .replicas_to_aggregate = 1);
    leat_minimize(opt, leat_reduce_sum(w));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT,
                "Global step is required to check staleness");
    leat_optimizer_free(opt);
    leat_graph_free(g);
    g = leat_graph_new();
    w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    opt = leat_sync_replicas(leat_gradient_descent(.learning_rate = 1));
    leat_minimize(opt, leat_reduce_sum(w), .global_step = leat_global_step(g));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "leat_sync_replicas has no replicas_to_aggregate");
    leat_optimizer_free(opt);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"rounds", rounds}, {"backup", backup}, {"quorum", quorum},
               {"leaves", leaves}, {"begins_again", begins_again}, {"bad", bad});
}
