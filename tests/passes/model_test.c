/* model_test.c -- a net trained with all passes and with none comes to the same values. */
#include "passes.h"

enum { BATCH = 8, IN = 12, HIDDEN = 6, OUT = 4, STEPS = 20, VARS = 4 };

static float noise(void)
{
    static uint32_t x = 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return (float)(x >> 8) / 8388608.0f - 1;
}

static leat_out random_variable(leat_graph *g, const char *name, leat_shape shape)
{
    float v[IN * HIDDEN];
    for (int64_t i = 0; i < leat_shape_count(&shape); i++)
        v[i] = noise() / 2;
    return leat_variable(g, name, floats_const(g, shape, v));
}

typedef struct model {
    leat_graph *g;
    leat_out x, y, loss, train, init, vars[VARS];
} model;

static void build(model *m, bool clip, int64_t batch)
{
    leat_graph *g = m->g = leat_graph_new();
    m->x = leat_placeholder(g, LEAT_FLOAT, leat_shape(batch, IN));
    m->y = leat_placeholder(g, LEAT_FLOAT, leat_shape(batch, OUT));
    leat_out w1 = m->vars[0] = random_variable(g, "w1", leat_shape(IN, HIDDEN));
    leat_out b1 = m->vars[1] = random_variable(g, "b1", leat_shape(HIDDEN));
    leat_out w2 = m->vars[2] = random_variable(g, "w2", leat_shape(HIDDEN, OUT));
    leat_out b2 = m->vars[3] = random_variable(g, "b2", leat_shape(OUT));
    leat_out h = leat_relu(leat_xw_plus_b(m->x, w1, b1)), z = leat_xw_plus_b(h, w2, b2);
    if (clip) {
        leat_out p = leat_clip_by_value(leat_softmax(z), 1e-10, 1.0);
        m->loss = leat_neg(leat_reduce_sum(leat_mul(m->y, leat_log(p))));
    } else {
        m->loss = leat_reduce_mean(leat_softmax_cross_entropy(z, m->y));
    }
    m->train = leat_minimize(leat_adam(.learning_rate = 0.05), m->loss);
    m->init = leat_global_variables_initializer(g);
}

static void train(const model *m, bool plain, leat_tensor **x, leat_tensor **y, float *losses,
                  leat_tensor **vars)
{
    leat_session *s;
    CHECK_OK(leat_graph_status(m->g));
    CHECK_OK(leat_session_open(m->g, &s, .no_optimization = plain));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m->init)));
    for (int i = 0; i < STEPS; i++) {
        leat_tensor *t = NULL;
        CHECK_OK(leat_session_run(s, LEAT_FEED({m->x, x[i]}, {m->y, y[i]}),
                                  LEAT_FETCH({m->loss, &t}), LEAT_TARGET(m->train)));
        losses[i] = t ? (float)leat_tensor_at(t, 0) : NAN;
        leat_tensor_unref(t);
    }
    for (int i = 0; i < VARS; i++)
        CHECK_OK(
            leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({m->vars[i], &vars[i]}), LEAT_NO_TARGET));
    leat_session_close(s);
}

static void both_ways(bool clip, int64_t batch)
{
    model m;
    leat_tensor *x[STEPS], *y[STEPS], *vars[2][VARS] = {{NULL}};
    float a[BATCH * IN], losses[2][STEPS];
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < BATCH * IN; k++)
            a[k] = noise();
        x[i] = floats(leat_shape(BATCH, IN), a);
        memset(a, 0, sizeof(a));
        for (int k = 0; k < BATCH; k++)
            a[k * OUT + (k + i) % OUT] = 1;
        y[i] = floats(leat_shape(BATCH, OUT), a);
    }
    build(&m, clip, batch);
    for (int plain = 0; plain < 2; plain++)
        train(&m, plain, x, y, losses[plain], vars[plain]);
    for (int i = 0; i < STEPS; i++) {
        CHECK_NEAR(losses[0][i], losses[1][i], 1e-5 * (1 + fabs(losses[1][i])));
        leat_tensor_unref(x[i]);
        leat_tensor_unref(y[i]);
    }
    for (int i = 0; i < VARS; i++) {
        for (int64_t k = 0; k < leat_tensor_count(vars[0][i]); k++)
            CHECK_NEAR(leat_tensor_at(vars[0][i], k), leat_tensor_at(vars[1][i], k), 1e-4);
        leat_tensor_unref(vars[0][i]);
        leat_tensor_unref(vars[1][i]);
    }
    leat_graph_free(m.g);
}

static void clipped(void)
{
    both_ways(true, -1);
    both_ways(true, BATCH);
}

static void cross_entropy(void)
{
    both_ways(false, -1);
    both_ways(false, BATCH);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"clipped", clipped}, {"cross_entropy", cross_entropy});
}
