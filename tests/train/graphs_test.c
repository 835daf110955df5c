/* The graphs that the functions of train.h and variable.h build are those of TensorFlow 1.15, node
 * by node: names, ops, inputs, devices, colocation. data/ was written by make_graphs.py. Nodes of
 * gradients are not compared here, only that they are used where TensorFlow uses them. */
#include <leat/saver.h>
#include <leat/summary.h>
#include <leat/train.h>

#include "core/strbuf.h"
#include "graph/device_name.h"
#include "graph/graph_int.h"
#include "test.h"
#include "train/session_manager.h"
#include "train/sync.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void put_input(leat_strbuf *b, const char *name, int index, bool control)
{
    if (strncmp(name, "gradients", 9) == 0)
        leat_strbuf_printf(b, "%sgradients", control ? "^" : "");
    else
        leat_strbuf_printf(b, "%s%s", control ? "^" : "", name);
    if (index > 0 && strncmp(name, "gradients", 9) != 0)
        leat_strbuf_printf(b, ":%d", index);
}

/* A node as a line of data/. */
static char *line_of(const leat_node *n)
{
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s %s [", n->name, n->op->def->name);
    for (int i = 0; i < n->n_in; i++) {
        leat_strbuf_puts(&b, i ? "," : "");
        put_input(&b, n->in[i].node->name, n->in[i].index, false);
    }
    char **controls = calloc((size_t)n->n_controls + 1, sizeof(char *));
    for (int i = 0; i < n->n_controls; i++)
        controls[i] = (char *)n->controls[i]->name;
    qsort(controls, (size_t)n->n_controls, sizeof(char *), by_text);
    for (int i = 0; i < n->n_controls; i++) {
        leat_strbuf_puts(&b, n->n_in + i ? "," : "");
        put_input(&b, controls[i], 0, true);
    }
    free(controls);
    leat_strbuf_printf(&b, "] %s ", n->device[0] ? n->device : "-");
    const leat_attr *a = leat_node_attr(n, "_class");
    for (int i = 0; a && i < a->n; i++)
        leat_strbuf_printf(&b, "%s%s", i ? "," : "", a->strings[i]);
    leat_strbuf_puts(&b, a ? "" : "-");
    return leat_strbuf_take(&b);
}

/* Nodes that are not compared. Large constants are made when the graph runs; the dummy queue is
 * there for Python's queue runners alone. */
static bool ignored(const char *line)
{
    if (strncmp(line, "dummy_queue", 11) == 0)
        return true;
    if (strstr(line, "/dilation_rate Const")) /* that nothing uses */
        return true;
    const char *constant = strstr(line, "Adagrad/Initializer/Const");
    return strncmp(line, "gradients", 9) == 0 || (constant && constant < line + strcspn(line, " "));
}

/* Inputs that are gradients lose the rest of their names. */
static void shorten(char *line)
{
    for (char *p = strstr(line + 1, "gradients"); p; p = strstr(p + 1, "gradients")) {
        char *end = p + strcspn(p, ",] ");
        memmove(p + 9, end, strlen(end) + 1);
    }
}

static char **read_lines(const char *name, int *n)
{
    char path[1024], buf[4096], **v = calloc(2000, sizeof(char *));
    snprintf(path, sizeof(path), "%s/tests/train/data/%s.txt", LEAT_SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    *n = 0;
    while (f && fgets(buf, sizeof(buf), f)) {
        buf[strcspn(buf, "\n")] = 0;
        if (ignored(buf))
            continue;
        shorten(buf);
        v[(*n)++] = strdup(buf);
    }
    if (f)
        fclose(f);
    qsort(v, (size_t)*n, sizeof(char *), by_text);
    return v;
}

static void compare(leat_graph *g, const char *name)
{
    int n_want, n_got = 0;
    CHECK_OK(leat_graph_status(g));
    char **want = read_lines(name, &n_want), **got = calloc((size_t)g->n_nodes + 1, sizeof(char *));
    for (int i = 0; i < g->n_nodes; i++)
        if (!ignored(g->nodes[i]->name))
            got[n_got++] = line_of(g->nodes[i]);
    qsort(got, (size_t)n_got, sizeof(char *), by_text);
    int i = 0, k = 0;
    while (i < n_want || k < n_got) {
        int order = i == n_want ? 1 : k == n_got ? -1 : strcmp(want[i], got[k]);
        if (order < 0)
            test_failures++, printf("%s: missing    %s\n", name, want[i]);
        if (order > 0)
            test_failures++, printf("%s: unexpected %s\n", name, got[k]);
        i += order <= 0;
        k += order >= 0;
    }
    for (i = 0; i < n_want; i++)
        free(want[i]);
    for (k = 0; k < n_got; k++)
        free(got[k]);
    free(want);
    free(got);
    leat_graph_free(g);
}

static leat_out net(leat_graph *g)
{
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784), leat_name("x"));
    leat_out w = leat_variable(g, "hid_w",
                               leat_truncated_normal(g, leat_shape(784, 10), .stddev = 1.0 / 28));
    leat_out b = leat_variable(g, "hid_b", leat_zeros(g, LEAT_FLOAT, leat_shape(10)));
    return leat_reduce_sum(leat_relu(leat_xw_plus_b(x, w, b)));
}

static void adam(void)
{
    leat_graph *g = leat_graph_new();
    leat_out step = leat_global_step(g);
    leat_optimizer *opt = leat_adam(.learning_rate = 0.01);
    leat_minimize(opt, net(g), .global_step = step);
    leat_global_variables_initializer(g);
    leat_optimizer_free(opt);
    compare(g, "adam");
}

static void sgd_no_step(void)
{
    leat_graph *g = leat_graph_new();
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = 0.01);
    leat_minimize(opt, net(g));
    leat_optimizer_free(opt);
    compare(g, "sgd_no_step");
}

static void others(void)
{
    leat_graph *g = leat_graph_new();
    leat_out loss = net(g);
    leat_optimizer *opts[] = {
        leat_momentum(.learning_rate = 0.01, .momentum = 0.9), leat_adagrad(.learning_rate = 0.01),
        leat_rmsprop(.learning_rate = 0.01, .centered = true), leat_rmsprop(.learning_rate = 0.01)};
    for (int i = 0; i < 4; i++) {
        leat_minimize(opts[i], loss, .name = i == 3 ? "second" : NULL);
        leat_optimizer_free(opts[i]);
    }
    compare(g, "others");
}

static void scopes(void)
{
    leat_graph *g = leat_graph_new();
    leat_with_device(g, "/cpu:1")
    {
        leat_with_variable_scope(g, "h1", .regularizer = leat_l2_regularizer(0.1))
        {
            leat_out w = leat_get_variable(g, "w", leat_shape(40, 30));
            leat_get_variable(g, "b", leat_shape(3), .initializer = leat_constant_initializer(0.1));
            leat_identity(w);
        }
        leat_with_variable_scope(g, "h1", .reuse = LEAT_REUSE)
            leat_identity(leat_get_variable(g, "w", leat_shape(40, 30)));
        leat_with_variable_scope(g, NULL, .default_name = "h1")
        {
            leat_get_variable(g, "c", leat_shape(3),
                              .initializer = leat_random_normal_initializer(0, 0.5));
            leat_get_variable(g, "d", leat_shape_unknown(),
                              .initial_value = leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
            leat_get_variable(g, "e", leat_shape(2), .dtype = LEAT_INT32);
            leat_get_variable(g, "f", leat_shape(2),
                              .initializer = leat_truncated_normal_initializer(0, 1, .seed = 7),
                              .regularizer = leat_l1_regularizer(0.2));
            leat_get_variable(g, "g", leat_shape(2),
                              .initializer = leat_random_uniform_initializer(-1, 1));
            leat_get_variable(g, "gn", leat_shape(3, 4),
                              .initializer = leat_glorot_normal_initializer());
            leat_get_variable(g, "ones", leat_shape(3, 4), .initializer = leat_ones_initializer());
        }
    }
    leat_get_regularization_loss(g, NULL);
    leat_with_name(g, "n")
    {
        leat_variable(
            g, "s", leat_full_named_at(LEAT_AT, g, LEAT_FLOAT, leat_shape(), 3, "s/initial_value"));
        leat_out v = leat_variable(g, "v", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
        leat_variable(g, "v2", leat_mul(v, v, leat_name("mul")));
    }
    compare(g, "scopes");
}

static void partitioned(void)
{
    leat_graph *g = leat_graph_new();
    const leat_variable_scope *q = NULL;
    leat_with_variable_scope(g, "s", .regularizer = leat_l2_regularizer(0.1))
    {
        leat_out w = leat_get_variable(g, "w", leat_shape(10, 3),
                                       .partitioner = leat_fixed_size_partitioner(3));
        leat_get_variable(g, "b", leat_shape(3));
        leat_identity(w);
    }
    leat_with_variable_scope(g, "q", .partitioner = leat_variable_axis_size_partitioner(40))
    {
        q = leat_variable_scope_current(g);
        leat_identity(leat_get_variable(g, "v", leat_shape(7, 3)));
        leat_get_variable(g, "scalar", leat_shape(), .initializer = leat_zeros_initializer());
        leat_identity(leat_get_variable(g, "given", leat_shape_unknown(),
                                        .initial_value = leat_ones(g, LEAT_FLOAT, leat_shape(4, 2)),
                                        .partitioner = leat_fixed_size_partitioner(2, .axis = 1)));
    }
    leat_with_variable_scope(g, "other")
    {
        leat_with_variable_scope(g, NULL, .scope = q)
        {
            leat_identity(
                leat_get_variable(g, "one", leat_shape(2), .initializer = leat_ones_initializer()));
            leat_with_variable_scope(g, NULL, .default_name = "inner")
                leat_identity(leat_get_variable(g, "x", leat_shape(1)));
        }
        leat_with_variable_scope(g, NULL, .scope = q)
        {
            leat_with_variable_scope(g, NULL, .default_name = "inner")
                leat_get_variable(g, "y", leat_shape());
        }
    }
    compare(g, "partitioned");
}

static const char *setter(void *count, const leat_node *n)
{
    if (strcmp(leat_node_op(n), "VariableV2") == 0)
        return (*(int *)count)++ % 2 ? "/job:ps/task:1" : "/job:ps/task:0";
    return "/job:worker";
}

static void devices(void)
{
    leat_graph *g = leat_graph_new();
    int count = 0;
    leat_optimizer *opt = leat_adam(.learning_rate = 0.01);
    leat_with_device_fn(g, setter, &count)
    {
        leat_out step = leat_global_step(g);
        leat_minimize(opt, net(g), .global_step = step);
        leat_global_variables_initializer(g);
    }
    leat_optimizer_free(opt);
    compare(g, "devices");
}

static void averages(void)
{
    leat_graph *g = leat_graph_new();
    leat_out loss = net(g), step = leat_global_step(g);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = 0.01);
    leat_out train = leat_minimize(opt, loss, .global_step = step);
    leat_moving_average *ema = leat_moving_average_new(.decay = 0.99, .num_updates = step);
    int n;
    leat_out *vars = leat_trainable_variables(g, &n);
    leat_with_control(g, train) leat_moving_average_apply(ema, vars, n);
    free(vars);
    leat_moving_average_free(ema);
    leat_optimizer_free(opt);
    compare(g, "averages");
}

static void sparse(void)
{
    leat_graph *g = leat_graph_new();
    leat_out e = leat_variable(g, "e", leat_zeros(g, LEAT_FLOAT, leat_shape(20, 3)));
    leat_out ids = leat_placeholder(g, LEAT_INT32, leat_shape(-1), leat_name("ids"));
    leat_out loss = leat_reduce_sum(leat_embedding_lookup(&e, 1, ids));
    leat_optimizer *opts[] = {leat_gradient_descent(.learning_rate = 0.01),
                              leat_adam(.learning_rate = 0.01), leat_adagrad(.learning_rate = 0.01),
                              leat_momentum(.learning_rate = 0.01, .momentum = 0.9),
                              leat_rmsprop(.learning_rate = 0.01)};
    for (int i = 0; i < 5; i++) {
        leat_minimize(opts[i], loss);
        leat_optimizer_free(opts[i]);
    }
    compare(g, "sparse");
}

static void dense(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 20), leat_name("x"));
    leat_out y = leat_dense(x, 5, .activation = "Relu");
    leat_dense(y, 3, .name = "out", .no_bias = true);
    compare(g, "dense");
}

static void conv(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 24, 24, 3), leat_name("x"));
    leat_out y =
        leat_conv2d_layer(x, 8, 5, 3, .same = true, .strides = {2, 2}, .activation = "Relu");
    leat_conv2d_layer(y, 4, 3, 3, .name = "out", .no_bias = true);
    compare(g, "conv");
}

static void pool(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 24, 24, 3), leat_name("x"));
    leat_out y = leat_max_pool_layer(x, 3, 2, .strides = {2, 1}, .same = true);
    y = leat_max_pool_layer(y, 2, 2);
    y = leat_avg_pool_layer(y, 2, 2, .strides = {1, 1});
    leat_avg_pool_layer(y, 2, 2, .name = "out");
    compare(g, "pool");
}

/* The layers of convolution, pooling and normalisation give the same with the channels first. */
static void channels_first(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *in, *y[2] = {NULL, NULL};
    float v[2 * 9 * 8 * 3];
    leat_out out[2];
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
        v[i] = (float)((i * 37) % 101) / 50 - 1;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 9, 8, 3));
    for (int first = 0; first < 2; first++)
        leat_with_variable_scope(g, "net", .reuse = LEAT_AUTO_REUSE)
        {
            leat_out h = first ? leat_transpose(x, leat_ints(g, 0, 3, 1, 2)) : x;
            h = leat_conv2d_layer(h, 4, 3, 2, .name = "conv", .channels_first = first);
            h = leat_max_pool_layer(h, 3, 2, .strides = {1, 2}, .channels_first = first);
            h = leat_avg_pool_layer(h, 2, 1, .same = true, .channels_first = first);
            h = leat_batch_norm_layer(h, .name = "norm", .channels_first = first);
            out[first] = first ? leat_transpose(h, leat_ints(g, 0, 2, 3, 1)) : h;
        }
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2, 9, 8, 3), v, &in));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({out[0], &y[0]}, {out[1], &y[1]}),
                              LEAT_NO_TARGET));
    CHECK_INT(leat_tensor_count(y[0]), 2 * 3 * 3 * 4);
    CHECK_INT(leat_tensor_count(y[1]), 2 * 3 * 3 * 4);
    for (int i = 0; i < leat_tensor_count(y[0]); i++)
        CHECK_NEAR(leat_tensor_at(y[1], i), leat_tensor_at(y[0], i), 1e-5);
    leat_tensor_unref(in);
    leat_tensor_unref(y[0]);
    leat_tensor_unref(y[1]);
    leat_session_close(s);
    leat_graph_free(g);
}

static void pool_refused(void)
{
    leat_graph *g = leat_graph_new();
    leat_max_pool_layer(leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 9, 8)), 2, 2);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT,
                "leat_max_pool_layer: the inputs should have 4 dimensions. Found shape [2,9,8].");
    leat_graph_free(g);
    g = leat_graph_new();
    leat_avg_pool_layer(leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 9, 8, 3)), 2, 0);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT,
                "leat_avg_pool_layer: height and width must be positive, got 2, 0");
    leat_graph_free(g);
    g = leat_graph_new();
    leat_avg_pool_layer(leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 9, 8, 3)), 2, 2,
                        .strides = {0, 1});
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT,
                "leat_avg_pool_layer: strides must be positive, got 0");
    leat_graph_free(g);
}

static void batch_norm(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 8, 8, 3), leat_name("x"));
    leat_out y = leat_batch_norm_layer(x, .training = true);
    y = leat_batch_norm_layer(y, .training = true, .momentum = 0.9);
    leat_batch_norm_layer(y, .name = "out", .no_center = true);
    compare(g, "batch_norm");
}

/* Rows of features are normalised as images of one pixel; the averages follow by their momentum. */
static void batch_norm_runs(void)
{
    const float v[] = {1, 10, 3, 30};
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *in, *y = NULL, *mean = NULL;
    int n;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 2));
    leat_out out =
        leat_batch_norm_layer(x, .training = true, .momentum = 0.75, .name = "bn", .epsilon = 0);
    leat_out *updates = leat_collection(g, LEAT_UPDATE_OPS, NULL, &n);
    CHECK_INT(n, 2);
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2, 2), v, &in));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({out, &y}, {updates[0], &mean}),
                              LEAT_TARGET(updates[1])));
    for (int i = 0; y && i < 4; i++)
        CHECK_NEAR(leat_tensor_at(y, i), i < 2 ? -1 : 1, 1e-5);
    for (int i = 0; mean && i < 2; i++)
        CHECK_NEAR(leat_tensor_at(mean, i), i ? 5 : 0.5, 1e-5);
    leat_tensor_unref(y);
    leat_tensor_unref(mean);
    leat_tensor_unref(in);
    free(updates);
    leat_session_close(s);
    leat_graph_free(g);
}

static void batch_norm_refused(void)
{
    leat_graph *g = leat_graph_new();
    leat_batch_norm_layer(leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 8, -1)));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT,
                "the inputs should be images (4 dimensions) or rows of features (2)");
    leat_graph_free(g);
    g = leat_graph_new();
    leat_batch_norm_layer(leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 8)), .momentum = 1.5);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "momentum must be from 0 to 1, got 1.5");
    leat_graph_free(g);
}

/* As tf.train.replica_device_setter: variables on the ps tasks by turns, all else on the worker,
 * except nodes with a device of their own. */
static const char *ps_setter(void *count, const leat_node *n)
{
    static char text[128];
    leat_device_name asked, given;
    const char *device = "/job:worker/task:1";
    if (strcmp(leat_node_op(n), "VariableV2") == 0 && !leat_node_device(n)[0])
        device = (*(int *)count)++ % 2 ? "/job:ps/task:1" : "/job:ps/task:0";
    leat_status_free(leat_device_name_parse(leat_node_device(n), &asked));
    leat_status_free(leat_device_name_parse(device, &given));
    asked = leat_device_name_merge(&asked, &given);
    return leat_device_name_text(&asked, text, sizeof(text));
}

static void sync_replicas(void)
{
    leat_graph *g = leat_graph_new();
    int count = 0;
    leat_optimizer *opt =
        leat_sync_replicas(leat_gradient_descent(.learning_rate = 0.01), .replicas_to_aggregate = 2,
                           .total_num_replicas = 3, .lease_secs = -1);
    leat_with_device_fn(g, ps_setter, &count)
    {
        leat_out step = leat_global_step(g);
        leat_minimize(opt, net(g), .global_step = step);
        leat_sync_tokens(leat_sync_of(g), 2);
    }
    leat_optimizer_free(opt);
    compare(g, "sync");
}

static void sync_rows(void)
{
    leat_graph *g = leat_graph_new();
    leat_out step = leat_global_step(g);
    leat_out e = leat_variable(g, "e", leat_zeros(g, LEAT_FLOAT, leat_shape(20, 3)));
    leat_out ids = leat_placeholder(g, LEAT_INT32, leat_shape(-1), leat_name("ids"));
    leat_out loss = leat_reduce_sum(leat_embedding_lookup(&e, 1, ids));
    leat_moving_average *ema = leat_moving_average_new(.decay = 0.99);
    leat_optimizer *opt =
        leat_sync_replicas(leat_gradient_descent(.learning_rate = 0.01), .replicas_to_aggregate = 2,
                           .variable_averages = ema, .variables_to_average = &e,
                           .n_variables_to_average = 1, .lease_secs = -1);
    leat_minimize(opt, loss, .global_step = step);
    leat_optimizer_free(opt);
    leat_moving_average_free(ema);
    compare(g, "sync_rows");
}

static void saver(void)
{
    leat_graph *g = leat_graph_new();
    net(g);
    leat_get_variable(g, "r", leat_shape_unknown(), .use_resource = true,
                      .initial_value = leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_get_variable(g, "q", leat_shape_unknown(), .use_resource = true,
                      .initial_value = leat_zeros(g, LEAT_FLOAT, leat_shape(3)));
    leat_saver_free(leat_saver_new(g));
    leat_with_name(g, "a") leat_scalar_summary("loss", leat_zeros(g, LEAT_FLOAT, leat_shape()));
    leat_scalar_summary("loss", leat_zeros(g, LEAT_FLOAT, leat_shape()));
    leat_histogram_summary("loss", leat_zeros(g, LEAT_FLOAT, leat_shape()));
    leat_merge_all_summaries(g);
    compare(g, "saver");
}

static void saver_slices(void)
{
    leat_graph *g = leat_graph_new();
    leat_get_variable(g, "w", leat_shape_unknown(), .partitioner = leat_fixed_size_partitioner(12),
                      .initial_value = leat_zeros(g, LEAT_FLOAT, leat_shape(30, 2)));
    leat_saver_free(leat_saver_new(g));
    leat_node *specs = leat_graph_find(g, "save/SaveV2/shape_and_slices");
    const leat_string *v = leat_tensor_data(leat_node_tensor(specs, "value"));
    CHECK_STR(v[0].data, "30 2 0,3:0,2");
    CHECK_STR(v[1].data, "30 2 26,2:0,2");
    compare(g, "saver_slices");
}

static void saver_sharded(void)
{
    leat_graph *g = leat_graph_new();
    leat_with_device(g, "/job:ps/task:1") net(g);
    leat_with_device(g, "/job:ps/task:0/gpu:0")
        leat_get_variable(g, "r", leat_shape_unknown(), .use_resource = true,
                          .initial_value = leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_with_device(g, "/job:ps/task:0")
        leat_variable(g, "v", leat_zeros(g, LEAT_FLOAT, leat_shape(3)));
    leat_saver_free(leat_saver_new(g, .sharded = true));
    compare(g, "saver_sharded");
}

static void scaffold(void)
{
    leat_graph *g = leat_graph_new();
    leat_scaffold s = {0};
    int count = 0;
    leat_with_device_fn(g, ps_setter, &count)
    {
        leat_global_step(g);
        leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
        leat_local_variable(g, "l", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    }
    leat_scalar_summary("x", leat_placeholder(g, LEAT_FLOAT, leat_shape(), leat_name("y")));
    leat_saver *saver = leat_saver_new(g);
    CHECK_OK(leat_scaffold_finish(g, &s));
    leat_saver_free(saver);
    compare(g, "scaffold");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"saver", saver}, {"saver_slices", saver_slices},
               {"saver_sharded", saver_sharded}, {"adam", adam}, {"sgd_no_step", sgd_no_step},
               {"others", others}, {"scopes", scopes}, {"partitioned", partitioned},
               {"devices", devices}, {"averages", averages}, {"sparse", sparse}, {"dense", dense},
               {"conv", conv}, {"pool", pool}, {"pool_refused", pool_refused},
               {"channels_first", channels_first}, {"batch_norm", batch_norm},
               {"batch_norm_runs", batch_norm_runs}, {"batch_norm_refused", batch_norm_refused},
               {"sync", sync_replicas}, {"sync_rows", sync_rows}, {"scaffold", scaffold});
}
