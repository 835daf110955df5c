/* where_test.c -- errors name the node and the line of this file that made it: in runs in this
 * process and on a server, in functions, conds and loops. */
#include <leat/leat.h>
#include <leat/function.h>

#include "graph/graph_int.h"
#include "runtime/where.h"
#include "test.h"

typedef struct run_case {
    leat_graph *g;
    leat_out y;
    int line; /* of the constructor that the error is about */
} run_case;

/* The error has these words, names the node, and ends with the line of the case. */
static void check_where(leat_status s, leat_code code, const char *words, const run_case *c)
{
    char at[64], node[96];
    snprintf(at, sizeof(at), "where_test.c:%d)", c->line);
    snprintf(node, sizeof(node), "{{node %s}}", leat_node_name(c->y.node));
    const char *message = leat_status_message(s);
    size_t n = strlen(message), n_at = strlen(at);
    CHECK_INT(leat_status_code(s), code);
    if (!strstr(message, words) || !strstr(message, node) || n < n_at ||
        strcmp(message + n - n_at, at) != 0) {
        test_failures++;
        printf("line %d: %s; want: ...%s...%s...%s\n", c->line, message, words, node, at);
    }
    leat_status_free(s);
}

static leat_status run_on(const char *target, const run_case *c)
{
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    LEAT_TRY(leat_session_open(c->g, &s, .target = target));
    leat_status e = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({c->y, &t}), LEAT_NO_TARGET);
    leat_tensor_unref(t);
    leat_session_close(s);
    return e;
}

/* ---- Errors of runs ---- */

static run_case uninitialized(void)
{
    run_case c = {.g = leat_graph_new(), .line = __LINE__ + 1};
    c.y = leat_variable(c.g, "w", leat_zeros(c.g, LEAT_FLOAT, leat_shape(2)));
    return c;
}

static run_case not_fed(void)
{
    run_case c = {.g = leat_graph_new(), .line = __LINE__ + 1};
    c.y = leat_placeholder(c.g, LEAT_FLOAT, leat_shape(2), leat_name("x"));
    return c;
}

/* A number that passes cannot see, so that the kernel runs. */
static leat_out unknown(leat_graph *g, leat_dtype t, double v)
{
    return leat_placeholder_with_default(leat_scalar(g, t, v), leat_shape());
}

static run_case out_of_range(void)
{
    run_case c = {.g = leat_graph_new()};
    leat_out i = unknown(c.g, LEAT_INT32, 7), axis = leat_scalar(c.g, LEAT_INT32, 0);
    leat_out rows = leat_ints(c.g, 1, 2, 3);
    c.line = __LINE__ + 1;
    c.y = leat_gather(rows, i, axis, leat_name("row"));
    return c;
}

static run_case divided_by_zero(void)
{
    run_case c = {.g = leat_graph_new()};
    leat_out zero = unknown(c.g, LEAT_INT32, 0), one = leat_scalar(c.g, LEAT_INT32, 1);
    c.line = __LINE__ + 1;
    c.y = leat_floor_div(one, zero, leat_name("quotient"));
    return c;
}

static run_case no_memory(void)
{
    run_case c = {.g = leat_graph_new()};
    leat_out large = unknown(c.g, LEAT_INT64, 1e15), value = leat_scalar(c.g, LEAT_FLOAT, 1);
    leat_out dims = leat_reshape(large, leat_ints(c.g, 1));
    c.line = __LINE__ + 1;
    c.y = leat_fill(dims, value, leat_name("large"));
    return c;
}

static run_case no_device(void)
{
    run_case c = {.g = leat_graph_new()};
    leat_out x = unknown(c.g, LEAT_FLOAT, 1);
    c.line = __LINE__ + 1;
    c.y = leat_neg(x, leat_on("/device:GPU:7"), leat_name("far"));
    return c;
}

static void divides(leat_graph *g, void *arg, leat_out *outs)
{
    ((run_case *)arg)->line = __LINE__ + 1;
    outs[0] = leat_floor_div(leat_scalar(g, LEAT_INT32, 1), unknown(g, LEAT_INT32, 0),
                             leat_name("inside"));
    ((run_case *)arg)->y = outs[0];
}

static void seven(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_scalar(g, LEAT_INT32, 7);
}

static void check_run(run_case c, leat_code code, const char *words)
{
    leat_server *server = NULL;
    CHECK_OK(leat_graph_status(c.g));
    check_where(run_on("", &c), code, words, &c);
    leat_status s = leat_server_start_local(&server);
    if (leat_status_code(s) != LEAT_UNIMPLEMENTED) { /* built with the cluster room */
        CHECK_OK(leat_status_copy(s));
        check_where(run_on(leat_server_target(server), &c), code, words, &c);
    }
    leat_status_free(s);
    leat_server_free(server);
    leat_graph_free(c.g);
}

static void runs(void)
{
    check_run(uninitialized(), LEAT_FAILED_PRECONDITION, "Attempting to use uninitialized value w");
    check_run(not_fed(), LEAT_INVALID_ARGUMENT, "You must feed a value for placeholder tensor 'x'");
    check_run(out_of_range(), LEAT_INVALID_ARGUMENT, "indices = 7 is not in [0, 3)");
    check_run(divided_by_zero(), LEAT_INVALID_ARGUMENT, "Integer division by zero");
    check_run(no_memory(), LEAT_RESOURCE_EXHAUSTED, "OOM when allocating tensor");
    check_run(no_device(), LEAT_INVALID_ARGUMENT, "GPU");
}

static void feeds(void)
{
    run_case c = not_fed();
    leat_session *s = NULL;
    leat_tensor *ints, *three, *out = NULL;
    CHECK_OK(leat_tensor_new(LEAT_INT32, leat_shape(2), &ints));
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(3), &three));
    CHECK_OK(leat_session_open(c.g, &s));
    leat_fetches fetch = LEAT_FETCH({c.y, &out});
    check_where(leat_session_run(s, LEAT_FEED({c.y, ints}), fetch, LEAT_NO_TARGET),
                LEAT_INVALID_ARGUMENT, "Tensor x:0 was fed int32: it holds float", &c);
    check_where(leat_session_run(s, LEAT_FEED({c.y, three}), fetch, LEAT_NO_TARGET),
                LEAT_INVALID_ARGUMENT, "Cannot feed value of shape [3]", &c);
    check_where(leat_session_run(s, LEAT_FEED({c.y, NULL}), fetch, LEAT_NO_TARGET),
                LEAT_INVALID_ARGUMENT, "Tensor x:0 is fed nothing", &c);
    leat_partial *p = NULL;
    CHECK_OK(leat_session_partial(s, &c.y, 1, &c.y, 1, NULL, 0, &p));
    check_where(leat_partial_run(p, LEAT_FEED({c.y, three}), fetch), LEAT_INVALID_ARGUMENT,
                "Cannot feed value of shape [3]", &c);
    leat_partial_free(p);
    leat_tensor_unref(ints);
    leat_tensor_unref(three);
    leat_session_close(s);
    leat_graph_free(c.g);
}

static void time_out(void)
{
    run_case c = {.g = leat_graph_new()};
    leat_out q = leat_fifo_queue(c.g, 5, LEAT_COMPONENTS({LEAT_INT32, leat_shape()}));
    c.line = __LINE__ + 1;
    c.y = leat_dequeue(q);
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_open(c.g, &s, .timeout_ms = 50));
    check_where(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({c.y, &t}), LEAT_NO_TARGET),
                LEAT_DEADLINE_EXCEEDED, "Timed out waiting for", &c);
    leat_session_close(s);
    leat_graph_free(c.g);
}

/* ---- Inside of conds and functions ---- */

static void in_a_cond(void)
{
    run_case c = {.g = leat_graph_new()};
    leat_out pred = unknown(c.g, LEAT_BOOL, 1), y;
    leat_cond(pred, divides, seven, &c, &y, 1);
    CHECK_OK(leat_graph_status(c.g));
    run_case whole = {c.g, y, c.line};
    leat_status s = run_on("", &whole);
    check_where(s, LEAT_INVALID_ARGUMENT, "Integer division by zero", &c);
    leat_graph_free(c.g);
}

static int body_line;

static void divide(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    body_line = __LINE__ + 1;
    out[0] = leat_floor_div(in[0], in[1], leat_name("inner"));
}

static void in_a_function(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    leat_function_define(g, "Divide", divide, NULL, 1, LEAT_INT32, LEAT_INT32);
    leat_out one = unknown(g, LEAT_INT32, 1), zero = unknown(g, LEAT_INT32, 0);
    leat_out in[2] = {one, zero};
    int call_line = __LINE__ + 1;
    leat_out y = leat_op(g, "Divide", leat_in(one), leat_in(zero), leat_name("call"));
    const leat_dtype types[1] = {LEAT_INT32};
    leat_out z = leat_op(g, "StatefulPartitionedCall", leat_ins(in, 2),
                         leat_attr_types("Tout", types, 1), leat_attr_func("f", "Divide"));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    leat_status inlined = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET);
    leat_status called = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({z, &t}), LEAT_NO_TARGET);
    char at[64];
    snprintf(at, sizeof(at), "where_test.c:%d)", call_line);
    CHECK_ERROR(inlined, INVALID_ARGUMENT, at);
    /* The body's own line where the function was called, that of the call where it was inlined. */
    bool inner = strstr(leat_status_message(called), "{{function_node Divide}}");
    snprintf(at, sizeof(at), "where_test.c:%d)", inner ? body_line : call_line + 2);
    if (inner)
        CHECK_ERROR(leat_status_copy(called), INVALID_ARGUMENT, at);
    CHECK_ERROR(called, INVALID_ARGUMENT, "Integer division by zero");
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- Mistakes in conds and loops ---- */

static void nothing(leat_graph *g, void *arg, leat_out *outs) {}

static leat_out no_condition(leat_graph *g, void *arg, const leat_out *vars)
{
    return (leat_out){0};
}

static void unchanged(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = vars[0];
}

static void check_mistake(leat_graph *g, const char *words, int line)
{
    char at[64];
    snprintf(at, sizeof(at), "where_test.c:%d)", line);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, words);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, at);
    leat_graph_free(g);
}

static void mistakes(void)
{
    leat_graph *g = leat_graph_new();
    leat_out y, number = leat_scalar(g, LEAT_FLOAT, 1);
    leat_cond(number, seven, seven, NULL, &y, 1); /* not a bool */
    check_mistake(g, "Input 'pred' of 'Switch' Op", __LINE__ - 1);
    g = leat_graph_new();
    leat_out pred = unknown(g, LEAT_BOOL, 1);
    leat_cond(pred, seven, nothing, NULL, &y, 1);
    check_mistake(g, "leat_cond: false_fn must have a return value: outs[0]", __LINE__ - 1);
    g = leat_graph_new();
    number = leat_scalar(g, LEAT_FLOAT, 1);
    leat_while_loop(no_condition, unchanged, NULL, &number, 1, &y);
    check_mistake(g, "leat_while_loop: cond_fn gives no tensor", __LINE__ - 1);
    g = leat_graph_new();
    leat_out index = leat_scalar(g, LEAT_FLOAT, 1); /* not an int32 */
    const leat_branch_fn branches[] = {seven, seven, seven};
    leat_switch_case(index, branches, 3, NULL, &y, 1);
    check_mistake(g, "Equal", __LINE__ - 1);
}

/* ---- Every node has a line of this file ---- */

static leat_out less(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], leat_scalar_like(vars[0], 3));
}

static void build_layers(leat_graph *g)
{
    leat_out x = leat_ones(g, LEAT_FLOAT, leat_shape(2, 3, 4)), step = leat_global_step(g);
    leat_out h = leat_dense(leat_dropout(x, 0.5), 5, .activation = "Relu",
                            .kernel_regularizer = leat_l1_l2_regularizer(0.1, 0.1));
    leat_out e =
        leat_get_variable(g, "e", leat_shape(4, 5), .partitioner = leat_fixed_size_partitioner(2));
    leat_out ids = leat_ints(g, 0, 2), rows = leat_embedding_lookup(&e, 1, ids);
    leat_out loss = leat_add(leat_reduce_mean(leat_flatten(h)), leat_reduce_sum(rows));
    loss = leat_add(loss, leat_get_regularization_loss(g, NULL));
    leat_out rate = leat_polynomial_decay(step, .learning_rate = 1, .decay_steps = 10);
    leat_optimizer *opt = leat_sync_replicas(leat_adam(.learning_rate_tensor = rate),
                                             .replicas_to_aggregate = 1, .replica = 0);
    leat_minimize(opt, loss, .global_step = step);
    leat_optimizer_free(opt);
    leat_moving_average *ema = leat_moving_average_new(.decay = 0.9, .num_updates = step);
    leat_moving_average_apply(ema, &e, 1);
    leat_moving_average_free(ema);
    leat_scalar_summary("loss", loss);
    leat_merge_all_summaries(g);
}

static void build_variables(leat_graph *g)
{
    leat_out w = leat_variable(g, "w", leat_random_normal(g, leat_shape(2), .seed = 1));
    leat_out r = leat_variable(g, "r", leat_variable_initialized_value(w), .use_resource = true);
    leat_variable_assign(w, leat_ones(g, LEAT_FLOAT, leat_shape(2)));
    leat_variable_assign_add(r, leat_ones(g, LEAT_FLOAT, leat_shape(2)));
    leat_variable_assign_sub(w, r);
    leat_is_variable_initialized(r);
    leat_report_uninitialized_variables(g);
    leat_global_variables_initializer(g);
    leat_saver *v = leat_saver_new(g, .sharded = true);
    leat_saver_free(v);
    leat_grad_value dense = {.value = leat_ones(g, LEAT_FLOAT, leat_shape(2, 3)),
                             .indices = leat_ints(g, 0, 2),
                             .dense_shape = leat_ints(g, 4, 3)};
    leat_grad_dense(dense);
    leat_clip_by_global_norm(&dense, 1, 2);
    leat_clip_by_norm(w, 1);
    leat_piecewise_constant(leat_scalar(g, LEAT_INT32, 3), LEAT_ARRAY(double, 1, 2),
                            LEAT_ARRAY(double, 1, 2, 3), 2);
}

static void build_flow(leat_graph *g)
{
    leat_out y, pred = unknown(g, LEAT_BOOL, 1), x = leat_scalar(g, LEAT_INT32, 0);
    leat_cond(pred, seven, seven, NULL, &y, 1);
    const leat_branch_fn branches[] = {seven, seven, seven};
    leat_switch_case(x, branches, 3, NULL, &y, 1);
    leat_out f = leat_scalar(g, LEAT_FLOAT, 0);
    leat_while_loop(less, unchanged, NULL, &f, 1, &y, .maximum_iterations = x);
    leat_grad_value d;
    leat_status_free(leat_gradients(&y, 1, &f, 1, &d));
    leat_out q = leat_random_shuffle_queue(g, 9, 1, LEAT_COMPONENTS({LEAT_INT32, leat_shape()}));
    leat_out enqueue = leat_enqueue(q, x);
    leat_queue_runner(q, &enqueue, 1);
    leat_dequeue_many(q, 2);
    leat_queue_close(q);
    leat_out acc = leat_accumulator(g, LEAT_FLOAT, leat_shape());
    leat_accumulator_apply(acc, f, leat_scalar(g, LEAT_INT64, 0));
    (void)leat_accumulator_take(acc, x);
    leat_function_define(g, "Divide", divide, NULL, 1, LEAT_INT32, LEAT_INT32);
    const leat_out in[2] = {x, x};
    leat_call(g, "Divide", in, 2, &y, 1);
}

static void all_nodes(void)
{
    leat_graph *g = leat_graph_new();
    leat_monitored *ms = NULL;
    build_layers(g);
    build_variables(g);
    build_flow(g);
    CHECK_OK(leat_graph_status(g));
    leat_graph *small = leat_graph_new();
    leat_global_step(small);
    CHECK_OK(leat_monitored_open(small, &ms, .checkpoint_dir = "/tmp", .last_step = 1,
                                 .save_checkpoint_secs = 0));
    CHECK_OK(leat_monitored_close(ms));
    const leat_graph *graphs[] = {g, small};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < graphs[k]->n_nodes; i++) {
            const leat_node *n = graphs[k]->nodes[i];
            if (n->at.file && strcmp(n->at.file, __FILE__) == 0)
                continue;
            test_failures++;
            printf("%s (%s) is from %s:%d\n", n->name, leat_node_op(n),
                   n->at.file ? n->at.file : "nowhere", n->at.line);
        }
    leat_graph_free(g);
    leat_graph_free(small);
}

/* Whatever name a peer's error has, looking for its line ends. */
static void odd_names(void)
{
    static const char *const names[] = {"/", "/x", "//", "x/", "", "a/b/c", "x/y"};
    leat_graph *g = leat_graph_new();
    leat_placeholder(g, LEAT_FLOAT, leat_shape(), leat_name("x"));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        leat_status s = leat_error(INTERNAL, "broken {{node %s}}", names[i]);
        bool of_x = names[i][0] == 'x';
        CHECK_ERROR(leat_status_where(s, g), INTERNAL, of_x ? "where_test.c:" : "broken");
    }
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"runs", runs}, {"feeds", feeds}, {"time_out", time_out},
               {"in_a_cond", in_a_cond}, {"in_a_function", in_a_function}, {"mistakes", mistakes},
               {"all_nodes", all_nodes}, {"odd_names", odd_names});
}
