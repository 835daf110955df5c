/* function_cluster_test.c -- functions that are run by kernels, on servers: a part of a graph is
 * sent to its task with the functions that it calls. */
#include <leat/function.h>
#include <leat/leat.h>

#include "cluster/pair.h"
#include "test.h"

static leat_out number(leat_graph *g, double v)
{
    return leat_scalar(g, LEAT_FLOAT, v);
}

static leat_out call(leat_graph *g, const char *f, leat_out x)
{
    return leat_op(g, "PartitionedCall", leat_ins(&x, 1),
                   leat_attr_types("Tout", (leat_dtype[]){LEAT_FLOAT}, 1), leat_attr_func("f", f));
}

static void one_result(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = number(g, 1);
}

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

static void endless(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(call(g, "Endless", in[0]), number(g, 1));
}

static void waits_for_ever(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out q = leat_fifo_queue(g, 1, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
    outs[0] = call(g, "Waits", leat_dequeue(q));
}

static void waits(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out n = in[0];
    leat_cond(leat_less(n, number(g, 2)), one_result, waits_for_ever, &n, out, 1);
}

static void elsewhere(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out less;
    leat_with_device(g, "/job:ps/task:0") less = leat_sub(*(leat_out *)arg, number(g, 1));
    outs[0] = call(g, "Elsewhere", less);
}

static void two_tasks_recursive(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out n = in[0];
    leat_cond(leat_less(n, number(g, 2)), one_result, elsewhere, &n, out, 1);
}

typedef struct program {
    const char *name;
    leat_function_fn fn;
    double x;
} program;

/* On the task of this job, by a session of the other. */
static leat_status run(const pair *p, program f, const char *job, bool wire, double *out)
{
    leat_graph *g = leat_graph_new();
    leat_out y, x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_function_define(g, f.name, f.fn, NULL, 1, LEAT_FLOAT);
    char device[32], target[64];
    snprintf(device, sizeof(device), "/job:%s/task:0", job);
    leat_with_device(g, device) y = call(g, f.name, x);
    /* with a numeric address the server is not found in this process: it is called over the wire */
    snprintf(target, sizeof(target), "grpc://127.0.0.1%s",
             strrchr(leat_server_target(p->worker), ':'));
    leat_session *s = NULL;
    leat_tensor *in = leat_scalar_float((float)f.x), *got = NULL;
    leat_status status = leat_graph_status(g);
    if (!status)
        status = leat_session_open(g, &s, .target = wire ? target : leat_server_target(p->worker));
    for (int i = 0; i < 3 && !status; i++) {
        leat_tensor_unref(got);
        got = NULL;
        status = leat_session_run_with(s, &(leat_run_options){.timeout_ms = 20000},
                                       LEAT_FEED({x, in}), LEAT_FETCH({y, &got}), LEAT_NO_TARGET);
    }
    if (!status)
        *out = leat_tensor_at(got, 0);
    leat_tensor_unref(got);
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
    return status;
}

static void recursion(void)
{
    static const char *const jobs[] = {"ps", "worker"};
    pair p;
    pair_start(&p, NULL);
    for (int i = 0; i < 4; i++) {
        double y = 0;
        CHECK_OK(run(&p, (program){"Factorial", factorial, 6}, jobs[i % 2], i / 2, &y));
        CHECK_NEAR(y, 720, 0);
        CHECK_ERROR(run(&p, (program){"Endless", endless, 1}, jobs[i % 2], i / 2, &y),
                    RESOURCE_EXHAUSTED, "Function Endless is called at a depth of 1000 calls");
    }
    pair_stop(&p);
}

/* A body that waits on another task ends with the step. */
static void time_out(void)
{
    pair p;
    pair_start(&p, NULL);
    leat_graph *g = leat_graph_new();
    leat_out y;
    leat_function_define(g, "Waits", waits, NULL, 1, LEAT_FLOAT);
    leat_with_device(g, "/job:ps/task:0") y = call(g, "Waits", number(g, 5));
    leat_session *s = NULL;
    leat_tensor *got = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker)));
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(leat_session_run_with(s, &(leat_run_options){.timeout_ms = 200}, LEAT_NO_FEED,
                                          LEAT_FETCH({y, &got}), LEAT_NO_TARGET),
                    DEADLINE_EXCEEDED, "/job:ps/replica:0/task:0");
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&p);
}

/* A function that is called at run time has the devices of its own process. */
static void other_tasks(void)
{
    pair p;
    double y = 0;
    pair_start(&p, NULL);
    CHECK_ERROR(run(&p, (program){"Elsewhere", two_tasks_recursive, 5}, "worker", false, &y),
                INVALID_ARGUMENT,
                "was explicitly assigned to /job:ps/task:0 but available "
                "devices are [ /job:worker/replica:0/task:0/device:CPU:0 ]");
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Factorial", factorial, NULL, 1, LEAT_FLOAT);
    leat_out x = number(g, 5), to = leat_string_const(g, "/job:ps/task:0"), remote, local;
    leat_arg out = leat_attr_types("Tout", (leat_dtype[]){LEAT_FLOAT}, 1);
    remote = leat_op(g, "RemoteCall", leat_in(to), leat_ins(&x, 1), out,
                     leat_attr_func("f", "Factorial"), leat_name("remote"));
    leat_with_device(g, "/job:ps/task:0") local =
        leat_op(g, "RemoteCall", leat_in(to), leat_ins(&x, 1), out,
                leat_attr_func("f", "Factorial"), leat_name("local"));
    leat_session *s = NULL;
    leat_tensor *got = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker)));
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({remote, &got}), LEAT_NO_TARGET),
                NOT_FOUND,
                "Functions are run on devices of this process alone: there is no "
                "/job:ps/task:0 among /job:worker/replica:0/task:0/device:CPU:0");
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({local, &got}), LEAT_NO_TARGET));
    CHECK_NEAR(got ? leat_tensor_at(got, 0) : 0, 120, 0);
    leat_tensor_unref(got);
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&p);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"recursion", recursion}, {"time_out", time_out},
               {"other_tasks", other_tasks});
}
