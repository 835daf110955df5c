/* broadcast.c -- BroadcastTo, Tile, BroadcastArgs, BroadcastGradientArgs. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"

static leat_status broadcast_to(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_shape s;
    leat_tensor *y;
    LEAT_TRY(leat_shape_from_tensor(leat_kernel_in(k, 1), &s));
    if (leat_shape_equal(&x->shape, &s)) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    int front = s.rank - x->shape.rank;
    LEAT_REQUIRE(front >= 0, INVALID_ARGUMENT,
                 "Rank of input (%d) must be no greater than rank of output shape (%d).",
                 x->shape.rank, s.rank);
    for (int d = front; d < s.rank; d++) {
        int64_t from = x->shape.dim[d - front];
        LEAT_REQUIRE(from == s.dim[d] || from == 1 || s.dim[d] == 1, INVALID_ARGUMENT,
                     "Incompatible shapes: %s vs. %s", leat_shape_show(&x->shape).s,
                     leat_shape_show(&s).s);
        LEAT_REQUIRE(from == s.dim[d] || from == 1, INVALID_ARGUMENT,
                     "Unable to broadcast tensor of shape %s to tensor of shape %s",
                     leat_shape_show(&x->shape).s, leat_shape_show(&s).s);
    }
    int64_t from[LEAT_MAX_RANK], to[LEAT_MAX_RANK];
    leat_move m;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    leat_strides(&x->shape, from);
    leat_strides(&s, to);
    leat_move_begin(&m);
    for (int d = 0; d < s.rank; d++)
        leat_move_dim(&m, s.dim[d], to[d],
                      d < front || x->shape.dim[d - front] == 1 ? 0 : from[d - front]);
    return leat_move_run(k, &m, x->dtype, y->data, x->data);
}

static leat_status tile(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *t = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected multiples to be 1-D, but got shape %s", leat_shape_show(&t->shape).s);
    LEAT_REQUIRE(t->count == x->shape.rank, INVALID_ARGUMENT,
                 "Expected multiples argument to be a vector of length %d but got length %" PRId64,
                 x->shape.rank, t->count);
    leat_shape s = {.rank = x->shape.rank};
    for (int d = 0; d < s.rank; d++) {
        int64_t times = leat_index_at(t, d);
        LEAT_REQUIRE(times >= 0, INVALID_ARGUMENT, "Expected multiples[%d] >= 0, but got %" PRId64,
                     d, times);
        LEAT_REQUIRE(leat_mul_ok(x->shape.dim[d], times, &s.dim[d]), INVALID_ARGUMENT,
                     "Dimension %d times %" PRId64 " is too large", d, times);
    }
    if (leat_shape_equal(&x->shape, &s)) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    int64_t from[LEAT_MAX_RANK], to[LEAT_MAX_RANK];
    leat_tensor *y;
    leat_move m;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    if (y->count == 0)
        return NULL;
    leat_strides(&x->shape, from);
    leat_strides(&s, to);
    leat_move_begin(&m);
    for (int d = 0; d < s.rank; d++) { /* repeats the dimension */
        leat_move_dim(&m, leat_index_at(t, d), to[d] * x->shape.dim[d], 0);
        leat_move_dim(&m, x->shape.dim[d], to[d], from[d]);
    }
    return leat_move_run(k, &m, x->dtype, y->data, x->data);
}

static void store(leat_tensor *t, int64_t i, int64_t v)
{
    if (t->dtype == LEAT_INT32)
        AT(int32_t, t)[i] = (int32_t)v;
    else
        AT(int64_t, t)[i] = v;
}

/* Dimension i of n, counted from the back, in a shape that is padded with ones in front. */
static int64_t from_back(const leat_tensor *s, int64_t i)
{
    return i < s->count ? leat_index_at(s, s->count - 1 - i) : 1;
}

static leat_status read_args(leat_kernel *k, const leat_tensor **s0, const leat_tensor **s1)
{
    *s0 = leat_kernel_in(k, 0);
    *s1 = leat_kernel_in(k, 1);
    for (int i = 0; i < 2; i++) {
        const leat_shape *s = &leat_kernel_in(k, i)->shape;
        LEAT_REQUIRE(s->rank == 1, INVALID_ARGUMENT, "In[%d] must be a vector.%s", i,
                     leat_shape_show(s).s);
    }
    int64_t n = (*s0)->count > (*s1)->count ? (*s0)->count : (*s1)->count;
    for (int64_t i = 0; i < n; i++) {
        int64_t a = from_back(*s0, i), b = from_back(*s1, i);
        LEAT_REQUIRE(a == b || a == 1 || b == 1, INVALID_ARGUMENT,
                     "Incompatible shapes: [%s] vs. [%s]", leat_ints_show(*s0, ",").s,
                     leat_ints_show(*s1, ",").s);
    }
    return NULL;
}

static leat_status broadcast_args(leat_kernel *k)
{
    const leat_tensor *s0 = NULL, *s1 = NULL;
    leat_tensor *r;
    LEAT_TRY(read_args(k, &s0, &s1));
    int64_t n = s0->count > s1->count ? s0->count : s1->count;
    leat_shape s = {.rank = 1, .dim = {n}};
    LEAT_TRY(leat_kernel_out(k, 0, &s, &r));
    for (int64_t i = 0; i < n; i++) {
        int64_t a = from_back(s0, i), b = from_back(s1, i);
        store(r, n - 1 - i, a == 1 ? b : a);
    }
    return NULL;
}

/* The axes to sum over to get from the common shape back to shape `which`; gives their number.
 * Dimensions that are 1 in both are included, unless the shapes are the same. */
static int64_t reduced(const leat_tensor *const *s, int which, bool same, leat_tensor *r)
{
    int64_t n = s[0]->count > s[1]->count ? s[0]->count : s[1]->count, found = 0;
    for (int64_t i = n - 1; !same && i >= 0; i--) {
        if (from_back(s[which], i) != 1)
            continue;
        if (r)
            store(r, found, n - 1 - i);
        found++;
    }
    return found;
}

static leat_status gradient_args(leat_kernel *k)
{
    const leat_tensor *s[2] = {0};
    LEAT_TRY(read_args(k, &s[0], &s[1]));
    bool same =
        s[0]->count == s[1]->count && memcmp(s[0]->data, s[1]->data, leat_tensor_bytes(s[0])) == 0;
    for (int i = 0; i < 2; i++) {
        leat_shape n = {.rank = 1, .dim = {reduced(s, i, same, NULL)}};
        leat_tensor *r;
        LEAT_TRY(leat_kernel_out(k, i, &n, &r));
        reduced(s, i, same, r);
    }
    return NULL;
}

const leat_kernel_def leat_cpu_broadcast[] = {
    {.op = "BroadcastTo", .run = broadcast_to},
    {.op = "Tile", .run = tile},
    {.op = "BroadcastArgs", .run = broadcast_args},
    {.op = "BroadcastGradientArgs", .run = gradient_args},
    {0},
};
