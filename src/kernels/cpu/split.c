/* split.c -- Split, SplitV, Unpack. Along the first dim the outputs are views of the input;
 * otherwise the columns of a matrix (dims before the axis, the rest) are copied out. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"

/* Sets output i, of shape s, to the part [begin, end) of the axis. */
static leat_status part(leat_kernel *k, const leat_tensor *x, int axis, int64_t begin, int64_t end,
                        int i, const leat_shape *s)
{
    int64_t rows = leat_shape_product(&x->shape, 0, axis);
    int64_t inner = leat_shape_product(&x->shape, axis + 1, x->shape.rank);
    leat_tensor *y;
    size_t offset = x->count ? (size_t)(begin * inner) * leat_element_size(x->dtype) : 0;
    if (axis == 0 && ((uintptr_t)x->data + offset) % LEAT_ALIGN == 0) {
        leat_tensor *rows_of;
        LEAT_TRY(leat_tensor_rows(x, begin, end, &rows_of));
        leat_status bad = leat_tensor_reshape(rows_of, *s, &y);
        leat_tensor_unref(rows_of);
        LEAT_TRY(bad);
        leat_kernel_set(k, i, y);
        return NULL;
    }
    LEAT_TRY(leat_kernel_out(k, i, s, &y));
    if (y->count == 0)
        return NULL;
    leat_move m;
    leat_move_begin(&m);
    leat_move_dim(&m, rows, (end - begin) * inner, x->shape.dim[axis] * inner);
    leat_move_dim(&m, (end - begin) * inner, 1, 1);
    return leat_move_run(k, &m, x->dtype, y->data, leat_element(x, begin * inner));
}

static leat_status axis_of(int64_t given, const leat_tensor *x, int64_t *axis)
{
    int rank = x->shape.rank;
    *axis = given < 0 ? given + rank : given;
    LEAT_REQUIRE(*axis >= 0 && *axis < rank, INVALID_ARGUMENT,
                 "-input rank(-%d) <= split_dim < input rank (%d), but got %" PRId64, rank, rank,
                 given);
    return NULL;
}

static leat_status split(leat_kernel *k)
{
    const leat_tensor *t = leat_kernel_in(k, 0), *x = leat_kernel_in(k, 1);
    int n = leat_node_outputs(leat_kernel_node(k));
    int64_t axis;
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "split_dim must be a scalar but has rank %d",
                 t->shape.rank);
    LEAT_TRY(axis_of(AT(int32_t, t)[0], x, &axis));
    LEAT_REQUIRE(x->shape.dim[axis] % n == 0, INVALID_ARGUMENT,
                 "Number of ways to split should evenly divide the split dimension, but got "
                 "split_dim %" PRId64 " (size = %" PRId64 ") and num_split %d",
                 axis, x->shape.dim[axis], n);
    if (n == 1) {
        leat_kernel_forward(k, 0, 1);
        return NULL;
    }
    leat_shape s = x->shape;
    s.dim[axis] /= n;
    for (int i = 0; i < n; i++)
        LEAT_TRY(part(k, x, (int)axis, i * s.dim[axis], (i + 1) * s.dim[axis], i, &s));
    return NULL;
}

/* Checks that the sizes add up to the dim; a -1 is replaced by the rest. */
static leat_status check_sizes(const leat_tensor *sizes, int64_t dim, int64_t *left)
{
    int64_t sum = 0;
    bool open = false;
    for (int64_t i = 0; i < sizes->count; i++) {
        int64_t size = leat_index_at(sizes, i);
        LEAT_REQUIRE(size != -1 || !open, INVALID_ARGUMENT,
                     "There can only be one -1 in the input.");
        open |= size == -1;
        LEAT_REQUIRE(size >= -1 && leat_add_ok(sum, size < 0 ? 0 : size, &sum), INVALID_ARGUMENT,
                     "Split size at index %" PRId64 " must be >= 0. Got: %" PRId64, i, size);
    }
    LEAT_REQUIRE(open ? sum <= dim : sum == dim, INVALID_ARGUMENT,
                 "Determined shape must either match input shape along split_dim exactly if fully "
                 "specified, or be less than the size of the input along split_dim if not fully "
                 "specified.  Got: %" PRId64,
                 sum);
    *left = dim - sum;
    return NULL;
}

static leat_status split_v(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *sizes = leat_kernel_in(k, 1),
                      *t = leat_kernel_in(k, 2);
    int n = leat_node_outputs(leat_kernel_node(k));
    int64_t axis, left = 0, at = 0;
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT,
                 "split_dim_tensor must have exactly one element.");
    LEAT_REQUIRE(sizes->shape.rank == 1 && sizes->count == n, INVALID_ARGUMENT,
                 "size of the split_tensor must be 1-D and have the same elements as outputs got "
                 "%d -D and %" PRId64 " elements",
                 sizes->shape.rank, sizes->count);
    LEAT_TRY(axis_of(AT(int32_t, t)[0], x, &axis));
    if (n == 1) {
        LEAT_REQUIRE(leat_index_at(sizes, 0) == x->shape.dim[axis], INVALID_ARGUMENT,
                     "If there is only one output, it must have the same size as the input. Input "
                     "size: %" PRId64 " output size: %" PRId64,
                     x->shape.dim[axis], leat_index_at(sizes, 0));
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    LEAT_TRY(check_sizes(sizes, x->shape.dim[axis], &left));
    leat_shape s = x->shape;
    for (int i = 0; i < n; i++) {
        int64_t size = leat_index_at(sizes, i);
        s.dim[axis] = size < 0 ? left : size;
        LEAT_TRY(part(k, x, (int)axis, at, at + s.dim[axis], i, &s));
        at += s.dim[axis];
    }
    return NULL;
}

static leat_status unpack_init(const leat_node *n, void *state)
{
    *(int64_t *)state = leat_node_int(n, "axis");
    return NULL;
}

static leat_status unpack(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    int n = leat_node_outputs(leat_kernel_node(k)), rank = x->shape.rank;
    int64_t given = *(const int64_t *)leat_kernel_state(k), axis = given < 0 ? given + rank : given;
    LEAT_REQUIRE(axis >= 0 && axis < rank, INVALID_ARGUMENT, "axis = %" PRId64 " not in [%d, %d)",
                 given, -rank, rank);
    LEAT_REQUIRE(x->shape.dim[axis] == n, INVALID_ARGUMENT,
                 "Input shape axis %" PRId64 " must equal %d, got shape %s", axis, n,
                 leat_shape_show(&x->shape).s);
    leat_shape front = {.rank = (int)axis}, s;
    memcpy(front.dim, x->shape.dim, sizeof(*front.dim) * (size_t)axis);
    LEAT_TRY(leat_shape_join(&front, &x->shape, (int)axis + 1, &s));
    for (int i = 0; i < n; i++)
        LEAT_TRY(part(k, x, (int)axis, i, i + 1, i, &s));
    return NULL;
}

const leat_kernel_def leat_cpu_split[] = {
    {.op = "Split", .run = split},
    {.op = "SplitV", .run = split_v},
    {.op = "Unpack", .run = unpack, .state_size = sizeof(int64_t), .init = unpack_init},
    {0},
};
