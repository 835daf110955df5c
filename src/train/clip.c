/* clip.c -- clipping of gradients: one by its own norm, many by their global norm. */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "train/optimizer.h"

/* x * norm / max(|x|, norm), computed such that its gradient is finite where x is zero. If
 * `first` has a node, each part of x behind the dimensions of `first` has a norm of its own. */
static leat_out clip_by_norm(leat_out x, double norm, leat_out first)
{
    leat_graph *g = leat_graph_of(x);
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    leat_shape s = leat_out_shape(x), before = {0};
    leat_out square = leat_mul(x, x, leat_name("mul")), axes;
    int64_t all[LEAT_MAX_RANK];
    for (int i = 0; i < LEAT_MAX_RANK; i++)
        all[i] = i;
    if (first.node)
        before = leat_out_shape(first);
    axes = s.rank >= before.rank && before.rank >= 0
               ? leat_int_vector(g, all + before.rank, s.rank - before.rank)
               : leat_range(first.node ? leat_rank_of(first) : leat_scalar(g, LEAT_INT32, 0),
                            leat_rank_of(square), leat_scalar(g, LEAT_INT32, 1));
    leat_out sum = leat_sum(square, axes, leat_attr_bool("keep_dims", true));
    leat_out some = leat_py_right("Greater", "Greater", sum, 0);
    leat_out safe = leat_select(some, sum, leat_ones_like(sum));
    leat_out length = leat_select(some, leat_sqrt(safe), sum);
    leat_out scaled = leat_py_right("Mul", "mul", x, norm);
    leat_out most = leat_maximum(length, leat_scalar(g, t, norm));
    return leat_identity(leat_py("RealDiv", "truediv", scaled, most),
                         leat_name(leat_name_scope(g)));
}

leat_out leat_clip_rows_by_norm(leat_out x, double norm, leat_out ids)
{
    leat_out y = {0};
    leat_with_name(leat_graph_of(x), "clip_by_norm") y = clip_by_norm(x, norm, ids);
    return y;
}

leat_out leat_clip_by_norm_at(leat_loc at, leat_out x, double norm)
{
    if (!x.node || !leat_out_ok(x))
        return x;
    leat_graph *g = leat_graph_of(x);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = leat_clip_rows_by_norm(x, norm, (leat_out){0});
    leat_at_leave(g, outer);
    return y;
}

static leat_graph *graph_of_all(const leat_grad_value *grads, int n)
{
    for (int i = 0; i < n; i++)
        if (grads[i].value.node)
            return leat_graph_of(grads[i].value);
    return NULL;
}

leat_out leat_global_norm_at(leat_loc at, const leat_grad_value *grads, int n)
{
    leat_graph *g = graph_of_all(grads, n);
    if (!g)
        return (leat_out){0};
    leat_loc outer = leat_at_enter(g, at);
    leat_out *halves = leat_new_array(leat_out, n), norm = {0};
    int k = 0;
    leat_with_name(g, "global_norm")
    {
        for (int i = 0; i < n; i++)
            if (grads[i].value.node)
                leat_with_colocate(g, grads[i].value) halves[k++] = leat_l2_loss(grads[i].value);
        leat_out half = leat_reduce_sum(leat_pack(halves, k, 0, leat_name("stack")));
        leat_out two = leat_scalar_like(half, 2);
        norm = leat_sqrt(leat_py("Mul", "mul", half, two), leat_name("global_norm"));
    }
    free(halves);
    leat_at_leave(g, outer);
    return norm;
}

/* norm / max(global, norm); NaN if global is not finite. */
static leat_out scale_for(leat_out global, double norm)
{
    leat_graph *g = leat_graph_of(global);
    leat_dtype t = leat_dtype_base(leat_out_dtype(global));
    leat_out inverse = leat_py_left("RealDiv", "truediv", 1, global);
    leat_out one = leat_scalar(g, t, 1);
    leat_out least = leat_py_right("RealDiv", "truediv", one, norm);
    leat_out finite = leat_py_right("Mul", "mul", leat_minimum(inverse, least), norm);
    return leat_select(leat_is_finite(global), finite, leat_scalar(g, t, NAN));
}

leat_out leat_clip_by_global_norm_at(leat_loc at, leat_grad_value *grads, int n, double norm)
{
    leat_graph *g = graph_of_all(grads, n);
    if (!g)
        return (leat_out){0};
    leat_loc outer = leat_at_enter(g, at);
    leat_out global = leat_global_norm_at(at, grads, n);
    leat_with_name(g, "clip_by_global_norm")
    {
        leat_out scale = scale_for(global, norm);
        for (int i = 0; i < n; i++) {
            leat_out x = grads[i].value;
            if (!x.node)
                continue;
            leat_with_colocate(g, x) grads[i].value = leat_identity(
                leat_py("Mul", "mul", x, scale),
                leat_name(leat_arena_printf(&g->arena, "clip_by_global_norm/_%d", i)));
        }
    }
    leat_at_leave(g, outer);
    return global;
}
