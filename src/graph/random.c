/* random.c -- random tensors as TensorFlow's client builds them: seeds, names, scale and shift. */
#include <leat/ops.h>

#include <string.h>

#include "graph/given.h"
#include "graph/graph_int.h"

typedef struct seed_args {
    leat_arg seed, seed2;
} seed_args;

static seed_args seeds_of(const leat_graph *g, const leat_random_options *o)
{
    int64_t seed, seed2;
    leat_graph_seeds(g, leat_is_given(&o->given, "seed", o->seed != 0) ? &o->seed : NULL, &seed,
                     &seed2);
    return (seed_args){leat_attr_int("seed", seed), leat_attr_int("seed2", seed2)};
}

static leat_out draw(leat_graph *g, const char *op, leat_out shape, leat_dtype t,
                     const leat_random_options *o)
{
    seed_args a = seeds_of(g, o);
    return leat_op(g, op, leat_in(shape), leat_attr_type("dtype", t), a.seed, a.seed2);
}

static leat_out normal(leat_graph *g, const char *op, leat_out shape, leat_dtype t,
                       const leat_random_options *o)
{
    leat_out mean = leat_full_named_at(LEAT_AT, g, t, leat_shape(), o->mean, "mean");
    double deviation = leat_given_or(&o->given, "stddev", o->stddev, 1);
    leat_out stddev = leat_full_named_at(LEAT_AT, g, t, leat_shape(), deviation, "stddev");
    leat_out scaled = leat_mul(draw(g, op, shape, t, o), stddev, leat_name("mul"));
    return leat_add(scaled, mean, leat_name(leat_name_scope(g)));
}

static leat_out uniform(leat_graph *g, leat_out shape, leat_dtype t, const leat_random_options *o)
{
    double limit = leat_given_or(&o->given, "high", o->high, 1);
    leat_out low = leat_full_named_at(LEAT_AT, g, t, leat_shape(), o->low, "min");
    leat_out high = leat_full_named_at(LEAT_AT, g, t, leat_shape(), limit, "max");
    if (t == LEAT_INT32 || t == LEAT_INT64) {
        seed_args a = seeds_of(g, o);
        return leat_op(g, "RandomUniformInt", leat_in(shape), leat_in(low), leat_in(high), a.seed,
                       a.seed2, leat_name(leat_name_scope(g)));
    }
    leat_out x = draw(g, "RandomUniform", shape, t, o);
    leat_out scaled = leat_mul(x, leat_sub(high, low, leat_name("sub")), leat_name("mul"));
    return leat_add(scaled, low, leat_name(leat_name_scope(g)));
}

leat_out leat_random_at(leat_loc at, leat_graph *g, const char *kind, leat_shape s,
                        const leat_random_options *o)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    leat_loc outer = leat_at_enter(g, at);
    leat_dtype t = o->dtype ? o->dtype : LEAT_FLOAT;
    leat_name_scope_enter(g, o->name ? o->name : kind);
    leat_out shape = leat_int_vector_named(LEAT_AT, g, LEAT_INT32, s.dim, s.rank, "shape");
    leat_out y;
    if (!leat_shape_known(&s))
        y = leat_graph_fail(g, at,
                            leat_error(INVALID_ARGUMENT, "%s: the shape %s is not fully known",
                                       kind, leat_shape_show(&s).s));
    else if (strcmp(kind, "random_uniform") == 0)
        y = uniform(g, shape, t, o);
    else if (strcmp(kind, "random_normal") == 0)
        y = normal(g, "RandomStandardNormal", shape, t, o);
    else
        y = normal(g, "TruncatedNormal", shape, t, o);
    leat_name_scope_leave(g);
    leat_at_leave(g, outer);
    return y;
}

leat_out leat_random_shuffle_at(leat_loc at, leat_out x, const leat_random_options *o)
{
    if (!x.node)
        return (leat_out){0};
    seed_args a = seeds_of(x.node->graph, o);
    return leat_op_of(at, "RandomShuffle", &x, 1, LEAT_ARGS(a.seed, a.seed2, leat_name(o->name)));
}
