/* seed.c -- seeds of random ops, from the graph's seed and their own, as TensorFlow's client
 * derives them: an op without a seed of its own gets the number of nodes made so far. */
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
    if (!LEAT_USABLE(GRAPH, g))
        return;
    *seed_out = *seed2_out = 0;
    if (!g->has_seed && !op_seed)
        return;
    *seed_out = g->has_seed ? truncated(g->seed) : DEFAULT_GRAPH_SEED;
    *seed2_out = truncated(op_seed ? *op_seed : g->n_nodes);
    if (*seed_out == 0 && *seed2_out == 0)
        *seed2_out = MAX_SEED; /* seeds of 0 and 0 would mean random seeds */
}
