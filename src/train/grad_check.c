/* grad_check.c -- checks gradients against finite differences. y is reduced to a number by a sum
 * with weights that differ from element to element (with equal weights mistakes cancel, in Softmax
 * for example); the gradient of that number is compared with its change when an element of an x is
 * increased and decreased. */
#include <leat/session.h>

#include <math.h>
#include <stdlib.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "core/buffer.h"
#include "graph/given.h"
#include "graph/graph_int.h"

typedef struct checker {
    leat_session *s;
    leat_out y, dy;
    const leat_out *xs;
    int n_x;
    leat_feed *feeds; /* the caller's feeds, then dy */
    int n_feeds;
    int *feed_of; /* index of x in feeds */
    leat_tensor *weights;
    const leat_check_options *o;
} checker;

static bool can_check(leat_dtype t)
{
    return t == LEAT_FLOAT || t == LEAT_DOUBLE;
}

static double get(const leat_tensor *t, int64_t i)
{
    return t->dtype == LEAT_FLOAT ? ((float *)t->data)[i] : ((double *)t->data)[i];
}

static void set(leat_tensor *t, int64_t i, double v)
{
    if (t->dtype == LEAT_FLOAT)
        ((float *)t->data)[i] = (float)v;
    else
        ((double *)t->data)[i] = v;
}

/* Between 0.5 and 1.5, the same in every run. */
static double weight(int64_t i)
{
    return 0.5 + (double)((uint64_t)(i + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 40) / (1 << 24);
}

static leat_status find_feeds(checker *c)
{
    for (int i = 0; i < c->n_x; i++) {
        c->feed_of[i] = -1;
        for (int k = 0; k < c->n_feeds; k++)
            if (c->feeds[k].x.node == c->xs[i].node && c->feeds[k].x.index == c->xs[i].index)
                c->feed_of[i] = k;
        LEAT_REQUIRE(c->feed_of[i] >= 0, INVALID_ARGUMENT,
                     "leat_check_gradients: x %d, '%s', must be fed", i,
                     c->xs[i].node ? leat_node_name(c->xs[i].node) : "(none)");
        LEAT_REQUIRE(can_check(leat_tensor_dtype(c->feeds[c->feed_of[i]].value)), INVALID_ARGUMENT,
                     "leat_check_gradients: x %d must be float or double", i);
    }
    return NULL;
}

/* The weighted sum of y. */
static leat_status value(checker *c, double *out)
{
    leat_tensor *y;
    LEAT_TRY(leat_session_run(c->s, (leat_feeds){c->feeds, c->n_feeds}, LEAT_FETCH({c->y, &y}),
                              LEAT_NO_TARGET));
    if (!c->weights) {
        leat_status s = leat_tensor_new(y->dtype, y->shape, &c->weights);
        for (int64_t i = 0; !s && i < y->count; i++)
            set(c->weights, i, weight(i));
        if (s) {
            leat_tensor_unref(y);
            return s;
        }
    }
    double sum = 0;
    for (int64_t i = 0; i < y->count; i++)
        sum += get(y, i) * get(c->weights, i);
    leat_tensor_unref(y);
    *out = sum;
    return NULL;
}

/* Changes element e of x and compares the change of y with the gradient. */
static leat_status check_element(checker *c, leat_tensor *x, int64_t e, double grad, double *worst)
{
    double at = get(x, e), y[2], moved[2];
    double delta =
        leat_given_or(&c->o->given, "delta", c->o->delta, x->dtype == LEAT_FLOAT ? 1e-2 : 1e-5);
    leat_status s = NULL;
    for (int k = 0; k < 2 && !s; k++) {
        set(x, e, k ? at + delta : at - delta);
        moved[k] = get(x, e); /* the new value, rounded to x's dtype */
        s = value(c, &y[k]);
    }
    set(x, e, at);
    if (s)
        return s;
    double error = fabs((y[1] - y[0]) / (moved[1] - moved[0]) - grad) / fmax(1, fabs(grad));
    *worst = error > *worst || isnan(error) ? error : *worst;
    return NULL;
}

static leat_status check_x(checker *c, int i, const leat_tensor *grad, double *worst)
{
    const leat_tensor *given = c->feeds[c->feed_of[i]].value;
    leat_tensor *x;
    LEAT_TRY(leat_tensor_copy_of(given->dtype, given->shape, given->data, &x));
    c->feeds[c->feed_of[i]].value = x;
    int64_t most = leat_given_int_or(&c->o->given, "elements", c->o->elements, 100);
    int64_t step = x->count > most ? x->count / most : 1;
    leat_status s = NULL;
    for (int64_t e = 0; e < x->count && !s; e += step)
        s = check_element(c, x, e, grad ? get(grad, e) : 0, worst);
    c->feeds[c->feed_of[i]].value = given;
    leat_tensor_unref(x);
    return s;
}

static leat_status check_all(checker *c, double *worst)
{
    leat_grad_value *grads = leat_new_array(leat_grad_value, c->n_x + 1);
    leat_tensor *grad = NULL;
    double unused;
    leat_status s = value(c, &unused);
    if (!s)
        s = leat_gradients(&c->y, 1, c->xs, c->n_x, grads, .grad_ys = &c->dy);
    for (int i = 0; i < c->n_x && !s; i++) {
        c->feeds[c->n_feeds] = (leat_feed){c->dy, c->weights};
        leat_feeds all = {c->feeds, c->n_feeds + 1};
        grad = NULL;
        if (grads[i].value.node)
            s = leat_session_run(c->s, all, LEAT_FETCH({leat_grad_dense(grads[i]), &grad}),
                                 LEAT_NO_TARGET);
        if (!s && grad && grad->count != c->feeds[c->feed_of[i]].value->count)
            s = leat_error(INVALID_ARGUMENT, "The gradient of x %d is not of x's shape", i);
        if (!s)
            s = check_x(c, i, grad, worst);
        leat_tensor_unref(grad);
    }
    free(grads);
    return s;
}

leat_status leat_check_gradients_with(leat_session *s, leat_out y, const leat_out *xs, int n_x,
                                      leat_feeds feeds, const leat_check_options *options,
                                      double *worst_out)
{
    LEAT_CHECK(SESSION, s);
    LEAT_REQUIRE(y.node && can_check(leat_dtype_base(leat_out_dtype(y))), INVALID_ARGUMENT,
                 "leat_check_gradients: y must be float or double");
    LEAT_REQUIRE(leat_given_or(&options->given, "delta", options->delta, 1) > 0 &&
                     leat_given_int_or(&options->given, "elements", options->elements, 1) > 0,
                 INVALID_ARGUMENT, "leat_check_gradients: .delta and .elements must be positive");
    leat_graph *g = leat_node_graph(y.node);
    leat_loc outer = leat_at_enter(g, options->given.at);
    checker c = {.s = s, .y = y, .xs = xs, .n_x = n_x, .n_feeds = feeds.n, .o = options};
    c.feeds = leat_new_array(leat_feed, feeds.n + 1);
    c.feed_of = leat_new_array(int, n_x + 1);
    for (int i = 0; i < feeds.n; i++)
        c.feeds[i] = feeds.v[i];
    double worst = 0;
    leat_status bad = find_feeds(&c);
    if (!bad) {
        c.dy = leat_placeholder(g, leat_dtype_base(leat_out_dtype(y)), leat_out_shape(y),
                                leat_name("check_gradients/dy"));
        bad = leat_graph_status(g);
    }
    if (!bad)
        bad = check_all(&c, &worst);
    leat_at_leave(g, outer);
    leat_tensor_unref(c.weights);
    free(c.feeds);
    free(c.feed_of);
    if (!bad)
        *worst_out = worst;
    return bad;
}
