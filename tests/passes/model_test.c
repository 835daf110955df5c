/* model_test.c -- a net trained with all passes and with none comes to the same values. */
#include "mlp.h"
#include "passes.h"

enum { BATCH = 8, IN = 12, HIDDEN = 6, OUT = 4, STEPS = 20 };

static void train(const mlp *m, bool plain, leat_tensor **x, leat_tensor **y, float *losses,
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
    for (int i = 0; i < MLP_VARS; i++)
        CHECK_OK(
            leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({m->vars[i], &vars[i]}), LEAT_NO_TARGET));
    leat_session_close(s);
}

static void both_ways(bool clip, int64_t batch)
{
    mlp m;
    leat_tensor *x[STEPS], *y[STEPS], *vars[2][MLP_VARS] = {{NULL}};
    float losses[2][STEPS];
    for (int i = 0; i < STEPS; i++)
        mlp_batch(BATCH, IN, OUT, &x[i], &y[i]);
    mlp_build(&m, clip, batch, IN, HIDDEN, OUT);
    for (int plain = 0; plain < 2; plain++)
        train(&m, plain, x, y, losses[plain], vars[plain]);
    for (int i = 0; i < STEPS; i++) {
        CHECK_NEAR(losses[0][i], losses[1][i], 1e-5 * (1 + fabs(losses[1][i])));
        leat_tensor_unref(x[i]);
        leat_tensor_unref(y[i]);
    }
    for (int i = 0; i < MLP_VARS; i++) {
        for (int64_t k = 0; k < leat_tensor_count(vars[0][i]); k++)
            CHECK_NEAR(leat_tensor_at(vars[0][i], k), leat_tensor_at(vars[1][i], k), 1e-4);
        leat_tensor_unref(vars[0][i]);
        leat_tensor_unref(vars[1][i]);
    }
    mlp_free(&m);
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
