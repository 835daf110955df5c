/* concat.c -- Concat, ConcatV2, Pack: each value is a matrix of (dims before the axis, the rest),
 * and a row of the output is the concatenation of the values' rows. ConcatOffset gives the
 * offsets. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"

typedef struct concat_args {
    leat_kernel *k;
    int first, n; /* which inputs */
    int64_t rows;
    leat_tensor *y;
} concat_args;

/* Rows [begin, end) of all values. */
static void rows_part(void *arg, int64_t begin, int64_t end)
{
    const concat_args *c = arg;
    size_t row = leat_tensor_bytes(c->y) / (size_t)c->rows, at = 0;
    for (int i = 0; i < c->n; i++) {
        const leat_tensor *x = leat_kernel_in(c->k, c->first + i);
        size_t bytes = leat_tensor_bytes(x) / (size_t)c->rows;
        char *y = (char *)c->y->data + at;
        const char *from = x->data;
        for (int64_t r = begin; bytes && r < end; r++)
            memcpy(y + (size_t)r * row, from + (size_t)r * bytes, bytes);
        at += bytes;
    }
}

/* Writes the values into y, which has `rows` rows. */
static leat_status join(concat_args *c)
{
    /* Bytes of a value from which on the move engine splits it among threads. */
    enum { LARGE = 1 << 16 };
    if (c->y->count == 0)
        return NULL;
    if (!leat_is_managed(c->y->dtype) && !leat_move_is_far(c->k) &&
        (c->rows > 64 || leat_tensor_bytes(c->y) / (size_t)c->n < LARGE)) {
        double row = (double)leat_tensor_bytes(c->y) / (double)c->rows;
        leat_kernel_for(c->k, c->rows, 0.06 * row + 4 * c->n, rows_part, c);
        return NULL;
    }
    int64_t row = c->y->count / c->rows, at = 0;
    for (int i = 0; i < c->n; i++) {
        const leat_tensor *x = leat_kernel_in(c->k, c->first + i);
        int64_t part = x->count / c->rows;
        leat_move m;
        leat_move_begin(&m);
        leat_move_dim(&m, c->rows, row, part);
        leat_move_dim(&m, part, 1, 1);
        LEAT_TRY(leat_move_run(c->k, &m, x->dtype, leat_element(c->y, at), x->data));
        at += part;
    }
    return NULL;
}

static leat_status concat_inputs(leat_kernel *k, int first, int n, int at, const char *axis_name)
{
    const leat_tensor *axis_t = leat_kernel_in(k, at);
    LEAT_REQUIRE(axis_t->shape.rank == 0, INVALID_ARGUMENT,
                 "%s tensor should be a scalar integer, but got shape %s", axis_name,
                 leat_shape_show(&axis_t->shape).s);
    const leat_shape *s0 = &leat_kernel_in(k, first)->shape;
    int64_t given = leat_index_at(axis_t, 0), axis = given < 0 ? given + s0->rank : given;
    LEAT_REQUIRE(axis >= 0 && axis < s0->rank, INVALID_ARGUMENT,
                 "ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got "
                 "%" PRId64,
                 -s0->rank, s0->rank, given);
    leat_shape s = *s0;
    for (int i = 1; i < n; i++) {
        const leat_shape *x = &leat_kernel_in(k, first + i)->shape;
        LEAT_REQUIRE(x->rank == s.rank, INVALID_ARGUMENT,
                     "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. "
                     "shape[%d] = %s",
                     leat_shape_show(s0).s, i, leat_shape_show(x).s);
        for (int d = 0; d < s.rank; d++)
            LEAT_REQUIRE(d == axis || x->dim[d] == s.dim[d], INVALID_ARGUMENT,
                         "ConcatOp : Dimensions of inputs should match: shape[0] = %s vs. "
                         "shape[%d] = %s",
                         leat_shape_show(s0).s, i, leat_shape_show(x).s);
        LEAT_REQUIRE(leat_add_ok(s.dim[axis], x->dim[axis], &s.dim[axis]), INVALID_ARGUMENT,
                     "Dimension size overflow from concatenating");
    }
    concat_args c = {.k = k, .first = first, .n = n, .rows = leat_shape_product(&s, 0, (int)axis)};
    LEAT_TRY(leat_kernel_out(k, 0, &s, &c.y));
    return join(&c);
}

static leat_status concat(leat_kernel *k)
{
    return concat_inputs(k, 1, leat_kernel_inputs(k) - 1, 0, "concat_dim");
}

static leat_status concat_v2(leat_kernel *k)
{
    int n = leat_kernel_inputs(k) - 1;
    return concat_inputs(k, 0, n, n, "axis");
}

static leat_status pack_init(const leat_node *n, void *state)
{
    *(int64_t *)state = leat_node_int(n, "axis");
    return NULL;
}

static leat_status pack(leat_kernel *k)
{
    int64_t given = *(const int64_t *)leat_kernel_state(k);
    const leat_tensor *x0 = leat_kernel_in(k, 0);
    concat_args c = {.k = k, .n = leat_kernel_inputs(k)};
    for (int i = 1; i < c.n; i++) {
        const leat_tensor *x = leat_kernel_in(k, i);
        LEAT_REQUIRE(leat_shape_equal(&x0->shape, &x->shape), INVALID_ARGUMENT,
                     "Shapes of all inputs must match: values[0].shape = %s != values[%d].shape = "
                     "%s",
                     leat_shape_show(&x0->shape).s, i, leat_shape_show(&x->shape).s);
    }
    int rank = x0->shape.rank + 1;
    int64_t axis = given < 0 ? given + rank : given;
    LEAT_REQUIRE(axis >= 0 && axis < rank, INVALID_ARGUMENT, "axis = %" PRId64 " not in [%d, %d)",
                 given, -rank, rank);
    leat_shape one = {.rank = (int)axis + 1}, s;
    memcpy(one.dim, x0->shape.dim, sizeof(*one.dim) * (size_t)axis);
    one.dim[axis] = c.n;
    LEAT_TRY(leat_shape_join(&one, &x0->shape, (int)axis, &s));
    if (c.n == 1) {
        leat_tensor *y;
        LEAT_TRY(leat_tensor_reshape(x0, s, &y));
        leat_kernel_set(k, 0, y);
        return NULL;
    }
    c.rows = leat_shape_product(&s, 0, (int)axis);
    LEAT_TRY(leat_kernel_out(k, 0, &s, &c.y));
    return join(&c);
}

static leat_status concat_offset(leat_kernel *k)
{
    const leat_tensor *t = leat_kernel_in(k, 0), *x0 = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "Concat dim tensor should be a scalar integer, but got shape %s",
                 leat_shape_show(&t->shape).s);
    int n = leat_kernel_inputs(k) - 1;
    for (int i = 1; i <= n; i++)
        LEAT_REQUIRE(leat_kernel_in(k, i)->shape.rank == 1, INVALID_ARGUMENT,
                     "input %d should be a vector, but got shape %s", i,
                     leat_shape_show(&leat_kernel_in(k, i)->shape).s);
    int64_t dims = x0->count, given = AT(int32_t, t)[0], axis = given < 0 ? given + dims : given;
    LEAT_REQUIRE(axis >= 0 && axis < dims, INVALID_ARGUMENT,
                 "Concat dim is out of range: %" PRId64 " vs. %" PRId64, given, dims);
    uint32_t offset = 0;
    for (int i = 0; i < n; i++) {
        const leat_tensor *x = leat_kernel_in(k, 1 + i);
        leat_tensor *y;
        LEAT_REQUIRE(x->count == dims, INVALID_ARGUMENT,
                     "input %d should contain %" PRId64 " elements, but got %" PRId64, i, dims,
                     x->count);
        LEAT_TRY(leat_kernel_out(k, i, &x->shape, &y));
        for (int64_t d = 0; d < dims; d++) {
            AT(int32_t, y)[d] = d == axis ? (int32_t)offset : 0;
            LEAT_REQUIRE(d == axis || AT(int32_t, x)[d] == AT(int32_t, x0)[d], INVALID_ARGUMENT,
                         "All dimensions except %" PRId64 " must match. Input %d has shape [%s] "
                         "and doesn't match input 0 with shape [%s].",
                         axis, i, leat_ints_show(x, " ").s, leat_ints_show(x0, " ").s);
        }
        offset += (uint32_t)AT(int32_t, x)[axis];
    }
    return NULL;
}

const leat_kernel_def leat_cpu_concat[] = {
    {.op = "Concat", .run = concat},
    {.op = "ConcatV2", .run = concat_v2},
    {.op = "ConcatOffset", .run = concat_offset},
    {.op = "Pack", .run = pack, .state_size = sizeof(int64_t), .init = pack_init},
    {0},
};
