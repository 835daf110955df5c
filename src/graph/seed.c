/* seed.c -- seeds of random ops from the graph's seed and their own, and the constructors of random
 * ops, which make the same nodes, in the same order, as TensorFlow's client: an op without a seed
 * of its own gets the number of nodes made so far. */
#include <leat/ops.h>

#include "graph/graph_int.h"

enum { DEFAULT_GRAPH_SEED = 87654321, MAX_SEED = 2147483647 };

/* The remainder as Python has it, never below zero. */
static int64_t truncated(int64_t seed)
{
    int64_t r = seed % MAX_SEED;
    return r < 0 ? r + MAX_SEED : r;
}

void leat_graph_seeds(const leat_graph *g, const int64_t *op_seed, int64_t *seed_out,
                      int64_t *seed2_out)
{
    *seed_out = *seed2_out = 0;
    if (!g->has_seed && !op_seed)
        return;
    *seed_out = g->has_seed ? truncated(g->seed) : DEFAULT_GRAPH_SEED;
    *seed2_out = truncated(op_seed ? *op_seed : g->n_nodes);
    if (*seed_out == 0 && *seed2_out == 0)
        *seed2_out = MAX_SEED; /* 0 and 0 would mean seeds by chance */
}

static leat_out named_shape(leat_loc at, leat_graph *g, const leat_shape *shape)
{
    if (!leat_shape_known(shape))
        return leat_graph_fail(g, at,
                               leat_error(INVALID_ARGUMENT,
                                          "The shape of random numbers must be known, got %s",
                                          leat_shape_show(shape).s));
    return leat_int_vector_named(at, g, LEAT_INT32, shape->dim, shape->rank, "shape");
}

/* The attributes seed and seed2; for the end of an op's arguments. */
typedef struct seed_args {
    leat_arg seed, seed2;
} seed_args;

static seed_args seeds_of(const leat_graph *g, const leat_random_options *o)
{
    int64_t seed, seed2;
    leat_graph_seeds(g, o->seed || o->has_seed ? &o->seed : NULL, &seed, &seed2);
    return (seed_args){leat_attr_int("seed", seed), leat_attr_int("seed2", seed2)};
}

static leat_out binary(leat_loc at, const char *op, leat_out x, leat_out y, const char *name)
{
    return leat_op_of(at, op, (const leat_out[]){x, y}, 2, LEAT_ARGS(leat_name(name)));
}

leat_out leat_random_normal_at(leat_loc at, leat_graph *g, const char *op, const char *scope,
                               leat_shape shape, const leat_random_options *o)
{
    leat_dtype t = o->dtype ? o->dtype : LEAT_FLOAT;
    leat_name_scope_enter(g, o->name ? o->name : scope);
    leat_out s = named_shape(at, g, &shape);
    leat_out mean = leat_full_named_at(at, g, t, leat_shape(), o->mean, "mean");
    leat_out stddev =
        leat_full_named_at(at, g, t, leat_shape(), o->stddev != 0 ? o->stddev : 1, "stddev");
    seed_args seeds = seeds_of(g, o);
    leat_out y =
        leat_op_of(at, op, &s, 1, LEAT_ARGS(leat_attr_type("dtype", t), seeds.seed, seeds.seed2));
    y = binary(at, "Mul", y, stddev, "mul");
    y = binary(at, "Add", y, mean, leat_name_scope(g));
    leat_name_scope_leave(g);
    return y;
}

leat_out leat_random_uniform_at(leat_loc at, leat_graph *g, leat_shape shape,
                                const leat_random_options *o)
{
    leat_dtype t = o->dtype ? o->dtype : LEAT_FLOAT;
    double max = o->maxval == 0 && o->minval >= 0 ? 1 : o->maxval;
    leat_name_scope_enter(g, o->name ? o->name : "random_uniform");
    leat_out s = named_shape(at, g, &shape);
    leat_out low = leat_full_named_at(at, g, t, leat_shape(), o->minval, "min");
    leat_out high = leat_full_named_at(at, g, t, leat_shape(), max, "max");
    seed_args seeds = seeds_of(g, o);
    leat_out y;
    if (t == LEAT_INT32 || t == LEAT_INT64) {
        y = leat_op_of(at, "RandomUniformInt", (const leat_out[]){s, low, high}, 3,
                       LEAT_ARGS(seeds.seed, seeds.seed2, leat_name(leat_name_scope(g))));
    } else {
        y = leat_op_of(at, "RandomUniform", &s, 1,
                       LEAT_ARGS(leat_attr_type("dtype", t), seeds.seed, seeds.seed2));
        y = binary(at, "Mul", y, binary(at, "Sub", high, low, "sub"), "mul");
        y = binary(at, "Add", y, low, leat_name_scope(g));
    }
    leat_name_scope_leave(g);
    return y;
}

leat_out leat_random_shuffle_at(leat_loc at, leat_out x, const leat_random_options *o)
{
    if (!x.node)
        return (leat_out){0};
    seed_args seeds = seeds_of(x.node->graph, o);
    return leat_op_of(at, "RandomShuffle", &x, 1,
                      LEAT_ARGS(seeds.seed, seeds.seed2, leat_name(o->name)));
}
