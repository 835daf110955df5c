/* indices.c -- see kernels/cpu/indices.h. */
#include "kernels/cpu/indices.h"

#include <inttypes.h>

#include "kernels/cpu/shapes.h"

static leat_status read_axis(leat_kernel *k, int rank, int64_t *axis)
{
    *axis = 0;
    if (leat_kernel_inputs(k) < 3)
        return NULL;
    const leat_tensor *t = leat_kernel_in(k, 2);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "axis must be scalar");
    *axis = leat_index_at(t, 0);
    LEAT_REQUIRE(*axis >= -rank && *axis < rank, INVALID_ARGUMENT,
                 "Expected axis in the range [%d, %d), but got %" PRId64, -rank, rank, *axis);
    *axis += *axis < 0 ? rank : 0;
    return NULL;
}

static leat_status check_batch(const leat_shape *p, const leat_shape *ix, int64_t axis,
                               int64_t *batch)
{
    int64_t given = *batch;
    *batch += given < 0 ? ix->rank : 0;
    LEAT_REQUIRE(given == 0 || (*batch >= 0 && *batch < ix->rank), INVALID_ARGUMENT,
                 "Expected batch_dims in the range [%d, %d), but got %" PRId64, -ix->rank, ix->rank,
                 given);
    LEAT_REQUIRE(*batch < p->rank, INVALID_ARGUMENT,
                 "batch_dims (%" PRId64 ") must be less than rank(params) (%d).", *batch, p->rank);
    LEAT_REQUIRE(axis >= *batch, INVALID_ARGUMENT,
                 "batch_dims (%" PRId64 ") must be less than or equal to axis (%" PRId64 ").",
                 *batch, axis);
    for (int d = 0; d < *batch; d++)
        LEAT_REQUIRE(p->dim[d] == ix->dim[d], INVALID_ARGUMENT,
                     "params.shape[%d]: %" PRId64 " should be equal to indices.shape[%d]: %" PRId64,
                     d, p->dim[d], d, ix->dim[d]);
    return NULL;
}

leat_status leat_gather_read(leat_kernel *k, const leat_shape *p, bool after_batch, int64_t batch,
                             leat_gather_dims *out)
{
    const leat_tensor *indices = leat_kernel_in(k, 1);
    const leat_shape *ix = &indices->shape;
    int64_t axis;
    LEAT_REQUIRE(p->rank >= 1, INVALID_ARGUMENT, "params must be at least 1 dimensional");
    LEAT_TRY(read_axis(k, p->rank, &axis));
    if (after_batch)
        axis = batch;
    LEAT_TRY(check_batch(p, ix, axis, &batch));
    const int64_t dim = p->dim[axis];
    LEAT_REQUIRE(indices->dtype != LEAT_INT32 || dim <= INT32_MAX, INVALID_ARGUMENT,
                 "params.shape[%" PRId64 "] too large for int32 indexing: %" PRId64 " > %d", axis,
                 dim, INT32_MAX);
    leat_shape front = *p, s;
    front.rank = (int)axis;
    LEAT_TRY(leat_shape_join(&front, ix, (int)batch, &s));
    LEAT_TRY(leat_shape_join(&s, p, (int)axis + 1, &s));
    *out = (leat_gather_dims){.batch = leat_shape_product(p, 0, (int)batch),
                              .outer = leat_shape_product(p, (int)batch, (int)axis),
                              .dim = dim,
                              .picks = leat_shape_product(ix, (int)batch, ix->rank),
                              .inner = leat_shape_product(p, (int)axis + 1, p->rank),
                              .shape = s};
    return NULL;
}

leat_status leat_one_hot_read(leat_kernel *k, int64_t given, leat_one_hot_dims *out)
{
    const leat_shape *ix = &leat_kernel_in(k, 0)->shape;
    const leat_tensor *depth = leat_kernel_in(k, 1);
    static const char *const names[] = {"depth", "on_value", "off_value"};
    LEAT_REQUIRE(given >= -1 && given <= ix->rank, INVALID_ARGUMENT,
                 "Expected axis to be -1 or between [0, %d).  But received: %" PRId64, ix->rank + 1,
                 given);
    for (int i = 0; i < 3; i++) {
        const leat_shape *s = &leat_kernel_in(k, i + 1)->shape;
        LEAT_REQUIRE(s->rank == 0, INVALID_ARGUMENT, "%s must be a scalar, but got: %s", names[i],
                     leat_shape_show(s).s);
    }
    const int64_t n = AT(int32_t, depth)[0];
    LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "depth must be non-negative, got: %" PRId64, n);
    const int axis = given < 0 ? ix->rank : (int)given;
    leat_shape s = *ix;
    s.rank = axis + 1;
    LEAT_REQUIRE(s.rank <= LEAT_MAX_RANK, INVALID_ARGUMENT, "Too many dimensions");
    s.dim[axis] = n;
    LEAT_TRY(leat_shape_join(&s, ix, axis, &s));
    LEAT_REQUIRE(leat_shape_count(&s) >= 0, INVALID_ARGUMENT,
                 "OneHot result would have shape %s + [%" PRId64
                 "], which exceeds 2**63 - 1 elements",
                 leat_shape_show(ix).s, n);
    *out = (leat_one_hot_dims){.before = leat_shape_product(ix, 0, axis),
                               .depth = n,
                               .after = leat_shape_product(ix, axis, ix->rank),
                               .shape = s};
    return NULL;
}

static bool rows_fit(const leat_shape *p, const leat_shape *indices, const leat_shape *u)
{
    const int outer = indices->rank;
    if (u->rank == 0)
        return true;
    if (u->rank != outer + p->rank - 1)
        return false;
    for (int d = 0; d < u->rank; d++)
        if (u->dim[d] != (d < outer ? indices->dim[d] : p->dim[d - outer + 1]))
            return false;
    return true;
}

leat_status leat_scatter_check(const leat_shape *p, const leat_shape *indices, const leat_shape *u)
{
    LEAT_REQUIRE(p->rank >= 1, INVALID_ARGUMENT, "params must be at least 1-D, got shape %s",
                 leat_shape_show(p).s);
    LEAT_REQUIRE(rows_fit(p, indices, u), INVALID_ARGUMENT,
                 "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = "
                 "[], got updates.shape %s, indices.shape %s, params.shape %s",
                 leat_shape_show(u).s, leat_shape_show(indices).s, leat_shape_show(p).s);
    return NULL;
}
