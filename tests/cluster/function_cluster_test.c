/* function_cluster_test.c -- functions that are run by kernels, on servers: a part of a graph takes
 * the functions that it calls along to the task that runs it, and their nodes run on the tasks that
 * they name. How such calls end is in function_cluster_end_test.c. */
#include "cluster/function_graphs.h"

/* The value for x of a function, called on the task of this job by a session of the worker. wire:
 * the session's client is not the server's process. */
static leat_status value_of(const pair *p, const function *f, const char *job, bool wire, double x,
                            double *out)
{
    leat_graph *g = leat_graph_new();
    leat_out in = leat_placeholder(g, LEAT_FLOAT, leat_shape()), y;
    for (; f->name; f++)
        leat_function_define(g, f->name, f->fn, NULL, 1, LEAT_FLOAT);
    f--;
    char device[32], target[64];
    snprintf(device, sizeof(device), "/job:%s/task:0", job);
    leat_with_device(g, device) y = call(g, f->name, in);
    /* by its number the server is not known in this process: it is called over the wire */
    snprintf(target, sizeof(target), "grpc://127.0.0.1%s",
             strrchr(leat_server_target(p->worker), ':'));
    leat_session *s = NULL;
    leat_tensor *fed = leat_scalar_float((float)x), *got = NULL;
    leat_status status = leat_graph_status(g);
    if (!status)
        status = leat_session_open(g, &s, .target = wire ? target : leat_server_target(p->worker));
    for (int i = 0; i < 3 && !status; i++) {
        leat_tensor_unref(got);
        got = NULL;
        status = leat_session_run_with(s, &(leat_run_options){.timeout_ms = 60000},
                                       LEAT_FEED({in, fed}), LEAT_FETCH({y, &got}), LEAT_NO_TARGET);
    }
    if (!status)
        *out = leat_tensor_at(got, 0);
    leat_tensor_unref(got);
    leat_tensor_unref(fed);
    leat_session_close(s);
    leat_graph_free(g);
    return status;
}

/* On both tasks, from both kinds of client, by all transports. */
static void everywhere(const function *f, double x, double want)
{
    static const char *const jobs[] = {"ps", "worker"}, *const transports[] = {NULL, "grpc"};
    for (int t = 0; t < 2; t++) {
        pair p;
        pair_start(&p, &(leat_server_options){.transports = transports[t]});
        for (int i = 0; i < 4; i++) {
            double y = 0;
            CHECK_OK(value_of(&p, f, jobs[i % 2], i / 2, x, &y));
            CHECK_NEAR(y, want, 0);
        }
        pair_stop(&p);
    }
}

/* ---- On one task ---- */

static void times_the_rest(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out n = *(leat_out *)arg;
    outs[0] = leat_mul(n, call(g, "Factorial", leat_sub(n, number(g, 1))));
}

static void factorial(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out n = in[0];
    leat_cond(leat_less(n, number(g, 2)), one_result, times_the_rest, &n, out, 1);
}

static void recursion(void)
{
    everywhere((function[]){{"Factorial", factorial}, {0}}, 6, 720);
}

/* ---- On two tasks ---- */

static void times_the_rest_on_ps(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out n = *(leat_out *)arg, less;
    leat_with_device(g, "/job:ps/task:0") less = leat_sub(n, number(g, 1));
    leat_out rest = call(g, "Product", less);
    leat_with_device(g, "/job:ps/task:0") outs[0] = leat_mul(n, rest);
}

static void product(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out n = in[0];
    leat_cond(leat_less(n, number(g, 2)), one_result, times_the_rest_on_ps, &n, out, 1);
}

/* Each call has nodes on the other task. */
static void body_on_two_tasks(void)
{
    everywhere((function[]){{"Product", product}, {0}}, 6, 720);
}

static void pong_again(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_add(remote(g, "/job:ps/task:0", "Pong", *(leat_out *)arg), number(g, 1));
}

static void ping_again(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_add(remote(g, "/job:worker/task:0", "Ping", *(leat_out *)arg), number(g, 1));
}

static void ping(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out rest = leat_sub(in[0], number(g, 1));
    leat_cond(leat_less(in[0], number(g, 1)), one_result, pong_again, &rest, out, 1);
}

static void pong(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out rest = leat_sub(in[0], number(g, 1));
    leat_cond(leat_less(in[0], number(g, 1)), one_result, ping_again, &rest, out, 1);
}

static const function ping_pong[] = {{"Pong", pong}, {"Ping", ping}, {0}};

/* A function on one task calls one on the other, and that calls the first. */
static void back_and_forth(void)
{
    everywhere(ping_pong, 40, 41);
}

/* ---- Depth ---- */

static void endless(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(call(g, "Endless", in[0]), number(g, 1));
}

/* The depth is counted across tasks. */
static void depth(void)
{
    static const char *const jobs[] = {"ps", "worker"};
    pair p;
    double y;
    pair_start(&p, NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_ERROR(value_of(&p, (function[]){{"Endless", endless}, {0}}, jobs[i], i, 1, &y),
                    RESOURCE_EXHAUSTED, "Function Endless is called at a depth of 1000 calls");
        CHECK_ERROR(value_of(&p, ping_pong, jobs[i], i, 1e6, &y), RESOURCE_EXHAUSTED,
                    "is called at a depth of 1000 calls");
    }
    pair_stop(&p);
}

/* ---- RemoteCall ---- */

static void devices(void)
{
    pair p;
    pair_start(&p, NULL);
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Factorial", factorial, NULL, 1, LEAT_FLOAT);
    leat_out there, nowhere;
    there = remote(g, "/job:ps/task:0", "Factorial", number(g, 5));
    nowhere = remote(g, "/job:ps/task:7", "Factorial", number(g, 5));
    leat_session *s = NULL;
    leat_tensor *got = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker)));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({there, &got}), LEAT_NO_TARGET));
    CHECK_NEAR(got ? leat_tensor_at(got, 0) : 0, 120, 0);
    leat_tensor_unref(got);
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({nowhere, &got}), LEAT_NO_TARGET),
                NOT_FOUND,
                "The session has no device /job:ps/task:7 to run a function on: it has "
                "/job:worker/replica:0/task:0/device:CPU:0, /job:ps/replica:0/task:0/device:CPU:0");
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&p);
}

/* ---- A variable on another task ---- */

/* The calls of one kernel, all at once, update a variable on the ps whose handle they are passed.
 */
static void captured_variable(void)
{
    enum { N = 64 };
    static const char *const jobs[] = {"/job:worker/task:0", "/job:ps/task:0"};
    pair p;
    pair_start(&p, NULL);
    for (int i = 0; i < 4; i++) {
        leat_graph *g = leat_graph_new();
        counter c = counter_new(g, jobs[i / 2]);
        leat_out y;
        leat_with_device(g, jobs[i % 2]) y = each_of(g, N, counts_over_tasks, c.handle);
        leat_session *s = NULL;
        leat_tensor *got = NULL;
        CHECK_OK(leat_graph_status(g));
        CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker)));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(c.start)));
        for (int round = 0; round < 3; round++) {
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got}), LEAT_NO_TARGET));
            for (int k = 0; got && k < N; k++)
                CHECK_NEAR(leat_tensor_at(got, k), k, 0);
            leat_tensor_unref(got);
            got = NULL;
        }
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({c.value, &got}), LEAT_NO_TARGET));
        CHECK_NEAR(got ? leat_tensor_at(got, 0) : 0, 3 * N, 0);
        leat_tensor_unref(got);
        leat_session_close(s);
        leat_graph_free(g);
    }
    pair_stop(&p);
}

int main(int argc, char **argv)
{
    register_ops();
    return RUN(argc, argv, {"recursion", recursion}, {"body_on_two_tasks", body_on_two_tasks},
               {"back_and_forth", back_and_forth}, {"depth", depth}, {"devices", devices},
               {"captured_variable", captured_variable});
}
