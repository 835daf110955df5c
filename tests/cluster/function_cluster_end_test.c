/* function_cluster_end_test.c -- how calls of functions over several tasks end: by an error on
 * another task, with their step's deadline or cancellation, with the other task; and what is left
 * of them there when the session is closed. */
#include <unistd.h>

#include "cluster/function_graphs.h"
#include "cluster/server.h"
#include "cluster/worker.h"

/* A function that the worker calls, with nodes on the ps. */
static program open_over_tasks(const char *target, const char *name, leat_function_fn fn)
{
    program p = {.g = leat_graph_new()};
    leat_function_define(p.g, name, fn, NULL, 1, LEAT_FLOAT);
    p.x = leat_placeholder(p.g, LEAT_FLOAT, leat_shape());
    leat_with_device(p.g, "/job:worker/task:0") p.y = remote(p.g, "/job:worker/task:0", name, p.x);
    CHECK_OK(leat_graph_status(p.g));
    CHECK_OK(leat_session_open(p.g, &p.s, .target = target));
    return p;
}

static leat_status run(program *p, double x, const leat_run_options *o, double *out)
{
    leat_tensor *in = leat_scalar_float((float)x), *got = NULL;
    leat_status s = leat_session_run_with(p->s, o, LEAT_FEED({p->x, in}), LEAT_FETCH({p->y, &got}),
                                          LEAT_NO_TARGET);
    if (!s && out)
        *out = leat_tensor_at(got, 0);
    leat_tensor_unref(got);
    leat_tensor_unref(in);
    return s;
}

static void close_over_tasks(program *p)
{
    leat_session_close(p->s);
    leat_graph_free(p->g);
}

/* Waits(1) = 1; Waits(x) waits on the ps, in the call that it makes. */
static void wait_on_ps(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out never;
    leat_with_device(g, "/job:ps/task:0")
    {
        leat_out q = leat_fifo_queue(g, 1, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
        never = leat_dequeue(q);
    }
    outs[0] = call(g, "Waits", never);
}

static void waits(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out n = in[0];
    leat_cond(leat_less(n, number(g, 2)), one_result, wait_on_ps, &n, out, 1);
}

/* ---- Errors ---- */

static void check_on_ps(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out n = *(leat_out *)arg;
    leat_with_device(g, "/job:ps/task:0") outs[0] =
        leat_op(g, "CheckNumerics", leat_in(leat_div(n, leat_sub(n, n))),
                leat_attr_string("message", "too large"), leat_name("check"));
    outs[0] = call(g, "Checks", outs[0]);
}

static void checks(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out n = in[0];
    leat_cond(leat_less(n, number(g, 2)), one_result, check_on_ps, &n, out, 1);
}

/* The message names function, task and node. */
static void error_on_another_task(void)
{
    pair t;
    pair_start(&t, NULL);
    program p = open_over_tasks(leat_server_target(t.worker), "Checks", checks);
    static const char *const parts[] = {"{{function_node Checks}} ", "/job:ps/replica:0/task:0",
                                        "too large : Tensor had Inf", "check}}"};
    for (int i = 0; i < 4; i++)
        CHECK_ERROR(run(&p, 5, NULL, NULL), INVALID_ARGUMENT, parts[i]);
    double y = 0;
    CHECK_OK(run(&p, 1, NULL, &y));
    CHECK_NEAR(y, 1, 0);
    close_over_tasks(&p);
    pair_stop(&t);
}

/* ---- Deadlines and cancellation ---- */

static void time_out(void)
{
    pair t;
    pair_start(&t, NULL);
    program p = open_over_tasks(leat_server_target(t.worker), "Waits", waits);
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(run(&p, 5, &(leat_run_options){.timeout_ms = 200}, NULL), DEADLINE_EXCEEDED,
                    "Timed out waiting for remote (RemoteCall of Waits)");
    close_over_tasks(&p);
    pair_stop(&t);
}

typedef struct later {
    leat_cancellation *c;
    pid_t pid; /* or a process to kill */
    int us;
} later;

static void *end_later(void *arg)
{
    const later *x = arg;
    usleep((useconds_t)x->us);
    if (x->c)
        leat_cancel_runs(x->c);
    else
        kill(x->pid, SIGKILL);
    return NULL;
}

static void cancelled(void)
{
    enum { TIMES = 100 };
    pair t;
    pair_start(&t, NULL);
    program p = open_over_tasks(leat_server_target(t.worker), "Waits", waits);
    for (int i = 0; i < TIMES; i++) {
        later x = {.c = leat_cancellation_new(), .us = i * 50};
        pthread_t thread;
        pthread_create(&thread, NULL, end_later, &x);
        CHECK_ERROR(run(&p, 5, &(leat_run_options){.cancellation = x.c}, NULL), CANCELLED,
                    "cancelled");
        pthread_join(thread, NULL);
        leat_cancellation_free(x.c);
    }
    CHECK_OK(run(&p, 1, NULL, NULL));
    close_over_tasks(&p);
    pair_stop(&t);
}

/* ---- The end of another task ---- */

static void killed(void)
{
    leat_cluster *c = pair_cluster();
    leat_server *worker;
    task ps = pair_start_ps(c);
    CHECK_OK(leat_server_start(c, "worker", 0, NULL, &worker));
    program p = open_over_tasks(leat_server_target(worker), "Waits", waits);
    later x = {.pid = ps.pid, .us = 300000};
    pthread_t thread;
    pthread_create(&thread, NULL, end_later, &x);
    leat_status s = run(&p, 5, NULL, NULL);
    pthread_join(thread, NULL);
    CHECK(s && strstr(leat_status_message(s), "{{function_node Waits}} "));
    CHECK_ERROR(s, UNAVAILABLE, "/job:ps/replica:0/task:0");
    close_over_tasks(&p);
    task_end(&ps);
    leat_server_free(worker);
    leat_cluster_free(c);
}

/* The first call hands the ps its part of the body; the ps stands still. */
static void compiled_in_vain(void)
{
    leat_cluster *c = pair_cluster();
    leat_server *worker;
    task ps = pair_start_ps(c);
    CHECK_OK(leat_server_start(c, "worker", 0, NULL, &worker));
    program p = open_over_tasks(leat_server_target(worker), "Checks", checks);
    task_pause(&ps);
    CHECK_ERROR(run(&p, 1, &(leat_run_options){.timeout_ms = 300}, NULL), DEADLINE_EXCEEDED,
                "Function 'Checks': /job:ps/replica:0/task:0");
    later x = {.c = leat_cancellation_new(), .us = 100000};
    pthread_t thread;
    pthread_create(&thread, NULL, end_later, &x);
    CHECK_ERROR(run(&p, 1, &(leat_run_options){.cancellation = x.c}, NULL), CANCELLED, "cancelled");
    pthread_join(thread, NULL);
    leat_cancellation_free(x.c);
    kill(ps.pid, SIGCONT);
    double y = 0;
    CHECK_OK(run(&p, 1, NULL, &y));
    CHECK_NEAR(y, 1, 0);
    close_over_tasks(&p);
    task_end(&ps);
    leat_server_free(worker);
    leat_cluster_free(c);
}

/* ---- What is left ---- */

static int graphs_on(const leat_server *s)
{
    return leat_worker_graphs(leat_server_worker(s));
}

/* Graphs that were registered for bodies go with the session, and calls add none. */
static void nothing_is_left(void)
{
    pair t;
    pair_start(&t, NULL);
    for (int i = 0; i < 5; i++) {
        program p = open_over_tasks(leat_server_target(t.worker), "Checks", checks);
        CHECK_OK(run(&p, 1, NULL, NULL));
        int on_ps = graphs_on(t.ps);
        CHECK(on_ps > 0);
        for (int k = 0; k < 20; k++)
            CHECK_OK(run(&p, 1, NULL, NULL));
        CHECK_INT(graphs_on(t.ps), on_ps);
        close_over_tasks(&p);
        for (int k = 0; k < 500 && graphs_on(t.ps); k++)
            usleep(10000);
        CHECK_INT(graphs_on(t.ps), 0);
        CHECK_INT(graphs_on(t.worker), 0);
    }
    pair_stop(&t);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return pair_be_ps(argv[3]);
    return RUN(argc, argv, {"error_on_another_task", error_on_another_task}, {"time_out", time_out},
               {"cancelled", cancelled}, {"killed", killed}, {"compiled_in_vain", compiled_in_vain},
               {"nothing_is_left", nothing_is_left});
}
