/* guarded_test.c -- graphs on devices whose memory is not the host's (guarded_device.h): feeds,
 * fetches, constants, variables, flow, gradients, training, several devices, checkpoints. */
#include "test.h"

#include <leat/leat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guarded_device.h"
#include "mlp.h"
#include "runtime/session_int.h"

static leat_session *open_on(leat_graph *g, const char *devices, bool plain)
{
    leat_session *s = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s, .devices = devices, .allow_soft_placement = true,
                               .no_optimization = plain));
    return s;
}

static double value_of(leat_session *s, leat_out y)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    double v = t ? leat_tensor_at(t, 0) : NAN;
    CHECK(t && !leat_tensor_memory(t));
    leat_tensor_unref(t);
    return v;
}

/* Nodes of this op in the graphs that ran on devices whose name has these letters. */
static int count_ops(leat_session *s, const leat_out *feeds, int n_feeds, leat_out fetch,
                     const char *device, const char *op)
{
    leat_request q = {.feeds = feeds, .n_feeds = n_feeds, .fetches = &fetch, .n_fetches = 1};
    leat_plan *p;
    int n = 0;
    CHECK_OK(leat_session_plan(s, &q, 0, NULL, &p));
    for (int i = 0; i < leat_plan_graphs(p); i++) {
        const leat_graph *g = leat_plan_graph(p, i);
        for (int k = 0; k < g->n_nodes; k++)
            n += !g->nodes[k]->dead && leat_node_is(g->nodes[k], op) &&
                 strstr(g->nodes[k]->device, device) != NULL;
    }
    return n;
}

static void feeds_and_fetches(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1));
    leat_out y = leat_neg(leat_square(leat_neg(leat_add(x, leat_scalar(g, LEAT_FLOAT, 1)))));
    for (int plain = 0; plain < 2; plain++) {
        leat_session *s = open_on(g, "guarded:1", plain);
        for (int n = 0; n < 5000; n = n * 3 + 1) {
            float *v = calloc((size_t)n + 1, sizeof(*v));
            for (int i = 0; i < n; i++)
                v[i] = (float)i;
            leat_tensor *fed = NULL, *t = NULL, *same = NULL;
            CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(n), v, &fed));
            CHECK_OK(leat_session_run(s, LEAT_FEED({x, fed}), LEAT_FETCH({y, &t}, {x, &same}),
                                      LEAT_NO_TARGET));
            CHECK_INT(leat_tensor_count(t), n);
            for (int i = 0; i < n; i++) {
                CHECK_NEAR(leat_tensor_at(t, i), -(i + 1.0) * (i + 1.0), 0);
                CHECK_NEAR(leat_tensor_at(same, i), i, 0);
            }
            leat_tensor_unref(fed);
            leat_tensor_unref(t);
            leat_tensor_unref(same);
            free(v);
        }
        CHECK_INT(count_ops(s, &x, 1, y, "GUARDED:0", "_CopyToHost"), 1);
        CHECK(count_ops(s, &x, 1, y, "GUARDED:0", "_CopyToDevice") > 0);
        leat_session_close(s);
    }
    leat_graph_free(g);
}

/* A shape stays in the host's memory all the way to who reads it there. */
static void shapes_stay(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, -1));
    leat_out turned = leat_transpose(x, leat_ints(g, 1, 0));
    leat_out y = leat_reshape(leat_neg(x), leat_identity(leat_shape_of(turned)));
    leat_session *s = open_on(g, "guarded:1", true);
    leat_tensor *fed = mlp_tensor(leat_shape(3, 5), 1), *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, fed}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    CHECK_INT(leat_tensor_dim(t, 0), 5);
    CHECK_NEAR(leat_tensor_at(t, 14), -leat_tensor_at(fed, 14), 0);
    CHECK_INT(count_ops(s, &x, 1, y, "", "_CopyToHost"), 1);   /* what is fetched */
    CHECK_INT(count_ops(s, &x, 1, y, "", "_CopyToDevice"), 1); /* what is fed */
    leat_tensor_unref(fed);
    leat_tensor_unref(t);
    leat_session_close(s);
    leat_graph_free(g);
}

static leat_out below_hundred(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], leat_scalar(g, LEAT_INT32, 100));
}

static void add_one(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = leat_add(vars[0], leat_scalar(g, LEAT_INT32, 1));
    leat_out both[] = {vars[1], leat_neg(leat_scalar(g, LEAT_FLOAT, -2))};
    next[1] = leat_add_n(both, 2);
}

static void branch_neg(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_neg(*(leat_out *)arg);
}

static void branch_square(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_square(*(leat_out *)arg);
}

static void flow(void)
{
    leat_graph *g = leat_graph_new();
    leat_out vars[] = {leat_scalar(g, LEAT_INT32, 0), leat_scalar(g, LEAT_FLOAT, 0)}, ends[2];
    leat_while_loop(below_hundred, add_one, NULL, vars, 2, ends);
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape()), y;
    leat_cond(leat_less(x, leat_scalar(g, LEAT_FLOAT, 0)), branch_neg, branch_square, &x, &y, 1);
    for (int plain = 0; plain < 2; plain++) {
        leat_session *s = open_on(g, "guarded:1", plain);
        CHECK_NEAR(value_of(s, ends[1]), 200, 0);
        CHECK_NEAR(value_of(s, ends[0]), 100, 0);
        for (int i = -3; i < 4; i++) {
            float v = (float)i;
            leat_tensor *fed, *t = NULL;
            CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(), &v, &fed));
            CHECK_OK(leat_session_run(s, LEAT_FEED({x, fed}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
            CHECK_NEAR(leat_tensor_at(t, 0), i < 0 ? -i : i * i, 0);
            leat_tensor_unref(fed);
            leat_tensor_unref(t);
        }
        leat_session_close(s);
    }
    leat_graph_free(g);
}

/* Two guarded devices and a CPU, each way between them. */
static void several(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a, b, c, d, v;
    leat_with_device(g, "/device:GUARDED:0")
    {
        v = leat_variable(g, "v", leat_scalar(g, LEAT_FLOAT, 3));
        a = leat_neg(v);
    }
    leat_with_device(g, "/device:GUARDED:1") b = leat_square(a);
    leat_with_device(g, "/cpu:0") c = leat_add(leat_neg(b), a);
    leat_with_device(g, "/device:GUARDED:1") d = leat_neg(leat_mul(c, b));
    leat_out more = leat_assign_add(leat_variable_ref(v), d);
    leat_session *s = open_on(g, "cpu:1,guarded:2", true);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                                  LEAT_TARGET(leat_global_variables_initializer(g))));
        CHECK_NEAR(value_of(s, d), 108, 0);
        CHECK_NEAR(value_of(s, c), -12, 0);
        CHECK_NEAR(value_of(s, more), 111, 0);
        CHECK_NEAR(value_of(s, v), 111, 0);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

/* What a step fetched stays as it was when the next steps write to the variable; and what is saved
 * comes back. */
static void variables(void)
{
    char dir[] = "/tmp/leat_guarded_XXXXXX", path[64], *saved = NULL;
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/model", dir);
    for (int resource = 0; resource < 2; resource++) {
        leat_graph *g = leat_graph_new();
        leat_out v = leat_variable(g, "v", leat_zeros(g, LEAT_FLOAT, leat_shape(100)),
                                   .use_resource = resource);
        leat_out ones = leat_ones(g, LEAT_FLOAT, leat_shape(100)), ref = leat_variable_ref(v);
        leat_out more =
            resource ? LEAT_OP2("AssignAddVariableOp", ref, ones) : leat_assign_add(ref, ones);
        leat_saver *saver = leat_saver_new(g);
        leat_session *s = open_on(g, "guarded:1", false);
        leat_tensor *t[20] = {0};
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                                  LEAT_TARGET(leat_global_variables_initializer(g))));
        for (int i = 0; i < 20; i++) {
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(more)));
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({v, &t[i]}), LEAT_NO_TARGET));
        }
        for (int i = 0; i < 20; i++) {
            CHECK_NEAR(leat_tensor_at(t[i], 99), i + 1, 0);
            leat_tensor_unref(t[i]);
        }
        CHECK_OK(leat_saver_save(saver, s, path, resource, &saved));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(more)));
        CHECK_NEAR(value_of(s, v), 21, 0);
        CHECK_OK(leat_saver_restore(saver, s, saved));
        CHECK_NEAR(value_of(s, v), 20, 0);
        free(saved);
        leat_session_close(s);
        leat_saver_free(saver);
        leat_graph_free(g);
    }
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    CHECK(system(command) == 0);
}

static void gradients(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(4, 3));
    leat_out w = leat_placeholder(g, LEAT_FLOAT, leat_shape(3, 5));
    leat_out h = leat_tanh(leat_matmul(x, w));
    leat_out y = leat_reduce_sum(leat_square(leat_softmax(leat_add(h, leat_neg(h)))));
    y = leat_add(y, leat_reduce_mean(leat_square(h)));
    leat_tensor *tx = mlp_tensor(leat_shape(4, 3), 1), *tw = mlp_tensor(leat_shape(3, 5), 1);
    leat_session *s = open_on(g, "guarded:1", false);
    double worst = 1;
    CHECK_OK(
        leat_check_gradients(s, y, ((leat_out[]){x, w}), 2, LEAT_FEED({x, tx}, {w, tw}), &worst));
    CHECK(worst < 1e-2);
    leat_tensor_unref(tx);
    leat_tensor_unref(tw);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Digits, the same batches on the CPU and on a guarded device: the same losses, and it learns. */
static void mnist(void)
{
    enum { STEPS = 60, BATCH = 100 };
    float losses[2][STEPS];
    mlp m;
    mlp_build(&m, false, -1, 784, 32, 10);
    for (int guarded = 0; guarded < 2; guarded++) {
        leat_mnist *data;
        CHECK_OK(leat_mnist_open(NULL, 3, &data));
        leat_session *s = open_on(m.g, guarded ? "guarded:1" : NULL, false);
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.init)));
        for (int i = 0; i < STEPS; i++) {
            leat_tensor *x, *y, *loss = NULL;
            CHECK_OK(leat_mnist_next_batch(data, LEAT_MNIST_TRAIN, BATCH, &x, &y));
            CHECK_OK(leat_session_run(s, LEAT_FEED({m.x, x}, {m.y, y}), LEAT_FETCH({m.loss, &loss}),
                                      LEAT_TARGET(m.train)));
            losses[guarded][i] = loss ? (float)leat_tensor_at(loss, 0) : NAN;
            leat_tensor_unref(x);
            leat_tensor_unref(y);
            leat_tensor_unref(loss);
        }
        if (guarded)
            CHECK(count_ops(s, (leat_out[]){m.x, m.y}, 2, m.loss, "CPU", "MatMul") == 0);
        leat_session_close(s);
        leat_mnist_close(data);
    }
    for (int i = 0; i < STEPS; i++)
        CHECK_NEAR(losses[1][i], losses[0][i], 1e-3 * (1 + losses[0][i]));
    CHECK(losses[1][STEPS - 1] < 0.5f * losses[1][0]);
    mlp_free(&m);
}

/* More than the device has: an error that names it, and the session goes on. */
static void exhausted(void)
{
    leat_graph *g = leat_graph_new();
    leat_out n = leat_placeholder(g, LEAT_INT32, leat_shape(1));
    leat_out y = leat_neg(leat_fill(n, leat_scalar(g, LEAT_FLOAT, 2)));
    leat_session *s = open_on(g, "guarded:1", true);
    const int32_t sizes[] = {GUARDED_ARENA, 10};
    for (int i = 0; i < 6; i++) {
        leat_tensor *fed, *t = NULL;
        CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(1), &sizes[i % 2], &fed));
        leat_status status =
            leat_session_run(s, LEAT_FEED({n, fed}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET);
        if (i % 2 == 0)
            CHECK_ERROR(status, RESOURCE_EXHAUSTED, "device:GUARDED:0");
        else
            CHECK_OK(status);
        leat_tensor_unref(fed);
        leat_tensor_unref(t);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

/* A step that fails on the device, and one that runs at the same time in another thread. */
static void failures(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_placeholder(g, LEAT_FLOAT, leat_shape_unknown());
    leat_out b = leat_placeholder(g, LEAT_FLOAT, leat_shape_unknown());
    leat_out both[] = {leat_neg(a), leat_neg(b)}, y = leat_neg(leat_add_n(both, 2));
    leat_session *s = open_on(g, "guarded:1", true);
    leat_tensor *x2 = mlp_tensor(leat_shape(2), 1), *x3 = mlp_tensor(leat_shape(3), 1), *t;
    for (int i = 0; i < 50; i++) {
        CHECK_ERROR(
            leat_session_run(s, LEAT_FEED({a, x2}, {b, x3}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET),
            INVALID_ARGUMENT, "must have the same size and shape");
        CHECK_OK(
            leat_session_run(s, LEAT_FEED({a, x2}, {b, x2}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
        CHECK_NEAR(leat_tensor_at(t, 1), 2 * leat_tensor_at(x2, 1), 1e-6);
        leat_tensor_unref(t);
    }
    leat_tensor_unref(x2);
    leat_tensor_unref(x3);
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- Work that was enqueued behind a kernel which may write over what the work reads ---- */

/* Fetches the negative and the square of a scalar, and runs `writer`, on slow queues: Neg or Square
 * is enqueued, and has let go of the scalar, while the writer waits in the queue. */
static void check_behind(leat_session *s, leat_out neg, leat_out square, leat_out writer, double x,
                         double step)
{
    for (int i = 0; i < 3; i++) {
        leat_tensor *a = NULL, *b = NULL;
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({neg, &a}, {square, &b}),
                                  LEAT_TARGET(writer)));
        CHECK_NEAR(leat_tensor_at(a, 0), -x, 0);
        CHECK_NEAR(leat_tensor_at(b, 0), x * x, 0);
        leat_tensor_unref(a);
        leat_tensor_unref(b);
        x += step;
    }
}

/* A variable is read, and then updated; the update may not change what was read. */
static void behind_update(void)
{
    for (int resource = 0; resource < 2; resource++) {
        leat_graph *g = leat_graph_new();
        leat_out v = leat_variable(g, "v", leat_scalar(g, LEAT_FLOAT, 3), .use_resource = resource);
        leat_out two = leat_variable(g, "two", leat_scalar(g, LEAT_FLOAT, 2));
        leat_out ref = leat_variable_ref(v), now = leat_identity(two), read, more;
        leat_with_control(g, now) read = leat_identity(v);
        leat_out neg = leat_neg(read);
        leat_with_control(g, read) more =
            resource ? LEAT_OP2("AssignAddVariableOp", ref, now) : leat_assign_add(ref, now);
        leat_out square = leat_square(read);
        leat_session *s = open_on(g, "guarded:1", true);
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                                  LEAT_TARGET(leat_global_variables_initializer(g))));
        check_behind(s, neg, square, more, 3, 2);
        leat_session_close(s);
        leat_graph_free(g);
    }
}

/* A gradient is written to a TensorArray, and another one is added to it; the first one stays as it
 * was. */
static void behind_sum(void)
{
    leat_graph *g = leat_graph_new();
    leat_out size = leat_scalar(g, LEAT_INT32, 1), at = leat_scalar(g, LEAT_INT32, 0);
    leat_out made = LEAT_OP1("TensorArrayV3", size, leat_attr_type("dtype", LEAT_FLOAT));
    leat_out flow = leat_output(made, 1);
    leat_out grad = LEAT_OP2("TensorArrayGradV3", made, flow, leat_attr_string("source", "g"));
    leat_out grad_flow = leat_output(grad, 1), second;
    leat_out x = leat_add(leat_scalar(g, LEAT_FLOAT, 1), leat_scalar(g, LEAT_FLOAT, 2));
    leat_out y = leat_identity(leat_add(x, x));
    leat_out first = LEAT_OP4("TensorArrayWriteV3", grad, at, x, grad_flow), neg, square;
    leat_with_control(g, first, y)
    {
        neg = leat_neg(x);
        second = LEAT_OP4("TensorArrayWriteV3", grad, at, y, grad_flow);
        square = leat_square(x);
    }
    leat_session *s = open_on(g, "guarded:1", true);
    check_behind(s, neg, square, second, 3, 0);
    leat_session_close(s);
    leat_graph_free(g);
}

static void behind(void)
{
    guarded_pause_us = 5000;
    behind_update();
    behind_sum();
    guarded_pause_us = 0;
}

/* ---- A kernel that looks into the device's memory from the host's side ---- */

static leat_status touch(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_shape scalar = {0};
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    *(float *)y->data = *(const float *)x->data;
    return NULL;
}

static const leat_op_def touch_ops[] = {
    {.name = "TouchHost",
     .inputs = "x: float",
     .outputs = "y: float",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none},
    {.name = "TouchDevice",
     .inputs = "x: float",
     .outputs = "y: float",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none},
};
static const leat_kernel_def touch_kernels[] = {
    {.op = "TouchHost", .run = touch, .host = "x, y"},
    {.op = "TouchDevice", .run = touch},
};

static void touch_run(const char *op)
{
    leat_graph *g = leat_graph_new();
    leat_out y = LEAT_OP1(op, leat_neg(leat_scalar(g, LEAT_FLOAT, 7)));
    leat_session *s = open_on(g, "guarded:1", true);
    double v = value_of(s, y);
    leat_session_close(s);
    leat_graph_free(g);
    _exit(v == -7 && !test_failures ? 0 : 1);
}

/* The child's end: 0 if it did its work, else how it failed. */
static int in_child(const char *op)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stderr))
            touch_run(op);
        _exit(2);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

/* With the right memory it computes; with the wrong one it is caught by the first touch (sanitizers
 * report the signal and exit). */
static void wrong_side(void)
{
    for (int i = 0; i < 2; i++)
        CHECK_OK(leat_register_op(&touch_ops[i]));
    CHECK_OK(leat_register_kernels("GUARDED", touch_kernels, 2));
    CHECK_INT(in_child("TouchHost"), 0);
    int status = in_child("TouchDevice");
    CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV
                              : WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 2);
}

int main(int argc, char **argv)
{
    LEAT_DIE_ON_ERROR(leat_device_kind_register(&guarded_kind));
    return RUN(argc, argv, {"wrong_side", wrong_side}, {"feeds_and_fetches", feeds_and_fetches},
               {"shapes_stay", shapes_stay}, {"flow", flow}, {"several", several},
               {"variables", variables}, {"gradients", gradients}, {"mnist", mnist},
               {"exhausted", exhausted}, {"failures", failures}, {"behind", behind});
}
