/* mlp.h -- for tests: a net of two layers, its loss and its training by Adam. */
#ifndef LEAT_TESTS_MLP_H
#define LEAT_TESTS_MLP_H

#include "test.h"

#include <leat/leat.h>

enum { MLP_VARS = 4 };

typedef struct mlp {
    leat_graph *g;
    leat_out x, y, loss, train, init, vars[MLP_VARS];
    leat_optimizer *opt;
} mlp;

static inline float mlp_noise(void)
{
    static uint32_t x = 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return (float)(x >> 8) / 8388608.0f - 1;
}

static inline leat_tensor *mlp_tensor(leat_shape shape, float scale)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, shape, &t));
    float *v = leat_tensor_mutable(t);
    for (int64_t i = 0; i < leat_tensor_count(t); i++)
        v[i] = mlp_noise() * scale;
    return t;
}

static inline void mlp_batch(int64_t batch, int64_t in, int64_t out, leat_tensor **x,
                             leat_tensor **y)
{
    *x = mlp_tensor(leat_shape(batch, in), 1);
    *y = mlp_tensor(leat_shape(batch, out), 0);
    for (int64_t i = 0; i < batch; i++)
        ((float *)leat_tensor_mutable(
            *y))[i * out + (int64_t)((mlp_noise() + 1) / 2 * (float)out)] = 1;
}

static inline leat_out mlp_variable(leat_graph *g, const char *name, leat_shape shape, float scale)
{
    leat_tensor *t = mlp_tensor(shape, scale);
    leat_out v = leat_variable(g, name, leat_const(g, t));
    leat_tensor_unref(t);
    return v;
}

/* clip: the loss is -sum(y log(clip(softmax(z)))), of single ops, instead of one cross-entropy op.
 * batch may be -1. */
static inline void mlp_build(mlp *m, bool clip, int64_t batch, int64_t in, int64_t hidden,
                             int64_t out)
{
    leat_graph *g = m->g = leat_graph_new();
    m->x = leat_placeholder(g, LEAT_FLOAT, leat_shape(batch, in));
    m->y = leat_placeholder(g, LEAT_FLOAT, leat_shape(batch, out));
    leat_out w1 = m->vars[0] = mlp_variable(g, "w1", leat_shape(in, hidden), 1 / sqrtf((float)in));
    leat_out b1 = m->vars[1] = mlp_variable(g, "b1", leat_shape(hidden), 0.1f);
    leat_out w2 = m->vars[2] = mlp_variable(g, "w2", leat_shape(hidden, out), 0.3f);
    leat_out b2 = m->vars[3] = mlp_variable(g, "b2", leat_shape(out), 0.1f);
    leat_out h = leat_relu(leat_xw_plus_b(m->x, w1, b1)), z = leat_xw_plus_b(h, w2, b2);
    if (clip) {
        leat_out p = leat_clip_by_value(leat_softmax(z), 1e-10, 1.0);
        m->loss = leat_neg(leat_reduce_sum(leat_mul(m->y, leat_log(p))));
    } else {
        m->loss = leat_reduce_mean(leat_softmax_cross_entropy(z, m->y));
    }
    m->opt = leat_adam(.learning_rate = 0.01);
    m->train = leat_minimize(m->opt, m->loss);
    m->init = leat_global_variables_initializer(g);
    CHECK_OK(leat_graph_status(g));
}

static inline void mlp_free(mlp *m)
{
    leat_optimizer_free(m->opt);
    leat_graph_free(m->g);
}

#endif
