/* walk.c -- dimensions of operands, merged where that is possible. */
#include "kernels/opencl/walk.h"

#include "core/checked.h"

leat_status leat_cl_walk_dim(leat_cl_walk *w, int64_t dim, int64_t a, int64_t b)
{
    if (dim == 1)
        return NULL;
    LEAT_REQUIRE(dim <= INT32_MAX && a <= INT32_MAX && b <= INT32_MAX && a >= INT32_MIN &&
                     b >= INT32_MIN,
                 UNIMPLEMENTED, "kernels of GPUs count to 2**31 - 1, and here are more elements");
    const int last = w->rank - 1;
    if (last >= 0 && w->a[last] == dim * a && w->b[last] == dim * b &&
        (int64_t)w->dim[last] * dim <= INT32_MAX) {
        w->dim[last] *= (int32_t)dim;
        w->a[last] = (int32_t)a;
        w->b[last] = (int32_t)b;
        return NULL;
    }
    LEAT_REQUIRE(w->rank < LEAT_CL_RANK, UNIMPLEMENTED,
                 "kernels of GPUs have at most %d dimensions that differ in their order",
                 LEAT_CL_RANK);
    w->dim[w->rank] = (int32_t)dim;
    w->a[w->rank] = (int32_t)a;
    w->b[w->rank] = (int32_t)b;
    w->rank++;
    return NULL;
}

void leat_cl_strides(const leat_shape *s, int64_t *stride)
{
    uint64_t n = 1; /* may wrap in a shape without elements */
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = (int64_t)n;
        n *= (uint64_t)s->dim[i];
    }
}

/* Dimension d of a result of `rank` dimensions as the operand has it. */
static int64_t dim_of(const leat_shape *s, int rank, int d)
{
    const int i = d - rank + s->rank;
    return i < 0 ? 1 : s->dim[i];
}

leat_status leat_cl_broadcast(const leat_shape *a, const leat_shape *b, leat_cl_walk *w,
                              leat_shape *out)
{
    int64_t sa[LEAT_MAX_RANK], sb[LEAT_MAX_RANK], count = 1;
    leat_shape z = {.rank = a->rank > b->rank ? a->rank : b->rank};
    leat_cl_strides(a, sa);
    leat_cl_strides(b, sb);
    for (int d = 0; d < z.rank; d++) {
        const int64_t x = dim_of(a, z.rank, d), y = dim_of(b, z.rank, d);
        LEAT_REQUIRE(x == y || x == 1 || y == 1, INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                     leat_shape_show(a).s, leat_shape_show(b).s);
        z.dim[d] = x == 1 ? y : x;
        LEAT_REQUIRE(leat_mul_ok(count, z.dim[d], &count), INVALID_ARGUMENT,
                     "Broadcast of %s and %s has too many elements", leat_shape_show(a).s,
                     leat_shape_show(b).s);
    }
    *out = z;
    *w = (leat_cl_walk){0};
    for (int d = 0; d < z.rank && count > 0; d++) {
        const int64_t x = dim_of(a, z.rank, d), y = dim_of(b, z.rank, d);
        LEAT_TRY(leat_cl_walk_dim(w, z.dim[d], x == 1 ? 0 : sa[d - z.rank + a->rank],
                                  y == 1 ? 0 : sb[d - z.rank + b->rank]));
    }
    if (!w->rank)
        *w = (leat_cl_walk){1, {1}, {1}, {1}};
    return NULL;
}
