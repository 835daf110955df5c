/* scatter.c -- updates of a variable's rows that indices select. All indices are checked before
 * anything is written. Rows are updated in the order of the indices, one at a time, since a row may
 * occur twice. */
#include "core/element.h"
#include "kernels/cpu/indices.h"
#include "kernels/cpu/update.h"

static leat_status bad_index(const leat_tensor *indices, int64_t i, int64_t limit)
{
    return leat_error(INVALID_ARGUMENT, "indices%s = %lld is not in [0, %lld)",
                      leat_index_show(&indices->shape, i).s, (long long)leat_index_at(indices, i),
                      (long long)limit);
}

/* Row i of `count` elements, at p + row * size. */
static leat_status update_row(leat_dtype t, leat_update_op op, char *p, const char *u,
                              int64_t count, int step)
{
    size_t size = leat_element_size(t);
    if (op != LEAT_UPDATE_ASSIGN) {
        LEAT_REQUIRE(leat_update_of(t, op)(p, u, count, step), INVALID_ARGUMENT,
                     "Integer division by zero");
        return NULL;
    }
    if (step && !leat_is_managed(t)) {
        memcpy(p, u, (size_t)count * size);
        return NULL;
    }
    if (step)
        return leat_elements_copy(t, p, u, count);
    for (int64_t e = 0; e < count; e++)
        LEAT_TRY(leat_elements_copy(t, p + (size_t)e * size, u, 1));
    return NULL;
}

static leat_status scatter_rows(leat_tensor *p, const leat_tensor *indices, const leat_tensor *u,
                                leat_update_op op)
{
    LEAT_TRY(leat_scatter_check(&p->shape, &indices->shape, &u->shape));
    int64_t limit = p->shape.dim[0], n = indices->count;
    for (int64_t i = 0; i < n; i++)
        if ((uint64_t)leat_index_at(indices, i) >= (uint64_t)limit)
            return bad_index(indices, i, limit);
    if (n == 0 || p->count == 0)
        return NULL;
    int64_t row = p->count / limit;
    size_t bytes = (size_t)row * leat_element_size(p->dtype);
    int step = u->shape.rank != 0;
    for (int64_t i = 0; i < n; i++)
        LEAT_TRY(update_row(p->dtype, op,
                            (char *)p->data + (size_t)leat_index_at(indices, i) * bytes,
                            (const char *)u->data + (step ? (size_t)i * bytes : 0), row, step));
    return NULL;
}

/* ---- ScatterNd: the last dimension of indices is a position in the first dimensions of params
 * ---- */

static leat_status check_nd(const leat_tensor *p, const leat_tensor *indices, const leat_tensor *u)
{
    const leat_shape *ps = &p->shape, *is = &indices->shape, *us = &u->shape;
    LEAT_REQUIRE(ps->rank >= 1, INVALID_ARGUMENT, "Output must be at least 1-D, got shape: %s",
                 leat_shape_show(ps).s);
    LEAT_REQUIRE(is->rank >= 1 && us->rank >= 1, INVALID_ARGUMENT,
                 "Indices and updates must be at least 1-D, got indices.shape %s, updates.shape %s",
                 leat_shape_show(is).s, leat_shape_show(us).s);
    LEAT_REQUIRE(p->count > 0 || (indices->count == 0 && u->count == 0), INVALID_ARGUMENT,
                 "Indices and updates specified for empty output.  indices shape: %s",
                 leat_shape_show(is).s);
    LEAT_REQUIRE(us->dim[0] == is->dim[0], INVALID_ARGUMENT,
                 "The outermost dimension of updates and indices must match. Got indices.shape %s, "
                 "updates.shape %s",
                 leat_shape_show(is).s, leat_shape_show(us).s);
    int outer = is->rank > 1 ? is->rank - 1 : 1;
    int64_t depth = is->rank > 1 ? is->dim[is->rank - 1] : 1;
    bool fits = depth <= ps->rank && us->rank == outer + ps->rank - depth;
    for (int d = 0; fits && d < us->rank; d++)
        fits = us->dim[d] == (d < outer ? is->dim[d] : ps->dim[d - outer + depth]);
    LEAT_REQUIRE(fits, INVALID_ARGUMENT,
                 "Must have updates.shape = indices.shape[:batch_dim] + "
                 "params_shape[slice_dim:], got updates.shape: %s, indices.shape: %s, "
                 "params_shape: %s, slice_dim: %lld, and batch_dim: %d",
                 leat_shape_show(us).s, leat_shape_show(is).s, leat_shape_show(ps).s,
                 (long long)depth, outer);
    LEAT_REQUIRE(depth >= 1, INVALID_ARGUMENT,
                 "Only indices.shape[-1] values between 1 and 5 are currently supported.  "
                 "Requested rank: %lld",
                 (long long)depth);
    return NULL;
}

/* The row of index i, which has `depth` numbers; -1 if it is out of bounds. */
static int64_t nd_row(const leat_shape *ps, const leat_tensor *indices, int64_t i, int64_t depth)
{
    int64_t row = 0;
    for (int64_t d = 0; d < depth; d++) {
        int64_t at = leat_index_at(indices, i * depth + d);
        if ((uint64_t)at >= (uint64_t)ps->dim[d])
            return -1;
        row = row * ps->dim[d] + at;
    }
    return row;
}

static leat_status bad_place(const leat_shape *ps, const leat_tensor *indices, int64_t i,
                             int64_t depth)
{
    leat_shape outer = indices->shape;
    outer.rank--;
    leat_status s =
        leat_error(INVALID_ARGUMENT, "] does not index into shape %s", leat_shape_show(ps).s);
    for (int64_t d = depth - 1; d >= 0; d--)
        s = leat_status_prefix(s, "%s%lld", d ? ", " : "",
                               (long long)leat_index_at(indices, i * depth + d));
    return leat_status_prefix(s, "indices%s = [", leat_index_show(&outer, i).s);
}

leat_status leat_scatter_nd(leat_tensor *p, const leat_tensor *indices, const leat_tensor *u,
                            leat_update_op op)
{
    LEAT_TRY(check_nd(p, indices, u));
    const leat_shape *is = &indices->shape;
    int64_t depth = is->rank > 1 ? is->dim[is->rank - 1] : 1, row = 1;
    int64_t n = indices->count / depth;
    for (int64_t d = depth; d < p->shape.rank; d++)
        row *= p->shape.dim[d];
    if (p->count == 0)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        if (nd_row(&p->shape, indices, i, depth) < 0)
            return bad_place(&p->shape, indices, i, depth);
    size_t bytes = (size_t)row * leat_element_size(p->dtype);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = nd_row(&p->shape, indices, i, depth);
        LEAT_TRY(update_row(p->dtype, op, (char *)p->data + (size_t)at * bytes,
                            (const char *)u->data + (size_t)i * bytes, row, 1));
    }
    return NULL;
}

/* ---- The kernels ---- */

typedef leat_status (*scatter_fn)(leat_tensor *p, const leat_tensor *indices, const leat_tensor *u,
                                  leat_update_op op);

static leat_status scatter(leat_kernel *k, scatter_fn fn, leat_update_op op)
{
    const leat_tensor *indices = leat_kernel_in(k, 1), *u = leat_kernel_in(k, 2);
    leat_locked l;
    LEAT_TRY(leat_kernel_lock(k, 1, u->dtype, k->n_in, &l));
    leat_status s = fn(l.value[0], indices, u, op);
    leat_kernel_unlock(&l);
    if (!s && l.var[0]->base.type == &leat_ref_type)
        leat_kernel_forward(k, 0, 0);
    return s;
}

#define RUN(name, fn, op)                                                                          \
    static leat_status name(leat_kernel *k)                                                        \
    {                                                                                              \
        return scatter(k, fn, LEAT_UPDATE_##op);                                                   \
    }
RUN(rows_assign, scatter_rows, ASSIGN)
RUN(rows_add, scatter_rows, ADD)
RUN(rows_sub, scatter_rows, SUB)
RUN(rows_mul, scatter_rows, MUL)
RUN(rows_div, scatter_rows, DIV)
RUN(rows_min, scatter_rows, MIN)
RUN(rows_max, scatter_rows, MAX)
RUN(nd_assign, leat_scatter_nd, ASSIGN)
RUN(nd_add, leat_scatter_nd, ADD)
RUN(nd_sub, leat_scatter_nd, SUB)

#define NUMBERS (LEAT_TYPES_REAL | LEAT_TYPES_COMPLEX)
#define SCATTER(name, set, fn)                                                                     \
    {.op = "Scatter" name, .where = {{"T", set}}, .run = fn},                                      \
    {                                                                                              \
        .op = "ResourceScatter" name, .where = {{"dtype", set}}, .run = fn                         \
    }
#define SCATTER_ND(name, set, fn)                                                                  \
    {.op = "ScatterNd" name, .where = {{"T", set}}, .run = fn},                                    \
    {                                                                                              \
        .op = "ResourceScatterNd" name, .where = {{"T", set}}, .run = fn                           \
    }

const leat_kernel_def leat_cpu_scatter[] = {
    SCATTER("Update", LEAT_TYPES_ANY, rows_assign),
    SCATTER("Add", NUMBERS, rows_add),
    SCATTER("Sub", NUMBERS, rows_sub),
    SCATTER("Mul", NUMBERS, rows_mul),
    SCATTER("Div", NUMBERS, rows_div),
    SCATTER("Min", LEAT_TYPES_REAL, rows_min),
    SCATTER("Max", LEAT_TYPES_REAL, rows_max),
    SCATTER_ND("Update", LEAT_TYPES_ANY, nd_assign),
    SCATTER_ND("Add", NUMBERS, nd_add),
    SCATTER_ND("Sub", NUMBERS, nd_sub),
    {0},
};
