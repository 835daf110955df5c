/* misuse_test.c -- NULL where an object is due, objects after their end, names with a typing
 * mistake: an error that says so, never a crash. */
#include <leat/function.h>
#include <leat/leat.h>
#include <unistd.h>

#include "test.h"

/* What a call writes to standard error. */
static const char *said(void (*call)(void *arg), void *arg)
{
    static char text[4096];
    char path[] = "/tmp/leat_misuse_XXXXXX";
    int file = mkstemp(path), before = dup(STDERR_FILENO);
    CHECK(file >= 0 && before >= 0);
    fflush(stderr);
    dup2(file, STDERR_FILENO);
    call(arg);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    ssize_t n = pread(file, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = 0;
    close(file);
    unlink(path);
    return text;
}

#define CHECK_SAYS(call, arg, words)                                                               \
    do {                                                                                           \
        const char *text_ = said(call, arg);                                                       \
        if (!strstr(text_, (words))) {                                                             \
            test_failures++;                                                                       \
            printf("%s:%d: says \"%s\", want \"%s\"\n", __FILE__, __LINE__, text_, (words));       \
        }                                                                                          \
    } while (0)

/* ---- NULL ---- */

static void null_with_status(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    leat_out x = leat_scalar(g, LEAT_FLOAT, 1), out;
    const void *bytes;
    size_t size;
    void *data;
    char *text;
    CHECK_ERROR(leat_session_open(NULL, &s), INVALID_ARGUMENT,
                "leat_session_open_with: the graph is NULL");
    CHECK_ERROR(leat_session_run(NULL, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "leat_session_run_with: the session is NULL");
    CHECK_ERROR(leat_session_partial(NULL, &x, 1, &x, 1, NULL, 0, NULL), INVALID_ARGUMENT,
                "the session is NULL");
    CHECK_ERROR(leat_partial_run(NULL, LEAT_NO_FEED, LEAT_NO_FETCH), INVALID_ARGUMENT,
                "the partial run is NULL");
    CHECK_ERROR(leat_graph_status(NULL), INVALID_ARGUMENT, "the graph is NULL");
    CHECK_ERROR(leat_graph_find_out(NULL, "x", &out), INVALID_ARGUMENT, "the graph is NULL");
    CHECK_ERROR(leat_graph_find_out(g, NULL, &out), INVALID_ARGUMENT, "name is NULL");
    CHECK_ERROR(leat_graph_to_binary(NULL, &data, &size), INVALID_ARGUMENT, "the graph is NULL");
    CHECK_ERROR(leat_graph_to_text(NULL, &text), INVALID_ARGUMENT, "the graph is NULL");
    CHECK_ERROR(leat_graph_from_text(NULL, "", ""), INVALID_ARGUMENT, "the graph is NULL");
    CHECK_ERROR(leat_graph_from_text(g, NULL, ""), INVALID_ARGUMENT, "text is NULL");
    CHECK_ERROR(leat_idx_read(NULL, &t), INVALID_ARGUMENT, "leat_idx_read: path is NULL");
    leat_checkpoint *c = NULL;
    CHECK_ERROR(leat_checkpoint_open(NULL, &c), INVALID_ARGUMENT, "prefix is NULL");
    CHECK(!leat_checkpoint_exists(NULL));
    CHECK(!leat_latest_checkpoint(NULL));
    leat_cluster *k = leat_cluster_new();
    CHECK_ERROR(leat_cluster_add(k, NULL, NULL), INVALID_ARGUMENT, "job is NULL");
    CHECK_ERROR(leat_cluster_add(k, "ps", NULL), INVALID_ARGUMENT, "addresses is NULL");
    leat_cluster_free(k);
    CHECK_ERROR(leat_tensor_reshape(NULL, leat_shape(), &t), INVALID_ARGUMENT,
                "the tensor is NULL");
    CHECK_ERROR(leat_tensor_rows(NULL, 0, 1, &t), INVALID_ARGUMENT, "the tensor is NULL");
    CHECK_ERROR(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2), NULL, &t), INVALID_ARGUMENT,
                "leat_tensor_copy_of: data is NULL");
    CHECK_ERROR(leat_saver_save(NULL, s, "x", 0, NULL), INVALID_ARGUMENT, "the saver is NULL");
    CHECK_ERROR(leat_saver_restore(NULL, s, "x"), INVALID_ARGUMENT, "the saver is NULL");
    CHECK_ERROR(leat_meta_graph_write(NULL, NULL, "x"), INVALID_ARGUMENT, "the graph is NULL");
    CHECK_ERROR(leat_coordinator_join(NULL), INVALID_ARGUMENT, "the coordinator is NULL");
    CHECK_ERROR(leat_start_queue_runners(g, NULL, NULL), INVALID_ARGUMENT, "the session is NULL");
    leat_monitored *ms = NULL;
    CHECK_ERROR(leat_monitored_open(NULL, &ms, .last_step = 1,
                                    .hooks = (leat_hook *[]){leat_stop_at_step_hook(), NULL}),
                INVALID_ARGUMENT, "the graph is NULL");
    CHECK_ERROR(leat_monitored_run(NULL, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_NO_TARGET),
                INVALID_ARGUMENT, "the monitored session is NULL");
    leat_supervisor *sv = NULL;
    CHECK_ERROR(leat_supervisor_open(NULL, &sv), INVALID_ARGUMENT, "the graph is NULL");
    CHECK_ERROR(leat_supervisor_session(NULL, "", &s), INVALID_ARGUMENT, "the supervisor is NULL");
    CHECK_ERROR(leat_summary_write_scalar(NULL, "a", 1, 1), INVALID_ARGUMENT,
                "the summary writer is NULL");
    CHECK_ERROR(leat_record_next(NULL, &bytes, &size), INVALID_ARGUMENT,
                "the record reader is NULL");
    CHECK_ERROR(leat_record_write(NULL, "a", 1), INVALID_ARGUMENT, "the record writer is NULL");
    CHECK_ERROR(leat_checkpoint_read(NULL, "a", &t), INVALID_ARGUMENT, "the checkpoint is NULL");
    CHECK_ERROR(leat_cluster_add(NULL, "ps", "a:1"), INVALID_ARGUMENT, "the cluster is NULL");
    leat_server *server = NULL;
    CHECK_ERROR(leat_server_start(NULL, "ps", 0, NULL, &server), INVALID_ARGUMENT,
                "the cluster is NULL");
    CHECK_ERROR(leat_server_join(NULL), INVALID_ARGUMENT, "the server is NULL");
    leat_mnist *mnist = NULL;
    CHECK_ERROR(leat_mnist_next_batch(mnist, LEAT_MNIST_TRAIN, 1, &t, &t), INVALID_ARGUMENT,
                "the MNIST data is NULL");
    leat_graph_free(g);
}

static void null_graph(void *arg)
{
    CHECK(!leat_scalar(NULL, LEAT_FLOAT, 1).node);
    CHECK(!leat_placeholder(NULL, LEAT_FLOAT, leat_shape()).node);
    CHECK(!leat_const(NULL, NULL).node);
    CHECK(!leat_string_const(NULL, "a").node);
    CHECK(!leat_variable(NULL, "w", ((leat_out){0})).node);
    CHECK(!leat_get_variable(NULL, "w", leat_shape(2)).node);
    CHECK(!leat_random_uniform(NULL, leat_shape(2)).node);
    CHECK(!leat_global_step(NULL).node);
    CHECK(!leat_global_variables_initializer(NULL).node);
    CHECK(!leat_report_uninitialized_variables(NULL).node);
    CHECK(!leat_merge_all_summaries(NULL).node);
    CHECK(!leat_saver_new(NULL));
    leat_name_scope_enter(NULL, "a");
    leat_name_scope_leave(NULL);
    leat_with_device(NULL, "/cpu:0") leat_graph_set_seed(NULL, 1);
    leat_with_variable_scope(NULL, "a") CHECK_STR(leat_variable_scope_name(NULL), "");
    int n = 7;
    CHECK(!leat_global_variables(NULL, &n));
    CHECK_INT(n, 0);
    CHECK_INT(leat_graph_nodes(NULL), 0);
}

static void null_tensor(void *arg)
{
    CHECK_INT(leat_tensor_dtype(NULL), LEAT_INVALID);
    CHECK_INT(leat_tensor_rank(NULL), -1);
    CHECK_INT(leat_tensor_count(NULL), 0);
    CHECK_INT(leat_tensor_bytes(NULL), 0);
    CHECK_INT(leat_tensor_dim(NULL, 0), -1);
    CHECK(!leat_tensor_data(NULL));
    CHECK(!leat_tensor_mutable(NULL));
    CHECK(isnan(leat_tensor_at(NULL, 0)));
    free(leat_tensor_text(NULL, 1));
    free(leat_tensor_summary(NULL, 1));
    leat_tensor_set_at(NULL, 0, 1);
}

static void null_without_status(void)
{
    CHECK_SAYS(null_graph, NULL, "leat: leat_op_at: the graph is NULL");
    CHECK_SAYS(null_tensor, NULL, "leat: leat_tensor_dtype: the tensor is NULL");
    /* Of NULL does nothing. */
    leat_graph_free(NULL);
    leat_session_close(NULL);
    leat_tensor_unref(NULL);
    leat_optimizer_free(NULL);
    leat_saver_free(NULL);
    CHECK_OK(leat_monitored_close(NULL));
    CHECK_OK(leat_supervisor_close(NULL));
    /* Nodes. */
    CHECK_STR(leat_node_name(NULL), "");
    CHECK_STR(leat_node_op(NULL), "");
    CHECK_INT(leat_node_int(NULL, "a"), 0);
    CHECK(!leat_node_input(NULL, 0).node);
}

/* Mistakes that the graph records. */
static void check_mistake(leat_graph *g, leat_code code, const char *words)
{
    leat_status s = leat_graph_status(g);
    CHECK_INT(leat_status_code(s), code);
    if (!strstr(leat_status_message(s), words) ||
        !strstr(leat_status_message(s), "misuse_test.c:")) {
        test_failures++;
        printf("%s; want: %s, and a line of this file\n", leat_status_message(s), words);
    }
    leat_status_free(s);
    leat_graph_free(g);
}

static void null_in_a_graph(void)
{
    leat_graph *g = leat_graph_new();
    leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_minimize((leat_optimizer *)NULL, leat_reduce_sum(w));
    check_mistake(g, LEAT_INVALID_ARGUMENT, "the optimizer is NULL");
    g = leat_graph_new();
    w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_optimizer *sync = leat_sync_replicas(NULL, .replicas_to_aggregate = 1);
    leat_minimize(sync, leat_reduce_sum(w), .global_step = leat_global_step(g));
    leat_optimizer_free(sync);
    check_mistake(g, LEAT_INVALID_ARGUMENT, "leat_sync_replicas: the optimizer is NULL");
    g = leat_graph_new();
    w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_moving_average_apply(NULL, &w, 1);
    check_mistake(g, LEAT_INVALID_ARGUMENT, "the moving average is NULL");
    g = leat_graph_new();
    leat_const(g, NULL);
    check_mistake(g, LEAT_INVALID_ARGUMENT, "leat_const_at: the tensor is NULL");
    g = leat_graph_new();
    leat_op(g, NULL, leat_name("x"));
    check_mistake(g, LEAT_INVALID_ARGUMENT, "The name of the op is NULL");
    g = leat_graph_new();
    leat_variable(g, NULL, leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    CHECK_OK(leat_graph_status(g)); /* the default name */
    leat_get_variable(g, NULL, leat_shape(2));
    check_mistake(g, LEAT_INVALID_ARGUMENT, "the variable's name is NULL");
    g = leat_graph_new();
    leat_string_const(g, NULL);
    check_mistake(g, LEAT_INVALID_ARGUMENT, "the string is NULL");
}

/* ---- After the end ---- */

static void close_session(void *s)
{
    leat_session_close(s);
}

static void free_graph(void *g)
{
    leat_graph_free(g);
}

static void free_optimizer(void *opt)
{
    leat_optimizer_free(opt);
}

static void after_the_end(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    leat_out x = leat_scalar(g, LEAT_FLOAT, 1);
    CHECK_OK(leat_session_open(g, &s));
    leat_session_close(s);
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET),
                FAILED_PRECONDITION, "leat_session_run_with: the session has already been closed");
    CHECK_SAYS(close_session, s, "leat_session_close: the session has already been closed");
    leat_optimizer *opt = leat_adam();
    leat_optimizer_free(opt);
    CHECK_SAYS(free_optimizer, opt, "the optimizer has already been freed");
    leat_saver *v = leat_saver_new(g, .allow_empty = true);
    leat_saver_free(v);
    CHECK_ERROR(leat_saver_restore(v, s, "x"), FAILED_PRECONDITION,
                "the saver has already been freed");
    leat_graph_free(g);
    CHECK_SAYS(free_graph, g, "leat_graph_free: the graph has already been freed");
    CHECK_ERROR(leat_session_open(g, &s), FAILED_PRECONDITION, "the graph has already been freed");
    CHECK_ERROR(leat_session_open((leat_graph *)opt, &s), INVALID_ARGUMENT, "is not a graph");
    leat_cluster *c = leat_cluster_new();
    CHECK_ERROR(leat_session_open((leat_graph *)c, &s), INVALID_ARGUMENT,
                "wants a graph, and was given a cluster");
    leat_cluster_free(c);
}

#ifdef LEAT_CHECK_HANDLES
static void release(void *t)
{
    leat_tensor_unref(t);
}

static void read_tensor(void *t)
{
    leat_tensor_at(t, 0);
}

static void free_status(void *s)
{
    leat_status_free(s);
}

static void released_tensors(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *t = leat_scalar_float(1), *out = NULL;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_tensor_unref(t);
    CHECK_SAYS(release, t, "leat_tensor_unref: the tensor has already been released");
    CHECK_SAYS(read_tensor, t, "the tensor has already been released");
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, t}), LEAT_FETCH({x, &out}), LEAT_NO_TARGET),
                FAILED_PRECONDITION, "the tensor has already been released");
    leat_session_close(s);
    leat_graph_free(g);
    leat_status e = leat_error(INTERNAL, "e");
    leat_status_free(e);
    CHECK_SAYS(free_status, e, "leat_status_free: the status has already been freed");
}
#else
static void released_tensors(void)
{
    SKIP("tensors are checked in builds with LEAT_CHECK_HANDLES");
}
#endif

/* ---- Tensors that are none ---- */

static void missing_gradients(void)
{
    leat_graph *g = leat_graph_new();
    leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_out v = leat_variable(g, "other", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_out loss = leat_reduce_sum(w), xs[2] = {w, leat_variable_ref(v)};
    leat_grad_value d[2];
    CHECK_OK(leat_gradients(&loss, 1, xs, 2, d));
    CHECK(d[0].value.node && !d[1].value.node);
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_open(g, &s));
    const char *words = "A tensor to be fetched is the gradient by 'other', on which no y depends";
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({d[1].value, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, words);
    leat_out y = leat_square(leat_neg(d[1].value));
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, words);
    leat_out none = {0};
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({none, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "A tensor to be fetched is no tensor (its node is NULL)");
    leat_session_close(s);
    leat_mul(w, d[1].value);
    check_mistake(g, LEAT_INVALID_ARGUMENT,
                  "Input 'y' of 'Mul' Op is the gradient by 'other', on which no y depends");
}

static void names_after_a_mistake(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_ones(g, LEAT_FLOAT, leat_shape(2, 3)), out;
    leat_matmul(x, x, leat_name("product"));
    CHECK_ERROR(leat_graph_find_out(g, "product", &out), INVALID_ARGUMENT,
                "Dimensions must be equal");
    CHECK_OK(leat_graph_find_out(g, leat_node_name(x.node), &out));
    leat_graph_free(g);
}

static void layers(void)
{
    leat_graph *g = leat_graph_new();
    leat_dense(leat_ones(g, LEAT_FLOAT, leat_shape(2, 3)), -4);
    check_mistake(g, LEAT_INVALID_ARGUMENT, "leat_dense: units must be positive, got -4");
    g = leat_graph_new();
    leat_dense(leat_ones(g, LEAT_FLOAT, leat_shape(2, 3)), 4, .activation = "relu");
    check_mistake(g, LEAT_NOT_FOUND, "'relu'; did you mean \"Relu\"?");
}

/* ---- Typing mistakes ---- */

static void identity(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = in[0];
}

static void typing_mistakes(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_ones(g, LEAT_FLOAT, leat_shape(2, 2));
    leat_op(g, "MatMull", leat_in(x), leat_in(x));
    check_mistake(g, LEAT_NOT_FOUND, "Op type not registered 'MatMull'; did you mean \"MatMul\"?");
    g = leat_graph_new();
    x = leat_ones(g, LEAT_FLOAT, leat_shape(2, 2));
    leat_matmul(x, x, leat_attr_bool("transpose_bb", true));
    check_mistake(g, LEAT_INVALID_ARGUMENT,
                  "attr 'transpose_bb' not in Op<name=MatMul>; did you mean \"transpose_b\"?");
    g = leat_graph_new();
    leat_function_define(g, "Twice", identity, NULL, 1, LEAT_FLOAT);
    leat_op(g, "Twise", leat_in(leat_ones(g, LEAT_FLOAT, leat_shape(2))));
    check_mistake(g, LEAT_NOT_FOUND, "'Twise'; did you mean \"Twice\"?");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"null_with_status", null_with_status},
               {"null_without_status", null_without_status}, {"null_in_a_graph", null_in_a_graph},
               {"after_the_end", after_the_end}, {"released_tensors", released_tensors},
               {"missing_gradients", missing_gradients},
               {"names_after_a_mistake", names_after_a_mistake}, {"layers", layers},
               {"typing_mistakes", typing_mistakes});
}
