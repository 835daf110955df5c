/* common_layers.c -- see common_layers.h. */
#include "common_layers.h"

#include <stdlib.h>
#include <string.h>

#include "common_mnist.h"

/* A variable on the CPU that all towers share; the first tower makes it. */
static leat_out shared(leat_graph *g, const char *name, leat_shape s, leat_initializer init)
{
    leat_out v = {0};
    leat_with_device(g, "/cpu:0") v = leat_get_variable(g, name, s, .initializer = init);
    return v;
}

layers layers_get(leat_graph *g, int64_t hidden)
{
    leat_initializer random = leat_truncated_normal_initializer(0, 0.1);
    leat_initializer zeros = leat_zeros_initializer();
    layers w = {{0}};
    leat_with_variable_scope(g, "layer1", .reuse = LEAT_AUTO_REUSE)
    {
        w.w1 = shared(g, "weights", leat_shape(784, hidden), random);
        w.b1 = shared(g, "biases", leat_shape(hidden), zeros);
    }
    leat_with_variable_scope(g, "layer2", .reuse = LEAT_AUTO_REUSE)
    {
        w.w2 = shared(g, "weights", leat_shape(hidden, 10), random);
        w.b2 = shared(g, "biases", leat_shape(10), zeros);
    }
    return w;
}

leat_out layers_logits(leat_out x, const layers *w)
{
    return leat_xw_plus_b(leat_relu(leat_xw_plus_b(x, w->w1, w->b1)), w->w2, w->b2);
}

/* ---- A trained net ---- */

static leat_status build(trained *t, int64_t hidden)
{
    leat_graph *g = t->g = leat_graph_new();
    t->x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784));
    t->y_ = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 10));
    layers w = layers_get(g, hidden);
    leat_out logits = layers_logits(t->x, &w);
    t->probabilities = leat_softmax(logits);
    t->accuracy = mnist_accuracy(g, logits, t->y_);
    const leat_saver_var vars[] = {
        {.var = w.w1, .name = "layer1/weights/ExponentialMovingAverage"},
        {.var = w.b1, .name = "layer1/biases/ExponentialMovingAverage"},
        {.var = w.w2, .name = "layer2/weights/ExponentialMovingAverage"},
        {.var = w.b2, .name = "layer2/biases/ExponentialMovingAverage"},
    };
    t->saver = leat_saver_new(g, .vars = vars, .n_vars = 4);
    LEAT_TRY(leat_graph_status(g));
    return leat_session_open(g, &t->s);
}

/* The number of hidden units and the step of a checkpoint. */
static leat_status look(const char *path, int64_t *hidden, int64_t *step)
{
    leat_checkpoint *c;
    leat_tensor *t;
    LEAT_TRY(leat_checkpoint_open(path, &c));
    const leat_checkpoint_entry *e = leat_checkpoint_find(c, "layer1/weights");
    leat_status s = NULL;
    if (!e || e->shape.rank != 2 || e->shape.dim[0] != 784 ||
        !leat_checkpoint_find(c, "layer1/weights/ExponentialMovingAverage"))
        s = leat_error(NOT_FOUND,
                       "%s is no checkpoint of mnist_towers: it lacks the moving "
                       "average of layer1/weights [784,?]",
                       path);
    else
        *hidden = e->shape.dim[1];
    if (!s && !(s = leat_checkpoint_read(c, "global_step", &t))) {
        *step = (int64_t)leat_tensor_at(t, 0);
        leat_tensor_unref(t);
    }
    leat_checkpoint_free(c);
    return s;
}

leat_status trained_restore(trained *t, const char *dir)
{
    char *newest = leat_latest_checkpoint(dir);
    if (!newest)
        return leat_error(NOT_FOUND, "%s has no checkpoint", dir);
    int64_t hidden = 0, step = 0;
    leat_status s = look(newest, &hidden, &step);
    if (!s && !t->g)
        s = build(t, hidden);
    if (!s)
        s = leat_saver_restore(t->saver, t->s, newest);
    if (!s)
        t->step = step;
    free(newest);
    return s;
}

void trained_release(trained *t)
{
    leat_session_close(t->s);
    leat_saver_free(t->saver);
    leat_graph_free(t->g);
    *t = (trained){0};
}
