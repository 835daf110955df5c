/* index.c -- rows that indices select: Gather, GatherV2, ResourceGather, OneHot, scatters and
 * UnsortedSegmentSum. Indices stay in the device's memory, so nobody can refuse one that selects no
 * row; index.cl passes it over. */
#include "kernels/cpu/indices.h"

#include <stdio.h>
#include <string.h>

#include "core/element.h"
#include "kernels/cpu/shapes.h"
#include "kernels/opencl/walk.h"
#include "runtime/variable_lock.h"

extern const leat_cl_text leat_cl_text_index;
static const leat_cl_text *const texts[] = {&leat_cl_text_index, NULL};

/* Begins a launch for elements of `size` bytes, or of type float where `combine` joins them. */
static leat_cl_launch begin(leat_kernel *k, leat_dtype index, size_t size, const char *combine,
                            const char *function)
{
    char options[80];
    const char *type = combine ? "float" : size == 1 ? "uchar" : size == 4 ? "uint" : "ulong";
    snprintf(options, sizeof options, "-DINDEX=%s -DT=%s%s%s",
             index == LEAT_UINT8   ? "uchar"
             : index == LEAT_INT32 ? "int"
                                   : "long",
             type, combine ? " -DCOMBINE=" : "", combine ? combine : "");
    return leat_cl_begin(leat_cl_of(k), texts, options, function);
}

/* ---- Gathers ---- */

static leat_status gather_init(const leat_node *n, void *state)
{
    *(int64_t *)state = leat_node_int(n, "batch_dims"); /* 0 for Gather, which has none */
    return NULL;
}

static leat_status gather(leat_kernel *k, const leat_tensor *params, bool after_batch)
{
    const leat_tensor *at = leat_kernel_in(k, 1);
    leat_gather_dims d;
    leat_tensor *y;
    LEAT_TRY(leat_gather_read(k, &params->shape, after_batch,
                              *(const int64_t *)leat_kernel_state(k), &d));
    LEAT_TRY(leat_kernel_out(k, 0, &d.shape, &y));
    if (!y->count)
        return NULL;
    LEAT_REQUIRE(params->count, INVALID_ARGUMENT, "rows of %s, which has none, are wanted",
                 leat_shape_show(&params->shape).s);
    const int64_t blocks = d.batch * d.outer, rows = blocks * d.picks;
    leat_cl_launch l = begin(k, at->dtype, leat_element_size(y->dtype), NULL, "gather");
    leat_cl_tensor(&l, params);
    leat_cl_tensor(&l, at);
    leat_cl_tensor(&l, y);
    leat_cl_int(&l, blocks);
    leat_cl_int(&l, d.outer);
    leat_cl_int(&l, d.dim);
    leat_cl_int(&l, d.picks);
    leat_cl_int(&l, d.inner);
    return leat_cl_of(k)->listed->on_cpu ? leat_cl_each(&l, rows, (double)d.inner)
                                         : leat_cl_each(&l, y->count, 1);
}

static leat_status gather_run(leat_kernel *k)
{
    return gather(k, leat_kernel_in(k, 0), false);
}

/* The lock is held until the work is enqueued: what is written later is written after it. */
static leat_status resource_gather(leat_kernel *k)
{
    leat_variable *v;
    LEAT_TRY(leat_kernel_variable_of(k, 0, leat_kernel_out_dtype(k, 0), &v));
    leat_variable_lock(v);
    leat_status s = v->value ? gather(k, v->value, true)
                             : leat_error(FAILED_PRECONDITION,
                                          "Attempting to use uninitialized value %s", v->name);
    leat_variable_unlock(v);
    return s;
}

/* ---- OneHot ---- */

static leat_status one_hot_init(const leat_node *n, void *state)
{
    *(int64_t *)state = leat_node_int(n, "axis");
    return NULL;
}

static leat_status one_hot(leat_kernel *k)
{
    const leat_tensor *at = leat_kernel_in(k, 0);
    leat_one_hot_dims d;
    leat_tensor *y;
    LEAT_TRY(leat_one_hot_read(k, *(const int64_t *)leat_kernel_state(k), &d));
    LEAT_TRY(leat_kernel_out(k, 0, &d.shape, &y));
    if (!y->count)
        return NULL;
    leat_cl_launch l = begin(k, at->dtype, leat_element_size(y->dtype), NULL, "one_hot");
    leat_cl_tensor(&l, at);
    leat_cl_tensor(&l, leat_kernel_in(k, 2));
    leat_cl_tensor(&l, leat_kernel_in(k, 3));
    leat_cl_tensor(&l, y);
    leat_cl_int(&l, d.before);
    leat_cl_int(&l, d.depth);
    leat_cl_int(&l, d.after);
    return leat_cl_each(&l, d.before * d.depth, (double)d.after);
}

/* ---- Scatters and sums ---- */

/* y (rows, inner) is combined with n rows of x, or with its one element. */
static leat_status combine(leat_kernel *k, const char *how, const leat_tensor *x,
                           const leat_tensor *at, const leat_tensor *y, int64_t rows,
                           int64_t inner)
{
    if (!at->count || !y->count)
        return NULL;
    leat_cl_launch l = begin(k, at->dtype, sizeof(float), how, "scatter");
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, at);
    leat_cl_tensor(&l, y);
    leat_cl_int(&l, rows);
    leat_cl_int(&l, at->count);
    leat_cl_int(&l, inner);
    leat_cl_int(&l, x->shape.rank > 0);
    return leat_cl_each(&l, inner, (double)at->count);
}

/* "ScatterAdd": ADD. */
static const char *how_of(const char *op)
{
    const char *name = strstr(op, "Scatter") + strlen("Scatter");
    static const char *const names[][2] = {{"Update", "ASSIGN"}, {"Add", "ADD"}, {"Sub", "SUB"},
                                           {"Mul", "MUL"},       {"Div", "DIV"}, {"Min", "MIN"},
                                           {"Max", "MAX"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static leat_status scatter_init(const leat_node *n, void *state)
{
    const char *how = *(const char **)state = how_of(leat_node_op(n));
    LEAT_REQUIRE(how, INTERNAL, "'%s' is no scatter of GPUs", leat_node_op(n));
    return NULL;
}

static leat_status scatter(leat_kernel *k)
{
    const leat_tensor *at = leat_kernel_in(k, 1), *x = leat_kernel_in(k, 2);
    const char *how = *(const char **)leat_kernel_state(k);
    leat_locked l;
    LEAT_TRY(leat_kernel_lock(k, 1, x->dtype, k->n_in, &l));
    const leat_tensor *y = l.value[0];
    leat_status s = leat_scatter_check(&y->shape, &at->shape, &x->shape);
    if (!s && y->count)
        s = combine(k, how, x, at, y, y->shape.dim[0], y->count / y->shape.dim[0]);
    leat_kernel_unlock(&l);
    if (!s && l.var[0]->base.type == &leat_ref_type)
        leat_kernel_forward(k, 0, 0);
    return s;
}

static leat_status segment_sum(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *at = leat_kernel_in(k, 1),
                      *n = leat_kernel_in(k, 2);
    LEAT_REQUIRE(n->shape.rank == 0, INVALID_ARGUMENT,
                 "num_segments should be a scalar, not shape %s", leat_shape_show(&n->shape).s);
    LEAT_REQUIRE(leat_shape_starts_with(&x->shape, &at->shape), INVALID_ARGUMENT,
                 "data.shape = %s does not start with segment_ids.shape = %s",
                 leat_shape_show(&x->shape).s, leat_shape_show(&at->shape).s);
    const leat_shape first = leat_shape(leat_index_at(n, 0));
    LEAT_REQUIRE(first.dim[0] >= 0, INVALID_ARGUMENT,
                 "Input num_segments == %lld must not be negative.", (long long)first.dim[0]);
    leat_shape shape;
    leat_tensor *y;
    LEAT_TRY(leat_shape_join(&first, &x->shape, at->shape.rank, &shape));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    LEAT_TRY(leat_cl_fill(leat_cl_of(k), y->data, y->count, sizeof(float), NULL));
    return x->count ? combine(k, "ADD", x, at, y, first.dim[0], x->count / at->count) : NULL;
}

#define NUMBERS (LEAT_T(FLOAT) | LEAT_T(INT64) | LEAT_T(BOOL))
#define GATHERS(name, attr, fn, host_)                                                             \
    {                                                                                              \
        .op = name, .where = {{attr, NUMBERS}}, .run = fn, .state_size = sizeof(int64_t),          \
        .init = gather_init, .host = host_                                                         \
    }
#define SCATTERS(name, attr)                                                                       \
    {                                                                                              \
        .op = name, .where = {{attr, LEAT_T(FLOAT)}}, .run = scatter,                              \
        .state_size = sizeof(char *), .init = scatter_init                                         \
    }
#define SCATTER(name) SCATTERS("Scatter" name, "T"), SCATTERS("ResourceScatter" name, "dtype")

const leat_kernel_def leat_opencl_index[] = {
    GATHERS("Gather", "Tparams", gather_run, NULL),
    GATHERS("GatherV2", "Tparams", gather_run, "axis"),
    GATHERS("ResourceGather", "dtype", resource_gather, NULL),
    {.op = "OneHot",
     .where = {{"T", NUMBERS}},
     .run = one_hot,
     .state_size = sizeof(int64_t),
     .init = one_hot_init,
     .host = "depth"},
    SCATTER("Update"),
    SCATTER("Add"),
    SCATTER("Sub"),
    SCATTER("Mul"),
    SCATTER("Div"),
    SCATTER("Min"),
    SCATTER("Max"),
    {.op = "UnsortedSegmentSum",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = segment_sum,
     .host = "num_segments"},
    {0},
};
