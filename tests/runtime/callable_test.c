/* callable_test.c -- functions that kernels run: recursion, many calls at once, captured tensors,
 * devices, errors. */
#include "callable_ops.h"

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

static void endless_twice(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(call(g, "EndlessTwice", in[0]), call(g, "EndlessTwice", leat_neg(in[0])));
}

static leat_status run(const program *p, double x, double *y)
{
    leat_tensor *in = leat_scalar_float((float)x), *got = NULL;
    leat_status s =
        leat_session_run(p->s, LEAT_FEED({p->x, in}), LEAT_FETCH({p->y, &got}), LEAT_NO_TARGET);
    leat_tensor_unref(in);
    if (s)
        return s;
    *y = leat_tensor_at(got, 0);
    leat_tensor_unref(got);
    return NULL;
}

/* ---- Recursion ---- */

static void recursion(void)
{
    program p = open_program("Factorial", factorial);
    double want = 1, y = 0;
    for (int n = 1; n <= 12; n++) {
        want *= n;
        CHECK_OK(run(&p, n, &y));
        CHECK_NEAR(y, want, want * 1e-6);
    }
    close_program(&p);
}

static void *many_runs(void *arg)
{
    for (int i = 0; i < 30; i++) {
        double y = 0;
        CHECK_OK(run(arg, 10, &y));
        CHECK_NEAR(y, 55, 0);
    }
    return NULL;
}

static void recursion_at_once(void)
{
    program p = open_program("Fibonacci", fibonacci);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, many_runs, &p);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    close_program(&p);
}

static void without_end(void)
{
    program p = open_program("Endless", endless);
    double y;
    CHECK_ERROR(run(&p, 1, &y), RESOURCE_EXHAUSTED,
                "Function Endless is called at a depth of 1000 calls inside each other");
    close_program(&p);
    p = open_program("EndlessTwice", endless_twice);
    CHECK_ERROR(run(&p, 1, &y), RESOURCE_EXHAUSTED, "Function EndlessTwice");
    close_program(&p);
}

/* ---- Calls by a kernel ---- */

static void captured_tensor(void)
{
    enum { N = 500 };
    leat_graph *g = leat_graph_new();
    leat_out y = each_of(g, N, scaled, number(g, 3));
    leat_session *s;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    for (int round = 0; round < 5; round++) {
        leat_tensor *got = NULL;
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got}), LEAT_NO_TARGET));
        for (int i = 0; got && i < N; i++)
            CHECK_NEAR(leat_tensor_at(got, i), 3 * i, 0);
        leat_tensor_unref(got);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

static void counts(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out add = leat_op(g, "AssignAddVariableOp", leat_in(in[1]), leat_in(number(g, 1)));
    leat_out read = leat_op(g, "ReadVariableOp", leat_in(in[1]),
                            leat_attr_type("dtype", LEAT_FLOAT), leat_after(add));
    out[0] = leat_add(leat_mul(read, number(g, 0)), in[0]);
}

/* The variable is on another device than the kernel. */
static void captured_resource(void)
{
    enum { N = 200 };
    leat_graph *g = leat_graph_new();
    leat_out handle, start, after;
    leat_with_device(g, "/cpu:1")
    {
        handle = leat_op(g, "VarHandleOp", leat_attr_type("dtype", LEAT_FLOAT),
                         leat_attr_shape("shape", leat_shape()));
        start = leat_op(g, "AssignVariableOp", leat_in(handle), leat_in(number(g, 0)));
        after = leat_op(g, "ReadVariableOp", leat_in(handle), leat_attr_type("dtype", LEAT_FLOAT));
    }
    leat_out y;
    leat_with_device(g, "/cpu:0") y = each_of(g, N, counts, handle);
    leat_session *s;
    leat_tensor *got = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s, .cpu_devices = 2));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(start)));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got}), LEAT_NO_TARGET));
    for (int i = 0; got && i < N; i++)
        CHECK_NEAR(leat_tensor_at(got, i), i, 0);
    leat_tensor_unref(got);
    got = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({after, &got}), LEAT_NO_TARGET));
    if (got)
        CHECK_NEAR(leat_tensor_at(got, 0), N, 0);
    leat_tensor_unref(got);
    leat_session_close(s);
    leat_graph_free(g);
}

static void sum_of_two(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out a = leat_op(g, "ReadVariableOp", leat_in(in[1]), leat_attr_type("dtype", LEAT_FLOAT));
    leat_out b = leat_op(g, "ReadVariableOp", leat_in(in[2]), leat_attr_type("dtype", LEAT_FLOAT));
    out[0] = leat_add(in[0], leat_add(a, b));
}

/* Of a function that is called, each variable stays on its own device. */
static void resources_of_two_devices(void)
{
    leat_graph *g = leat_graph_new();
    leat_out v[2], start[2];
    for (int i = 0; i < 2; i++)
        leat_with_device(g, i ? "/cpu:1" : "/cpu:0")
        {
            v[i] = leat_op(g, "VarHandleOp", leat_attr_type("dtype", LEAT_FLOAT),
                           leat_attr_shape("shape", leat_shape()));
            start[i] = leat_op(g, "AssignVariableOp", leat_in(v[i]), leat_in(number(g, 10 + i)));
        }
    leat_function_define(g, "F", sum_of_two, NULL, 1, LEAT_FLOAT, LEAT_RESOURCE, LEAT_RESOURCE);
    leat_out x = leat_range(number(g, 0), number(g, 20), number(g, 1));
    leat_out y = leat_op(g, "TestForEach", leat_in(x), leat_ins(v, 2), leat_attr_func("f", "F"));
    leat_session *s;
    leat_tensor *got = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s, .cpu_devices = 2));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(start[0], start[1])));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got}), LEAT_NO_TARGET));
    for (int i = 0; got && i < 20; i++)
        CHECK_NEAR(leat_tensor_at(got, i), 21 + i, 0);
    leat_tensor_unref(got);
    leat_session_close(s);
    leat_graph_free(g);
}

static void on_two_devices(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out x;
    leat_with_device(g, "/cpu:1") x = leat_mul(in[0], in[1]);
    out[0] = leat_add(x, number(g, 1));
}

static void devices(void)
{
    for (int n = 1; n <= 2; n++) {
        leat_graph *g = leat_graph_new();
        leat_out y = each_of(g, 100, on_two_devices, number(g, 2));
        leat_session *s;
        leat_tensor *got = NULL;
        CHECK_OK(leat_session_open(g, &s, .cpu_devices = n));
        leat_status status =
            leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got}), LEAT_NO_TARGET);
        if (n == 1)
            CHECK_ERROR(status, INVALID_ARGUMENT, "was explicitly assigned to /device:CPU:1");
        else
            CHECK_OK(status);
        for (int i = 0; got && i < 100; i++)
            CHECK_NEAR(leat_tensor_at(got, i), 2 * i + 1, 0);
        leat_tensor_unref(got);
        leat_session_close(s);
        leat_graph_free(g);
    }
}

/* ---- Errors ---- */

static void fails(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out check = leat_op(g, "CheckNumerics", leat_in(leat_div(in[0], in[1])),
                             leat_attr_string("message", "bad quotient"), leat_name("check"));
    out[0] = leat_identity(check);
}

static void wrong_dtype(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(in[0], leat_cast(in[1], LEAT_FLOAT));
}

static leat_status run_each(leat_graph *g, leat_out y)
{
    leat_session *s;
    leat_tensor *got = NULL;
    LEAT_TRY(leat_graph_status(g));
    LEAT_TRY(leat_session_open(g, &s));
    leat_status status = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got}), LEAT_NO_TARGET);
    leat_tensor_unref(got);
    leat_session_close(s);
    leat_graph_free(g);
    return status;
}

static void errors(void)
{
    leat_graph *g = leat_graph_new();
    CHECK_ERROR(run_each(g, each_of(g, 40, fails, number(g, 0))), INVALID_ARGUMENT,
                "{{function_node F}} bad quotient");
    g = leat_graph_new();
    CHECK_ERROR(run_each(g, each_of(g, 1, fails, number(g, 0))), INVALID_ARGUMENT,
                "[[{{node check}}]]");
    /* a function that is not there; one with another signature */
    g = leat_graph_new();
    leat_out x = leat_range(number(g, 0), number(g, 3), number(g, 1)), none = number(g, 1);
    CHECK_ERROR(run_each(g, leat_op(g, "TestForEach", leat_in(x), leat_ins(&none, 1),
                                    leat_attr_func("f", "Missing"), leat_name("each"))),
                NOT_FOUND, "Function Missing is not defined. (node 'each')");
    g = leat_graph_new();
    leat_function_define(g, "F", wrong_dtype, NULL, 1, LEAT_FLOAT, LEAT_INT32);
    x = leat_range(number(g, 0), number(g, 3), number(g, 1));
    none = number(g, 1);
    CHECK_ERROR(run_each(g, leat_op(g, "TestForEach", leat_in(x), leat_ins(&none, 1),
                                    leat_attr_func("f", "F"))),
                INVALID_ARGUMENT, "Argument 1 of function F is int32; it is given float");
    g = leat_graph_new();
    leat_function_define(g, "F", factorial, NULL, 1, LEAT_FLOAT);
    x = leat_range(number(g, 0), number(g, 3), number(g, 1));
    none = number(g, 1);
    CHECK_ERROR(run_each(g, leat_op(g, "TestForEach", leat_in(x), leat_ins(&none, 1),
                                    leat_attr_func("f", "F"))),
                INVALID_ARGUMENT, "Function F has 1 arguments; it is given 2");
}

#define BAD_BODY                                                                                   \
    "library { function { signature { name: 'Bad' input_arg { name: 'x' type: DT_FLOAT } "         \
    "input_arg { name: 'c' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } } "            \
    "node_def { name: 'a' op: '%s' input: 'x' input: '%s' attr { key: 'T' value { type: DT_FLOAT " \
    "} } } ret { key: 'y' value: 'a:z:0' } } }"

static void bad_bodies(void)
{
    static const char *const rows[][3] = {
        {"NoSuchOp", "c", "Function 'Bad': Op type not registered 'NoSuchOp'"},
        {"Add", "nothing", "Function 'Bad': input nothing is not found"},
        {"Add", "a:z:1", "Function 'Bad': 'a:z:1': there is no such output"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[600];
        snprintf(text, sizeof(text), BAD_BODY, rows[i][0], rows[i][1]);
        leat_graph *g = leat_graph_new();
        CHECK_OK(leat_graph_from_text(g, text, ""));
        leat_out x = leat_range(number(g, 0), number(g, 3), number(g, 1)), one = number(g, 1);
        leat_out y =
            leat_op(g, "TestForEach", leat_in(x), leat_ins(&one, 1), leat_attr_func("f", "Bad"));
        leat_status s = run_each(g, y);
        CHECK(s && strstr(leat_status_message(s), rows[i][2]));
        if (!s || !strstr(leat_status_message(s), rows[i][2]))
            printf("%s\n", leat_status_message(s));
        leat_status_free(s);
    }
}

static void square(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_mul(in[0], in[0]);
}

static void function_and_gradient(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_function_define(g, "Squared", square, NULL, 1, LEAT_FLOAT);
    leat_out two = leat_op(g, "TestTwo", leat_attr_func("f", "Squared"));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(two)));
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    register_ops();
    return RUN(argc, argv, {"recursion", recursion}, {"recursion_at_once", recursion_at_once},
               {"without_end", without_end}, {"captured_tensor", captured_tensor},
               {"captured_resource", captured_resource},
               {"resources_of_two_devices", resources_of_two_devices}, {"devices", devices},
               {"errors", errors}, {"bad_bodies", bad_bodies},
               {"function_and_gradient", function_and_gradient});
}
