/* prod_grad.c -- the gradient of Prod: for each element the product of all others. It is computed
 * from two running products, from the left and from the right, so that zeros are handled
 * correctly. */
#include <leat/ops.h>

#include "ops/reduce_grad.h"

/* The dimensions of x in an order with the reduced ones first. */
static leat_out reduced_first(leat_out x, leat_out axes, leat_out *reduced, leat_out *other)
{
    leat_graph *g = leat_node_graph(x.node);
    leat_out rank = leat_rank_of(x), zero = leat_scalar(g, LEAT_INT32, 0);
    axes = leat_reshape(leat_cast(axes, LEAT_INT32), leat_ints(g, -1));
    *reduced = leat_floor_mod(leat_add(axes, rank), rank);
    leat_out all = leat_range(zero, rank, leat_scalar(g, LEAT_INT32, 1));
    *other = LEAT_OP2("ListDiff", all, *reduced);
    const leat_out both[2] = {*reduced, *other};
    return leat_concat(both, 2, zero);
}

static leat_out sizes_product(leat_out shape, leat_out dims)
{
    leat_graph *g = leat_node_graph(shape.node);
    return leat_prod(leat_gather(shape, dims, leat_scalar(g, LEAT_INT32, 0)), leat_ints(g, 0));
}

leat_status leat_prod_grad(leat_grad *g)
{
    leat_graph *graph = leat_grad_graph(g);
    leat_out x = leat_grad_input(g, 0), axes = leat_grad_input(g, 1), reduced, other;
    leat_reduced r;
    LEAT_TRY(leat_reduced_shape(x, axes, &r));
    leat_out dy = leat_tile(leat_reshape(leat_grad_out(g, 0), r.kept), r.times);
    leat_out perm = reduced_first(x, axes, &reduced, &other), shape = leat_shape_of(x);
    const leat_out sides[2] = {sizes_product(shape, reduced), sizes_product(shape, other)};
    leat_out turned = leat_transpose(x, perm);
    leat_out flat = leat_reshape(turned, leat_pack(sides, 2, 0)); /* (reduced, other) */
    leat_out zero = leat_scalar(graph, LEAT_INT32, 0);
    leat_out left = leat_cumprod(flat, zero, leat_attr_bool("exclusive", true));
    leat_out right = leat_cumprod(flat, zero, leat_attr_bool("exclusive", true),
                                  leat_attr_bool("reverse", true));
    leat_out others =
        leat_reshape(leat_mul(leat_conj(left), leat_conj(right)), leat_shape_of(turned));
    leat_out back = leat_transpose(others, leat_invert_permutation(perm));
    return leat_grad_in(g, 0, leat_reshape(leat_mul(dy, back), shape));
}
