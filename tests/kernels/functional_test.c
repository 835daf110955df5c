/* functional_test.c -- If, Case, While, For, RemoteCall, SymbolicGradient and calls, run by their
 * kernels; where there is another way, with the same results. */
#include <leat/function.h>
#include <leat/leat.h>

#include "graph/graph_int.h"
#include "test.h"

static leat_out number(leat_graph *g, double v)
{
    return leat_scalar(g, LEAT_FLOAT, v);
}

static void twice(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(in[0], in[0]);
}

static void square(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_mul(in[0], in[0]);
}

static void negative(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_neg(in[0]);
}

static leat_graph *with_functions(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Twice", twice, NULL, 1, LEAT_FLOAT);
    leat_function_define(g, "Squared", square, NULL, 1, LEAT_FLOAT);
    leat_function_define(g, "Negative", negative, NULL, 1, LEAT_FLOAT);
    return g;
}

static leat_arg lowered(bool yes)
{
    return leat_attr_bool("_lower_using_switch_merge", yes);
}

static leat_arg one_float(void)
{
    static const leat_dtype types[1] = {LEAT_FLOAT};
    return leat_attr_types("Tout", types, 1);
}

/* y as a number, of a graph that is taken. */
static leat_status value_on(leat_graph *g, leat_out y, int devices, double *out)
{
    leat_session *s = NULL;
    leat_tensor *got = NULL;
    leat_status status = leat_graph_status(g);
    if (!status)
        status = leat_session_open(g, &s, .cpu_devices = devices);
    if (!status)
        status = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &got}), LEAT_NO_TARGET);
    if (!status)
        *out = leat_tensor_at(got, 0);
    leat_tensor_unref(got);
    leat_session_close(s);
    leat_graph_free(g);
    return status;
}

static leat_status value(leat_graph *g, leat_out y, double *out)
{
    return value_on(g, y, 1, out);
}

/* ---- Branches ---- */

static leat_tensor *truth(bool v)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_BOOL, leat_shape(), &t));
    *(bool *)leat_tensor_data(t) = v;
    return t;
}

static leat_status run_if(leat_tensor *cond, bool lower, double *out)
{
    leat_graph *g = with_functions();
    leat_out c = leat_const(g, cond), x = number(g, 5);
    leat_tensor_unref(cond);
    return value(g,
                 leat_op(g, "If", leat_in(c), leat_ins(&x, 1), one_float(),
                         leat_attr_func("then_branch", "Twice"),
                         leat_attr_func("else_branch", "Negative"), lowered(lower)),
                 out);
}

static void branches(void)
{
    double y = 0;
    for (int lower = 0; lower < 2; lower++) {
        CHECK_OK(run_if(truth(true), lower, &y));
        CHECK_NEAR(y, 10, 0);
        CHECK_OK(run_if(truth(false), lower, &y));
        CHECK_NEAR(y, -5, 0);
        CHECK_OK(run_if(leat_scalar_float(0.5f), lower, &y));
        CHECK_NEAR(y, 10, 0);
        CHECK_OK(run_if(leat_scalar_int32(0), lower, &y));
        CHECK_NEAR(y, -5, 0);
    }
    CHECK_OK(run_if(leat_scalar_string("a", 1), false, &y));
    CHECK_NEAR(y, 10, 0);
    CHECK_OK(run_if(leat_scalar_string("", 0), false, &y));
    CHECK_NEAR(y, -5, 0);
    leat_tensor *two;
    CHECK_OK(leat_tensor_new(LEAT_BOOL, leat_shape(2), &two)); /* it has elements */
    CHECK_OK(run_if(two, false, &y));
    CHECK_NEAR(y, 10, 0);
}

#define CASE_GRAPH                                                                                 \
    "node { name: 'i' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: "     \
    "'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: %d } } } } "               \
    "node { name: 'x' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: "     \
    "'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 5 } } } } "              \
    "node { name: 'y' op: 'Case' input: 'i' input: 'x' attr { key: 'Tin' value { list { type: "    \
    "DT_FLOAT } } } attr { key: 'Tout' value { list { type: DT_FLOAT } } } attr { key: 'branches'" \
    " value { list { func { name: 'Twice' } func { name: 'Squared' } func { name: 'Negative' } } " \
    "}"                                                                                            \
    " } attr { key: '_lower_using_switch_merge' value { b: %s } } }"

static void cases(void)
{
    static const double want[] = {-5, 10, 25, -5, -5}; /* for -1 .. 3 */
    for (int i = -1; i <= 3; i++)
        for (int lower = 0; lower < 2; lower++) {
            char text[1200];
            double y = 0;
            leat_out out = {0};
            leat_graph *g = with_functions();
            snprintf(text, sizeof(text), CASE_GRAPH, i, lower ? "true" : "false");
            CHECK_OK(leat_graph_from_text(g, text, ""));
            CHECK_OK(leat_graph_find_out(g, "y:0", &out));
            CHECK_OK(value(g, out, &y));
            CHECK_NEAR(y, want[i + 1], 0);
        }
}

/* ---- Loops ---- */

static void below(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_less(in[0], number(g, *(int *)arg));
}

static void add_up(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(in[0], number(g, 1));
    out[1] = leat_add(in[1], in[0]);
}

static void two_values(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = out[1] = in[0];
}

static void three_values(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = out[1] = out[2] = in[0];
}

static leat_status run_while(int n, leat_function_fn cond, int n_cond, leat_function_fn body,
                             int n_body, bool lower, double *out)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Cond", cond, &n, n_cond, LEAT_FLOAT, LEAT_FLOAT);
    leat_function_define(g, "Body", body, NULL, n_body, LEAT_FLOAT, LEAT_FLOAT);
    leat_out in[2] = {number(g, 0), number(g, 0)};
    leat_out y = leat_op(g, "While", leat_ins(in, 2), leat_attr_func("cond", "Cond"),
                         leat_attr_func("body", "Body"), lowered(lower), leat_name("loop"));
    return value(g, leat_output(y, 1), out);
}

static void loops(void)
{
    double y = 0;
    for (int lower = 0; lower < 2; lower++) {
        CHECK_OK(run_while(10, below, 1, add_up, 2, lower, &y));
        CHECK_NEAR(y, 45, 0);
        CHECK_OK(run_while(0, below, 1, add_up, 2, lower, &y));
        CHECK_NEAR(y, 0, 0);
        CHECK_ERROR(run_while(1, two_values, 2, add_up, 2, lower, &y), INVALID_ARGUMENT,
                    "Expected a single scalar return value from WhileOp cond, got 2 tensors.");
        CHECK_ERROR(run_while(1, below, 1, three_values, 3, lower, &y), INVALID_ARGUMENT,
                    "While loop body returned 3 arguments. Expected: 2");
    }
    CHECK_OK(run_while(100000, below, 1, add_up, 2, false, &y)); /* the stack does not grow */
}

static void add_counter(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(leat_mul(in[1], number(g, 10)), leat_cast(in[0], LEAT_FLOAT));
}

static leat_status run_for(leat_out start, int limit, int delta, double *out)
{
    leat_graph *g = start.node->graph;
    leat_function_define(g, "Body", add_counter, NULL, 1, LEAT_INT32, LEAT_FLOAT);
    leat_out x = number(g, 0);
    return value(g,
                 leat_op(g, "For", leat_in(start), leat_in(leat_scalar(g, LEAT_INT32, limit)),
                         leat_in(leat_scalar(g, LEAT_INT32, delta)), leat_ins(&x, 1),
                         leat_attr_func("body", "Body"), leat_name("for")),
                 out);
}

static leat_out from(int i)
{
    return leat_scalar(leat_graph_new(), LEAT_INT32, i);
}

static void counted(void)
{
    double y = 0;
    CHECK_OK(run_for(from(1), 5, 1, &y));
    CHECK_NEAR(y, 1234, 0);
    CHECK_OK(run_for(from(5), 0, -2, &y));
    CHECK_NEAR(y, 531, 0);
    CHECK_OK(run_for(from(7), 7, 0, &y));
    CHECK_NEAR(y, 0, 0);
    CHECK_OK(run_for(from(INT32_MAX - 1), INT32_MAX, 5, &y));
    CHECK_NEAR(y, INT32_MAX - 1, 1000);
    CHECK_ERROR(run_for(from(0), 10, -1, &y), INVALID_ARGUMENT,
                "Invalid start/limit/delta: 0 10 -1");
    CHECK_ERROR(run_for(from(0), 10, 0, &y), INVALID_ARGUMENT, "Invalid start/limit/delta");
    leat_graph *g = leat_graph_new();
    CHECK_ERROR(run_for(leat_int_vector(g, (const int64_t[]){1}, 1), 3, 1, &y), INVALID_ARGUMENT,
                "start must be a scalar, but [1]");
    g = with_functions();
    leat_out x = number(g, 1), i = leat_scalar(g, LEAT_INT32, 1);
    CHECK_ERROR(value(g,
                      leat_op(g, "For", leat_in(i), leat_in(i), leat_in(i), leat_ins(&x, 1),
                              leat_attr_func("body", "Missing"), leat_name("for")),
                      &y),
                NOT_FOUND, "Function Missing is not defined. (node 'for')");
}

/* ---- Calls ---- */

static leat_status run_remote(const char *target, double *out)
{
    leat_graph *g = with_functions();
    leat_tensor *name = leat_scalar_string(target, strlen(target));
    leat_out t = leat_const(g, name), x = number(g, 5);
    leat_tensor_unref(name);
    return value_on(g,
                    leat_op(g, "RemoteCall", leat_in(t), leat_ins(&x, 1), one_float(),
                            leat_attr_func("f", "Squared"), leat_name("remote")),
                    2, out);
}

static void on_devices(void)
{
    double y = 0;
    CHECK_OK(run_remote("/cpu:1", &y));
    CHECK_NEAR(y, 25, 0);
    CHECK_OK(run_remote("/job:localhost/replica:0/task:0/device:CPU:0", &y));
    CHECK_NEAR(y, 25, 0);
    CHECK_ERROR(run_remote("/cpu:2", &y), NOT_FOUND,
                "The session has no device /cpu:2 to run a function on: it has /job:localhost");
    CHECK_ERROR(run_remote("/job:ps/task:1", &y), NOT_FOUND, "[[{{node remote}}]]");
    CHECK_ERROR(run_remote("/cpu:x", &y), INVALID_ARGUMENT, "/cpu:x");
}

static leat_out one_less(leat_graph *g, leat_out n)
{
    return leat_sub(n, number(g, 1));
}

static void one_result(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = number(g, 1);
}

static void times_x(leat_graph *g, void *arg, leat_out *outs)
{
    const leat_out *in = arg;
    leat_out args[2] = {in[0], one_less(g, in[1])};
    outs[0] = leat_mul(in[0], leat_op(g, "PartitionedCall", leat_ins(args, 2), one_float(),
                                      leat_attr_func("f", "Power")));
}

/* x^n, by x^(n - 1). */
static void power(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_cond(leat_less(in[1], number(g, 0.5)), one_result, times_x, (void *)in, out, 1);
}

static void gradients(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Power", power, NULL, 1, LEAT_FLOAT, LEAT_FLOAT);
    leat_out in[2] = {number(g, 3), number(g, 4)}, y;
    leat_call(g, "Power", in, 2, &y, 1);
    leat_grad_value d;
    double got = 0;
    CHECK_OK(leat_gradients(&y, 1, in, 1, &d));
    CHECK_OK(value(g, d.value, &got));
    CHECK_NEAR(got, 4 * 27, 1e-3);
}

#define NOT_INLINED                                                                                \
    "library { function { signature { name: 'Apart' input_arg { name: 'x' type: DT_FLOAT } "       \
    "output_arg { name: 'y' type: DT_FLOAT } } node_def { name: 'sum' op: 'Add' input: 'x' input:" \
    " 'x' attr { key: 'T' value { type: DT_FLOAT } } } ret { key: 'y' value: 'sum:z:0' } "         \
    "attr { key: '_noinline' value { b: true } } } }"

/* A function that asks not to be inlined is called; its gradient is known all the same. */
static void apart(void)
{
    leat_graph *g = leat_graph_new();
    CHECK_OK(leat_graph_from_text(g, NOT_INLINED, ""));
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape()), y;
    y = leat_op(g, "Apart", leat_in(x), leat_name("call"));
    leat_grad_value d;
    CHECK_OK(leat_gradients(&y, 1, &x, 1, &d));
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    leat_metadata *m = NULL;
    leat_tensor *in = leat_scalar_float(21), *got[2] = {NULL, NULL};
    CHECK_OK(leat_session_run_with(s, &(leat_run_options){.metadata_out = &m}, LEAT_FEED({x, in}),
                                   LEAT_FETCH({y, &got[0]}, {d.value, &got[1]}), LEAT_NO_TARGET));
    CHECK_NEAR(got[0] ? leat_tensor_at(got[0], 0) : 0, 42, 0);
    CHECK_NEAR(got[1] ? leat_tensor_at(got[1], 0) : 0, 2, 0);
    leat_metadata_free(m);
    leat_tensor_unref(in);
    leat_tensor_unref(got[0]);
    leat_tensor_unref(got[1]);
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- Side effects ---- */

enum { RESULT_0, RESULT_1, ITSELF, IN_A_FUNCTION };

static leat_out counter(leat_graph *g, const char *name)
{
    return leat_op(g, "VarHandleOp", leat_attr_type("dtype", LEAT_FLOAT),
                   leat_attr_shape("shape", leat_shape()), leat_attr_string("shared_name", name),
                   leat_name(name));
}

/* The value of a variable after 1 was added. */
static leat_out counted_up(leat_graph *g, leat_out handle)
{
    leat_out add = leat_op(g, "AssignAddVariableOp", leat_in(handle), leat_in(number(g, 1)));
    return leat_op(g, "ReadVariableOp", leat_in(handle), leat_attr_type("dtype", LEAT_FLOAT),
                   leat_after(add));
}

static void count_both(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = counted_up(g, in[0]);
    out[1] = counted_up(g, in[1]);
}

static void count_none(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = out[1] = number(g, 0);
}

static void loop_more(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_less(in[0], number(g, 2));
}

/* Turn, sum, and the two variables; each value is counted by a variable. */
static void loop_body(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out zero = number(g, 0);
    out[0] = leat_add(leat_add(in[0], number(g, 1)), leat_mul(counted_up(g, in[2]), zero));
    out[1] = leat_add(in[1], counted_up(g, in[3]));
    out[2] = in[2];
    out[3] = in[3];
}

static leat_out both_ways(leat_graph *g, const leat_out *handles, bool loop)
{
    leat_dtype two[2] = {LEAT_FLOAT, LEAT_FLOAT};
    leat_out in[4] = {number(g, 0), number(g, 0), handles[0], handles[1]};
    if (loop)
        return leat_op(g, "While", leat_ins(in, 4), leat_attr_func("cond", "More"),
                       leat_attr_func("body", "Turn"), lowered(true));
    return leat_op(g, "If", leat_in(leat_less(in[0], number(g, 1))), leat_ins(handles, 2),
                   leat_attr_types("Tout", two, 2), leat_attr_func("then_branch", "Both"),
                   leat_attr_func("else_branch", "None"), lowered(true));
}

static void wrapped_if(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = both_ways(g, in, false);
}

static void wrapped_while(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = both_ways(g, in, true);
}

/* What the two variables are after a run that wants some of an If or a While. */
static void check_effects(bool loop, int what, double want_0, double want_1)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Both", count_both, NULL, 2, LEAT_RESOURCE, LEAT_RESOURCE);
    leat_function_define(g, "None", count_none, NULL, 2, LEAT_RESOURCE, LEAT_RESOURCE);
    leat_function_define(g, "More", loop_more, NULL, 1, LEAT_FLOAT, LEAT_FLOAT, LEAT_RESOURCE,
                         LEAT_RESOURCE);
    leat_function_define(g, "Turn", loop_body, NULL, 4, LEAT_FLOAT, LEAT_FLOAT, LEAT_RESOURCE,
                         LEAT_RESOURCE);
    leat_function_define(g, "Wrapped", loop ? wrapped_while : wrapped_if, NULL, 1, LEAT_RESOURCE,
                         LEAT_RESOURCE);
    leat_out v[2] = {counter(g, "a"), counter(g, "b")}, zero[2], read[2], y;
    for (int i = 0; i < 2; i++) {
        zero[i] = leat_op(g, "AssignVariableOp", leat_in(v[i]), leat_in(number(g, 0)));
        read[i] = leat_op(g, "ReadVariableOp", leat_in(v[i]), leat_attr_type("dtype", LEAT_FLOAT));
    }
    if (what == IN_A_FUNCTION)
        leat_call(g, "Wrapped", v, 2, &y, 1);
    else
        y = both_ways(g, v, loop);
    leat_out some = leat_identity(leat_output(y, what == RESULT_1 ? 1 : 0));
    leat_session *s;
    leat_tensor *got[2] = {NULL, NULL};
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(zero[0], zero[1])));
    CHECK_OK(
        leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(what == ITSELF ? y : some)));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({read[0], &got[0]}, {read[1], &got[1]}),
                              LEAT_NO_TARGET));
    CHECK_NEAR(got[0] ? leat_tensor_at(got[0], 0) : -1, want_0, 0);
    CHECK_NEAR(got[1] ? leat_tensor_at(got[1], 0) : -1, want_1, 0);
    leat_tensor_unref(got[0]);
    leat_tensor_unref(got[1]);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Outside of functions, those of results that nobody wants are left out. */
static void effects(void)
{
    check_effects(false, RESULT_0, 1, 0);
    check_effects(false, RESULT_1, 0, 1);
    check_effects(false, ITSELF, 1, 1);
    check_effects(false, IN_A_FUNCTION, 1, 1);
    check_effects(true, RESULT_0, 2, 0);
    check_effects(true, RESULT_1, 2, 2); /* whether there is another turn needs the other one */
    check_effects(true, ITSELF, 2, 2);
    check_effects(true, IN_A_FUNCTION, 2, 2);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"branches", branches}, {"cases", cases}, {"loops", loops},
               {"counted", counted}, {"on_devices", on_devices}, {"gradients", gradients},
               {"apart", apart}, {"effects", effects});
}
