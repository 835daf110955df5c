/* broadcast_grad.c -- the gradient of an input that was broadcast is the sum over the dimensions
 * along which it was repeated.
 *
 * If the static shapes determine the axes, which is the usual case, no sum is needed or its axes
 * are constants. Otherwise BroadcastGradientArgs computes the axes in each step.
 */
#include "ops/broadcast_grad.h"

#include "core/buffer.h"

/* The dimensions of the output along which x was repeated, if the other input has the shape y.
 * False if they depend on sizes that are not known. Summing along a dimension of size 1 changes
 * nothing, so a dimension that x does not have, or that has size 1 in x, may be listed whatever y's
 * size is. */
static bool static_axes(const leat_shape *x, const leat_shape *y, int64_t *axes, int *n)
{
    if (x->rank < 0 || y->rank < 0)
        return false;
    const int rank = x->rank > y->rank ? x->rank : y->rank;
    *n = 0;
    for (int i = 0; i < rank; i++) {
        const int ix = i - (rank - x->rank), iy = i - (rank - y->rank);
        const int64_t dx = ix < 0 ? 1 : x->dim[ix], dy = iy < 0 ? 1 : y->dim[iy];
        if (ix < 0 || (dx == 1 && dy != 1))
            axes[(*n)++] = i;
        else if (dx < 0 && dy != 1)
            return false;
    }
    return true;
}

static leat_out shape_tensor(leat_out x)
{
    leat_shape s = leat_out_shape(x);
    return leat_shape_known(&s) ? leat_shape_const(leat_node_graph(x.node), s) : leat_shape_of(x);
}

static leat_out sum_to(leat_out d, leat_out axes, leat_out like)
{
    return leat_reshape(leat_sum(d, axes), shape_tensor(like));
}

leat_status leat_grad_broadcast(leat_grad *g, leat_out dx, leat_out dy)
{
    const leat_out in[2] = {leat_grad_input(g, 0), leat_grad_input(g, 1)};
    const leat_shape s[2] = {leat_out_shape(in[0]), leat_out_shape(in[1])};
    const leat_out d[2] = {dx, dy};
    leat_out args = {0};
    for (int i = 0; i < 2; i++) {
        int64_t axes[LEAT_MAX_RANK];
        int n;
        if (!d[i].node)
            continue;
        leat_out to;
        if (!static_axes(&s[i], &s[!i], axes, &n)) {
            if (!args.node)
                args = leat_broadcast_gradient_args(leat_shape_of(in[0]), leat_shape_of(in[1]));
            to = leat_reshape(leat_sum(d[i], leat_output(args, i)), leat_shape_of(in[i]));
        } else if (n == 0) {
            to = d[i];
        } else {
            to = sum_to(d[i], leat_int_vector(leat_grad_graph(g), axes, n), in[i]);
        }
        LEAT_TRY(leat_grad_in(g, i, to));
    }
    return NULL;
}
