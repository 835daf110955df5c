/* slice.c -- Slice, StridedSlice, StridedSliceGrad, and assignment to slices of variables. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"
#include "ops/strided_spec.h"

/* If the slice is contiguous rows of the input, suitably aligned, outputs a view and returns
 * true. */
static leat_status view(leat_kernel *k, const leat_tensor *x, const int64_t *begin,
                        const int64_t *size, const leat_shape *out, bool *done)
{
    const leat_shape *s = &x->shape;
    *done = false;
    for (int d = 1; d < s->rank; d++)
        if (size[d] != s->dim[d])
            return NULL;
    size_t row = s->rank && s->dim[0] ? leat_tensor_bytes(x) / (size_t)s->dim[0] : 0;
    if (s->rank == 0 || ((uintptr_t)x->data + (size_t)begin[0] * row) % LEAT_ALIGN != 0)
        return NULL;
    leat_tensor *rows, *y;
    LEAT_TRY(leat_tensor_rows(x, begin[0], begin[0] + size[0], &rows));
    leat_status bad = leat_tensor_reshape(rows, *out, &y);
    leat_tensor_unref(rows);
    LEAT_TRY(bad);
    leat_kernel_set(k, 0, y);
    *done = true;
    return NULL;
}

static leat_status slice_range(const leat_shape *s, int d, int64_t b, int64_t *n)
{
    if (*n == -1)
        *n = b < 0 || b > s->dim[d] ? 0 : s->dim[d] - b;
    LEAT_REQUIRE(s->dim[d] != 0 || (b == 0 && *n == 0), INVALID_ARGUMENT,
                 "Expected begin[%d] == 0 (got %" PRId64 ") and size[%d] == 0 (got %" PRId64
                 ") when input.dim_size(%d) == 0",
                 d, b, d, *n, d);
    LEAT_REQUIRE(b >= 0 && b <= s->dim[d], INVALID_ARGUMENT,
                 "Expected begin[%d] in [0, %" PRId64 "], but got %" PRId64, d, s->dim[d], b);
    LEAT_REQUIRE(*n >= 0 && *n <= s->dim[d] - b, INVALID_ARGUMENT,
                 "Expected size[%d] in [0, %" PRId64 "], but got %" PRId64, d, s->dim[d] - b, *n);
    return NULL;
}

static leat_status slice(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *b = leat_kernel_in(k, 1),
                      *n = leat_kernel_in(k, 2);
    const leat_shape *s = &x->shape;
    LEAT_REQUIRE(b->shape.rank == 1 && n->shape.rank == 1 && b->count == s->rank &&
                     n->count == s->rank,
                 INVALID_ARGUMENT,
                 "Expected begin and size arguments to be 1-D tensors of size %d, but got shapes "
                 "%s and %s instead.",
                 s->rank, leat_shape_show(&b->shape).s, leat_shape_show(&n->shape).s);
    int64_t begin[LEAT_MAX_RANK], from[LEAT_MAX_RANK], to[LEAT_MAX_RANK], at = 0;
    leat_shape out;
    bool done;
    out.rank = s->rank;
    for (int d = 0; d < s->rank; d++) {
        begin[d] = leat_index_at(b, d);
        out.dim[d] = leat_index_at(n, d);
        LEAT_TRY(slice_range(s, d, begin[d], &out.dim[d]));
    }
    if (leat_shape_equal(s, &out)) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    LEAT_TRY(view(k, x, begin, out.dim, &out, &done));
    if (done)
        return NULL;
    leat_tensor *y;
    leat_move m;
    LEAT_TRY(leat_kernel_out(k, 0, &out, &y));
    leat_strides(s, from);
    leat_strides(&out, to);
    leat_move_begin(&m);
    for (int d = 0; y->count && d < s->rank; d++) {
        leat_move_dim(&m, out.dim[d], to[d], from[d]);
        at += begin[d] * from[d];
    }
    return y->count ? leat_move_run(k, &m, x->dtype, y->data, leat_element(x, at)) : NULL;
}

static leat_status masks_init(const leat_node *n, void *state)
{
    *(leat_strided_masks *)state = leat_strided_masks_of(n);
    return NULL;
}

/* Copies between the slice of `large` and the contiguous elements at `small`; to large if
 * into_large. */
static leat_status strided_move(leat_kernel *k, const leat_strided_spec *spec,
                                const leat_tensor *large, void *small, bool into_large)
{
    int64_t stride[LEAT_MAX_RANK], dense[LEAT_MAX_RANK], at = 0;
    leat_shape sizes;
    leat_move m;
    sizes.rank = spec->rank;
    memcpy(sizes.dim, spec->size, sizeof(*sizes.dim) * (size_t)spec->rank);
    leat_strides(&large->shape, stride);
    leat_strides(&sizes, dense);
    leat_move_begin(&m);
    for (int d = 0; d < spec->rank; d++)
        if (spec->size[d] == 0)
            return NULL;
    for (int d = 0; d < spec->rank; d++) {
        int64_t step = spec->size[d] > 1 ? stride[d] * spec->stride[d] : stride[d];
        at += spec->begin[d] * stride[d];
        if (into_large)
            leat_move_dim(&m, spec->size[d], step, dense[d]);
        else
            leat_move_dim(&m, spec->size[d], dense[d], step);
    }
    void *place = leat_element(large, at);
    return leat_move_run(k, &m, large->dtype, into_large ? place : small,
                         into_large ? small : place);
}

static leat_status strided_slice(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_strided_spec spec;
    leat_tensor *y;
    LEAT_TRY(leat_strided_resolve(&x->shape, leat_kernel_in(k, 1), leat_kernel_in(k, 2),
                                  leat_kernel_in(k, 3), leat_kernel_state(k), &spec));
    if (spec.whole) {
        LEAT_TRY(leat_tensor_reshape(x, spec.out, &y));
        leat_kernel_set(k, 0, y);
        return NULL;
    }
    bool done, dense = true;
    for (int d = 0; d < spec.rank; d++)
        dense &= spec.stride[d] == 1;
    if (dense && leat_shape_count(&spec.out) > 0) {
        LEAT_TRY(view(k, x, spec.begin, spec.size, &spec.out, &done));
        if (done)
            return NULL;
    }
    LEAT_TRY(leat_kernel_out(k, 0, &spec.out, &y));
    return strided_move(k, &spec, x, y->data, false);
}

static leat_status strided_slice_grad(leat_kernel *k)
{
    const leat_tensor *t = leat_kernel_in(k, 0), *dy = leat_kernel_in(k, 4);
    leat_strided_spec spec;
    leat_shape s;
    leat_tensor *dx;
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "shape must be 1-D, got shape.shape = %s",
                 leat_shape_show(&t->shape).s);
    LEAT_TRY(leat_shape_from_tensor(t, &s));
    LEAT_TRY(leat_strided_resolve(&s, leat_kernel_in(k, 1), leat_kernel_in(k, 2),
                                  leat_kernel_in(k, 3), leat_kernel_state(k), &spec));
    LEAT_REQUIRE(leat_shape_equal(&spec.out, &dy->shape), INVALID_ARGUMENT,
                 "shape of dy was %s instead of %s", leat_shape_show(&dy->shape).s,
                 leat_shape_show(&spec.out).s);
    if (spec.whole) {
        LEAT_TRY(leat_tensor_reshape(dy, s, &dx));
        leat_kernel_set(k, 0, dx);
        return NULL;
    }
    LEAT_TRY(leat_kernel_out(k, 0, &s, &dx));
    LEAT_TRY(leat_move_zero(k, dx));
    return strided_move(k, &spec, dx, dy->data, true);
}

static leat_status assign_locked(leat_kernel *k, leat_variable *v)
{
    const leat_tensor *value = leat_kernel_in(k, 4);
    leat_strided_spec spec;
    leat_tensor *x;
    LEAT_REQUIRE(v->value, FAILED_PRECONDITION, "Attempting to use uninitialized value %s",
                 v->name);
    LEAT_REQUIRE(v->dtype == value->dtype, INVALID_ARGUMENT,
                 "l-value dtype %s does not match r-value dtype %s", leat_dtype_name(v->dtype),
                 leat_dtype_name(value->dtype));
    LEAT_TRY(leat_strided_resolve(&v->value->shape, leat_kernel_in(k, 1), leat_kernel_in(k, 2),
                                  leat_kernel_in(k, 3), leat_kernel_state(k), &spec));
    for (int d = 0; d < spec.rank; d++)
        if (spec.size[d] == 0)
            return NULL;
    LEAT_REQUIRE(leat_shape_equal(&spec.out, &value->shape), UNIMPLEMENTED,
                 "sliced l-value shape %s does not match r-value shape %s. Automatic broadcasting "
                 "not yet implemented.",
                 leat_shape_show(&spec.out).s, leat_shape_show(&value->shape).s);
    LEAT_TRY(leat_variable_writable(v, 0, &x));
    return strided_move(k, &spec, x, value->data, true);
}

static leat_status assign(leat_kernel *k)
{
    leat_variable *v;
    LEAT_TRY(leat_kernel_variable(k, 0, &v));
    leat_variable_lock(v);
    leat_status s = assign_locked(k, v);
    leat_variable_unlock(v);
    return s;
}

static leat_status assign_ref(leat_kernel *k)
{
    LEAT_TRY(assign(k));
    leat_kernel_forward(k, 0, 0);
    return NULL;
}

#define STRIDED(name, fn)                                                                          \
    {                                                                                              \
        .op = name, .run = fn, .state_size = sizeof(leat_strided_masks), .init = masks_init        \
    }

const leat_kernel_def leat_cpu_slice[] = {
    {.op = "Slice", .run = slice},
    STRIDED("StridedSlice", strided_slice),
    STRIDED("StridedSliceGrad", strided_slice_grad),
    STRIDED("StridedSliceAssign", assign_ref),
    STRIDED("ResourceStridedSliceAssign", assign),
    {0},
};
