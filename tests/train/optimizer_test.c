/* Optimizers against TensorFlow's values, step by step: dense and sparse gradients, references and
 * handles; and what they refuse. */
#include <leat/session.h>
#include <leat/train.h>

#include "train/sequences.h"

static leat_out variable(leat_graph *g, const char *name, leat_shape s, const float *v, bool handle)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, s, v, &t));
    leat_out x = leat_variable(g, name, leat_const(g, t), .use_resource = handle);
    leat_tensor_unref(t);
    return x;
}

static leat_out constant(leat_graph *g, leat_dtype t, leat_shape s, const void *v)
{
    leat_tensor *c = NULL;
    CHECK_OK(leat_tensor_copy_of(t, s, v, &c));
    leat_out x = leat_const(g, c);
    leat_tensor_unref(c);
    return x;
}

static void check_values(leat_session *s, leat_out v, const char *name, const char *kind, int step)
{
    char line[64];
    double want[16];
    leat_tensor *t = NULL;
    snprintf(line, sizeof(line), "%s_%s %d", name, kind, step);
    int n = sequence(line, want, 16);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({v, &t}), LEAT_NO_TARGET));
    CHECK_INT(t ? leat_tensor_count(t) : 0, n);
    for (int i = 0; t && i < n; i++)
        if (fabs(leat_tensor_at(t, i) - want[i]) > 2e-6 * (1 + fabs(want[i])))
            test_failures++,
                printf("%s[%d] is %.9g, want %.9g\n", line, i, leat_tensor_at(t, i), want[i]);
    leat_tensor_unref(t);
}

static void run_sequence(const char *name, leat_optimizer *opt, bool handle, leat_gate gate)
{
    static const float w0[] = {1, 2, -3}, e0[] = {1, 2, 3, 4, 5, 6, 7, 8}, c0[] = {.1f, .2f, .3f};
    static const int32_t ids0[] = {0, 2, 2};
    leat_graph *g = leat_graph_new();
    leat_out w = variable(g, "w", leat_shape(3), w0, handle);
    leat_out e = variable(g, "e", leat_shape(4, 2), e0, handle);
    leat_out c = constant(g, LEAT_FLOAT, leat_shape(3), c0);
    leat_out ids = constant(g, LEAT_INT32, leat_shape(3), ids0);
    leat_out rows = leat_embedding_lookup(&e, 1, ids);
    leat_out small = leat_mul(leat_mul(rows, rows), leat_scalar_like(rows, 0.1f));
    leat_out loss = leat_add(leat_reduce_sum(leat_mul(leat_mul(w, w), c)), leat_reduce_sum(small));
    leat_out step = leat_global_step(g);
    leat_out train = leat_minimize(opt, loss, .global_step = step, .gate = gate);
    leat_out init = leat_global_variables_initializer(g);
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(train)));
        check_values(s, w, name, "dense", i);
        check_values(s, e, name, "sparse", i);
    }
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({step, &t}), LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(t, 0), 4, 0);
    leat_tensor_unref(t);
    leat_session_close(s);
    leat_optimizer_free(opt);
    leat_graph_free(g);
}

static leat_optimizer *make(int i)
{
    switch (i) {
    case 0:
        return leat_gradient_descent(.learning_rate = 0.1);
    case 1:
        return leat_momentum(.learning_rate = 0.1, .momentum = 0.9);
    case 2:
        return leat_momentum(.learning_rate = 0.1, .momentum = 0.9, .use_nesterov = true);
    case 3:
        return leat_adam(.learning_rate = 0.1, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-7);
    case 4:
        return leat_adagrad(.learning_rate = 0.1);
    case 5:
        return leat_rmsprop(.learning_rate = 0.1, .decay = 0.8, .momentum = 0.5, .epsilon = 1e-3);
    default:
        return leat_rmsprop(.learning_rate = 0.1, .decay = 0.8, .momentum = 0.5, .epsilon = 1e-3,
                            .centered = true);
    }
}

static const char *const names[] = {"sgd",     "momentum", "nesterov", "adam",
                                    "adagrad", "rmsprop",  "centered"};

static void by_reference(void)
{
    for (int i = 0; i < 7; i++)
        run_sequence(names[i], make(i), false, LEAT_GATE_OP);
}

static void by_handle(void)
{
    for (int i = 0; i < 7; i++)
        run_sequence(names[i], make(i), true, LEAT_GATE_OP);
}

static void gates(void)
{
    run_sequence("adam", make(3), false, LEAT_GATE_GRAPH);
    run_sequence("sgd", make(0), false, LEAT_GATE_NONE);
}

static leat_status mistake(leat_graph *g, leat_optimizer *opt)
{
    leat_status s = leat_graph_status(g);
    leat_graph_free(g);
    leat_optimizer_free(opt);
    return s;
}

static void bad(void)
{
    leat_graph *g = leat_graph_new();
    leat_optimizer *opt = leat_adam();
    leat_minimize(opt, leat_scalar(g, LEAT_FLOAT, 1));
    CHECK_ERROR(mistake(g, opt), INVALID_ARGUMENT, "No variables to optimize.");

    g = leat_graph_new();
    opt = leat_adam();
    leat_variable(g, "v", leat_scalar(g, LEAT_FLOAT, 1));
    leat_minimize(opt, leat_scalar(g, LEAT_FLOAT, 1));
    CHECK_ERROR(mistake(g, opt), INVALID_ARGUMENT, "No gradients provided for any variable: [v].");

    g = leat_graph_new();
    opt = leat_adam();
    leat_out v = leat_variable(g, "v", leat_scalar(g, LEAT_INT32, 1));
    leat_minimize(opt, v);
    CHECK_ERROR(mistake(g, opt), INVALID_ARGUMENT, "Invalid type int32");

    g = leat_graph_new();
    opt = leat_adagrad(.learning_rate = 0.1, .initial_accumulator_value = -1);
    v = leat_variable(g, "v", leat_scalar(g, LEAT_FLOAT, 1));
    leat_minimize(opt, leat_square(v));
    CHECK_ERROR(mistake(g, opt), INVALID_ARGUMENT, "initial_accumulator_value must be positive");

    g = leat_graph_new();
    opt = leat_adam();
    v = leat_variable(g, "v", leat_scalar(g, LEAT_FLOAT, 1));
    leat_out x = leat_square(v);
    leat_minimize(opt, x, .vars = &x, .n_vars = 1);
    CHECK_ERROR(mistake(g, opt), INVALID_ARGUMENT, "is no variable");

    g = leat_graph_new();
    opt = leat_adam();
    v = leat_variable(g, "v", leat_scalar(g, LEAT_FLOAT, 1));
    x = leat_square(v);
    leat_minimize(opt, x, .global_step = x);
    CHECK_ERROR(mistake(g, opt), INVALID_ARGUMENT, "global_step is no variable");
}

/* Gradients clipped between computing and applying; a learning rate that is a tensor. */
static void in_two_steps(void)
{
    leat_graph *g = leat_graph_new();
    static const float w0[] = {3, 4};
    leat_out w = variable(g, "w", leat_shape(2), w0, false);
    leat_out unused = variable(g, "unused", leat_shape(2), w0, false);
    leat_out rate = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_optimizer *opt = leat_gradient_descent(.learning_rate_tensor = rate);
    int n;
    leat_var_grad *v = leat_compute_gradients(opt, leat_l2_loss(w), &n);
    CHECK_INT(n, 2);
    CHECK(v[1].var.node == leat_variable_ref(unused).node && !v[1].grad.value.node);
    leat_out norm = leat_clip_by_global_norm(&v[0].grad, 1, 2.5);
    leat_out train = leat_apply_gradients(opt, v, n);
    leat_out init = leat_global_variables_initializer(g);
    leat_session *s = NULL;
    leat_tensor *t = NULL, *w1 = NULL, *lr = leat_scalar_float(0.2f);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    CHECK_OK(
        leat_session_run(s, LEAT_FEED({rate, lr}), LEAT_FETCH({norm, &t}), LEAT_TARGET(train)));
    CHECK_NEAR(leat_tensor_at(t, 0), 5, 1e-6);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({w, &w1}), LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(w1, 0), 3 - 0.2 * 1.5, 1e-6);
    CHECK_NEAR(leat_tensor_at(w1, 1), 4 - 0.2 * 2, 1e-6);
    leat_tensor_unref(t);
    leat_tensor_unref(w1);
    leat_tensor_unref(lr);
    free(v);
    leat_session_close(s);
    leat_optimizer_free(opt);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"by_reference", by_reference}, {"by_handle", by_handle},
               {"gates", gates}, {"bad", bad}, {"in_two_steps", in_two_steps});
}
