/* initializer.c -- initialisers: zeros, ones, constants, and the random ones. */
#include <math.h>

#include "graph/given.h"
#include "train/train_int.h"

/* mode 1: the constant's name is that of its value, as in zeros_initializer and
 * ones_initializer. */
leat_out leat_init_constant(leat_graph *g, leat_dtype t, leat_shape s, const leat_initializer *self)
{
    const char *name = self->mode != 1 ? "Const" : self->a == 0 ? "zeros" : "ones";
    return leat_full_named_at(LEAT_AT, g, t, s, self->a, name);
}

/* Random values by the initialiser's seed, if it has one. x and y are mean and standard deviation,
 * or the limits of the uniform distribution. */
static leat_out draw(leat_graph *g, const char *kind, leat_dtype t, leat_shape s,
                     const leat_initializer *self, double x, double y)
{
    leat_random_options o = {.dtype = t, .mean = x, .stddev = y, .seed = self->seed};
    bool seeded = leat_is_given(&self->given, "seed", self->seed != 0);
    o.low = x;
    o.high = y;
    o.given.options = seeded ? ".stddev, .high, .seed" : ".stddev, .high";
    return leat_random_at(LEAT_AT, g, kind, s, &o);
}

leat_out leat_init_normal(leat_graph *g, leat_dtype t, leat_shape s, const leat_initializer *self)
{
    return draw(g, "random_normal", t, s, self, self->a, self->b);
}

leat_out leat_init_truncated_normal(leat_graph *g, leat_dtype t, leat_shape s,
                                    const leat_initializer *self)
{
    return draw(g, "truncated_normal", t, s, self, self->a, self->b);
}

leat_out leat_init_uniform(leat_graph *g, leat_dtype t, leat_shape s, const leat_initializer *self)
{
    return draw(g, "random_uniform", t, s, self, self->a, self->b);
}

/* Fan-in and fan-out of a variable. For convolutions they include the size of the window (all but
 * the last two dimensions). */
static void fans(const leat_shape *s, double *in, double *out)
{
    double window = 1;
    for (int i = 0; i < s->rank - 2; i++)
        window *= (double)s->dim[i];
    *in = *out = 1;
    if (s->rank == 1)
        *in = *out = (double)s->dim[0];
    if (s->rank >= 2) {
        *in = window * (double)s->dim[s->rank - 2];
        *out = window * (double)s->dim[s->rank - 1];
    }
}

/* Glorot and Bengio 2010, He et al. 2015: the variance is scale / fan. */
leat_out leat_init_variance_scaling(leat_graph *g, leat_dtype t, leat_shape s,
                                    const leat_initializer *self)
{
    double in, out;
    fans(self->whole ? self->whole : &s, &in, &out);
    int fan = self->mode & 3, kind = self->mode & 12;
    double n = fan == LEAT_FAN_IN ? in : fan == LEAT_FAN_OUT ? out : (in + out) / 2;
    double variance = self->a / fmax(1, n);
    /* The standard deviation of a unit normal that is truncated at two is below 1. */
    const double cut = .87962566103423978;
    if (kind == LEAT_DRAW_UNIFORM)
        return draw(g, "random_uniform", t, s, self, -sqrt(3 * variance), sqrt(3 * variance));
    if (kind == LEAT_DRAW_NORMAL)
        return draw(g, "random_normal", t, s, self, 0, sqrt(variance));
    return draw(g, "truncated_normal", t, s, self, 0, sqrt(variance) / cut);
}
