/* add_n.c -- AddN and AccumulateNV2: the sum from left to right, a tile at a time, so that it stays
 * in the nearest cache while the inputs pass by. L2Loss: half the sum of squares. */
#include "kernels/cpu/complex.h"
#include "kernels/cpu/reduce.h"

enum { TILE = 2048 };

typedef struct sum_args {
    leat_kernel *k;
    leat_tensor *y;
    int n;
} sum_args;

#define ADD_N(name, dtype, T)                                                                      \
    static void add_##T(const T *a, const T *b, T *y, int64_t n)                                   \
    {                                                                                              \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (T)((LEAT_WIDE(T))a[i] + (LEAT_WIDE(T))b[i]);                                   \
    }                                                                                              \
    static void add_n_##T(const sum_args *s, int64_t begin, int64_t end)                           \
    {                                                                                              \
        for (int64_t at = begin; at < end; at += TILE) {                                           \
            const int64_t n = end - at < TILE ? end - at : TILE;                                   \
            T *y = AT(T, s->y) + at;                                                               \
            add_##T(AT(T, leat_kernel_in(s->k, 0)) + at, AT(T, leat_kernel_in(s->k, 1)) + at, y,   \
                    n);                                                                            \
            for (int j = 2; j < s->n; j++)                                                         \
                add_##T(y, AT(T, leat_kernel_in(s->k, j)) + at, y, n);                             \
        }                                                                                          \
    }
LEAT_Y_REAL(ADD_N, )
LEAT_Y_COMPLEX(ADD_N, )

#define ADD_N_CASE(name, dtype, T)                                                                 \
    case LEAT_##dtype:                                                                             \
        add_n_##T(s, begin, end);                                                                  \
        break;

static void add_n_part(void *arg, int64_t begin, int64_t end)
{
    const sum_args *s = arg;
    switch (s->y->dtype) {
        LEAT_Y_REAL(ADD_N_CASE, )
        LEAT_Y_COMPLEX(ADD_N_CASE, )
    default:
        break;
    }
}

static leat_status add_n(leat_kernel *k)
{
    sum_args s = {.k = k, .n = leat_kernel_inputs(k)};
    const leat_tensor *x = leat_kernel_in(k, 0);
    for (int i = 1; i < s.n; i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        LEAT_REQUIRE(leat_shape_equal(&x->shape, &t->shape), INVALID_ARGUMENT,
                     "Inputs to operation %s of type %s must have the same size and shape.  Input "
                     "0: %s != input %d: %s",
                     leat_node_name(leat_kernel_node(k)), leat_node_op(leat_kernel_node(k)),
                     leat_shape_show(&x->shape).s, i, leat_shape_show(&t->shape).s);
    }
    if (s.n == 1) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &x->shape, &s.y));
    if (x->count == 1)
        add_n_part(&s, 0, 1);
    else
        leat_kernel_for(k, x->count, 0.15 * s.n, add_n_part, &s);
    return NULL;
}

/* ---- L2Loss ---- */
enum { PART = 16 * TILE }; /* elements to one partial sum */

typedef struct loss_args {
    const leat_tensor *x;
    void *parts;
    leat_reduce_fn sum;
} loss_args;

#define LOSS(T)                                                                                    \
    static void loss_##T(const loss_args *a, int64_t begin, int64_t end)                           \
    {                                                                                              \
        T squares[TILE], sums[PART / TILE];                                                        \
        for (int64_t p = begin; p < end; p++) {                                                    \
            const T *x = AT(T, a->x) + p * PART;                                                   \
            const int64_t left = a->x->count - p * PART, n = left < PART ? left : PART;            \
            int64_t tiles = 0;                                                                     \
            for (int64_t at = 0; at < n; at += TILE) {                                             \
                const int64_t w = n - at < TILE ? n - at : TILE;                                   \
                for (int64_t i = 0; i < w; i++)                                                    \
                    squares[i] = x[at + i] * x[at + i];                                            \
                a->sum(squares, w, 1, 1, sums + tiles++);                                          \
            }                                                                                      \
            a->sum(sums, tiles, 1, 1, (T *)a->parts + p);                                          \
        }                                                                                          \
    }
LOSS(float)
LOSS(double)

static void loss_part(void *arg, int64_t begin, int64_t end)
{
    const loss_args *a = arg;
    if (a->x->dtype == LEAT_FLOAT)
        loss_float(a, begin, end);
    else
        loss_double(a, begin, end);
}

static leat_status l2_loss(leat_kernel *k)
{
    loss_args a = {.x = leat_kernel_in(k, 0)};
    leat_tensor *y, *parts;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &y));
    a.sum = leat_reduce_find(LEAT_REDUCE_SUM, a.x->dtype);
    a.parts = y->data;
    const int64_t n = (a.x->count + PART - 1) / PART;
    if (n > 1) {
        leat_shape s = leat_shape(n);
        LEAT_TRY(leat_kernel_temp(k, a.x->dtype, &s, &parts));
        a.parts = parts->data;
    }
    leat_kernel_for(k, n, 0.3 * PART, loss_part, &a);
    if (n != 1)
        a.sum(a.parts, n, 1, 1, y->data);
    if (y->dtype == LEAT_FLOAT)
        AT(float, y)[0] *= 0.5f;
    else
        AT(double, y)[0] *= 0.5;
    return NULL;
}

#define KERNEL(op_, types, fn)                                                                     \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = fn, .flags = LEAT_KERNEL_VIA_FLOAT              \
    }

const leat_kernel_def leat_cpu_add_n[] = {
    KERNEL("AddN", LEAT_ROW_REAL | LEAT_ROW_COMPLEX, add_n),
    KERNEL("AccumulateNV2", LEAT_ROW_REAL | LEAT_ROW_COMPLEX, add_n),
    KERNEL("L2Loss", LEAT_ROW_FLOAT, l2_loss),
    {0},
};
