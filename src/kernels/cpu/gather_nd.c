/* gather_nd.c -- GatherNd, ScatterNd, and scatters into a copy of a tensor. */
#include <inttypes.h>
#include <stdlib.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/update.h"

typedef struct gather_args {
    const leat_tensor *params, *indices;
    leat_tensor *y;
    int64_t depth, inner; /* numbers in an index; elements at an index */
} gather_args;

/* The position of index i in units of `inner` elements; -1 if it is out of bounds. */
static int64_t place(const gather_args *g, int64_t i)
{
    int64_t at = 0;
    for (int64_t d = 0; d < g->depth; d++) {
        int64_t v = leat_index_at(g->indices, i * g->depth + d);
        if ((uint64_t)v >= (uint64_t)g->params->shape.dim[d])
            return -1;
        at = at * g->params->shape.dim[d] + v;
    }
    return at;
}

static void gather_part(void *arg, int64_t begin, int64_t end)
{
    const gather_args *g = arg;
    size_t bytes = (size_t)g->inner * leat_element_size(g->params->dtype);
    for (int64_t i = begin; i < end; i++)
        memcpy((char *)g->y->data + (size_t)i * bytes,
               (const char *)g->params->data + (size_t)place(g, i) * bytes, bytes);
}

static leat_status bad_place(const gather_args *g, int64_t i)
{
    leat_shape outer = g->indices->shape;
    outer.rank--;
    leat_status s = leat_error(INVALID_ARGUMENT, "] does not index into param shape %s",
                               leat_shape_show(&g->params->shape).s);
    for (int64_t d = g->depth - 1; d >= 0; d--)
        s = leat_status_prefix(s, "%s%" PRId64, d ? ", " : "",
                               leat_index_at(g->indices, i * g->depth + d));
    return leat_status_prefix(s, "indices%s = [", leat_index_show(&outer, i).s);
}

static leat_status gather_from(leat_kernel *k, const leat_tensor *params)
{
    gather_args g = {.params = params, .indices = leat_kernel_in(k, 1)};
    const leat_shape *p = &g.params->shape, *ix = &g.indices->shape;
    LEAT_REQUIRE(p->rank >= 1, INVALID_ARGUMENT, "params must be at least a vector");
    LEAT_REQUIRE(ix->rank >= 1, INVALID_ARGUMENT, "indices must be at least a vector");
    g.depth = ix->dim[ix->rank - 1];
    LEAT_REQUIRE(g.depth <= p->rank, INVALID_ARGUMENT,
                 "index innermost dimension length must be <= params rank; saw: %" PRId64 " vs. %d",
                 g.depth, p->rank);
    leat_shape front = *ix, s;
    front.rank--;
    int64_t n = leat_shape_count(&front);
    LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "indices has too many elements for indexing");
    LEAT_TRY(leat_shape_join(&front, p, (int)g.depth, &s));
    LEAT_REQUIRE(n == 0 || g.params->count > 0, INVALID_ARGUMENT,
                 "Requested more than 0 entries, but params is empty.  Params shape: %s",
                 leat_shape_show(p).s);
    for (int64_t i = 0; g.depth && i < n; i++)
        if (place(&g, i) < 0)
            return bad_place(&g, i);
    LEAT_TRY(leat_kernel_out(k, 0, &s, &g.y));
    if (g.y->count == 0)
        return NULL;
    g.inner = g.y->count / n;
    if (!leat_is_managed(g.y->dtype)) {
        double bytes = (double)g.inner * (double)leat_element_size(g.y->dtype);
        leat_kernel_for(k, n, 3 + 2 * (double)g.depth + 0.1 * bytes, gather_part, &g);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        LEAT_TRY(leat_elements_copy(g.y->dtype, leat_element(g.y, i * g.inner),
                                    leat_element(g.params, place(&g, i) * g.inner), g.inner));
    return NULL;
}

static leat_status gather_nd(leat_kernel *k)
{
    return gather_from(k, leat_kernel_in(k, 0));
}

static leat_status resource_gather_nd(leat_kernel *k)
{
    leat_variable *v;
    leat_tensor *params = NULL;
    LEAT_TRY(leat_kernel_variable_of(k, 0, leat_kernel_out_dtype(k, 0), &v));
    LEAT_TRY(leat_variable_read(v, &params));
    leat_status s = gather_from(k, params);
    leat_tensor_unref(params);
    return s;
}

static leat_status check_scatter(const leat_tensor *indices, const leat_tensor *updates,
                                 const leat_tensor *shape, leat_shape *to)
{
    const leat_shape *ix = &indices->shape, *u = &updates->shape;
    LEAT_REQUIRE(ix->rank >= 1, INVALID_ARGUMENT,
                 "Indices shape must have rank at least one. Found:%s", leat_shape_show(ix).s);
    LEAT_REQUIRE(u->rank >= 1, INVALID_ARGUMENT,
                 "Updates shape must have rank at least one. Found:%s", leat_shape_show(u).s);
    LEAT_REQUIRE(shape->shape.rank == 1, INVALID_ARGUMENT, "Shape must be a vector");
    LEAT_TRY(leat_shape_from_tensor(shape, to));
    LEAT_REQUIRE((indices->count == 0 && updates->count == 0) ||
                     (shape->count && indices->count && updates->count),
                 INVALID_ARGUMENT, "Indices and updates specified for empty output shape");
    int outer = ix->rank - 1;
    for (int d = 0; d < outer; d++)
        LEAT_REQUIRE(d < u->rank && ix->dim[d] == u->dim[d], INVALID_ARGUMENT,
                     "Outer dimensions of indices and update must match. Indices shape: %s, "
                     "updates shape:%s",
                     leat_shape_show(ix).s, leat_shape_show(u).s);
    int64_t depth = ix->dim[outer];
    LEAT_REQUIRE(depth <= to->rank && u->rank - outer == to->rank - depth, INVALID_ARGUMENT,
                 "Inner dimensions of output shape must match inner dimensions of updates shape. "
                 "Output: %s updates: %s",
                 leat_shape_show(to).s, leat_shape_show(u).s);
    for (int d = outer; d < u->rank; d++)
        LEAT_REQUIRE(u->dim[d] == to->dim[depth + d - outer], INVALID_ARGUMENT,
                     "The inner %d dimensions of output.shape=%s must match the inner %d "
                     "dimensions of updates.shape=%s",
                     to->rank - (int)depth, leat_shape_show(to).s, u->rank - outer,
                     leat_shape_show(u).s);
    return NULL;
}

/* The sum of strings is their concatenation. */
static leat_status append(leat_string *to, const leat_string *s)
{
    if (s->size == 0)
        return NULL;
    size_t size = to->size + s->size;
    char *both = size < SIZE_MAX ? realloc(to->data, size + 1) : NULL;
    LEAT_REQUIRE(both, RESOURCE_EXHAUSTED, "OOM when adding a string of %zu bytes", s->size);
    memcpy(both + to->size, s->data, s->size);
    both[size] = '\0';
    *to = (leat_string){both, size};
    return NULL;
}

static leat_status scatter_strings(leat_tensor *y, const leat_tensor *indices,
                                   const leat_tensor *updates)
{
    gather_args g = {.params = y, .indices = indices};
    g.depth = indices->shape.dim[indices->shape.rank - 1];
    LEAT_REQUIRE(g.depth >= 1, INVALID_ARGUMENT,
                 "Only indices.shape[-1] values between 1 and 5 are currently supported.  "
                 "Requested rank: 0");
    int64_t n = indices->count / g.depth, inner = updates->count / n;
    for (int64_t i = 0; i < n; i++)
        LEAT_REQUIRE(place(&g, i) >= 0, INVALID_ARGUMENT,
                     "indices[%" PRId64 "] does not index into shape %s", i,
                     leat_shape_show(&y->shape).s);
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = 0; e < inner; e++)
            LEAT_TRY(append(leat_element(y, place(&g, i) * inner + e),
                            leat_element(updates, i * inner + e)));
    return NULL;
}

static leat_status scatter_nd(leat_kernel *k)
{
    const leat_tensor *indices = leat_kernel_in(k, 0), *updates = leat_kernel_in(k, 1);
    leat_shape to;
    leat_tensor *y;
    LEAT_TRY(check_scatter(indices, updates, leat_kernel_in(k, 2), &to));
    LEAT_TRY(leat_kernel_out(k, 0, &to, &y));
    LEAT_TRY(leat_move_zero(k, y));
    if (indices->count == 0)
        return NULL;
    return y->dtype == LEAT_STRING ? scatter_strings(y, indices, updates)
                                   : leat_scatter_nd(y, indices, updates, LEAT_UPDATE_ADD);
}

/* The output uses input 0's memory if it has no other user, else it is a copy. */
static leat_status scatter_into(leat_kernel *k, leat_update_op op)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &x->shape, &y));
    if (y->data != x->data)
        LEAT_TRY(leat_move_flat(k, x->dtype, y->data, x->data, x->count));
    return leat_scatter_nd(y, leat_kernel_in(k, 1), leat_kernel_in(k, 2), op);
}

static leat_status scatter_update(leat_kernel *k)
{
    return scatter_into(k, LEAT_UPDATE_ASSIGN);
}

static leat_status scatter_add(leat_kernel *k)
{
    return scatter_into(k, LEAT_UPDATE_ADD);
}

static leat_status scatter_sub(leat_kernel *k)
{
    return scatter_into(k, LEAT_UPDATE_SUB);
}

#define NUMBERS (LEAT_TYPES_REAL | LEAT_TYPES_COMPLEX | LEAT_T(BOOL))

const leat_kernel_def leat_cpu_gather_nd[] = {
    {.op = "GatherNd", .run = gather_nd},
    {.op = "ResourceGatherNd", .run = resource_gather_nd},
    {.op = "ScatterNd", .where = {{"T", NUMBERS | LEAT_T(STRING)}}, .run = scatter_nd},
    {.op = "TensorScatterUpdate", .run = scatter_update},
    {.op = "TensorScatterAdd", .where = {{"T", NUMBERS}}, .run = scatter_add},
    {.op = "TensorScatterSub", .where = {{"T", NUMBERS}}, .run = scatter_sub},
    {.op = "ScatterNdNonAliasingAdd", .where = {{"T", NUMBERS}}, .run = scatter_add},
    {0},
};
