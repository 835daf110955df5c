/* reduce.c -- reductions over any dimensions, L2Loss, BiasAddGrad, ArgMax and ArgMin. */
#include "kernels/opencl/reduce.h"

#include <string.h>

#include "core/element.h"
#include "kernels/cpu/cpu.h"

extern const leat_cl_text leat_cl_text_reduce;
static const leat_cl_text *const texts[] = {&leat_cl_text_reduce, NULL};

/* The second pass of a reduction: what was squared in the first one is added. */
static const char *second(const char *function)
{
    return strcmp(function, "sum_squares") == 0 ? "sum" : function;
}

leat_status leat_cl_reduce(leat_kernel *k, const char *function, leat_dtype t, const void *x,
                           int64_t outer, int64_t along, int64_t inner, double divide, void *y)
{
    leat_opencl *d = leat_cl_of(k);
    const int64_t chunk = !d->listed->on_cpu ? 256 : inner == 1 ? 4096 : 512;
    const int64_t parts = along <= chunk ? 1 : (along + chunk - 1) / chunk;
    leat_tensor *some = NULL;
    if (!outer || !inner)
        return NULL;
    if (parts > 1) {
        const leat_shape shape = leat_shape(outer, parts, inner);
        LEAT_TRY(leat_kernel_temp(k, t, &shape, &some));
    }
    leat_cl_launch l = leat_cl_begin(d, texts, "", function);
    leat_cl_at(&l, x);
    leat_cl_at(&l, some ? some->data : y);
    leat_cl_int(&l, outer);
    leat_cl_int(&l, along);
    leat_cl_int(&l, inner);
    leat_cl_int(&l, parts);
    leat_cl_int(&l, chunk);
    leat_cl_float(&l, some ? 1 : divide);
    const int64_t rows = outer * parts;
    LEAT_TRY(leat_cl_each(&l, d->listed->on_cpu ? rows : rows * inner,
                          d->listed->on_cpu ? (double)(along / parts) * (double)inner * 0.2 : 100));
    return some ? leat_cl_reduce(k, second(function), t, some->data, outer, parts, inner, divide, y)
                : NULL;
}

/* ---- Over any dimensions ---- */

/* Neighbouring dimensions that are all reduced, or all not, are one. */
typedef struct runs {
    int n;
    int64_t dim[LEAT_MAX_RANK];
    bool reduced[LEAT_MAX_RANK];
    int64_t in_one; /* elements of the input in one of the output */
    leat_shape out;
} runs;

static leat_status find_runs(const leat_tensor *x, const leat_tensor *axes, bool keep, runs *r)
{
    const int rank = x->shape.rank;
    bool reduced[LEAT_MAX_RANK] = {0};
    for (int64_t i = 0; i < axes->count; i++) {
        const int64_t a = leat_index_at(axes, i);
        LEAT_REQUIRE(a >= -rank && a < rank, INVALID_ARGUMENT,
                     "Invalid reduction dimension (%lld for input with %d dimension(s)",
                     (long long)a, rank);
        reduced[a < 0 ? a + rank : a] = true;
    }
    *r = (runs){.in_one = 1};
    for (int d = 0; d < rank; d++) {
        const int64_t n = x->shape.dim[d];
        if (!reduced[d] || keep)
            r->out.dim[r->out.rank++] = reduced[d] ? 1 : n;
        r->in_one *= reduced[d] ? n : 1;
        if (n == 1)
            continue;
        if (r->n && r->reduced[r->n - 1] == reduced[d]) {
            r->dim[r->n - 1] *= n;
        } else {
            r->dim[r->n] = n;
            r->reduced[r->n++] = reduced[d];
        }
    }
    return NULL;
}

static const char *function_of(const char *op)
{
    return !strcmp(op, "Sum") || !strcmp(op, "Mean") ? "sum"
           : !strcmp(op, "Prod")                     ? "product"
           : !strcmp(op, "Max")                      ? "largest"
           : !strcmp(op, "Min")                      ? "smallest"
           : !strcmp(op, "All")                      ? "all_of"
                                                     : "any_of";
}

/* Reduces run i, the last one that is left, from *x, to y or to memory that *x is then. */
static leat_status reduce_run(leat_kernel *k, const char *function, runs *r, int i, double divide,
                              const leat_tensor **x, leat_tensor *y)
{
    int64_t outer = 1, inner = 1;
    bool last = true;
    for (int d = 0; d < i; d++) {
        outer *= r->dim[d];
        last &= !r->reduced[d];
    }
    for (int d = i + 1; d < r->n; d++)
        inner *= r->reduced[d] ? 1 : r->dim[d];
    leat_tensor *to = y;
    if (!last) {
        const leat_shape shape = leat_shape(outer, inner);
        LEAT_TRY(leat_kernel_temp(k, (*x)->dtype, &shape, &to));
    }
    LEAT_TRY(leat_cl_reduce(k, function, (*x)->dtype, (*x)->data, outer, r->dim[i], inner,
                            last ? divide : 1, to->data));
    *x = to;
    return NULL;
}

static leat_status reduce(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *x = leat_kernel_in(k, 0);
    const char *op = leat_node_op(n);
    runs r;
    bool any = false;
    leat_tensor *y;
    LEAT_TRY(find_runs(x, leat_kernel_in(k, 1), leat_node_bool(n, "keep_dims"), &r));
    for (int i = 0; i < r.n; i++)
        any |= r.reduced[i];
    if (!any) {
        LEAT_TRY(leat_tensor_reshape(x, r.out, &y));
        leat_kernel_set(k, 0, y);
        return NULL;
    }
    LEAT_TRY(leat_kernel_out(k, 0, &r.out, &y));
    const double divide = strcmp(op, "Mean") == 0 ? (double)r.in_one : 1;
    for (int i = r.n - 1; i >= 0 && y->count; i--)
        if (r.reduced[i])
            LEAT_TRY(reduce_run(k, function_of(op), &r, i, divide, &x, y));
    return NULL;
}

static leat_status l2_loss(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &y));
    return leat_cl_reduce(k, "sum_squares", LEAT_FLOAT, x->data, 1, x->count, 1, 2, y->data);
}

/* The sum of all but the channels, which are dimension 1 (NCHW) or the last one. */
static leat_status bias_add_grad(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const leat_shape *s = &x->shape;
    LEAT_REQUIRE(s->rank >= 2, INVALID_ARGUMENT, "Input tensor must be at least 2D: %s",
                 leat_shape_show(s).s);
    const bool first = strcmp(leat_node_string(leat_kernel_node(k), "data_format"), "NCHW") == 0;
    const int64_t channels = s->dim[first ? 1 : s->rank - 1];
    const leat_shape shape = leat_shape(channels), temp = leat_shape(s->dim[0], channels);
    leat_tensor *y, *sums;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    if (!channels)
        return NULL;
    if (!first || s->rank == 2)
        return leat_cl_reduce(k, "sum", LEAT_FLOAT, x->data, 1, x->count / channels, channels, 1,
                              y->data);
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &temp, &sums));
    if (s->dim[0])
        LEAT_TRY(leat_cl_reduce(k, "sum", LEAT_FLOAT, x->data, s->dim[0] * channels,
                                x->count / s->dim[0] / channels, 1, 1, sums->data));
    return leat_cl_reduce(k, "sum", LEAT_FLOAT, sums->data, 1, s->dim[0], channels, 1, y->data);
}

static leat_status place(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *axis = leat_kernel_in(k, 1);
    const int rank = x->shape.rank;
    LEAT_REQUIRE(axis->shape.rank == 0, INVALID_ARGUMENT,
                 "dim must be a scalar, but received tensor of shape: %s",
                 leat_shape_show(&axis->shape).s);
    int64_t a = leat_index_at(axis, 0), outer = 1, inner = 1;
    LEAT_REQUIRE(a >= -rank && a < rank, INVALID_ARGUMENT,
                 "Expected dimension in the range [%d, %d), but got %lld", -rank, rank,
                 (long long)a);
    a += a < 0 ? rank : 0;
    leat_shape shape = {0};
    for (int d = 0; d < rank; d++) {
        *(d < a ? &outer : &inner) *= d == a ? 1 : x->shape.dim[d];
        if (d != a)
            shape.dim[shape.rank++] = x->shape.dim[d];
    }
    const int64_t along = x->shape.dim[a];
    LEAT_REQUIRE(along > 0, INVALID_ARGUMENT, "Reduction axis %lld is empty in shape %s",
                 (long long)a, leat_shape_show(&x->shape).s);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    if (!y->count)
        return NULL;
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "",
                                     y->dtype == LEAT_INT32 ? "place_int" : "place_long");
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, y);
    leat_cl_int(&l, outer);
    leat_cl_int(&l, along);
    leat_cl_int(&l, inner);
    leat_cl_float(&l, strcmp(leat_node_op(leat_kernel_node(k)), "ArgMax") == 0 ? 1 : -1);
    return leat_cl_each(&l, y->count, (double)along);
}

#define FLOAT LEAT_T(FLOAT)
#define ROW(name, types)                                                                           \
    {                                                                                              \
        .op = name, .where = {{"T", types}}, .run = reduce, .host = "reduction_indices"            \
    }
#define PLACE(name)                                                                                \
    {                                                                                              \
        .op = name, .where = {{"T", FLOAT}}, .run = place, .host = "dimension"                     \
    }

const leat_kernel_def leat_opencl_reduce[] = {
    ROW("Sum", FLOAT),
    ROW("Mean", FLOAT),
    ROW("Prod", FLOAT),
    ROW("Max", FLOAT),
    ROW("Min", FLOAT),
    {.op = "All", .run = reduce, .host = "reduction_indices"},
    {.op = "Any", .run = reduce, .host = "reduction_indices"},
    PLACE("ArgMax"),
    PLACE("ArgMin"),
    {.op = "L2Loss", .where = {{"T", FLOAT}}, .run = l2_loss},
    {.op = "BiasAddGrad", .where = {{"T", FLOAT}}, .run = bias_add_grad},
    {0},
};
