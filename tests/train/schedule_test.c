/* Schedules, moving averages, clipping and layers against TensorFlow's values. */
#include <leat/session.h>
#include <leat/train.h>

#include "train/sequences.h"

static void check_schedule(leat_session *s, leat_out step, leat_out rate, const char *name)
{
    static const int64_t steps[] = {0, 1, 5, 9, 10, 11, 25, 100};
    double want[8] = {0};
    CHECK_INT(sequence(name, want, 8), 8);
    for (int i = 0; i < 8; i++) {
        leat_tensor *x = leat_scalar_int64(steps[i]), *y = NULL;
        CHECK_OK(leat_session_run(s, LEAT_FEED({step, x}), LEAT_FETCH({rate, &y}), LEAT_NO_TARGET));
        if (y && fabs(leat_tensor_at(y, 0) - want[i]) > 1e-6)
            test_failures++, printf("%s at %d is %.9g, want %.9g\n", name, (int)steps[i],
                                    leat_tensor_at(y, 0), want[i]);
        leat_tensor_unref(x);
        leat_tensor_unref(y);
    }
}

static void schedules(void)
{
    static const double boundaries[] = {5, 10, 25}, values[] = {1, .5, .25, .125};
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out step = leat_placeholder(g, LEAT_INT64, leat_shape());
    CHECK_OK(leat_session_open(g, &s));
#define DECAY .learning_rate = 0.5, .decay_steps = 10, .decay_rate = 0.9
    check_schedule(s, step, leat_exponential_decay(step, DECAY), "exponential");
    check_schedule(s, step, leat_exponential_decay(step, DECAY, .staircase = true), "staircase");
    check_schedule(s, step, leat_natural_exp_decay(step, DECAY), "natural");
    check_schedule(s, step, leat_inverse_time_decay(step, DECAY, .staircase = true), "inverse");
    check_schedule(s, step,
                   leat_polynomial_decay(step, .learning_rate = 0.5, .decay_steps = 10,
                                         .end_learning_rate = 0.01, .power = 0.5),
                   "polynomial");
    check_schedule(s, step,
                   leat_polynomial_decay(step, .learning_rate = 0.5, .decay_steps = 10,
                                         .end_learning_rate = 0.01, .power = 2, .cycle = true),
                   "cycle");
    check_schedule(s, step, leat_piecewise_constant(step, boundaries, values, 3), "piecewise");
    CHECK_OK(leat_graph_status(g));
    leat_exponential_decay(step, .learning_rate = 0.5);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "leat_exponential_decay has no decay_steps");
    leat_session_close(s);
    leat_graph_free(g);
}

static leat_out vector(leat_graph *g, float a, float b)
{
    const float v[2] = {a, b};
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2), v, &t));
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

static void average(bool debias)
{
    leat_graph *g = leat_graph_new();
    leat_out v = leat_variable(g, "v", vector(g, 1, 2));
    leat_out n = leat_variable(g, "n", leat_scalar(g, LEAT_INT32, 0), .not_trainable = true);
    leat_out bump = leat_group(g, leat_variable_assign_add(v, vector(g, 1, -2)),
                               leat_variable_assign_add(n, leat_scalar(g, LEAT_INT32, 1)));
    leat_moving_average *ema =
        leat_moving_average_new(.decay = 0.9, .num_updates = n, .zero_debias = debias);
    leat_out apply = {0}, x = {0};
    leat_with_control(g, bump)
    {
        x = leat_mul(leat_identity(leat_variable_ref(v)), leat_scalar(g, LEAT_FLOAT, 3));
        apply = leat_moving_average_apply(ema, ((leat_out[]){v, x}), 2);
    }
    leat_out init = leat_global_variables_initializer(g);
    leat_session *s = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_STR(leat_variable_name(leat_moving_average_of(ema, v)), "v/ExponentialMovingAverage");
    CHECK(!leat_moving_average_of(ema, n).node);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    for (int i = 0; i < 4; i++) {
        char name[16];
        double want[4] = {0};
        leat_tensor *a = NULL, *b = NULL;
        snprintf(name, sizeof(name), "ema%d %d", debias, i);
        sequence(name, want, 4);
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(apply)));
        CHECK_OK(leat_session_run(
            s, LEAT_NO_FEED,
            LEAT_FETCH({leat_moving_average_of(ema, v), &a}, {leat_moving_average_of(ema, x), &b}),
            LEAT_NO_TARGET));
        for (int k = 0; a && b && k < 4; k++)
            CHECK_NEAR(leat_tensor_at(k < 2 ? a : b, k % 2), want[k], 1e-5);
        leat_tensor_unref(a);
        leat_tensor_unref(b);
    }
    leat_session_close(s);
    leat_moving_average_free(ema);
    leat_graph_free(g);
}

static void averages(void)
{
    average(false);
    average(true);
}

static double first(leat_graph *g, leat_out x, int i)
{
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    double v = t ? leat_tensor_at(t, i) : NAN;
    leat_tensor_unref(t);
    leat_session_close(s);
    return v;
}

static void clipping(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = vector(g, 3, 4);
    CHECK_NEAR(first(g, leat_clip_by_norm(x, 2.5), 0), 1.5, 1e-6);
    CHECK_NEAR(first(g, leat_clip_by_norm(x, 10), 1), 4, 1e-6);
    CHECK_NEAR(first(g, leat_clip_by_norm(vector(g, 0, 0), 1), 1), 0, 0);
    leat_grad_value v[3] = {{.value = x}, {{0}}, {.value = vector(g, 12, 0)}};
    CHECK_NEAR(first(g, leat_global_norm(v, 3), 0), 13, 1e-5);
    leat_clip_by_global_norm(v, 3, 1.3);
    CHECK_NEAR(first(g, v[0].value, 1), .4, 1e-6);
    CHECK_NEAR(first(g, v[2].value, 0), 1.2, 1e-6);
    CHECK(!v[1].value.node);
    leat_grad_value bad = {.value = vector(g, INFINITY, 1)};
    leat_clip_by_global_norm(&bad, 1, 1);
    CHECK(isnan(first(g, bad.value, 1)));
    CHECK_OK(leat_graph_status(g));
    leat_graph_free(g);
}

static void embedding_in_parts(void)
{
    leat_graph *g = leat_graph_new();
    leat_out parts[3];
    for (int p = 0; p < 3; p++) { /* row i of the whole is {i, -i} */
        leat_tensor *t = NULL;
        const float rows[6] = {(float)p,      (float)-p,    (float)p + 3,
                               (float)-p - 3, (float)p + 6, (float)-p - 6};
        CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3, 2), rows, &t));
        parts[p] = leat_const(g, t);
        leat_tensor_unref(t);
    }
    leat_out ids = leat_reshape(leat_ints(g, 8, 0, 4, 4), leat_ints(g, 2, 2));
    leat_out y = leat_embedding_lookup(parts, 3, ids);
    static const double want[] = {8, -8, 0, 0, 4, -4, 4, -4};
    for (int i = 0; i < 8; i++)
        CHECK_NEAR(first(g, y, i), want[i], 0);
    CHECK_OK(leat_graph_status(g));
    leat_graph_free(g);
}

static void layers(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_ones(g, LEAT_FLOAT, leat_shape(2, 3, 4));
    leat_initializer half = leat_constant_initializer(0.5);
    leat_out y = leat_dense(x, 5, .kernel_initializer = half, .bias_initializer = half,
                            .activation = "Relu");
    leat_out again = leat_dense(leat_flatten(x), 5, .name = "d");
    leat_shape s = leat_out_shape(again);
    CHECK_INT(s.rank, 2);
    CHECK_INT(s.dim[0], 2);
    leat_out init = leat_global_variables_initializer(g), dropped = leat_dropout(x, 0.5, .seed = 3);
    leat_session *session = NULL;
    leat_tensor *t = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &session));
    CHECK_OK(leat_session_run(session, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    CHECK_OK(leat_session_run(session, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    CHECK_INT(leat_tensor_rank(t), 3);
    CHECK_INT(leat_tensor_dim(t, 2), 5);
    CHECK_NEAR(leat_tensor_at(t, 29), 2.5, 1e-6);
    leat_tensor_unref(t);
    CHECK_OK(leat_session_run(session, LEAT_NO_FEED, LEAT_FETCH({dropped, &t}), LEAT_NO_TARGET));
    int kept = 0;
    for (int i = 0; i < 24; i++) {
        double v = leat_tensor_at(t, i);
        CHECK(v == 0 || v == 2);
        kept += v == 2;
    }
    CHECK(kept > 4 && kept < 20);
    leat_tensor_unref(t);
    leat_session_close(session);
    leat_dense(leat_scalar(g, LEAT_FLOAT, 1), 2);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "The last dimension of the inputs");
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"schedules", schedules}, {"averages", averages}, {"clipping", clipping},
               {"embedding_in_parts", embedding_in_parts}, {"layers", layers});
}
