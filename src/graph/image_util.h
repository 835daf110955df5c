/* image_util.h -- what the constructors of images share. */
#ifndef LEAT_GRAPH_IMAGE_UTIL_H
#define LEAT_GRAPH_IMAGE_UTIL_H

#include <leat/image_ops.h>

#include "graph/given.h"
#include "graph/graph_int.h"

/* Nodes made from here to leat_image_end are in a name scope and have the caller's location. NULL
 * if x is none of a graph. */
static inline leat_graph *leat_image_begin(leat_loc at, leat_out x, const char *scope,
                                           leat_loc *outer)
{
    if (!x.node)
        return NULL;
    *outer = leat_at_enter(x.node->graph, at);
    leat_name_scope_enter(x.node->graph, scope);
    return x.node->graph;
}

/* Gives y; if s is an error, that is the graph's mistake. Takes s. */
static inline leat_out leat_image_end(leat_graph *g, leat_loc at, leat_loc outer, leat_status s,
                                      leat_out y)
{
    if (s)
        y = leat_graph_fail(g, at, s);
    leat_name_scope_leave(g);
    leat_at_leave(g, outer);
    return y;
}

/* The rank must be known to be 3 or 4. An image that is a mistake passes. */
static inline leat_status leat_image_check(leat_out x, const char *constructor)
{
    const leat_shape s = leat_out_shape(x);
    LEAT_REQUIRE(!leat_out_ok(x) || s.rank == 3 || s.rank == 4, INVALID_ARGUMENT,
                 "%s: an image has 3 or 4 dimensions, not %s", constructor, leat_shape_show(&s).s);
    return NULL;
}

#endif
