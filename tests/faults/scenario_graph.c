/* scenario_graph.c -- graphs and sessions of one process. */
#include "faults/scenarios.h"

#include <stdlib.h>
#include <string.h>

/* Gives a tensor of n elements: 0, 1, 2 ... */
static leat_status counting(int64_t n, leat_tensor **out)
{
    LEAT_TRY(leat_tensor_new(LEAT_FLOAT, leat_shape(n), out));
    for (int64_t i = 0; i < n; i++)
        ((float *)leat_tensor_mutable(*out))[i] = (float)i;
    return NULL;
}

/* Feeds x, fetches y, and checks an element of it. */
static leat_status gives(leat_session *s, leat_out x, const leat_tensor *value, leat_out y,
                         int64_t at, double want)
{
    leat_tensor *v = NULL;
    LEAT_TRY(leat_session_run(s, x.node ? LEAT_FEED({x, value}) : LEAT_NO_FEED, LEAT_FETCH({y, &v}),
                              LEAT_NO_TARGET));
    EXPECT(leat_tensor_at(v, at) == want);
    leat_tensor_unref(v);
    return NULL;
}

static leat_status runs(leat_session *s, leat_out target)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(target));
}

static const leat_out none = {NULL, 0};

/* Small and large tensors, on two devices. */
leat_status scenario_session(const char *dir)
{
    enum { SMALL = 10, LARGE = 300000 };
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *small = NULL, *large = NULL;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1)), y, squares;
    leat_with_device(g, "/cpu:1") y = leat_mul(leat_add(x, x), leat_scalar(g, LEAT_FLOAT, 3));
    leat_with_device(g, "/cpu:0") squares = leat_square(y);
    leat_status e = leat_session_open(g, &s, .cpu_devices = 2);
    THEN(e, counting(SMALL, &small));
    THEN(e, counting(LARGE, &large));
    THEN(e, gives(s, x, small, leat_reduce_sum(y), 0, 6 * 45));
    THEN(e, gives(s, x, large, squares, 7, 42 * 42));
    THEN(e, gives(s, x, large, squares, 8, 48 * 48));
    leat_tensor_unref(large);
    leat_tensor_unref(small);
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}

/* Ops of many families: strings, sorting, random numbers, sparse tensors, lists. */
leat_status scenario_kernels(const char *dir)
{
    enum { N = 20000 };
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *in = NULL, *v[8] = {0};
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1));
    leat_out top = leat_op(g, "TopKV2", leat_in(x), leat_in(leat_scalar(g, LEAT_INT32, 5)));
    leat_out text = leat_as_string(top), texts[] = {text, text};
    leat_out matrix = leat_reshape(x, leat_op(g, "Pack",
                                              leat_ins((leat_out[]){leat_scalar(g, LEAT_INT32, 100),
                                                                    leat_scalar(g, LEAT_INT32, -1)},
                                                       2)));
    leat_out y[] = {
        leat_string_join(texts, 2),
        leat_output(leat_op(g, "Unique", leat_in(x)), 1),
        leat_output(top, 1),
        leat_random_shuffle(x, .seed = 3),
        leat_matmul(matrix, matrix, leat_attr_bool("transpose_b", true)),
        leat_op(g, "Where", leat_in(leat_greater(x, leat_scalar(g, LEAT_FLOAT, 5)))),
        leat_op(
            g, "ReverseV2", leat_in(x),
            leat_in(leat_op(g, "Pack", leat_ins((leat_out[]){leat_scalar(g, LEAT_INT32, 0)}, 1)))),
        leat_op(g, "Cumsum", leat_in(x), leat_in(leat_scalar(g, LEAT_INT32, 0))),
    };
    leat_status e = leat_session_open(g, &s);
    THEN(e, counting(N, &in));
    THEN(e, leat_session_run(s, LEAT_FEED({x, in}),
                             LEAT_FETCH({y[0], &v[0]}, {y[1], &v[1]}, {y[2], &v[2]}, {y[3], &v[3]},
                                        {y[4], &v[4]}, {y[5], &v[5]}, {y[6], &v[6]}, {y[7], &v[7]}),
                             LEAT_NO_TARGET));
    if (!e) {
        const leat_string *joined = leat_tensor_data(v[0]);
        EXPECT(strcmp(joined[2].data, "19997.00000019997.000000") == 0);
        EXPECT(leat_tensor_at(v[1], N - 1) == N - 1);
        EXPECT(leat_tensor_at(v[2], 4) == N - 5);
        EXPECT(leat_tensor_count(v[4]) == 100 * 100);
        EXPECT(leat_tensor_count(v[5]) == N - 6);
        EXPECT(leat_tensor_at(v[6], 0) == N - 1);
        EXPECT(leat_tensor_at(v[7], 3) == 6);
    }
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
        leat_tensor_unref(v[i]);
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}

/* ---- Control flow and functions ---- */
static leat_out below(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], leat_scalar(g, LEAT_INT32, 5));
}

static void twice_more(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = leat_add(vars[0], leat_scalar(g, LEAT_INT32, 1));
    next[1] = leat_add(vars[1], vars[1]);
}

static void once(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_identity(*(leat_out *)arg);
}

static void negative(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_neg(*(leat_out *)arg);
}

leat_status scenario_loop(const char *dir)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *in = NULL;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(4000)), outs[2], y;
    leat_grad_value grad;
    leat_out vars[] = {leat_scalar(g, LEAT_INT32, 0), x};
    leat_while_loop(below, twice_more, NULL, vars, 2, outs);
    leat_out pred = leat_less(leat_reduce_sum(x), leat_scalar(g, LEAT_FLOAT, 0));
    leat_cond(pred, once, negative, &outs[1], &y, 1);
    leat_status e = leat_gradients(&y, 1, &x, 1, &grad);
    THEN(e, leat_session_open(g, &s));
    THEN(e, counting(4000, &in));
    THEN(e, gives(s, x, in, y, 3, -96));
    THEN(e, gives(s, x, in, grad.value, 3, -32));
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}

static void scaled(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_mul(in[0], leat_scalar(g, LEAT_FLOAT, 3));
}

/* A call that is inlined, one that is not, and one on another device. */
leat_status scenario_function(const char *dir)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *in = NULL;
    const leat_dtype types[] = {LEAT_FLOAT};
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1)), y, z, w;
    leat_function_define(g, "Scaled", scaled, NULL, 1, LEAT_FLOAT);
    leat_call(g, "Scaled", &x, 1, &y, 1);
    z = leat_op(g, "PartitionedCall", leat_ins(&y, 1), leat_attr_types("Tout", types, 1),
                leat_attr_func("f", "Scaled"), leat_attr_bool("_noinline", true));
    w = leat_op(g, "RemoteCall", leat_in(leat_string_const(g, "/cpu:1")), leat_ins(&z, 1),
                leat_attr_types("Tout", types, 1), leat_attr_func("f", "Scaled"));
    leat_status e = leat_session_open(g, &s, .cpu_devices = 2);
    THEN(e, counting(3000, &in));
    THEN(e, gives(s, x, in, y, 3, 9));
    THEN(e, gives(s, x, in, w, 3, 81));
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}

/* ---- A run in several calls ---- */
leat_status scenario_partial(const char *dir)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_partial *p = NULL;
    leat_tensor *in = NULL, *v = NULL;
    leat_out a = leat_placeholder(g, LEAT_FLOAT, leat_shape(3000));
    leat_out b = leat_placeholder(g, LEAT_FLOAT, leat_shape(3000));
    leat_out x = leat_add(a, a), y = leat_mul(x, b);
    leat_status e = leat_session_open(g, &s);
    THEN(e, counting(3000, &in));
    THEN(e, leat_session_partial(s, (leat_out[]){a, b}, 2, (leat_out[]){x, y}, 2, NULL, 0, &p));
    THEN(e, leat_partial_run(p, LEAT_FEED({a, in}), LEAT_FETCH({x, &v})));
    if (!e)
        EXPECT(leat_tensor_at(v, 3) == 6);
    leat_tensor_unref(v);
    v = NULL;
    THEN(e, leat_partial_run(p, LEAT_FEED({b, in}), LEAT_FETCH({y, &v})));
    if (!e)
        EXPECT(leat_tensor_at(v, 3) == 18);
    leat_tensor_unref(v);
    if (p)
        leat_partial_free(p);
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}

/* ---- Queues and accumulators ---- */
leat_status scenario_queue(const char *dir)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *in = NULL;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(3000));
    leat_out q = leat_fifo_queue(g, 10, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape(3000)}));
    leat_out p = leat_priority_queue(g, 10, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
    leat_out r =
        leat_random_shuffle_queue(g, 10, 0, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}), .seed = 4);
    leat_out acc = leat_accumulator(g, LEAT_FLOAT, leat_shape(3000));
    leat_out step = leat_scalar(g, LEAT_INT64, 0), one = leat_scalar(g, LEAT_FLOAT, 1);
    leat_out put = leat_enqueue(q, x), take2 = leat_dequeue_many(q, 2);
    /* In one step, the dequeue waits for the enqueue. */
    leat_out both = leat_group(g, leat_done(leat_dequeue(p)),
                               leat_enqueue(p, leat_scalar(g, LEAT_INT64, 5), one));
    leat_out mixed = leat_group(g, leat_enqueue(r, one), leat_done(leat_dequeue(r)));
    leat_out apply = leat_accumulator_apply(acc, x, step);
    leat_out mean = leat_accumulator_take(acc, leat_scalar(g, LEAT_INT32, 2));
    leat_status e = leat_session_open(g, &s, .timeout_ms = 20000);
    THEN(e, counting(3000, &in));
    for (int i = 0; i < 2; i++) {
        THEN(e, leat_session_run(s, LEAT_FEED({x, in}), LEAT_NO_FETCH, LEAT_TARGET(put)));
        THEN(e, leat_session_run(s, LEAT_FEED({x, in}), LEAT_NO_FETCH, LEAT_TARGET(apply)));
    }
    THEN(e, gives(s, none, NULL, take2, 3007, 7));
    THEN(e, gives(s, none, NULL, mean, 7, 7));
    THEN(e, runs(s, both));
    THEN(e, runs(s, mixed));
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}

/* ---- GraphDef ---- */
/* A constant of more than 1 MB in it: the sizes of messages are those of the user. */
leat_status scenario_graphdef(const char *dir)
{
    enum { LARGE = 300000 };
    leat_graph *g = leat_graph_new(), *copy = leat_graph_new(), *third = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *large = NULL;
    void *bytes = NULL;
    char *text = NULL;
    size_t n = 0;
    leat_out y = none;
    leat_status e = counting(LARGE, &large);
    if (!e) {
        leat_function_define(g, "Scaled", scaled, NULL, 1, LEAT_FLOAT);
        leat_out c = leat_const(g, large), v;
        leat_call(g, "Scaled", &c, 1, &v, 1);
        leat_op(g, "Identity", leat_in(v), leat_name("y"));
    }
    THEN(e, leat_graph_status(g));
    THEN(e, leat_graph_to_binary(g, &bytes, &n));
    THEN(e, leat_graph_from_binary(copy, bytes, n, ""));
    THEN(e, leat_graph_to_text(copy, &text));
    THEN(e, leat_graph_from_text(third, text, ""));
    THEN(e, leat_graph_find_out(third, "y:0", &y));
    THEN(e, leat_session_open(third, &s));
    THEN(e, gives(s, none, NULL, y, LARGE - 1, 3 * (LARGE - 1)));
    leat_session_close(s);
    free(text);
    free(bytes);
    leat_tensor_unref(large);
    leat_graph_free(third);
    leat_graph_free(copy);
    leat_graph_free(g);
    return e;
}

/* ---- Training ---- */
leat_status scenario_train(const char *dir)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *in = NULL, *first = NULL, *last = NULL;
    leat_metadata *trace = NULL;
    char *json = NULL;
    leat_graph_set_seed(g, 1);
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 100));
    leat_out w = leat_variable(g, "w", leat_random_uniform(g, leat_shape(100, 50), .low = -1));
    leat_out b =
        leat_variable(g, "b", leat_zeros(g, LEAT_FLOAT, leat_shape(50)), .use_resource = true);
    leat_out loss = leat_reduce_mean(leat_square(leat_relu(leat_xw_plus_b(x, w, b))));
    leat_optimizer *adam = leat_adam(.learning_rate = 0.01);
    leat_out train = leat_minimize(adam, loss, .global_step = leat_global_step(g));
    leat_out init = leat_global_variables_initializer(g);
    leat_optimizer_free(adam);
    leat_status e = leat_graph_status(g);
    THEN(e, leat_session_open(g, &s));
    THEN(e, runs(s, init));
    THEN(e, leat_tensor_new(LEAT_FLOAT, leat_shape(20, 100), &in));
    for (int64_t i = 0; in && i < leat_tensor_count(in); i++)
        ((float *)leat_tensor_mutable(in))[i] = (float)(i % 7) / 7;
    THEN(e, leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({loss, &first}), LEAT_NO_TARGET));
    for (int i = 0; i < 3; i++)
        THEN(e, leat_session_run(s, LEAT_FEED({x, in}), LEAT_NO_FETCH, LEAT_TARGET(train)));
    THEN(e, leat_session_run_with(s, &(leat_run_options){.metadata_out = &trace},
                                  LEAT_FEED({x, in}), LEAT_FETCH({loss, &last}), LEAT_NO_TARGET));
    THEN(e, leat_metadata_to_chrome(trace, &json));
    if (!e)
        EXPECT(leat_tensor_at(last, 0) < leat_tensor_at(first, 0));
    free(json);
    leat_metadata_free(trace);
    leat_tensor_unref(last);
    leat_tensor_unref(first);
    leat_tensor_unref(in);
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}
